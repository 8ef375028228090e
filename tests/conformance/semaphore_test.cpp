// SPDX-License-Identifier: MIT
//
// A semaphore is the same on every store.
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"

#include <holdfast/semaphore.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
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
using holdfast::semaphore;
using holdfast::test::child;
using holdfast::test::eventually;
using holdfast::test::renewed;

TEMPLATE_TEST_CASE("never more permits are held than there are, and a release wakes one that waits", "",
                   HOLDFAST_STORES)
{
    TestType store;
    semaphore ours{store.one, "orders", 2, renewed<TestType>()};
    semaphore theirs{store.other, "orders", 2, renewed<TestType>()};
    std::atomic<int> inside{0};
    std::atomic<bool> good{true};
    std::array<std::atomic<std::uint64_t>, 2> last{};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i)
        threads.emplace_back([&, i] {
            for (int n = 0; n < 8; ++n) {
                leased_permit const permit{i % 2 == 0 ? ours : theirs};
                if (++inside > 2) good = false;
                if (last.at(permit.slot()).exchange(permit.fencing_token()) >= permit.fencing_token()) good = false;
                std::this_thread::sleep_for(1ms);
                --inside;
            }
        });
    threads.clear();
    CHECK(good);
    std::array<leased_permit, 2> held{leased_permit{theirs, 1min}, leased_permit{theirs, 1min}};
    CHECK(held[0].slot() != held[1].slot());
    CHECK_FALSE(ours.try_acquire());
    CHECK_FALSE(ours.try_acquire_for(50ms));
    std::jthread waiter{[&] {
        leased_permit const permit{ours, 2min};
        CHECK(permit.still_held());
        CHECK(permit.slot() == held[1].slot());
    }};
    CHECK(eventually([&] { return store.one.stats().waiting == 2; }, 1min));  // for both
    held[1].release();
    waiter.join();
    std::stop_source stop;
    ours.acquire();
    std::jthread stopped{[&] { CHECK_FALSE(ours.acquire(stop.get_token())); }};
    CHECK(eventually([&] { return store.one.stats().waiting == 2; }, 1min));
    stop.request_stop();
    stopped.join();
    held[0].release();
    CHECK(theirs.try_acquire_for(1min));
    CHECK_FALSE(theirs.try_acquire());
}

TEMPLATE_TEST_CASE("the loss of a permit is announced, and its slot is taken by another", "", HOLDFAST_STORES)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    semaphore ours{client, "orders", 2, holdfast::test::brief<TestType>()};
    leased_permit const one{ours, 1min};
    leased_permit lost{ours, 1min};
    auto const token = lost.fencing_token();
    auto const told = lost.lost_token();
    store.break_lock("orders#" + std::to_string(lost.slot()));
    CHECK(eventually([&] { return told.stop_requested(); }, 2min));
    CHECK_FALSE(lost.still_held());
    semaphore theirs{store.other, "orders", 2, renewed<TestType>()};
    leased_permit const next{theirs, 2min};
    CHECK(next);
    if (one.still_held()) {  // the session of a store may have ended with the lease
        CHECK(next.slot() == lost.slot());
        CHECK(next.fencing_token() > token);
    }
    std::error_code ec;
    lost.release(ec);
    CHECK(ec == errc::lease_lost);
    CHECK(next.still_held());
}

TEMPLATE_TEST_CASE("a forked child can neither use nor harm the permits of its parent", "[lesson-7]", HOLDFAST_STORES)
{
    TestType store;
    auto ours = std::make_optional<semaphore>(store.one, "orders", 2, renewed<TestType>());
    auto permit = std::make_optional<leased_permit>(*ours);
    ours->acquire();
    auto born = child::fork([&] {
        int wrong = permit->still_held() || !permit->lost_token().stop_requested() ? 1 : 0;
        std::error_code ec;
        ours->release(ec);
        wrong += ec == errc::not_owner ? 0 : 2;
        ours->release();
        try {
            ours->acquire();
            wrong += 4;
        } catch (holdfast::error const& e) {
            wrong += e.code() == errc::misconfigured ? 0 : 8;
        }
        permit->release(ec);
        wrong += ec == errc::not_owner ? 0 : 16;
        permit.reset();
        ours.reset();
        return wrong;
    });
    CHECK(born.wait_for(2min) == 0);
    CHECK(permit->still_held());
    semaphore theirs{store.other, "orders", 2, renewed<TestType>()};
    CHECK_FALSE(theirs.try_acquire());
    std::error_code ec;
    ours->release(ec);
    CHECK_FALSE(ec);
}
