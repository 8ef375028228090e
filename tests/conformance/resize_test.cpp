// SPDX-License-Identifier: MIT
//
// The number of permits of a semaphore is changed in the same way on every store.
#include "stores.hpp"
#include "support/async_outcome.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"

#include <holdfast/semaphore.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::leased_permit;
using holdfast::leased_permits;
using holdfast::semaphore;
using holdfast::test::async_outcome;
using holdfast::test::code_of;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::renewed;

TEMPLATE_TEST_CASE("a greater number of permits wakes those that wait, and other clients are told", "", HOLDFAST_STORES)
{
    TestType store;
    semaphore ours{store.one, "orders", 1, renewed<TestType>()};
    semaphore theirs{store.other, "orders", 1, renewed<TestType>()};
    leased_permit const first{theirs, 1min};
    REQUIRE(first);
    std::atomic<bool> got{false};
    std::jthread waiter{[&] {
        leased_permit const permit{ours, 3min};
        got = permit.still_held();
    }};
    async_outcome waits;
    ours.async_acquire(waits.hears());
    CHECK(eventually([&] { return store.one.stats().waiting >= 2; }, 1min));
    CHECK_FALSE(got);
    ours.resize(3);
    CHECK(ours.max() == 3);
    waiter.join();
    CHECK(got);
    REQUIRE(waits.comes());
    CHECK_FALSE(waits.code());
    CHECK(first.still_held());
    auto client = store.another();
    semaphore others{client, "orders", 1, renewed<TestType>()};  // which has no permit, and so asks the store
    std::string what;
    CHECK(code_of([&] { static_cast<void>(others.try_acquire()); }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("is 3"));
    CHECK_THAT(what, contains("says 1"));
    CHECK(theirs.max() == 1);
    std::error_code ec = make_error_code(errc::contended);
    theirs.resize(3, ec);  // as it is
    CHECK_FALSE(ec);
    CHECK(theirs.try_acquire_for(1min));
    CHECK(ours.permits_in_use() == 3);
    CHECK_FALSE(theirs.try_acquire());
    ours.release();
    CHECK(theirs.try_acquire_for(1min));
    theirs.release(2);
}

TEMPLATE_TEST_CASE("a smaller number of permits leaves those that are held, and grants none beside them", "",
                   HOLDFAST_STORES)
{
    TestType store;
    semaphore ours{store.one, "orders", 3, renewed<TestType>()};
    semaphore theirs{store.other, "orders", 3, renewed<TestType>()};
    leased_permits held{theirs, 2, 1min};
    ours.acquire();
    ours.resize(1);
    CHECK(ours.max() == 1);
    CHECK(ours.permits_in_use() == 3);
    CHECK(held.still_held());
    CHECK_FALSE(ours.try_acquire_for(100ms));
    CHECK(code_of([&] { theirs.acquire(); }) == errc::misconfigured);
    CHECK(code_of([&] { ours.acquire(2); }) == errc::misconfigured);
    std::error_code ec;
    ours.release(ec);  // the one that it had before
    CHECK_FALSE(ec);
    ours.release(ec);
    CHECK(ec == errc::not_owner);
    held.release(ec);
    CHECK_FALSE(ec);
    CHECK(eventually([&] { return ours.permits_in_use() == 0; }, 1min));
    leased_permit const one{ours, 1min};
    CHECK(one.slot() == 0);
    CHECK_FALSE(ours.try_acquire());
    semaphore others{store.other, "orders", 1, renewed<TestType>()};
    CHECK_FALSE(others.try_acquire());
}

TEMPLATE_TEST_CASE("a number that was changed lasts while a permit of the number before is renewed", "",
                   HOLDFAST_STORES)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    semaphore ours{client, "orders", 3, holdfast::test::brief<TestType>()};
    leased_permit const held{ours, 1min};
    {
        auto brief = store.another(TestType::ttl);
        semaphore operators{brief, "orders", 3, holdfast::test::brief<TestType>()};
        operators.resize(2);
        if constexpr (TestType::keeps_to_ttl) {
            // The object and its leases are gone; a session would take the number with it.
        } else {
            CHECK(code_of([&] { static_cast<void>(ours.try_acquire()); }) == errc::misconfigured);
            return;
        }
    }
    semaphore theirs{store.other, "orders", 3, renewed<TestType>()};  // whose single attempts have more time
    auto const since = boot_clock::now();
    while (boot_clock::now() - since < 5 * TestType::ttl && held.still_held()) {
        auto const code = code_of([&] {
            if (theirs.try_acquire()) theirs.release();
        });
        CHECK((code == errc::misconfigured || !held.still_held()));
        std::this_thread::sleep_for(TestType::ttl / 8);
    }
}

TEMPLATE_TEST_CASE("a change of the number of permits is refused before anything is asked", "", HOLDFAST_STORES)
{
    TestType store;
    semaphore ours{store.one, "orders", 2, renewed<TestType>()};
    CHECK(code_of([&] { ours.resize(0); }) == errc::misconfigured);
    std::error_code ec;
    ours.resize(1001, ec);
    CHECK(ec == errc::misconfigured);
    CHECK(ours.max() == 2);
    ours.resize(2, ec);
    CHECK_FALSE(ec);
    CHECK(ours.try_acquire_for(1min));
}

TEMPLATE_TEST_CASE("permits are taken and given back while their number is changed", "", HOLDFAST_STORES)
{
    TestType store;
    semaphore ours{store.one, "orders", 2, renewed<TestType>()};
    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    std::vector<std::jthread> threads;
    std::atomic<bool> over{false};
    std::atomic<bool> held{true};
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int n = 0; n < 6; ++n) {
                leased_permit const permit{ours};
                if (!permit.still_held()) held = false;
                auto const now = ++inside;
                for (auto seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
                }
                std::this_thread::yield();
                --inside;
            }
        });
    std::jthread changes{[&] {
        for (std::ptrdiff_t n = 0; !over; ++n) ours.resize(1 + n % 3);
    }};
    threads.clear();
    over = true;
    changes.join();
    CHECK(held);
    CHECK(most <= 3);
    ours.resize(1);
    CHECK(eventually([&] { return ours.permits_in_use() == 0; }, 1min));
    CHECK(ours.try_acquire_for(1min));
    CHECK_FALSE(ours.try_acquire());
}
