// SPDX-License-Identifier: MIT
//
// One of five masters sends without end. Whoever waits for the others does not notice.
#include "masters.hpp"
#include "support/connection.hpp"
#include "support/first_waiter.hpp"
#include "support/requests.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::connection;
using holdfast::test::containing;
using holdfast::test::eventually;
using holdfast::test::first_waiter;
using holdfast::test::proxy;
using holdfast::test::redis_fleet;
using holdfast::test::waiter_call;

namespace {

/// What is sent without end, and to which connections.
struct stream {
    std::string bytes;
    std::string to;
};

std::string message(std::string const& channel, std::string const& text = "1")
{
    auto const word = [](std::string const& w) { return '$' + std::to_string(w.size()) + "\r\n" + w + "\r\n"; };
    return "*3\r\n" + word("message") + word(channel) + word(text);
}

/// Takes longer to understand than to send.
std::string laborious(std::string const& channel)
{
    constexpr int elements = 1000;
    auto all = '*' + std::to_string(elements) + message(channel).substr(2);
    for (int i = 3; i < elements; ++i) all += "*0\r\n";
    return all;
}

/// Calls of the waiters for "orders" that a client has from now on, in whose inbox `first` was called.
std::string calls_of_waiters(waiter_call const& first)
{
    constexpr std::size_t reserve_digits = 4;
    std::string all;
    for (int number = 1; number <= 64; ++number)
        all += message(first.channel, first.text.substr(0, reserve_digits) + std::to_string(number) + " orders");
    return all;
}

constexpr std::size_t kinds_of_streams = 8;

stream make_stream(std::size_t kind, waiter_call const& first)
{
    std::vector<stream> const all{
        {laborious(first.channel), "SUBSCRIBE"},
        {calls_of_waiters(first), "SUBSCRIBE"},
        {message("x", ""), "SUBSCRIBE"},
        {message("something:else", std::string(1000, 'x')), "SUBSCRIBE"},
        {":0\r\n", "EVAL"},
        {message(first.channel, first.text), "EVAL"},
        {"$1000000\r\n", "EVAL"},
        {"*1\r\n", "SUBSCRIBE"},
    };
    REQUIRE(all.size() == kinds_of_streams);
    return all.at(kind);
}

/// Five masters, the first of them behind a proxy, and a client that is connected to all.
struct flooded {
    redis_fleet servers{5};
    proxy way{servers[0].port()};
    masters client;
    masters elsewhere{servers.urls(), {.node_timeout = 3s, .connect_timeout = 3s, .restart_guard = 0ms}};
    mutex taken{elsewhere, "orders", {.ttl = 1h}};

    /// `node_timeout`, `connect_timeout`: of the client.
    explicit flooded(std::chrono::milliseconds node_timeout = 1s, std::chrono::milliseconds connect_timeout = 1s)
        : client{urls(), {.node_timeout = node_timeout, .connect_timeout = connect_timeout, .restart_guard = 0ms}}
    {
        REQUIRE(lock_on_all(servers, taken, "orders"));
    }

    /// Returns: how the client's waiter for "orders" is called, which waits no longer then.
    waiter_call call()
    {
        mutex m{client, "orders"};
        std::jthread const waiter{[&](std::stop_token const& stop) { (void)m.lock(stop); }};
        connection first{servers[0].port()};
        waiter_call found;
        REQUIRE(eventually([&] { return bool{(found = first_waiter(first, "orders"))}; }));
        return found;
    }

    /// Effects: has the connections be sent this that the client makes from now on, in place of those that it has.
    /// Returns: what says how many are.
    std::function<int()> begin(stream const& flood)
    {
        auto struck = way.count(containing(flood.to));
        way.flood(flood.bytes, containing(flood.to));
        way.cut_all();
        return struck;
    }

    std::vector<std::string> urls()
    {
        auto all = servers.urls();
        all[0] = way.url();
        return all;
    }
};

/// How much later than it is meant to a call may return on a busy machine. A flood that keeps it lasts longer.
constexpr auto busy_machine = 10s;
constexpr auto length = 30s;

/// Ends a flood after a while, so that a test that fails ends.
class ends_in_time {
public:
    explicit ends_in_time(proxy& way)
        : thread_{[this, &way] {
              if (over_.get_future().wait_for(length) == std::future_status::timeout) way.heal();
          }}
    {
    }
    ~ends_in_time() { over_.set_value(); }
    ends_in_time(ends_in_time const&) = delete;
    ends_in_time& operator=(ends_in_time const&) = delete;

private:
    std::promise<void> over_;
    std::jthread thread_;
};

}  // namespace

TEST_CASE("a master that sends without end keeps nobody beyond his time")
{
    auto const kind = GENERATE(range(std::size_t{0}, kinds_of_streams));
    flooded five;
    auto const flood = make_stream(kind, five.call());
    CAPTURE(flood.to, flood.bytes);
    mutex m{five.client, "orders"};
    mutex other{five.client, "invoices", {.ttl = 1min}};
    auto const struck = five.begin(flood);
    ends_in_time const limit{five.way};
    for (int i = 0; i < 3; ++i) {
        auto const begun = boot_clock::now();
        CHECK_FALSE(m.try_lock_for(300ms));
        CHECK(boot_clock::now() - begun < 300ms + 1s + busy_machine);
    }
    CHECK(eventually([&] {
        static_cast<void>(m.try_lock_for(300ms));
        return struck() > 0;
    }));
    auto const begun = boot_clock::now();
    CHECK(other.try_lock_for(20s));
    std::error_code ec;
    other.unlock(ec);
    CHECK_FALSE(ec);
    CHECK(boot_clock::now() - begun < busy_machine);
}

TEST_CASE("a lease on four good masters is renewed, and its loss announced, while the fifth sends without end")
{
    auto const kind = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{4});
    flooded five;
    auto const flood = make_stream(kind, five.call());
    CAPTURE(flood.to, flood.bytes);
    mutex m{five.client, "orders"};
    mutex held{five.client, "invoices", {.ttl = 4s}};
    REQUIRE(held.try_lock_for(20s));
    auto const struck = five.begin(flood);
    ends_in_time const limit{five.way};
    std::stop_source stop;
    std::jthread const waiter{[&] { (void)m.lock(stop.get_token()); }};  // so that somebody reads what comes
    auto const lease = held.lease();
    auto until = lease.expires_at();
    CHECK(eventually([&] { return lease.expires_at() != until || !lease.still_held(); }, 10s));
    REQUIRE(lease.still_held());
    CHECK(eventually([&] { return struck() > 0; }));
    for (std::size_t i = 1; i < 4; ++i) five.servers.kill(i);
    until = lease.expires_at();
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }, length));
    CHECK(boot_clock::now() < std::max(until, lease.expires_at()) + 2s);
    stop.request_stop();
}

TEST_CASE("a subscription that floods is told once, and once when that is over, and its master keeps its vote")
{
    std::atomic<int> begun{0};
    std::atomic<int> over{0};
    // A busy machine must not give the connection up for another reason, and has to read 4 MiB in a second: what is
    // sent is quickly read. Beside other tests it may be some minutes before it does.
    flooded five{10s, 1min};
    holdfast::lock_options const options{.on_error = [&](holdfast::error const& e) {
        if (e.code() != holdfast::redis::errc::protocol_error) return;  // a busy machine: late answers
        CHECK(std::string{e.what()}.find("its subscription to releases") != std::string::npos);
        CHECK(std::string{e.what()}.find(e.server()) != std::string::npos);
        ++(e.over() ? over : begun);
    }};
    mutex m{five.client, "orders", options};
    mutex other{five.client, "invoices", options};
    auto const use_until = [&](auto const& condition) {
        return eventually(
            [&] {
                try {
                    std::error_code ec;
                    bool const got = m.try_lock_for(100ms);
                    CHECK_FALSE(got);
                    if (other.try_lock_for(1s)) other.unlock(ec);
                } catch (holdfast::error const&) {  // the machine is busy
                }
                return condition();
            },
            15min);
    };
    five.way.flood(message("something:else", std::string(100'000, 'x')), containing("SUBSCRIBE"));
    REQUIRE(use_until([&] { return begun != 0; }));
    CHECK(use_until([&] {
        auto const known = five.client.status().front();
        return known.subscription_error == holdfast::redis::errc::protocol_error && known.votes;
    }));
    CHECK(over == 0);
    five.way.heal();
    CHECK(use_until([&] { return over != 0; }));
    CHECK(begun == 1);
    CHECK(over == 1);
    CHECK_FALSE(five.client.status().front().subscription_error);
}
