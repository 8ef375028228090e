// SPDX-License-Identifier: MIT
//
// The early warning before a loss, and a loss that is announced earlier.
#include "fake_store.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/refusal.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/lock/leased_lock.hpp>
#include <holdfast/memory.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::leased_lock;
using holdfast::lock_options;
using holdfast::mutex;
using holdfast::valid_until;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::fake_client;
using holdfast::test::refusal;

namespace {

/// Effects: a renewal is sent before it is due, and answered by `how(call)`.
void renew_now(fake_client& f, auto how)
{
    auto const before = f.store->extends.size();
    f.store->extends.answered_at_once = false;
    f.store->alarm();
    REQUIRE(eventually([&] { return f.store->extends.size() > before; }));
    auto const one = f.store->extends.last();
    one->answer(how(*one));
}

constexpr auto fails = [](auto const&) -> holdfast::result<boot_clock::time_point> { return errc::unavailable; };
constexpr auto succeeds = [](auto const& one) -> holdfast::result<boot_clock::time_point> {
    return valid_until(boot_clock::now(), one.ttl);
};

bool stopped(std::stop_token const& t)
{
    return eventually([&] { return t.stop_requested(); });
}

}  // namespace

TEST_CASE("a renewal that fails is an early warning, in a thread of its own; one that succeeds ends the risk")
{
    fake_client f;
    mutex m{f.locks, "orders", {.ttl = 1h}};
    leased_lock hold{m};
    auto const first = hold.at_risk();
    CHECK(first == hold.lease().at_risk());
    std::atomic<std::thread::id> by{};
    std::stop_callback const heard{first, [&] { by = std::this_thread::get_id(); }};
    CHECK_FALSE(first.stop_requested());
    renew_now(f, fails);
    CHECK(stopped(first));
    CHECK(eventually([&] { return by.load() != std::thread::id{}; }));
    CHECK(by.load() != std::this_thread::get_id());
    CHECK(hold.still_held());
    CHECK_FALSE(hold.lost_token().stop_requested());
    CHECK(hold.at_risk().stop_requested());

    auto const until = hold.expires_at();
    renew_now(f, succeeds);
    CHECK(eventually([&] { return hold.expires_at() > until; }));
    CHECK(eventually([&] { return !hold.at_risk().stop_requested(); }));
    auto const second = hold.at_risk();
    renew_now(f, fails);
    CHECK(stopped(second));
    CHECK(hold.still_held());
}

TEST_CASE("a renewal that is granted for no longer than before is a warning, too, when the lease ends soon")
{
    fake_client f;
    mutex m{f.locks, "orders", {.ttl = 1h}};
    leased_lock hold{m};
    auto const first = hold.at_risk();
    auto const until = hold.expires_at();
    auto const near = boot_clock::now() + 5min;
    auto const no_longer = [&](auto const&) -> holdfast::result<boot_clock::time_point> { return near; };
    renew_now(f, no_longer);
    CHECK(stopped(first));
    CHECK(hold.expires_at() < until);
    CHECK(hold.still_held());
    CHECK(eventually([&] { return f.locks.stats().renewals_failed == 1; }));
    CHECK(f.locks.stats().renewed == 0);

    renew_now(f, succeeds);
    CHECK(eventually([&] { return !hold.at_risk().stop_requested(); }));
    CHECK(hold.expires_at() > until);
}

TEST_CASE("an extension that fails is a warning, before it returns; one that succeeds ends the risk")
{
    holdfast::memory::store store;
    holdfast::memory::mutex m{store, "orders", {.ttl = 1h}};
    leased_lock hold{m};
    auto const first = hold.at_risk();
    store.set_faults({.unavailable = true});
    std::error_code ec;
    CHECK_FALSE(hold.extend(2h, ec));
    CHECK(ec == errc::unavailable);
    CHECK(first.stop_requested());
    CHECK(hold.still_held());
    store.set_faults({});
    CHECK(hold.extend(1h, ec));
    CHECK_FALSE(hold.at_risk().stop_requested());
}

TEST_CASE("a loss without a failure before it is a warning at the same time")
{
    holdfast::memory::store store;
    holdfast::memory::mutex m{store, "orders", {.ttl = 1h}};
    leased_lock hold{m};
    auto const risk = hold.at_risk();
    store.erase("orders");
    std::error_code ec;
    CHECK_FALSE(hold.extend(1h, ec));
    CHECK(ec == errc::lease_lost);
    CHECK(hold.lost_token().stop_requested());
    CHECK(risk.stop_requested());
}

TEST_CASE("a lock that is given back warns of nothing more, and the next holder has a token of its own")
{
    fake_client f;
    mutex m{f.locks, "orders", {.ttl = 1h}};
    m.lock();
    auto const before = m.lease();
    auto const first = before.at_risk();
    m.unlock();
    m.lock();
    CHECK(m.lease().at_risk() != first);
    renew_now(f, fails);
    CHECK(stopped(m.lease().at_risk()));
    CHECK_FALSE(first.stop_requested());
    CHECK_FALSE(before.at_risk().stop_requested());
    m.unlock();
}

TEST_CASE("permits, readers, writers and several locks are warned, too")
{
    holdfast::memory::store store;
    lock_options const options{.ttl = 1h};
    holdfast::semaphore jobs{store, "jobs", 2, options};
    holdfast::shared_mutex prices{store, "prices", options};
    mutex orders{store, "orders", options};
    mutex stock{store, "stock", options};
    holdfast::multi_mutex both{orders, stock};
    std::error_code ec;
    auto const warned = [&](auto& hold) {
        auto const risk = hold.at_risk();
        REQUIRE_FALSE(risk.stop_requested());
        store.set_faults({.unavailable = true});
        CHECK_FALSE(hold.extend(1h, ec));
        store.set_faults({});
        CHECK(risk.stop_requested());
        CHECK(hold.still_held());
        CHECK(hold.extend(1h, ec));
        CHECK_FALSE(hold.at_risk().stop_requested());
    };
    holdfast::leased_permit permit{jobs};
    warned(permit);
    {
        holdfast::leased_shared_lock reading{prices};
        warned(reading);
    }
    {
        leased_lock writing{prices};
        warned(writing);
    }
    leased_lock hold{both};
    warned(hold);
}

TEST_CASE("in a forked child every lock is at risk, as it is lost")
{
    fake_client f;
    mutex m{f.locks, "orders", {.ttl = 1h}};
    m.lock();
    auto const lease = m.lease();
    auto const born = ::fork();
    if (born == 0) ::_exit(lease.at_risk().stop_requested() ? 0 : 1);
    int status = -1;
    REQUIRE(::waitpid(born, &status, 0) == born);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    CHECK_FALSE(lease.at_risk().stop_requested());
}

TEST_CASE("a loss is announced stop_margin before another client can have the lock")
{
    constexpr auto ttl = 4s;
    constexpr auto margin = 2s;
    holdfast::memory::store store;
    auto there = store.another_client();
    holdfast::memory::mutex m{store, "orders", {.ttl = ttl, .renew = false, .stop_margin = margin}};
    holdfast::memory::mutex rival{there, "orders"};
    REQUIRE(eventually([&] {  // unless this process stood still for two seconds
        std::error_code ignored;
        m.unlock(ignored);
        m.lock();
        return m.lease().still_held();
    }));
    auto const lease = m.lease();
    auto const lost = lease.lost_token();
    auto const until = lease.expires_at();
    CHECK(until < boot_clock::now() + ttl - margin);
    CHECK(stopped(lost));
    CHECK(boot_clock::now() >= until);
    CHECK_FALSE(lease.still_held());
    rival.lock();
    CHECK(boot_clock::now() >= until + margin);
}

TEST_CASE("a lock with a stop_margin is renewed, and passes from thread to thread")
{
    fake_client f;
    mutex m{f.locks, "orders", {.ttl = 1h, .stop_margin = 30min}};
    mutex next{f.locks, "orders", {.ttl = 1h, .stop_margin = 30min}};
    m.lock();
    auto const until = m.lease().expires_at();
    CHECK(until < boot_clock::now() + 30min);
    renew_now(f, succeeds);
    CHECK(eventually([&] { return m.lease().expires_at() > until; }));
    std::atomic<bool> held{false};
    {
        std::jthread const waits{[&] {
            next.lock();
            held = next.lease().still_held();
        }};
        REQUIRE(eventually([&] { return f.locks.stats().waiting == 1; }));
        m.unlock();
    }
    CHECK(held);
    CHECK(f.locks.stats().handed_over == 1);
    CHECK(f.store->acquires.size() == 1);
    CHECK(next.lease().expires_at() < boot_clock::now() + 30min);
}

TEST_CASE("a stop_margin that leaves too little is refused, of a lock and of an extension, and named")
{
    holdfast::memory::store store;
    auto const made = [&](lock_options const& options) {
        return refusal([&] { holdfast::memory::mutex const m{store, "orders", options}; });
    };
    CHECK_THAT(made({.ttl = 10s, .stop_margin = 6s}), contains("stop_margin is 6000 ms") && contains("half"));
    CHECK_THAT(made({.ttl = 10s, .stop_margin = -1ms}), contains("stop_margin is -1 ms"));
    CHECK_THAT(made({.ttl = 8ms, .stop_margin = 4ms}), contains("leaves 4 ms") && contains("at least 5 ms"));

    holdfast::memory::mutex m{store, "orders", {.ttl = 1h, .stop_margin = 30min}};
    m.lock();
    auto const until = m.lease().expires_at();
    std::error_code ec;
    CHECK_FALSE(m.extend(59min, ec));
    CHECK(ec == errc::misconfigured);
    CHECK_THAT(refusal([&] { m.extend(59min); }),
               contains("extend to 3540000 ms, with a stop_margin of 1800000 ms") && contains("half"));
    CHECK(m.lease().expires_at() == until);
    m.extend(2h);
    CHECK(m.lease().expires_at() > until);
    CHECK(m.lease().expires_at() < boot_clock::now() + 90min);
}

TEST_CASE("a grant whose duration its store fixes is given back if it is too short for the stop_margin")
{
    fake_client f;
    f.store->acquires.answered_at_once = false;
    mutex m{f.locks, "orders", {.ttl = 1h, .stop_margin = 20min}};
    std::error_code ec;
    std::string words;
    std::jthread waits{[&] {
        try {
            m.lock();
        } catch (holdfast::error const& e) {
            ec = e.code();
            words = e.what();
        }
    }};
    REQUIRE(eventually([&] { return f.store->acquires.size() == 1; }));
    auto granted = f.store->granted(*f.store->acquires.at(0)->request);
    granted.ttl = 45min;
    f.store->acquires.at(0)->answer(granted);
    waits.join();
    CHECK(ec == errc::misconfigured);
    CHECK_THAT(words, contains("stop_margin is 1200000 ms") && contains("2700000 ms"));
    CHECK_FALSE(m.lease().still_held());
    REQUIRE(eventually([&] { return f.store->releases.size() == 1; }));
    CHECK(f.store->releases.at(0)->token == granted.token);
    f.store->acquires.answered_at_once = true;
    mutex other{f.locks, "orders", {.ttl = 1h}};
    other.lock();
    CHECK(other.lease().still_held());
}
