// SPDX-License-Identifier: MIT
//
// What a service is tested against: a store in memory that is told to be unavailable, slow, or to lose answers.
#include "conformance/sleeper.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"

#include <holdfast/memory.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::memory::faults;
using holdfast::memory::mutex;
using holdfast::memory::semaphore;
using holdfast::memory::shared_mutex;
using holdfast::memory::store;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::sleeper;

namespace {

std::error_code code_of_lock(mutex& m)
{
    return code_of([&] { m.lock(); });
}

}  // namespace

TEST_CASE("a store that is told to be unavailable grants nothing, and grants again after that")
{
    store here;
    mutex m{here, "orders", {.unavailable_after = 50ms}};
    here.set_faults({.unavailable = true});
    CHECK(code_of_lock(m) == errc::unavailable);
    CHECK_THROWS_AS(m.try_lock(), holdfast::error);
    CHECK_THROWS_AS(m.try_lock_for(20ms), holdfast::error);
    here.set_faults({});
    CHECK_FALSE(code_of_lock(m));
}

TEST_CASE("a waiter gets the lock when an outage of the store in memory is over")
{
    store here;
    mutex m{here, "orders"};
    here.set_faults({.unavailable = true});
    sleeper waits{[&] { return m.try_lock_for(1h); }};
    CHECK(waits.sleeps());
    here.set_faults({});
    CHECK(waits.join());
}

TEST_CASE("a lease is lost if the store in memory stays unavailable, and survives a shorter outage")
{
    store here;
    mutex lost{here, "orders", {.ttl = 300ms}};
    mutex kept{here, "invoices", {.ttl = 1h}};
    std::scoped_lock hold{lost, kept};
    auto const lease = lost.lease();
    here.set_faults({.unavailable = true});
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK(kept.lease().still_held());
    here.set_faults({});
    std::error_code ec;
    CHECK(kept.extend(2h, ec));
}

TEST_CASE("an unlock that cannot be sent says so, and the lease ends with its ttl")
{
    store here;
    store there = here.another_client();
    mutex m{here, "orders", {.ttl = 300ms}};
    mutex rival{there, "orders"};
    std::error_code ec;
    CHECK(eventually([&] {
        here.set_faults({});
        auto const begun = boot_clock::now();
        m.lock();
        here.set_faults({.unavailable = true});
        m.unlock(ec);
        bool const late = boot_clock::now() - begun >= 200ms;  // it was lost by then, perhaps
        CHECK((ec == errc::unavailable || (late && ec == errc::lease_lost)));
        return ec == errc::unavailable;
    }));
    here.set_faults({});
    rival.lock();
    CHECK(rival.lease().still_held());
}

TEST_CASE("answers of a slow store in memory come late, and what they took is taken off the lease")
{
    store here;
    mutex m{here, "orders", {.ttl = 1h}};
    here.set_faults({.delay = 100ms});
    auto const begun = boot_clock::now();
    m.lock();
    CHECK(boot_clock::now() - begun >= 100ms);
    CHECK(m.lease().expires_at() - begun < 1h);
    std::error_code ec;
    CHECK(m.extend(2h, ec));
    m.unlock(ec);
    CHECK_FALSE(ec);
    CHECK(boot_clock::now() - begun >= 300ms);
}

TEST_CASE("an answer of the store in memory that takes as long as possible does not come")
{
    store here;
    mutex m{here, "orders"};
    here.set_faults({.delay = std::chrono::milliseconds::max(), .operation_timeout = 50ms});
    CHECK_THROWS_AS(m.try_lock(), holdfast::error);
    here.set_faults({.delay = 1ms, .operation_timeout = std::chrono::milliseconds::max()});
    CHECK(m.try_lock_for(1min));
    m.unlock();
}

TEST_CASE("an acquire whose answer is lost is given back, and asked again")
{
    store here;
    mutex m{here, "orders", {.ttl = 1h}};
    here.set_faults({.lost_answers = 1, .operation_timeout = 50ms});
    CHECK_FALSE(code_of_lock(m));
    CHECK(m.lease().still_held());
}

TEST_CASE("an attempt whose answer is lost leaves the lock to the next waiter")
{
    store here;
    store there = here.another_client();
    mutex m{here, "orders", {.ttl = 1h}};
    mutex rival{there, "orders", {.ttl = 1h}};
    here.set_faults({.lost_answers = 1, .operation_timeout = 500ms});
    sleeper tries{[&] {
        try {
            return m.try_lock();
        } catch (holdfast::error const&) {
            return false;
        }
    }};
    CHECK(tries.sleeps());
    sleeper waits{[&] { return rival.try_lock_for(1h); }};
    CHECK_FALSE(tries.join());
    CHECK(waits.join());
}

TEST_CASE("a reader is let in as soon as an upgrade whose answer was lost is given back")
{
    store here;
    store there = here.another_client();
    holdfast::lock_options const patient{.ttl = 1h, .retry = {.most = 1h}};
    shared_mutex reading{here, "orders", patient};
    shared_mutex waiting{there, "orders", patient};
    reading.lock_shared();
    here.set_faults({.lost_answers = 1, .operation_timeout = 2s});
    sleeper upgrades{
        [&] { return code_of([&] { static_cast<void>(reading.try_unlock_shared_and_lock()); }) == errc::unavailable; }};
    CHECK(upgrades.sleeps());
    sleeper reads{[&] { return waiting.try_lock_shared_for(10min); }};
    CHECK(reads.sleeps());
    CHECK(upgrades.join());
    CHECK(eventually([&] { return reads.done(); }));
    CHECK(reads.join());
    waiting.unlock_shared();
    reading.unlock_shared();
}

TEST_CASE("the outcome of an unlock whose answer is lost is unknown, although it took effect")
{
    store here;
    store there = here.another_client();
    mutex m{here, "orders", {.ttl = 1h}};
    mutex rival{there, "orders"};
    m.lock();
    here.set_faults({.lost_answers = 1, .operation_timeout = 50ms});
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == errc::outcome_unknown);
    CHECK(rival.try_lock());
}

TEST_CASE("a question whose answer is lost is unavailable; whether a lock was broken, or a number changed, is unknown")
{
    store here;
    mutex m{here, "orders", {.ttl = 1h}};
    semaphore jobs{here, "jobs", 2};
    m.lock();
    auto const without_answer = [&](auto const& ask) {
        here.set_faults({.lost_answers = 1});
        return code_of(ask);
    };
    CHECK(without_answer([&] { static_cast<void>(here.holder("orders")); }) == errc::unavailable);
    CHECK(without_answer([&] { static_cast<void>(here.contenders("orders")); }) == errc::unavailable);
    CHECK(without_answer([&] { static_cast<void>(here.list()); }) == errc::unavailable);
    CHECK(without_answer([&] { static_cast<void>(jobs.permits_in_use()); }) == errc::unavailable);
    CHECK(without_answer([&] { here.request_release("orders"); }) == errc::unavailable);
    CHECK(without_answer([&] { here.force_unlock("orders"); }) == errc::outcome_unknown);
    CHECK(without_answer([&] { jobs.resize(3); }) == errc::outcome_unknown);
    CHECK_FALSE(here.holder("orders"));
    semaphore changed{here, "jobs", 3};
    CHECK(changed.try_acquire());
}

TEST_CASE("a renewal whose answer is lost is repeated before the lease ends")
{
    store here;
    std::vector<std::error_code> told;
    std::mutex guard;
    mutex m{here, "orders", {.ttl = 15s, .on_error = [&](holdfast::error const& e) {
                                 std::scoped_lock lock{guard};
                                 told.push_back(e.code());
                             }}};
    m.lock();
    here.set_faults({.lost_answers = 1, .operation_timeout = 20ms});
    CHECK(eventually([&] {
        std::scoped_lock lock{guard};
        return !told.empty();
    }));
    auto const until = m.lease().expires_at();
    CHECK(eventually([&] { return m.lease().expires_at() > until; }));
    std::scoped_lock lock{guard};
    CHECK(told.front() == errc::outcome_unknown);
}

TEST_CASE("a client may end while answers of the store in memory are under way")
{
    store here;
    here.set_faults({.delay = 50ms});
    {
        store there = here.another_client();
        mutex m{there, "orders", {.deferred_release = true}};
        m.lock();
        m.unlock();
    }
    mutex m{here, "orders"};
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("a writer that asks again and again gets in between readers without end, however slow the answers are")
{
    store here;
    here.set_faults({.delay = 30ms});
    std::atomic<bool> over{false};
    std::atomic<int> sections{0};
    std::vector<std::jthread> readers;
    for (int i = 0; i < 12; ++i)
        readers.emplace_back([&, i] {
            auto mine = here.another_client();
            holdfast::memory::shared_mutex prices{mine, "prices"};
            while (!over) {
                std::shared_lock const read{prices};
                ++sections;
                std::this_thread::sleep_for(80ms + i * 7ms);  // so that they do not keep step
            }
        });
    CHECK(eventually([&] { return sections >= 8; }));
    holdfast::memory::shared_mutex prices{here, "prices", {.retry = {.first = 500us, .most = 1ms}}};
    CHECK(prices.try_lock_for(1min));
    over = true;
    prices.unlock();
}
