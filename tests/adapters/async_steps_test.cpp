// SPDX-License-Identifier: MIT
//
// Asynchronous calls of several steps: which thread makes the steps, and what they own meanwhile.
#include "lock/fake_store.hpp"
#include "support/async_outcome.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/adapters/semaphore.hpp>
#include <holdfast/core/announcer.hpp>
#include <holdfast/memory.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::multi_mutex;
using holdfast::mutex;
using holdfast::semaphore;
using holdfast::detail::announcer;
using holdfast::detail::client_context;
using holdfast::test::async_outcome;
using holdfast::test::eventually;
using holdfast::test::fake_store;

namespace {

/// Keeps the threads of a client that call functions with results busy, until it is destroyed.
class busy {
public:
    explicit busy(holdfast::store const& in)
    {
        for (std::size_t i = 0; i < announcer::most_threads; ++i) {
            auto& one = locks_.emplace_back(in, "busy" + std::to_string(i));
            one.async_lock([this](std::error_code) {
                ++begun_;
                while (!over_) std::this_thread::sleep_for(1ms);
            });
        }
        REQUIRE(eventually([this] { return begun_ == announcer::most_telling; }));
    }
    busy(busy const&) = delete;
    busy& operator=(busy const&) = delete;
    ~busy()
    {
        over_ = true;
        while (begun_ != announcer::most_threads) std::this_thread::sleep_for(1ms);
    }

private:
    std::deque<mutex> locks_;
    std::atomic<std::size_t> begun_{0};
    std::atomic<bool> over_{false};
};

}  // namespace

TEST_CASE("several locks are taken, and a loss announced, while all functions that are told of results are slow")
{
    holdfast::memory::store locks;
    mutex a{locks, "a"};
    mutex b{locks, "b"};
    multi_mutex both{a, b};
    mutex lost{locks, "lost"};
    lost.lock();
    std::atomic<bool> announced{false};
    std::stop_callback const on_loss{lost.lease().lost_token(), [&] { announced = true; }};
    async_outcome taken;
    {
        busy const user{locks};
        both.async_lock(taken.hears());
        CHECK(eventually([&] { return a.lease().still_held() && b.lease().still_held(); }));
        locks.erase("lost");
        lost.async_unlock([](std::error_code) {});  // finds the loss
        CHECK(eventually([&] { return announced.load(); }));
        CHECK_FALSE(taken.told());
    }
    REQUIRE(taken.comes());
    CHECK_FALSE(taken.code());
    CHECK(both.lease().still_held());
}

TEST_CASE("a surplus permit is given back while all functions that are told of results are slow")
{
    holdfast::memory::store locks;
    auto const other = locks.another_client();
    semaphore jobs{locks, "jobs", 2};
    semaphore holder{other, "jobs", 2};
    async_outcome taken;
    {
        busy const user{locks};
        holder.acquire(2);
        jobs.async_acquire(taken.hears());
        std::this_thread::sleep_for(10ms);
        holder.release(2);
        CHECK(holder.try_acquire_for(1min));  // the other one is taken by then, or will be
        CHECK(eventually([&] { return holder.permits_in_use() == 2; }));
    }
    REQUIRE(taken.comes());
    CHECK_FALSE(taken.code());
}

TEST_CASE("no thread of a client owns it while a step of an asynchronous call begins")
{
    auto const store = std::make_shared<fake_store>();
    auto const context = std::make_shared<client_context>(store);
    std::weak_ptr<client_context> const seen = context;
    mutex a{holdfast::store{context}, "a", {}};
    mutex b{holdfast::store{context}, "b", {}};
    multi_mutex both{a, b};
    auto const me = std::this_thread::get_id();
    auto const owners = seen.use_count();
    std::mutex guards;
    std::vector<long> in_between;
    store->when_started = [&] {
        if (std::this_thread::get_id() == me) return;
        std::scoped_lock const guard{guards};
        in_between.push_back(seen.use_count());
    };
    async_outcome taken;
    both.async_lock(taken.hears());
    REQUIRE(taken.comes());
    CHECK_FALSE(taken.code());
    async_outcome released;
    both.async_unlock(released.hears());
    REQUIRE(released.comes());
    CHECK_FALSE(released.code());
    std::scoped_lock const guard{guards};
    CHECK(in_between == std::vector<long>{owners});
}

TEST_CASE("the end of a client in the middle of asynchronous calls is its end, and each call is told once")
{
    for (int i = 0; i < 300; ++i) {
        async_outcome taken;
        async_outcome permit;
        std::weak_ptr<client_context> seen;
        std::weak_ptr<fake_store> store_seen;
        {
            auto store = std::make_shared<fake_store>();
            store_seen = store;
            auto context = std::make_shared<client_context>(std::exchange(store, nullptr));
            seen = context;
            holdfast::store const locks{std::exchange(context, nullptr)};
            std::deque<mutex> all;
            for (auto const* const name : {"a", "b", "c", "d"}) all.emplace_back(locks, name);
            multi_mutex both{all[0], all[1], all[2], all[3]};
            semaphore jobs{locks, "jobs", 3};
            both.async_lock(taken.hears());
            jobs.async_acquire(permit.hears());
            for (int spin = 0; spin < i * 20; ++spin) std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        CHECK(seen.expired());
        for (auto const* const one : {&taken, &permit}) {
            REQUIRE(one->comes());
            if (one->code()) CHECK(one->code() == std::errc::operation_canceled);
            CHECK(one->calls() == 1);
        }
        CHECK(eventually([&] { return store_seen.expired(); }));
    }
}
