// SPDX-License-Identifier: MIT
//
// Who is told of a call that comes to the inbox of a client. No connection.
#include "support/catch.hpp"

#include <holdfast/redis/inbox.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::redis::inbox;
using holdfast::redis::waiter_id;
using holdfast::redis::waiter_text;

namespace {

constexpr boot_clock::time_point t0{1h};
constexpr std::uint64_t number = 7;

class caller final : public holdfast::redis::listener {
public:
    void on_answer(unsigned, holdfast::redis::answer const&, boot_clock::time_point) override {}
    void on_released(unsigned, boot_clock::time_point) override { ++called; }

    int called = 0;
};

/// An inbox, and the locks for which it had the next waiter called.
struct client {
    std::vector<std::string> passed_on;
    inbox box{number, [this](unsigned, waiter_id const&, std::string_view lock) { passed_on.emplace_back(lock); }};
    caller one;
    waiter_id waiter = box.enter(&one, 50ms);

    /// What a server says that calls the waiter of a lock of this name; of a long one it leaves out the name.
    void call(std::string const& lock)
    {
        waiter_text const who{waiter};
        box.on_message(0, std::string{who.view().substr(who.inbox().size())} + ' ' + lock, t0);
    }
};

}  // namespace

TEST_CASE("a waiter is called, also for a lock whose name is too long to be said")
{
    client c;
    c.call("orders");
    CHECK(c.one.called == 1);
    c.call("");
    CHECK(c.one.called == 2);
    CHECK(c.passed_on.empty());
}

TEST_CASE("a call for a wait that is over is passed on, if it says for which lock it is")
{
    client c;
    c.box.leave(c.waiter);
    c.call("");
    CHECK(c.passed_on.empty());
    c.call("orders");
    CHECK(c.passed_on == std::vector<std::string>{"orders"});
    CHECK(c.one.called == 0);
}

TEST_CASE("what is no call, or calls a waiter that there never was, has no effect")
{
    client c;
    for (auto const* const text : {"", " ", "orders", "00321", "0032x orders", "00322 orders", "00320 orders"})
        c.box.on_message(0, text, t0);
    CHECK(c.one.called == 0);
    CHECK(c.passed_on.empty());
}
