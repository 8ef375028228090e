// SPDX-License-Identifier: MIT
//
// Look-ups of names while the name servers do not answer. The system's own are slow only where its settings are
// changed, so `getaddrinfo` is one of this program that ends when the test says so; addresses in digits go to the
// system's.
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/io/resolver.hpp>
#include <holdfast/io/stream.hpp>

#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <string>

using holdfast::io::resolver;
using holdfast::io::stream;
using holdfast::test::eventually;

namespace {

std::atomic<int> asked{0};
std::atomic<int> ended{0};
std::atomic<bool> answers{false};

bool readable(int descriptor)
{
    ::pollfd one{descriptor, POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
}

/// Name servers that do not answer until they are told to.
struct silent_names {
    int const before = asked;
    silent_names() { answers = false; }
    ~silent_names()
    {
        answers = true;
        CHECK(eventually([] { return ended == asked; }));
    }
    silent_names(silent_names const&) = delete;
    silent_names& operator=(silent_names const&) = delete;

    [[nodiscard]] int look_ups() const { return asked - before; }
};

}  // namespace

extern "C" int getaddrinfo(char const* host, char const* port, addrinfo const* hints, addrinfo** found)
{
    if ((hints->ai_flags & AI_NUMERICHOST) != 0) {
        auto* const system = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
        return system(host, port, hints, found);
    }
    ++asked;
    static_cast<void>(eventually([] { return answers.load(); }));
    ++ended;
    return EAI_NONAME;
}

TEST_CASE("who looks up a name again waits for the look-up that is under way")
{
    silent_names names;
    resolver one;
    for (int i = 0; i < 20; ++i) {
        one.start("orders.example", "6379");
        CHECK(one.descriptor() >= 0);
        one.cancel();
        CHECK(one.descriptor() < 0);
    }
    one.start("orders.example", "6379");
    CHECK(eventually([&] { return names.look_ups() == 1; }));
    CHECK_FALSE(readable(one.descriptor()));
    answers = true;
    CHECK(eventually([&] { return readable(one.descriptor()); }));
    CHECK(one.take().why == ::gai_strerror(EAI_NONAME));
    CHECK(names.look_ups() == 1);
}

TEST_CASE("a look-up that has ended is not taken for the next one, nor one for another name")
{
    silent_names names;
    resolver one;
    one.start("orders.example", "6379");
    CHECK(eventually([&] { return names.look_ups() == 1; }));
    one.cancel();
    one.start("bills.example", "6379");
    CHECK(eventually([&] { return names.look_ups() == 2; }));
    one.cancel();
    one.start("bills.example", "6380");
    CHECK(eventually([&] { return names.look_ups() == 3; }));
    answers = true;
    CHECK(eventually([&] { return readable(one.descriptor()); }));
    one.cancel();
    one.start("bills.example", "6380");
    CHECK(eventually([&] { return names.look_ups() == 4; }));
}

TEST_CASE("a look-up outlives who asked for it")
{
    silent_names names;
    auto one = std::make_unique<resolver>();
    one->start("orders.example", "6379");
    CHECK(eventually([&] { return names.look_ups() == 1; }));
    one.reset();
    answers = true;
    CHECK(eventually([] { return ended == asked; }));
}

TEST_CASE("an event that was of another descriptor of the same number does not end a look-up")
{
    silent_names names;
    stream one;
    REQUIRE(one.open({.host = "orders.example", .port = "6379", .path = {}, .tls = nullptr}));
    CHECK(one.go_on());
    CHECK(one.now() == stream::state::resolving);
    answers = true;
    CHECK(eventually([&] { return !one.go_on(); }));
    CHECK(one.why().detail == ::gai_strerror(EAI_NONAME));
}
