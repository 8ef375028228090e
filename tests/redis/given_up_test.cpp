// SPDX-License-Identifier: MIT
//
// A waiter gives up just when it is its turn: the lock goes to the next one.
#include "conformance/async_mutex.hpp"
#include "conformance/sleeper.hpp"
#include "line_of_orders.hpp"
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <holdfast/redis.hpp>

#include <chrono>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::redis::client;
using holdfast::redis::fair_mutex;
using holdfast::redis::mutex;
using holdfast::test::async_mutex;
using holdfast::test::calls_of;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::for_ever;
using holdfast::test::lasting_reservation;
using holdfast::test::nothing_left;
using holdfast::test::proxy;
using holdfast::test::queue_of;
using holdfast::test::redis_server;
using holdfast::test::reservations;
using holdfast::test::sleeper;
using holdfast::test::unhurried;
using holdfast::test::waiters;

namespace {

enum class by { stop, deadline };

/// How far the lock is on its way to the one that gives up.
enum class moment {
    called,   ///< it is reserved for it; it has not heard that
    asks,     ///< its request is on the way, and will be granted
    granted,  ///< it is its own; the answer is on the way
};

/// Returns: whether one that waits for `d` at most gave up at that moment. If not, the machine was too slow.
template <class Lock>
bool gives_up(by how, moment when, std::chrono::milliseconds d)
{
    redis_server server;
    proxy way{server.port()};
    client here{server.url(), unhurried()};
    client there{way.url(), {.operation_timeout = 10s + 4 * d, .connect_timeout = 1min}};
    client elsewhere{server.url(), unhurried()};
    Lock held{here, "orders", for_ever()};
    Lock given_up{there, "orders", for_ever()};
    Lock of_next{elsewhere, "orders", for_ever()};
    held.lock();
    std::stop_source stop;
    auto const deadline = boot_clock::now() + d;
    sleeper one{[&] {
        bool const got = how == by::stop ? given_up.lock(stop.get_token()) : given_up.try_lock_until(deadline);
        given_up.unlock();
        return got;
    }};
    auto const comes = [&](auto const& what) {
        return eventually([&] { return one.done() || what(); }) && !one.done();
    };
    if (!comes([&] { return waiters(server) == 1; })) return false;
    auto const who = queue_of(server);
    sleeper next{[&] { std::scoped_lock const hold{of_next}; }};
    bool in_time = comes([&] { return waiters(server) == 2; });

    reservations reserved{server};
    if (when == moment::called)
        way.freeze();
    else
        way.hold(calls_of(holdfast::redis::scripts::acquire_by_clock_and_tell));
    held.unlock();
    in_time = in_time && comes([&] { return reserved.so_far() == who; });
    bool got = false;
    {
        std::optional<lasting_reservation> kept;
        if (in_time) kept.emplace(server, who.front());
        if (when != moment::called) in_time = in_time && comes([&] { return way.held() > 0; });
        if (when == moment::granted) {
            way.delay(0s, 2 * d);
            way.let_go();
            in_time = in_time && comes([&] { return exists(server, "orders"); });
        }
        in_time = in_time && !next.done();
        stop.request_stop();
        // At its deadline it has asked, and waits for the answer: if that is a yes, it has the lock.
        if (how == by::deadline) CHECK(eventually([&] { return boot_clock::now() > deadline; }, 5min));
        if (how == by::deadline && when == moment::asks) way.let_go();
        got = one.join();
    }
    way.heal();
    CHECK(eventually([&] { return next.done(); }, 2min));
    CHECK(nothing_left(server));
    server.command({"DEL", "orders"});  // a test that fails ends
    return in_time && (how == by::deadline || !got);
}

}  // namespace

TEMPLATE_TEST_CASE("one that is stopped, or late, just when it is its turn leaves the lock to the next one", "", mutex,
                   fair_mutex, async_mutex<mutex>, async_mutex<fair_mutex>)
{
    auto const [how, when] = GENERATE(table<by, moment>({{by::deadline, moment::asks},
                                                         {by::deadline, moment::granted},
                                                         {by::stop, moment::called},
                                                         {by::stop, moment::asks},
                                                         {by::stop, moment::granted}}));
    CAPTURE(static_cast<int>(how), static_cast<int>(when));
    int tries = 0;
    for (auto d = 500ms; tries < 12 && !gives_up<TestType>(how, when, d); d += d / 2) ++tries;
    CHECK(tries < 12);
}
