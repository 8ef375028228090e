// SPDX-License-Identifier: MIT
#include "conformance/sleeper.hpp"
#include "fake_store.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/goes_on.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/memory.hpp>
#include <holdfast/semaphore.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::memory::mutex;
using holdfast::memory::store;
using holdfast::test::eventually;
using holdfast::test::goes_on;
using holdfast::test::sleeper;

namespace {

/// Returns: whether `m` is not to be had, or only because `end` has passed.
[[nodiscard]] bool is_kept(mutex& m, boot_clock::time_point end)
{
    bool const got = m.try_lock();
    bool const over = boot_clock::now() >= end;
    if (got) m.unlock();
    return !got || over;
}

}  // namespace

TEST_CASE("a lock is given back no earlier than its min_hold, although unlock returns at once")
{
    store here;
    store there = here.another_client();
    mutex m{here, "orders", {.min_hold = 400ms}};
    mutex rival{there, "orders"};
    auto const begun = boot_clock::now();
    m.lock();
    auto const lease = m.lease();
    std::error_code ec;
    m.unlock(ec);
    CHECK_FALSE(ec);
    CHECK_FALSE(lease.still_held());
    CHECK_FALSE(m.lease().still_held());
    CHECK(is_kept(m, begun + 400ms));
    CHECK(is_kept(rival, begun + 400ms));
    rival.lock();
    CHECK(boot_clock::now() - begun >= 400ms);
}

TEST_CASE("a lock that was held for longer than its min_hold is given back by unlock")
{
    store here;
    store there = here.another_client();
    mutex m{here, "orders", {.min_hold = 20ms}};
    mutex rival{there, "orders"};
    m.lock();
    std::this_thread::sleep_for(30ms);
    m.unlock();
    CHECK(rival.try_lock());
}

TEST_CASE("a min_hold that is longer than the ttl lasts, also if the process forgets its client")
{
    store here;
    auto there = std::make_unique<store>(here.another_client());
    mutex rival{here, "orders"};
    bool const forgets = GENERATE(false, true);
    auto m = std::make_unique<mutex>(*there, "orders", holdfast::lock_options{.ttl = 6s, .min_hold = 7s});
    auto const begun = boot_clock::now();
    m->lock();
    m->unlock();
    if (forgets) {
        m.reset();
        there.reset();
    }
    rival.lock();
    CHECK(boot_clock::now() - begun >= 7s);
}

TEST_CASE("a min_hold holds for every way to give a lock back")
{
    store here;
    store there = here.another_client();
    mutex rival{there, "orders"};
    int const way = GENERATE(0, 1, 2);
    auto m = std::make_unique<mutex>(here, "orders",
                                     holdfast::lock_options{.min_hold = 300ms, .deferred_release = way == 2});
    auto const begun = boot_clock::now();
    m->lock();
    if (way == 0) {
        std::promise<std::error_code> told;
        m->async_unlock([&](std::error_code ec) { told.set_value(ec); });
        CHECK_FALSE(told.get_future().get());
    } else if (way == 1) {
        m.reset();
    } else {
        m->unlock();
    }
    CHECK(is_kept(rival, begun + 300ms));
    rival.lock();
    CHECK(boot_clock::now() - begun >= 300ms);
}

TEST_CASE("unlock does not copy what is told of errors, as its copy may wait for a thread that wants this lock")
{
    struct told {
        int* copies;
        explicit told(int& count) : copies{&count} {}
        told(told const& other) : copies{other.copies} { ++*copies; }
        told(told&&) = default;
        told& operator=(told const&) = delete;
        told& operator=(told&&) = delete;
        ~told() = default;
        void operator()(holdfast::error const&) const {}
    };
    int copies = 0;
    store here;
    mutex m{here, "orders", {.min_hold = 1min, .on_error = told{copies}}};
    m.lock();
    int const before = copies;
    m.unlock();
    CHECK(copies == before);
}

TEST_CASE("threads of one process wait for the min_hold, too, and get the lock after it")
{
    store here;
    mutex m{here, "orders", {.min_hold = 100ms}};
    auto const begun = boot_clock::now();
    std::vector<std::unique_ptr<sleeper>> all;
    for (int i = 0; i < 3; ++i)
        all.push_back(std::make_unique<sleeper>([&] {
            m.lock();
            m.unlock();
        }));
    for (auto& one : all) one->join();
    CHECK(boot_clock::now() - begun >= 200ms);
    CHECK(here.stats().acquired == 3);
    CHECK(here.stats().released == 3);
    CHECK(here.stats().held == 0);
}

TEST_CASE("a lock that is lost, or lost while it is kept, keeps no client waiting")
{
    store here;
    store there = here.another_client();
    mutex m{here, "orders", {.min_hold = 1h}};
    mutex rival{there, "orders"};
    bool const before = GENERATE(true, false);
    m.lock();
    if (!before) m.unlock();
    here.erase("orders");
    if (before) m.unlock();
    CHECK(rival.try_lock());
    rival.unlock();
    if (before) CHECK(m.try_lock_for(1min));
}

TEST_CASE("the loss of a lease that is kept is found by its renewal, and is not reported")
{
    store here;
    int reports = 0;
    mutex m{here, "orders", {.ttl = 15s, .min_hold = 1h, .on_error = [&](holdfast::error const&) { ++reports; }}};
    m.lock();
    m.unlock();
    here.erase("orders");
    CHECK(m.try_lock_for(1min));
    CHECK(reports == 0);
    CHECK(here.stats().lost_in_store == 0);
}

TEST_CASE("a lock that is lost while it is kept is given back, as a server may still have it")
{
    holdfast::test::fake_client f;
    f.store->extends.answered_at_once = false;
    holdfast::mutex m{f.locks, "orders", {.ttl = 1h, .min_hold = 2h}};
    m.lock();
    m.unlock();
    REQUIRE(eventually([&] { return f.store->extends.size() == 1; }));
    CHECK(f.store->releases.size() == 0);
    f.store->extends.at(0)->answer(make_error_code(holdfast::errc::lease_lost));
    CHECK(eventually([&] { return f.store->releases.size() == 1; }));
    f.store->answer_extends();
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("a thread that waits out the min_hold of another one has a lease that is renewed")
{
    store here;
    mutex m{here, "orders", {.ttl = 15s, .min_hold = 100ms}};
    m.lock();
    sleeper waits{[&] {
        m.lock();
        bool const held = goes_on(m.lease());
        m.unlock();
        return held;
    }};
    CHECK(waits.sleeps());
    m.unlock();
    CHECK(waits.join());
    CHECK(here.stats().renewed > 0);
}

TEST_CASE("a min_hold that is longer than max_hold is kept, and not much longer, whenever the process ends")
{
    store here;
    auto there = std::make_unique<store>(here.another_client());
    mutex rival{here, "orders"};
    auto m =
        std::make_unique<mutex>(*there, "orders", holdfast::lock_options{.ttl = 6s, .max_hold = 1s, .min_hold = 8s});
    auto const begun = boot_clock::now();
    m->lock();
    m->unlock();
    std::this_thread::sleep_for(3s);  // it is renewed meanwhile
    m.reset();
    there.reset();
    rival.lock();
    CHECK(boot_clock::now() - begun >= 8s);
}

TEST_CASE("what many locks take in vain is free at once, whatever its min_hold")
{
    store here;
    store there = here.another_client();
    mutex a{here, "a", {.min_hold = 1h}};
    mutex b{here, "b", {.min_hold = 1h}};
    mutex taken{there, "b"};
    mutex rival{there, "a"};
    taken.lock();
    holdfast::multi_mutex both{a, b};
    CHECK_FALSE(both.try_lock());
    CHECK(rival.try_lock());
}

TEST_CASE("what a lock reports to is not called while the lock is kept: it may be gone")
{
    store here;
    auto reports = std::make_unique<int>(0);
    {
        mutex m{here, "orders", {.ttl = 9s, .min_hold = 10s, .on_error = [&](holdfast::error const&) { ++*reports; }}};
        m.lock();
        here.set_faults({.unavailable = true});
        m.unlock();
    }
    CHECK(eventually([&] { return here.stats().renewals_failed > 0; }));
    CHECK(*reports == 0);
}

TEST_CASE("a min_hold that cannot be kept is refused")
{
    store here;
    CHECK_THROWS_AS((mutex{here, "orders", {.min_hold = -1ms}}), holdfast::error);
    CHECK_THROWS_AS((mutex{here, "orders", {.ttl = 2s, .renew = false, .min_hold = 1s}}), holdfast::error);
}

TEST_CASE("permits that a thread has waited for are kept for their min_hold")
{
    store here;
    store there = here.another_client();
    holdfast::semaphore jobs{here, "jobs", 2, {.min_hold = 1h}};
    holdfast::semaphore others{there, "jobs", 2};
    auto const some = GENERATE(1, 2);
    others.acquire(2);
    sleeper waits{[&] {
        jobs.acquire(some);
        jobs.release(some);
    }};
    CHECK(waits.sleeps());
    others.release(2);
    waits.join();
    CHECK(others.try_acquire() == (some == 1));
    CHECK_FALSE(others.try_acquire());
}
