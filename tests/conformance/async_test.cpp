// SPDX-License-Identifier: MIT
//
// Asynchronous calls on every store: nobody is blocked, so that the client's own thread serves them.
#include "stores.hpp"
#include "support/async_outcome.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::test::async_outcome;
using holdfast::test::child;
using holdfast::test::eventually;
using holdfast::test::goes_on;
using holdfast::test::renewed;

TEMPLATE_TEST_CASE("an asynchronous lock is taken and given back, again and again", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    std::uint64_t last = 0;
    for (int i = 0; i < 5; ++i) {
        async_outcome locked;
        m.async_lock(locked.hears());
        REQUIRE(locked.comes());
        CHECK_FALSE(locked.code());
        CHECK(m.lease().still_held());
        CHECK(m.lease().fencing_token() > last);
        last = m.lease().fencing_token();
        CHECK_FALSE(is_free(store, "orders"));
        async_outcome unlocked;
        m.async_unlock(unlocked.hears());
        REQUIRE(unlocked.comes());
        CHECK_FALSE(unlocked.code());
        CHECK_FALSE(m.lease().still_held());
    }
    CHECK(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("an asynchronous lock waits for another client's", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex holder{store.other, "orders", renewed<TestType>()};
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    holder.lock();
    async_outcome locked;
    m.async_lock(locked.hears());
    std::this_thread::sleep_for(100ms);
    CHECK_FALSE(locked.told());
    if (GENERATE(false, true)) {
        holder.unlock();
    } else {
        async_outcome unlocked;
        holder.async_unlock(unlocked.hears());
        CHECK(unlocked.comes());
        CHECK_FALSE(unlocked.code());
    }
    REQUIRE(locked.comes());
    CHECK_FALSE(locked.code());
    CHECK(m.lease().still_held());
}

TEMPLATE_TEST_CASE(
    "an asynchronous wait for another client's lock is stopped, or its time passes, and it leaves nothing", "",
    HOLDFAST_STORES)
{
    TestType store;
    bool const stopped = GENERATE(true, false);
    typename TestType::mutex holder{store.other, "orders", renewed<TestType>()};
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    holder.lock();
    std::stop_source stop;
    async_outcome outcome;
    m.async_try_lock_for(stopped ? 10min : 200ms, outcome.hears(), stop.get_token());
    if (stopped) {
        std::this_thread::sleep_for(100ms);
        CHECK_FALSE(outcome.told());
        stop.request_stop();
    }
    REQUIRE(outcome.comes());
    CHECK_FALSE(outcome.held());
    CHECK(outcome.code() == (stopped ? std::make_error_code(std::errc::operation_canceled) : std::error_code{}));
    CHECK_FALSE(m.lease().still_held());
    holder.unlock();
    CHECK(eventually([&] { return is_free(store, "orders"); }));
}

TEMPLATE_TEST_CASE("an asynchronous wait may be for ever, or be over before it begins", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex holder{store.other, "orders", renewed<TestType>()};
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    holder.lock();
    async_outcome late;
    m.async_try_lock_for(-1h, late.hears());
    REQUIRE(late.comes());
    CHECK_FALSE(late.code());
    CHECK_FALSE(late.held());
    async_outcome waits;
    m.async_try_lock_for(std::chrono::hours::max(), waits.hears());
    holder.unlock();
    REQUIRE(waits.comes());
    CHECK_FALSE(waits.code());
    CHECK(waits.held());
}

TEMPLATE_TEST_CASE("the end of a mutex that waits asynchronously leaves nothing behind", "", HOLDFAST_STORES)
{
    TestType store;
    auto client = std::make_unique<typename TestType::client>(store.another());
    auto m = std::make_unique<typename TestType::mutex>(*client, "orders", renewed<TestType>());
    typename TestType::mutex holder{store.other, "orders", renewed<TestType>()};
    bool const held = GENERATE(true, false);
    if (held) holder.lock();
    async_outcome outcome;
    m->async_lock(outcome.hears());
    m.reset();
    client.reset();
    REQUIRE(outcome.comes());
    bool const was_faster = !held && !outcome.code();  // a free lock may be granted before the mutex ends
    CHECK((was_faster || outcome.code() == std::errc::operation_canceled));
    if (held) holder.unlock();
    CHECK(eventually([&] { return is_free(store, "orders"); }));
}

TEMPLATE_TEST_CASE(
    "a lease that was taken asynchronously is renewed while its function runs, and lost when it is taken away", "",
    HOLDFAST_STORES)
{
    constexpr auto ttl = 12s;
    TestType store;
    auto client = store.another(ttl);
    auto options = renewed<TestType>();
    options.ttl = ttl;
    typename TestType::mutex m{client, "orders", options};
    std::atomic<bool> held{false};
    async_outcome locked;
    m.async_lock(locked.hears([&] { held = goes_on(m.lease()); }));
    REQUIRE(locked.comes());
    CHECK(held);
    auto const lease = m.lease();
    store.break_lock("orders");
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    async_outcome unlocked;
    m.async_unlock(unlocked.hears());
    REQUIRE(unlocked.comes());
    CHECK(unlocked.code() == errc::lease_lost);
}

TEMPLATE_TEST_CASE("a forked child begins nothing asynchronous on its parent's locks", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    typename TestType::mutex free{store.one, "invoices", renewed<TestType>()};
    m.lock();
    auto const throws = [](auto&& f) {
        try {
            f();
            return false;
        } catch (holdfast::error const& e) {
            return e.code() == errc::misconfigured;
        }
    };
    auto born = child::fork([&] {
        std::atomic<int> calls{0};
        int wrong = throws([&] { free.async_lock([&](std::error_code) { ++calls; }); }) ? 0 : 1;
        wrong += throws([&] { free.async_try_lock_for(1s, [&](std::error_code, bool) { ++calls; }); }) ? 0 : 2;
        wrong += throws([&] { m.async_unlock([&](std::error_code) { ++calls; }); }) ? 0 : 4;
        std::this_thread::sleep_for(50ms);
        return calls == 0 ? wrong : 8;
    });
    CHECK(born.wait_for(2min) == 0);
    CHECK(m.lease().still_held());
    CHECK_FALSE(is_free(store, "orders"));
}
