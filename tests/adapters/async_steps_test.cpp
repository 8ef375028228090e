// SPDX-License-Identifier: MIT
//
// Asynchronous calls of several steps: which thread makes the steps, and what they own meanwhile.
#include "lock/fake_store.hpp"
#include "support/async_outcome.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/adapters/leased_permit.hpp>
#include <holdfast/adapters/leased_permits.hpp>
#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/adapters/semaphore.hpp>
#include <holdfast/adapters/shared_mutex.hpp>
#include <holdfast/core/announcer.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/lock/permit_wait.hpp>
#include <holdfast/lock/slot_semaphore.hpp>
#include <holdfast/lock/slot_sizes.hpp>
#include <holdfast/memory.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
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
                ++ended_;
            });
        }
        REQUIRE(eventually([this] { return begun_ == announcer::most_telling; }));
    }
    busy(busy const&) = delete;
    busy& operator=(busy const&) = delete;
    ~busy()
    {
        over_ = true;
        while (ended_ != announcer::most_threads) std::this_thread::sleep_for(1ms);
    }

private:
    std::deque<mutex> locks_;
    std::atomic<std::size_t> begun_{0};
    std::atomic<std::size_t> ended_{0};
    std::atomic<bool> over_{false};
};

/// A number of permits whose change takes as long as the test wants.
class late_change final : public holdfast::detail::slot_source {
public:
    late_change(std::unique_ptr<slot_source> of, std::atomic<bool>& begun, std::atomic<bool> const& may_end)
        : of_{std::move(of)}, begun_{begun}, may_end_{may_end}
    {
    }
    [[nodiscard]] std::shared_ptr<holdfast::detail::lock_object> make_slot(std::size_t slot) override
    {
        return of_->make_slot(slot);
    }
    [[nodiscard]] std::shared_ptr<holdfast::detail::lock_object> make_turn() override { return of_->make_turn(); }
    [[nodiscard]] std::size_t held() override { return of_->held(); }
    void resize() override
    {
        begun_ = true;
        while (!may_end_) std::this_thread::sleep_for(1ms);
    }

private:
    std::unique_ptr<slot_source> of_;
    std::atomic<bool>& begun_;
    std::atomic<bool> const& may_end_;
};

/// A semaphore of two permits, on a store that does not answer acquires by itself, while its number changes to three.
class changing_semaphore {
    std::atomic<bool> begun_{false};
    std::atomic<bool> may_end_{false};

    [[nodiscard]] static std::shared_ptr<fake_store> silent()
    {
        auto made = std::make_shared<fake_store>();
        made->acquires.answered_at_once = false;
        return made;
    }

public:
    changing_semaphore()
    {
        CHECK(eventually([this] { return begun_.load(); }));
    }
    changing_semaphore(changing_semaphore const&) = delete;
    changing_semaphore& operator=(changing_semaphore const&) = delete;
    ~changing_semaphore() { may_end_ = true; }

    /// Effects: the change ends.
    void end_change()
    {
        may_end_ = true;
        changes_.join();
    }

    std::shared_ptr<fake_store> const store = silent();
    std::shared_ptr<client_context> const context = std::make_shared<client_context>(store);
    std::shared_ptr<holdfast::detail::slot_semaphore> const jobs =
        std::make_shared<holdfast::detail::slot_semaphore>("jobs", 2, [this](holdfast::semaphore_slot const& of) {
            return std::make_unique<late_change>(context->make_slots(of, {}), begun_, may_end_);
        });

private:
    std::jthread changes_{[this] { jobs->resize(3); }};
};

}  // namespace

TEST_CASE("who meets a change of the number of permits waits for its end by its own deadline, and a single attempt not")
{
    auto const store = std::make_shared<fake_store>();
    store->acquires.answered_at_once = false;
    auto const context = std::make_shared<client_context>(store);
    std::jthread const refuses{[&](std::stop_token const& over) {
        for (std::size_t n = 0; !over.stop_requested(); std::this_thread::sleep_for(1ms))
            while (n < store->acquires.size()) store->refuse(n++, make_error_code(holdfast::errc::misconfigured));
    }};
    std::atomic<bool> begun{false};
    std::atomic<bool> may_end{false};
    holdfast::detail::slot_sizes sizes{"jobs", 2, [&](holdfast::semaphore_slot const& of) {
                                           return std::make_unique<late_change>(context->make_slots(of, {}), begun,
                                                                                may_end);
                                       }};
    auto const take = [&](holdfast::detail::patience const& p, std::stop_token const& stop) {
        return holdfast::detail::permit_wait{sizes, 1, p, stop}.run();
    };
    std::jthread changes{[&] { sizes.resize(3); }};
    REQUIRE(eventually([&] { return begun.load(); }));
    CHECK(take({.deadline = holdfast::boot_clock::now() + 20ms}, {}).empty());
    CHECK(take({.once = true}, {}).empty());
    std::stop_source stopped;
    stopped.request_stop();
    CHECK(take({}, stopped.get_token()).empty());
    may_end = true;
    changes.join();
    CHECK_THROWS_AS(take({.once = true}, {}), holdfast::error);  // of the number that is in use now
}

TEST_CASE("an asynchronous call that meets a change of the number of permits can be stopped before its end")
{
    changing_semaphore c;
    auto const& store = c.store;
    auto const& jobs = c.jobs;
    std::stop_source stop;
    async_outcome taken;
    jobs->source(1)->to_lock()->begin_lock({}, stop.get_token(), holdfast::detail::callback_of(taken.hears()));
    auto const asked = store->acquires.last();
    store->refuse(0, make_error_code(holdfast::errc::misconfigured));
    CHECK(eventually([&] { return asked.use_count() == 2; }));  // its answer was acted on
    CHECK_FALSE(taken.told());
    stop.request_stop();
    bool const came = taken.comes();
    c.end_change();
    REQUIRE(came);
    CHECK(taken.code() == std::errc::operation_canceled);
    CHECK(taken.calls() == 1);
    CHECK(store->acquires.size() == 1);
    jobs->close();
}

TEST_CASE("who meets a change of the number of permits takes one of the new number, whichever way it waits")
{
    changing_semaphore c;
    auto const& store = c.store;
    auto const& jobs = c.jobs;
    async_outcome called;
    jobs->source(1)->to_lock()->begin_lock({}, {}, holdfast::detail::callback_of(called.hears()));
    store->refuse(0, make_error_code(holdfast::errc::misconfigured));
    std::atomic<std::size_t> taken{0};
    std::jthread waits{[&] { taken = jobs->take(1, {}, {}).size(); }};
    CHECK(eventually([&] { return store->acquires.size() == 2; }));
    store->acquires.answered_at_once = true;
    store->refuse(1, make_error_code(holdfast::errc::misconfigured));
    c.end_change();
    waits.join();
    CHECK(taken == 1);
    REQUIRE(called.comes());
    CHECK_FALSE(called.code());
    jobs->close();
}

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

TEST_CASE("every asynchronous wait may be for ever, or be over before it begins")
{
    holdfast::memory::store locks;
    auto const other = locks.another_client();
    auto const check = [](auto& taken, auto const& begin) {
        async_outcome late;
        begin(-1h, late.hears());
        REQUIRE(late.comes());
        CHECK_FALSE(late.code());
        CHECK_FALSE(late.held());
        async_outcome waits;
        begin(std::chrono::hours::max(), waits.hears());
        taken.unlock();
        REQUIRE(waits.comes());
        CHECK_FALSE(waits.code());
        CHECK(waits.held());
    };
    mutex holder{other, "orders"};
    mutex prices{locks, "prices"};
    mutex orders{locks, "orders"};
    multi_mutex both{prices, orders};
    holder.lock();
    check(holder, [&](auto d, auto f) { both.async_try_lock_for(d, f); });

    holdfast::shared_mutex writer{other, "stock"};
    holdfast::shared_mutex stock{locks, "stock"};
    writer.lock();
    check(writer, [&](auto d, auto f) { stock.async_try_lock_for(d, f); });
    stock.unlock();
    writer.lock();
    check(writer, [&](auto d, auto f) { stock.async_try_lock_shared_for(d, f); });

    semaphore others{other, "jobs", 2};
    semaphore jobs{locks, "jobs", 2};
    for (std::ptrdiff_t n = 1; n <= 2; ++n) {
        holdfast::leased_permits held{others, 2};
        struct {
            holdfast::leased_permits& permits;
            void unlock() const { permits.release(); }
        } taken{held};
        check(taken,
              [&](auto d, auto f) { n == 1 ? jobs.async_try_acquire_for(d, f) : jobs.async_try_acquire_for(n, d, f); });
        jobs.release(n);
    }
}

TEST_CASE("a function is told of several permits, all or none")
{
    holdfast::memory::store locks;
    auto const other = locks.another_client();
    semaphore jobs{locks, "jobs", 3};
    semaphore holder{other, "jobs", 3};
    async_outcome all;
    jobs.async_acquire(3, all.hears());
    REQUIRE(all.comes());
    CHECK_FALSE(all.code());
    CHECK_FALSE(holder.try_acquire());
    async_outcome two_back;
    jobs.async_release(2, two_back.hears());
    REQUIRE(two_back.comes());
    CHECK_FALSE(two_back.code());
    CHECK(jobs.permits_in_use() == 1);
    async_outcome none_back;
    jobs.async_release(2, none_back.hears());
    REQUIRE(none_back.comes());
    CHECK(none_back.code() == holdfast::errc::not_owner);
    async_outcome late;
    jobs.async_try_acquire_for(3, 20ms, late.hears());
    REQUIRE(late.comes());
    CHECK_FALSE(late.code());
    CHECK_FALSE(late.held());
    CHECK(eventually([&] { return jobs.permits_in_use() == 1; }));
    std::stop_source stop;
    async_outcome waits;
    jobs.async_acquire(3, waits.hears(), stop.get_token());
    CHECK(eventually([&] { return jobs.permits_in_use() == 3; }));  // collects those that are free
    CHECK_FALSE(waits.told());
    stop.request_stop();
    REQUIRE(waits.comes());
    CHECK(waits.code() == std::errc::operation_canceled);
    CHECK(eventually([&] { return jobs.permits_in_use() == 1; }));
    for (auto const n : {-1, 0, 4}) CHECK_THROWS_AS(jobs.async_acquire(n, [](std::error_code) {}), holdfast::error);
    async_outcome again;
    holder.async_acquire(3, again.hears());
    std::this_thread::sleep_for(5ms);
    jobs.release();
    REQUIRE(again.comes());
    CHECK_FALSE(again.code());
    CHECK(holder.permits_in_use() == 3);
}

TEST_CASE("of callers that wait for several permits one after the other is served, whichever way it waits")
{
    holdfast::memory::store locks;
    auto const other = locks.another_client();
    semaphore jobs{locks, "jobs", 3};
    semaphore others{other, "jobs", 3};
    std::atomic<int> ended{0};
    std::atomic<int> working{0};
    std::atomic<int> wrong{0};
    constexpr int rounds = 30;
    auto const work = [&] {
        if (++working > 1) ++wrong;  // two of three permits each: one at a time
        --working;
    };
    std::function<void(semaphore&, int)> const begin = [&](semaphore& in, int left) {
        in.async_acquire(2, [&, left](std::error_code ec) {
            if (ec) ++wrong;
            work();
            in.async_release(2, [&, left](std::error_code why) {
                if (why) ++wrong;
                left > 1 ? begin(in, left - 1) : static_cast<void>(++ended);
            });
        });
    };
    for (auto* const in : {&jobs, &others, &jobs}) begin(*in, rounds);
    for (int i = 0; i < rounds; ++i) {
        others.acquire(2);
        work();
        others.release(2);
    }
    CHECK(eventually([&] { return ended == 3; }));
    CHECK(wrong == 0);
    CHECK(eventually([&] { return jobs.permits_in_use() == 0; }));
}

TEST_CASE("a collector of permits that loses its turn, or a permit, begins again or takes another one")
{
    holdfast::memory::store locks;
    auto const other = locks.another_client();
    semaphore jobs{locks, "jobs", 3, {.ttl = 15s}};
    semaphore holder{other, "jobs", 3};
    std::optional<holdfast::leased_permit> held{std::in_place, holder};
    async_outcome taken;
    jobs.async_acquire(3, taken.hears());
    // Before it has its turn it only tries.
    REQUIRE(eventually([&] { return locks.holder("jobs#batch") && jobs.permits_in_use() == 3; }));
    auto const lost = GENERATE(true, false) ? "jobs#batch" : "jobs#" + std::to_string((held->slot() + 1) % 3);
    CHECK(locks.force_unlock(lost));
    CHECK(eventually([&] { return locks.stats().lost_in_store == 1; }));  // with the next renewal
    CHECK_FALSE(taken.told());
    held.reset();
    REQUIRE(taken.comes());
    CHECK_FALSE(taken.code());
    CHECK(eventually([&] { return jobs.permits_in_use() == 3; }));
}

TEST_CASE("permits that are collected come free when their semaphore is destroyed")
{
    holdfast::memory::store locks;
    auto const other = locks.another_client();
    semaphore holder{other, "jobs", 2};
    holder.acquire(GENERATE(0, 1) + 1);
    async_outcome taken;
    {
        semaphore jobs{locks, "jobs", 2};
        jobs.async_acquire(2, taken.hears());
        std::this_thread::sleep_for(GENERATE(0ms, 5ms));
    }
    REQUIRE(taken.comes());
    CHECK(taken.code() == std::errc::operation_canceled);
    holder.release();
    CHECK(eventually([&] { return holder.permits_in_use() <= 1; }));
}
