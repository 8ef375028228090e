// SPDX-License-Identifier: MIT
//
// What stays of a lock that was unlocked before its `min_hold` was over, and of a job that runs once. What happens in
// the client: lock/min_hold_test.cpp.
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"
#include "support/shared.hpp"

#include <holdfast/adapters/run_once.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::lock_options;
using holdfast::run_once;
using holdfast::test::child;
using holdfast::test::eventually;
using holdfast::test::is_free;
using holdfast::test::shared;

namespace {

/// Returns: on how many servers the key `orders` has a time to live of more than `d`.
template <class Store>
[[nodiscard]] auto lasting_longer_than(Store& store, std::chrono::milliseconds d)
{
    std::vector<holdfast::test::reply> all;
    if constexpr (requires { store.servers; })
        all = store.servers.command({"PTTL", "orders"});
    else
        all = {store.server.command({"PTTL", "orders"})};
    return std::count_if(all.begin(), all.end(), [&](auto const& one) { return one.integer > d.count(); });
}

/// On how many servers a lock has to be.
template <class Store>
inline constexpr int majority = std::is_same_v<Store, holdfast::test::redlock_store> ? 3 : 1;

}  // namespace

TEMPLATE_TEST_CASE("another client gets a lock when its min_hold is over, although it was unlocked before", "",
                   HOLDFAST_STORES)
{
    constexpr auto least = 1500ms;
    TestType store;
    typename TestType::mutex m{store.one, "orders", {.min_hold = least}};
    typename TestType::mutex rival{store.other, "orders", {.unavailable_after = 5min}};
    auto const begun = boot_clock::now();
    m.lock();
    auto const first = m.lease().fencing_token();
    std::error_code ec;
    m.unlock(ec);
    CHECK_FALSE(ec);
    CHECK_FALSE(m.lease().still_held());
    bool const got = rival.try_lock();
    CHECK((!got || boot_clock::now() - begun >= least));
    if (!got) rival.lock();
    CHECK(boot_clock::now() - begun >= least);
    CHECK(rival.lease().fencing_token() > first);
}

TEMPLATE_TEST_CASE("what is held for longer than its min_hold is free when it is unlocked", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", {.min_hold = 1ms}};
    m.lock();
    auto const begun = boot_clock::now();
    CHECK(eventually([&] { return boot_clock::now() - begun > 1ms; }));
    m.unlock();
    CHECK(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("unlocking asks at once for a lease that lasts for the min_hold, on each server", "",
                   holdfast::test::redis_store HOLDFAST_AND_TLS, holdfast::test::redlock_store)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", {.ttl = 1h, .min_hold = 3h}};  // renewed after twenty minutes
    m.lock();
    CHECK(lasting_longer_than(store, 1h) == 0);
    m.unlock();
    CHECK(eventually([&] { return lasting_longer_than(store, 2h) >= majority<TestType>; }));
    CHECK_FALSE(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("a lock is kept for its min_hold although its process ends when it has unlocked it", "",
                   holdfast::test::redis_store HOLDFAST_AND_TLS, holdfast::test::redlock_store)
{
    TestType store;
    bool const orderly = GENERATE(true, false);
    auto const least = GENERATE(30min, 180min);  // the lease outlives it, or has to be extended
    auto holder = child::fork([&] {
        auto client = store.another();
        typename TestType::mutex m{client, "orders", {.ttl = 1h, .min_hold = least}};
        m.lock();
        m.unlock();
        if (!orderly) ::_exit(0);
        return 0;
    });
    REQUIRE(holder.wait_for(2min) == 0);
    CHECK_FALSE(is_free(store, "orders"));
    CHECK(eventually([&] { return lasting_longer_than(store, least - 10min) >= majority<TestType>; }));
}

#ifdef HOLDFAST_TEST_ZOOKEEPER
TEST_CASE("on ZooKeeper a lock is free with its session, whatever its min_hold")
{
    using store_type = holdfast::test::zookeeper_store;
    store_type store;
    bool const orderly = GENERATE(true, false);
    shared<std::atomic<bool>> unlocked{false};
    shared<std::atomic<bool>> seen{false};
    auto holder = child::fork([&] {
        auto client = store.another(store_type::ttl);
        store_type::mutex m{client, "orders", {.min_hold = 1h, .unavailable_after = 1min}};
        m.lock();
        m.unlock();
        *unlocked = true;
        while (!*seen) std::this_thread::yield();
        if (!orderly) ::_exit(0);
        return 0;
    });
    REQUIRE(eventually([&] { return unlocked->load(); }));
    CHECK_FALSE(is_free(store, "orders"));
    *seen = true;
    REQUIRE(holder.wait_for(2min) == 0);
    store_type::mutex rival{store.one, "orders"};
    CHECK(rival.try_lock_for(2min));
}
#endif

TEST_CASE("in memory a lock is kept for its min_hold although its client ends when it has unlocked it")
{
    holdfast::test::memory_store store;
    {
        auto client = store.another();
        holdfast::memory::mutex m{client, "orders", {.min_hold = 3h}};
        m.lock();
        m.unlock();
    }
    CHECK_FALSE(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("a job that two clients call runs once", "", HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    int runs = 0;
    auto const job = [&] { ++runs; };
    CHECK(run_once(store.one, "orders", 1h, job));
    CHECK_FALSE(run_once(store.other, "orders", 1h, job));
    CHECK_FALSE(run_once(store.one, "orders", 1h, job));
    CHECK(runs == 1);
    CHECK(run_once(store.other, "invoices", 1h, job));
    CHECK(runs == 2);
}

TEMPLATE_TEST_CASE("a job that two clients call in the same moment runs once", "", HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    std::atomic<int> runs{0};
    std::atomic<int> undecided{0};
    {
        std::vector<std::jthread> hosts;
        for (auto* const client : {&store.one, &store.other})
            hosts.emplace_back([&, client] {
                try {
                    static_cast<void>(run_once(*client, "orders", 1h, [&] { ++runs; }));
                } catch (holdfast::error const&) {
                    ++undecided;
                }
            });
    }
    CHECK(runs <= 1);
    CHECK(runs + undecided >= 1);
}

TEMPLATE_TEST_CASE("a job that fails in one client may run in another at once", "", HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    CHECK_THROWS_AS(run_once(store.one, "orders", 1h, [] { throw std::runtime_error{"no paper"}; }),
                    std::runtime_error);
    CHECK(run_once(store.other, "orders", 1h, [] {}));
    CHECK_FALSE(run_once(store.one, "orders", 1h, [] {}));
}

TEMPLATE_TEST_CASE("a job that another client has is refused although a thread of this one waits for its lock", "",
                   HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex other{store.other, "orders"};
    typename TestType::mutex m{store.one, "orders", {.unavailable_after = 5min}};
    std::jthread waiter;
    std::unique_lock<typename TestType::mutex> hold{other};
    waiter = std::jthread{[&] {
        m.lock();
        m.unlock();
    }};
    CHECK(eventually([&] { return store.one.stats().waiting == 1; }));
    CHECK_FALSE(run_once(store.one, "orders", 1ms, [] {}));
}
