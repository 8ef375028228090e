// SPDX-License-Identifier: MIT
#include "sleeper.hpp"
#include "stores.hpp"
#include "support/catch.hpp"

#include <chrono>
#include <stop_token>
#include <thread>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::test::is_free;
using holdfast::test::sleeper;

TEMPLATE_TEST_CASE("a token that was stopped before takes nothing", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    std::stop_source stop;
    stop.request_stop();

    CHECK_FALSE(m.lock(stop.get_token()));
    CHECK_FALSE(m.try_lock_for(stop.get_token(), 1h));
    CHECK_FALSE(m.try_lock_until(stop.get_token(), boot_clock::now() + 1h));
    CHECK(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("a token that nobody stops changes nothing", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    std::stop_source stop;
    for (auto const& token : {stop.get_token(), std::stop_token{}}) {
        CHECK(m.lock(token));
        m.unlock();
        CHECK(m.try_lock_for(token, 1min));
        CHECK_FALSE(m.try_lock_for(token, 1ms));
        m.unlock();
        CHECK(m.try_lock_until(token, std::chrono::steady_clock::now() + 1min));
        m.unlock();
    }
}

TEMPLATE_TEST_CASE("a waiter behind a thread of its own process is cancelled", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex holder{store.one, "orders"};
    typename TestType::mutex waiting{
        store.one, "orders", {.unavailable_after = 5min}};  // nothing can be thrown out of a thread
    std::stop_source stop;
    holder.lock();
    {
        sleeper one{[&] { return waiting.lock(stop.get_token()); }};
        sleeper two{[&] { return waiting.try_lock_for(stop.get_token(), 1h); }};
        CHECK(one.sleeps());
        CHECK(two.sleeps());
        stop.request_stop();
        CHECK_FALSE(one.join());
        CHECK_FALSE(two.join());
    }
    CHECK(holder.lease().still_held());
    holder.unlock();
    CHECK(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("a waiter behind another client is cancelled and leaves nothing", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex holder{store.one, "orders"};
    typename TestType::mutex waiting{store.other, "orders", {.unavailable_after = 5min}};
    std::stop_source stop;
    holder.lock();
    {
        sleeper one{[&] { return waiting.lock(stop.get_token()); }};
        sleeper two{[&] { return waiting.try_lock_until(stop.get_token(), boot_clock::now() + 1h); }};
        CHECK(one.sleeps());
        CHECK(two.sleeps());
        stop.request_stop();
        CHECK_FALSE(one.join());
        CHECK_FALSE(two.join());
    }
    CHECK(holder.lease().still_held());
    holder.unlock();
    CHECK(is_free(store, "orders"));
    CHECK(waiting.try_lock());
}

TEMPLATE_TEST_CASE("the one behind a cancelled waiter gets its turn", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex holder{store.one, "orders"};
    typename TestType::mutex cancelled{store.other, "orders", {.unavailable_after = 5min}};
    typename TestType::mutex patient{store.other, "orders", {.unavailable_after = 5min}};
    std::stop_source stop;
    holder.lock();
    sleeper first{[&] { return cancelled.lock(stop.get_token()); }};
    CHECK(first.sleeps());
    sleeper second{[&] { patient.lock(); }};
    CHECK(second.sleeps());
    stop.request_stop();
    CHECK_FALSE(first.join());
    CHECK_FALSE(second.done());
    holder.unlock();
    second.join();
    CHECK(patient.lease().still_held());
}

TEMPLATE_TEST_CASE("a stop at any moment leaves a lock or nothing", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    for (int i = 0; i < 40; ++i) {
        std::stop_source stop;
        std::jthread stopper{[&] {
            std::this_thread::sleep_for(std::chrono::microseconds{20 * i});
            stop.request_stop();
        }};
        bool const locked = m.lock(stop.get_token());
        stopper.join();
        CHECK(m.lease().still_held() == locked);
        m.unlock();
    }
    CHECK(is_free(store, "orders"));
}
