// SPDX-License-Identifier: MIT
#include "sleeper.hpp"
#include "stores.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::test::eventually;
using holdfast::test::is_free;
using holdfast::test::sleeper;

TEMPLATE_TEST_CASE("std::lock_guard guards a section", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    {
        std::lock_guard<typename TestType::mutex> const hold{m};
        CHECK_FALSE(is_free(store, "orders"));
    }
    CHECK(is_free(store, "orders"));
    m.lock();
    {
        std::lock_guard<typename TestType::mutex> const hold{m, std::adopt_lock};
    }
    CHECK(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("every constructor of std::unique_lock works", "", HOLDFAST_STORES)
{
    using mutex = typename TestType::mutex;
    TestType store;
    mutex m{store.one, "orders"};
    mutex there{store.other, "orders"};
    std::unique_lock<mutex> none;
    CHECK_FALSE(none.owns_lock());
    {
        std::unique_lock<mutex> hold{m};
        CHECK(hold.owns_lock());
        CHECK_FALSE(std::unique_lock<mutex>{there, std::try_to_lock}.owns_lock());
        CHECK_FALSE(std::unique_lock<mutex>{there, 20ms}.owns_lock());
        CHECK_FALSE(std::unique_lock<mutex>{there, std::chrono::steady_clock::now() + 20ms}.owns_lock());
        std::unique_lock<mutex> moved{std::move(hold)};
        CHECK(moved.owns_lock());
        none = std::move(moved);
    }
    CHECK(none.owns_lock());
    CHECK_FALSE(is_free(store, "orders"));
    none.unlock();
    CHECK(std::unique_lock<mutex>{there, std::try_to_lock}.owns_lock());
    CHECK(std::unique_lock<mutex>{there, 1min}.owns_lock());
    CHECK(std::unique_lock<mutex>{there, std::chrono::system_clock::now() + 1min}.owns_lock());
    std::unique_lock<mutex> deferred{m, std::defer_lock};
    CHECK(deferred.try_lock_for(1min));
    CHECK(deferred.release() == &m);
    std::unique_lock<mutex> const adopted{m, std::adopt_lock};
    CHECK(adopted.owns_lock());
}

TEMPLATE_TEST_CASE("std::scoped_lock takes several locks without a deadlock", "", HOLDFAST_STORES)
{
    using mutex = typename TestType::mutex;
    TestType store;
    int sum = 0;
    auto const work = [&](typename TestType::client& client, bool turned) {
        mutex a{client, "a"};
        mutex b{client, "b"};
        std::mutex local;
        for (int i = 0; i < 10; ++i) {
            if (turned) {
                std::scoped_lock const hold{b, local, a};
                ++sum;
            } else {
                std::scoped_lock const hold{a, b};
                ++sum;
            }
        }
    };
    work(store.one, true);
    work(store.other, false);
    CHECK(sum == 20);
    mutex a{store.one, "a", {.unavailable_after = 5min}};  // nothing can be thrown out of a thread
    mutex b{store.one, "b", {.unavailable_after = 5min}};
    mutex b_there{store.other, "b"};
    b_there.lock();
    sleeper both{[&] { std::scoped_lock const hold{a, b}; }};
    CHECK(both.sleeps());
    CHECK_FALSE(both.done());
    b_there.unlock();
    both.join();
    CHECK(is_free(store, "a"));
    CHECK(is_free(store, "b"));
}

TEMPLATE_TEST_CASE("contenders that lock in different orders all get through", "", HOLDFAST_STORES)
{
    using mutex = typename TestType::mutex;
    TestType store;
    std::atomic<int> sum{0};
    auto const work = [&](typename TestType::client& client, bool turned) {
        mutex a{client, "a", {.unavailable_after = 5min}};
        mutex b{client, "b", {.unavailable_after = 5min}};
        for (int i = 0; i < 8; ++i) {
            auto& first = turned ? b : a;
            auto& second = turned ? a : b;
            std::scoped_lock const hold{first, second};
            sum.store(sum.load() + 1);
        }
    };
    {
        std::jthread const here{[&] { work(store.one, false); }};
        std::jthread const there{[&] { work(store.other, true); }};
    }
    CHECK(sum == 16);
}

// A thread is known by its blocking calls: an asynchronous one may come from anywhere.
TEMPLATE_TEST_CASE("two objects of one name in one std::scoped_lock are reported once, and ask at a bounded rate", "",
                   HOLDFAST_BLOCKING_STORES)
{
    struct stopped {};
    struct until_stopped {  // std::lock would go on for ever
        void lock()
        {
            ++waits;
            if (stop) throw stopped{};
            inner.lock();
        }
        bool try_lock() { return inner.try_lock(); }
        void unlock() { inner.unlock(); }

        typename TestType::mutex& inner;
        std::atomic<bool>& stop;
        std::atomic<long>& waits;
    };
    TestType store;
    std::atomic<bool> stop{false};
    std::atomic<long> waits{0};
    std::atomic<int> told{0};
    std::string text;
    auto options = holdfast::test::renewed<TestType>();
    options.on_error = [&](holdfast::error const& e) {
        if (++told == 1 && e.code() == holdfast::errc::misconfigured) text = e.what();
    };
    typename TestType::mutex one{store.one, "orders", options};
    typename TestType::mutex twin{store.one, "orders", options};
    typename TestType::mutex another{store.one, "invoices", options};
    bool const beside_another = GENERATE(false, true);
    auto const begun = boot_clock::now();
    sleeper takes_both{[&] {
        until_stopped a{one, stop, waits};
        until_stopped b{twin, stop, waits};
        until_stopped c{another, stop, waits};
        try {
            if (beside_another)
                std::scoped_lock const hold{c, a, b};
            else
                std::scoped_lock const hold{a, b};
        } catch (stopped const&) {
        }
    }};
    CHECK(eventually([&] { return told > 0 && waits > 100; }));
    stop = true;
    takes_both.join();
    CHECK(told == 1);
    CHECK(text.find("\"orders\"") != std::string::npos);
    auto const ms = std::chrono::duration<double, std::milli>{boot_clock::now() - begun}.count();
    CHECK(static_cast<double>(waits.load()) / ms < 1.5);  // the rest is 2.5 ms on average
    CHECK(one.try_lock());
    CHECK_FALSE(twin.try_lock());
}

TEMPLATE_TEST_CASE("std::lock and std::try_lock take all or none", "", HOLDFAST_STORES)
{
    using mutex = typename TestType::mutex;
    TestType store;
    mutex a{store.one, "a"};
    mutex b{store.one, "b"};
    mutex c{store.one, "c"};

    std::lock(a, b, c);
    CHECK_FALSE(is_free(store, "a"));
    CHECK_FALSE(is_free(store, "c"));
    a.unlock(), b.unlock(), c.unlock();

    CHECK(std::try_lock(a, b, c) == -1);
    a.unlock(), b.unlock(), c.unlock();

    // Of locks that were not held before: after a long use an attempt may be refused.
    mutex first{store.one, "orders/a"};
    mutex second{store.one, "orders/b"};
    mutex third{store.one, "orders/c"};
    mutex second_there{store.other, "orders/b"};
    second_there.lock();
    CHECK(std::try_lock(first, second, third) == 1);
    CHECK(is_free(store, "orders/a"));
    CHECK(is_free(store, "orders/c"));
}

TEMPLATE_TEST_CASE("std::condition_variable_any gives the lock back while it waits", "", HOLDFAST_STORES)
{
    using mutex = typename TestType::mutex;
    TestType store;
    mutex m{store.one, "orders", {.unavailable_after = 5min}};
    mutex there{store.other, "orders"};
    std::condition_variable_any changed;
    bool ready = false;
    sleeper waiter{[&] {
        std::unique_lock<mutex> hold{m};
        changed.wait(hold, [&] { return ready; });
        return hold.owns_lock() && m.lease().still_held();
    }};
    CHECK(waiter.sleeps());
    CHECK(there.try_lock_for(1min));
    there.unlock();
    m.lock();
    ready = true;
    m.unlock();
    changed.notify_all();
    CHECK(waiter.join());
    CHECK(is_free(store, "orders"));

    m.lock();
    CHECK_FALSE(changed.wait_for(m, 20ms, [] { return false; }));
    CHECK(changed.wait_until(m, std::chrono::system_clock::now() + 20ms) == std::cv_status::timeout);
    CHECK(m.lease().still_held());
}

TEMPLATE_TEST_CASE("a stop token ends the wait of std::condition_variable_any", "", HOLDFAST_STORES)
{
    using mutex = typename TestType::mutex;
    TestType store;
    mutex m{store.one, "orders", {.unavailable_after = 5min}};
    std::condition_variable_any changed;
    std::stop_source stop;
    sleeper waiter{[&] {
        std::unique_lock<mutex> hold{m};
        bool const met = changed.wait(hold, stop.get_token(), [] { return false; });
        return !met && hold.owns_lock() && m.lease().still_held();
    }};
    CHECK(waiter.sleeps());
    stop.request_stop();
    CHECK(waiter.join());
    CHECK(is_free(store, "orders"));
}
