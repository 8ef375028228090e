// SPDX-License-Identifier: MIT
//
// Every call of every primitive ends, while the servers say nothing.
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/redis_server.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <system_error>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::multi_mutex;
using holdfast::mutex;
using holdfast::semaphore;
using holdfast::shared_mutex;
using holdfast::store;
using holdfast::redis::client;
using holdfast::redlock::masters;
using holdfast::test::code_of;
using holdfast::test::redis_fleet;

namespace {

constexpr auto timeout = 500ms;
constexpr auto connect_timeout = 1s;  // whose connection was closed for its silence is connected to again
constexpr auto patience = 300ms;
constexpr auto slack = 1min;  // of a busy machine: what is not bounded at all takes longer

/// One server, or three masters.
struct silent {
    bool const alone = GENERATE(true, false);
    redis_fleet servers{alone ? 1U : 3U};
    store on =
        alone ? store{client{servers[0].url(), {.operation_timeout = timeout, .connect_timeout = connect_timeout}}}
              : store{masters{servers.urls(),
                              {.node_timeout = timeout, .connect_timeout = connect_timeout, .restart_guard = 0ms}}};
    holdfast::lock_options const options{.ttl = 10min, .unavailable_after = 1min};

    /// Effects: the servers answer no more, or all but one.
    void fall_silent()
    {
        for (std::size_t i = alone ? 0 : 1; i < servers.size(); ++i) servers.pause(i);
    }
    /// Effects: they answer again: the end of a test need not wait for them.
    ~silent()
    {
        for (std::size_t i = alone ? 0 : 1; i < servers.size(); ++i) servers.resume(i);
    }
};

/// Returns: whether `ec` says that a request was not answered, or could not be sent.
[[nodiscard]] bool unanswered(std::error_code const& ec)
{
    return ec == errc::unavailable || ec == errc::outcome_unknown;
}

/// Returns: how `f` has failed; it may take `limit`.
template <class F>
[[nodiscard]] std::error_code ends_within(std::chrono::milliseconds limit, F const& f)
{
    auto const begun = boot_clock::now();
    auto const code = code_of(f);
    CHECK(boot_clock::now() - begun < limit + slack);
    return code;
}

}  // namespace

TEST_CASE("who waits for a permit, to read, to write, or for several locks is told in time that no server answers")
{
    silent s;
    semaphore jobs{s.on, "jobs", 3, s.options};
    shared_mutex prices{s.on, "prices", s.options};
    mutex orders{s.on, "orders", s.options};
    mutex stock{s.on, "stock", s.options};
    multi_mutex both{orders, stock};
    both.lock();  // when all are connected
    both.unlock();
    s.fall_silent();
    auto const limit = patience + timeout;
    CHECK(ends_within(limit, [&] { (void)jobs.try_acquire_for(patience); }) == errc::unavailable);
    CHECK(ends_within(limit, [&] { (void)jobs.try_acquire_for(2, patience); }) == errc::unavailable);
    CHECK(ends_within(limit, [&] { (void)prices.try_lock_for(patience); }) == errc::unavailable);
    CHECK(ends_within(limit, [&] { (void)prices.try_lock_shared_for(patience); }) == errc::unavailable);
    CHECK(ends_within(limit, [&] { (void)both.try_lock_for(patience); }) == errc::unavailable);
    CHECK(ends_within(timeout, [&] { (void)jobs.try_acquire(); }) == errc::unavailable);
    CHECK(ends_within(timeout, [&] { (void)prices.try_lock(); }) == errc::unavailable);
    CHECK(ends_within(timeout, [&] { (void)prices.try_lock_shared(); }) == errc::unavailable);
    CHECK(ends_within(timeout, [&] { (void)both.try_lock(); }) == errc::unavailable);
}

TEST_CASE("what is held is given up in time, and changes sides or not in time, although no server answers")
{
    silent s;
    std::optional<semaphore> jobs{std::in_place, s.on, "jobs", 3, s.options};
    shared_mutex prices{s.on, "prices", s.options};
    shared_mutex rates{s.on, "rates", s.options};
    mutex orders{s.on, "orders", s.options};
    mutex stock{s.on, "stock", s.options};
    std::optional<multi_mutex> both{std::in_place, orders, stock};
    jobs->acquire(2);
    prices.lock_shared();
    rates.lock();
    both->lock();
    s.fall_silent();
    CHECK(ends_within(timeout, [&] { (void)prices.try_unlock_shared_and_lock(); }) == errc::unavailable);
    CHECK(ends_within(timeout, [&] { rates.unlock_and_lock_shared(); }) == errc::unavailable);
    CHECK(prices.lease_shared().still_held());
    CHECK(rates.lease().still_held());
    std::error_code ec;
    CHECK_FALSE(ends_within(timeout, [&] { prices.unlock_shared(ec); }));
    CHECK(unanswered(ec));
    CHECK_FALSE(ends_within(timeout, [&] { rates.unlock(ec); }));
    CHECK(unanswered(ec));
    CHECK_FALSE(ends_within(timeout, [&] { jobs->release(ec); }));
    CHECK(unanswered(ec));
    CHECK_FALSE(ends_within(timeout, [&] { jobs.reset(); }));
    CHECK_FALSE(ends_within(2 * timeout, [&] { both.reset(); }));
    CHECK_FALSE(orders.lease().still_held());
}

TEST_CASE("what operators ask ends in time, although no server answers")
{
    silent s;
    mutex orders{s.on, "orders", s.options};
    semaphore jobs{s.on, "jobs", 3, s.options};
    orders.lock();
    s.fall_silent();
    auto const limit = timeout + connect_timeout;
    CHECK(ends_within(limit, [&] { (void)s.on.holder("orders"); }) == errc::unavailable);
    CHECK(ends_within(limit, [&] { (void)orders.holder(); }) == errc::unavailable);
    CHECK(ends_within(limit, [&] { (void)s.on.list("or"); }) == errc::unavailable);
    CHECK(ends_within(limit, [&] { (void)jobs.permits_in_use(); }) == errc::unavailable);
    auto const asked = ends_within(limit, [&] { (void)s.on.request_release("orders"); });
    CHECK(unanswered(asked));
    CHECK(ends_within(limit, [&] { (void)s.on.force_unlock("orders"); }) == errc::outcome_unknown);
    auto const changed = ends_within(limit, [&] { jobs.resize(5); });
    CHECK(unanswered(changed));
}
