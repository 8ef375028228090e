// SPDX-License-Identifier: MIT
#include "sleeper.hpp"
#include "stores.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::test::brief;
using holdfast::test::eventually;
using holdfast::test::goes_on;
using holdfast::test::not_renewed;
using holdfast::test::renewed;
using holdfast::test::sleeper;

TEMPLATE_TEST_CASE("threads of one process get the lock in the order in which they came", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    m.lock();
    std::mutex guard;
    std::vector<int> order;
    std::vector<std::unique_ptr<sleeper>> all;
    for (int i = 0; i < 6; ++i) {
        all.push_back(std::make_unique<sleeper>([&, i] {
            typename TestType::mutex mine{
                store.one, "orders", {.unavailable_after = 5min}};  // nothing can be thrown out of a thread
            std::scoped_lock const hold{mine};
            std::scoped_lock const note{guard};
            order.push_back(i);
        }));
        REQUIRE(all.back()->sleeps());
    }
    m.unlock();
    for (auto& one : all) one->join();
    CHECK(order == std::vector{0, 1, 2, 3, 4, 5});
}

TEMPLATE_TEST_CASE("a lock goes to the threads of other processes after so many handoffs", "", HOLDFAST_STORES)
{
    auto const handoffs = GENERATE(0U, 1U, 63U);
    TestType store;
    auto options = holdfast::lock_options{.max_local_handoffs = handoffs, .unavailable_after = 5min};
    std::atomic<bool> done{false};
    std::atomic<int> sections{0};
    std::vector<std::jthread> busy;
    for (int i = 0; i < 2; ++i)
        busy.emplace_back([&] {
            typename TestType::mutex m{store.one, "orders", options};
            while (!done) {
                std::scoped_lock const hold{m};
                ++sections;
            }
        });
    CHECK(eventually([&] { return sections > 10; }));
    {
        typename TestType::mutex rival{store.other, "orders", options};
        CHECK(rival.try_lock_for(1min));
    }
    done = true;
}

TEMPLATE_TEST_CASE("a holder by handoff is renewed although the time of the one before was over", "", HOLDFAST_STORES)
{
    TestType store;
    auto limited = renewed<TestType>();
    limited.max_hold = 1ms;
    typename TestType::mutex first{store.one, "orders", limited};
    typename TestType::mutex second{store.one, "orders", renewed<TestType>()};
    first.lock();
    sleeper waiter{[&] { second.lock(); }};
    CHECK(waiter.sleeps());
    first.unlock();
    waiter.join();
    CHECK(goes_on(second.lease()));
}

TEMPLATE_TEST_CASE("a holder by handoff is told of its loss by its own hook", "", HOLDFAST_STORES)
{
    std::atomic<int> first_told{0};
    std::atomic<int> second_told{0};
    TestType store;
    auto options = renewed<TestType>();
    auto const loss = [](holdfast::error const& e) {
        return e.code() == holdfast::errc::lease_lost ? 1 : 0;
    };  // a renewal may fail before
    options.on_error = [&](holdfast::error const& e) { first_told += loss(e); };
    typename TestType::mutex first{store.one, "orders", options};
    options.on_error = [&](holdfast::error const& e) { second_told += loss(e); };
    typename TestType::mutex second{store.one, "orders", options};
    first.lock();
    sleeper waiter{[&] { second.lock(); }};
    CHECK(waiter.sleeps());
    first.unlock();
    waiter.join();
    store.break_lock("orders");
    CHECK(eventually([&] { return second_told > 0; }));
    CHECK(second_told == 1);
    CHECK(first_told == 0);
}

TEMPLATE_TEST_CASE("a lease does not pass to one who wants another kind of lease", "", HOLDFAST_STORES_WITH_TTL)
{
    TestType store;
    typename TestType::mutex first{store.one, "orders"};
    typename TestType::mutex longer{store.one, "orders", {.ttl = 1h, .unavailable_after = 5min}};
    first.lock();
    sleeper waiter{[&] { longer.lock(); }};
    CHECK(waiter.sleeps());
    first.unlock();
    waiter.join();
    CHECK(longer.lease().remaining() > 30min);
}

TEMPLATE_TEST_CASE("a lost lease is not handed on", "", HOLDFAST_STORES)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    typename TestType::mutex loser{client, "orders", not_renewed<TestType>()};
    typename TestType::mutex waiting{client, "orders", brief<TestType>()};
    typename TestType::mutex rival{store.other, "orders", {.ttl = 30s}};
    loser.lock();
    auto const token = loser.lease().fencing_token();
    store.break_lock("orders");
    REQUIRE(rival.try_lock());
    sleeper waiter{[&] { waiting.lock(); }};
    CHECK(waiter.sleeps());
    CHECK(eventually([&] { return !loser.lease().still_held(); }));
    loser.unlock();
    CHECK(rival.lease().still_held());
    CHECK_FALSE(holdfast::test::is_free(store, "orders"));
    CHECK_FALSE(waiter.done());
    rival.unlock();
    waiter.join();
    CHECK(waiting.lease().fencing_token() > token);
}
