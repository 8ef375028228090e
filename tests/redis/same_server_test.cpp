// SPDX-License-Identifier: MIT
//
// Locks of clients that name one server differently: a `multi_mutex` of them must not wait for itself.
#include "observed.hpp"
#include "support/async_outcome.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/redis_server.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redis/script_table.hpp>

#include <chrono>
#include <future>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::multi_mutex;
using holdfast::redis::client;
using holdfast::redis::client_options;
using holdfast::redis::mutex;
using holdfast::test::async_outcome;
using holdfast::test::code_of;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::proxy;
using holdfast::test::redis_server;
using holdfast::test::unhurried;

namespace {

constexpr auto deadlock = std::errc::resource_deadlock_would_occur;

/// A server that clients know by two names; the second leads through a proxy.
struct known_twice {
    redis_server server;
    proxy way{server.port()};
    client here;
    client there;
    mutex orders{here, "orders", {.ttl = 1h, .unavailable_after = 1h}};
    mutex stock{here, "stock", {.ttl = 1h}};
    mutex same{there, "orders", {.ttl = 1h, .unavailable_after = 1h}};
    multi_mutex all{same, stock, orders};

    explicit known_twice(client_options const& options = unhurried())
        : here{server.url(), options}, there{"redis://localhost:" + std::to_string(way.port()), options}
    {
        for (auto* const one : {&orders, &same}) {  // connected; the server knows the scripts
            one->lock();
            one->unlock();
        }
    }

    [[nodiscard]] bool nothing_is_left()
    {
        return eventually([&] { return !exists(server, "orders") && !exists(server, "stock"); });
    }
};

/// Returns: whether a request asks who has a lock.
[[nodiscard]] bool asks_for_holder(std::string_view request)
{
    auto const& script = holdfast::redis::scripts::inspect;
    return request.find(script.sha1) != std::string_view::npos || request.find(script.text()) != std::string_view::npos;
}

}  // namespace

TEST_CASE("a lock that is given by two names of its server is refused, and none is held")
{
    known_twice s;
    std::string what;
    CHECK(code_of([&] { static_cast<void>(s.all.try_lock()); }, &what) == deadlock);
    CHECK_THAT(what, contains("\"orders\""));
    CHECK(s.nothing_is_left());
    CHECK(code_of([&] { s.all.lock(); }) == deadlock);
    CHECK(s.nothing_is_left());
    CHECK(code_of([&] { static_cast<void>(s.all.try_lock_for(1h)); }) == deadlock);
    CHECK(s.nothing_is_left());
    CHECK_FALSE(s.all.lease().still_held());
    REQUIRE(s.same.try_lock_for(1min));
}

TEST_CASE("an asynchronous call for a lock by two names of its server fails, too")
{
    known_twice s;
    async_outcome for_ever;
    s.all.async_lock(for_ever.hears());
    REQUIRE(for_ever.comes());
    CHECK(for_ever.code() == deadlock);
    CHECK(s.nothing_is_left());
    async_outcome in_time;
    s.all.async_try_lock_for(1h, in_time.hears());
    REQUIRE(in_time.comes());
    CHECK(in_time.code() == deadlock);
    CHECK(s.nothing_is_left());
}

TEST_CASE("locks of one name on two servers, or in two databases, are two locks, which are waited for")
{
    redis_server one;
    redis_server other;
    bool const database = GENERATE(true, false);
    auto const second = database ? one.url() + "/1" : other.url();
    client here{one.url(), unhurried()};
    client there{second, unhurried()};
    client elsewhere{second, unhurried()};
    mutex first{here, "orders", {.ttl = 1h}};
    mutex twin{there, "orders", {.ttl = 1h}};
    mutex theirs{elsewhere, "orders", {.ttl = 1h}};
    multi_mutex both{first, twin};
    CHECK(both.try_lock());
    CHECK_FALSE(theirs.try_lock());
    both.unlock();
    theirs.lock();
    CHECK_FALSE(both.try_lock());
    CHECK_FALSE(both.try_lock_for(10ms));
    CHECK(both.blocker() == "orders");
    std::stop_source stop;
    stop.request_stop();
    CHECK_FALSE(both.lock(stop.get_token()));
    async_outcome held;
    both.async_lock(held.hears());
    CHECK(eventually([&] { return there.stats().waiting == 1; }));
    theirs.unlock();
    REQUIRE(held.comes());
    CHECK_FALSE(held.code());
    CHECK(both.lease().still_held());
    both.unlock();
    theirs.lock();
    auto waits = std::async(std::launch::async, [&] { return both.try_lock_for(10min); });
    CHECK(eventually([&] { return there.stats().waiting == 1; }));
    theirs.unlock();
    CHECK(waits.get());
}

TEST_CASE("a lock by two names of its server is refused although a thread waits for it by the second name")
{
    known_twice s;
    client elsewhere{s.server.url(), unhurried()};
    mutex theirs{elsewhere, "orders", {.ttl = 1h}};
    theirs.lock();
    mutex rival{s.there, "orders", {.ttl = 1h}};
    auto waits = std::async(std::launch::async, [&] { rival.lock(); });
    CHECK(eventually([&] { return s.there.stats().waiting == 1; }));
    auto fails = std::async(std::launch::async, [&] { return code_of([&] { s.all.lock(); }); });
    CHECK(eventually([&] { return s.here.stats().waiting == 1; }));
    theirs.unlock();
    auto const released = eventually([&] { return waits.wait_for(0s) == std::future_status::ready; });
    REQUIRE(released);
    rival.unlock();
    CHECK(fails.get() == deadlock);
    CHECK(s.nothing_is_left());
}

TEST_CASE("an outage of the second name of a server is waited out, and the lock is refused then")
{
    known_twice s;
    s.way.refuse();
    CHECK(code_of([&] { static_cast<void>(s.all.try_lock()); }) == errc::unavailable);
    auto fails = std::async(std::launch::async, [&] { return code_of([&] { s.all.lock(); }); });
    CHECK(eventually([&] { return exists(s.server, "orders"); }));
    CHECK(eventually([&] { return s.there.stats().failed >= 2; }));
    s.way.pass();
    CHECK(fails.get() == deadlock);
    CHECK(s.nothing_is_left());
}

TEST_CASE("a server that does not say who has a lock is asked again")
{
    known_twice s{{.operation_timeout = 2s, .connect_timeout = 3s, .connections = 1}};
    s.way.hold(asks_for_holder);
    bool const once = s.all.try_lock();  // it is not known that this is in vain
    CHECK_FALSE(once);
    CHECK(s.nothing_is_left());
    std::stop_source stop;
    auto stopped = std::async(std::launch::async, [&] { return s.all.lock(stop.get_token()); });
    CHECK(eventually([&] { return s.way.held() > 0; }));
    stop.request_stop();
    CHECK_FALSE(stopped.get());
    CHECK(s.nothing_is_left());
    auto fails = std::async(std::launch::async, [&] { return code_of([&] { s.all.lock(); }); });
    CHECK(eventually([&] { return exists(s.server, "orders"); }));
    s.way.let_go();
    CHECK(fails.get() == deadlock);
    CHECK(s.nothing_is_left());
}

TEST_CASE("a lock in Redisson's layout by two names of its server is refused, too")
{
    auto options = unhurried();
    options.layout = holdfast::redis::layout::redisson;
    known_twice s{options};
    CHECK(code_of([&] { static_cast<void>(s.all.try_lock()); }) == deadlock);
    CHECK(code_of([&] { s.all.lock(); }) == deadlock);
    CHECK(s.nothing_is_left());
}

TEST_CASE("the servers are asked about locks of one name only if one of them is refused")
{
    redis_server one;
    redis_server other;
    proxy first{one.port()};
    proxy second{other.port()};
    client here{first.url(), unhurried()};
    client there{second.url(), unhurried()};
    mutex orders{here, "orders", {.ttl = 1h}};
    mutex twin{there, "orders", {.ttl = 1h}};
    multi_mutex both{orders, twin};
    auto const asked_first = first.count(asks_for_holder);
    auto const asked_second = second.count(asks_for_holder);
    both.lock();
    both.unlock();
    CHECK(asked_first() + asked_second() == 0);
}
