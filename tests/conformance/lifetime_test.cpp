// SPDX-License-Identifier: MIT
#include "sleeper.hpp"
#include "stores.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;
using holdfast::test::brief;
using holdfast::test::eventually;
using holdfast::test::goes_on;
using holdfast::test::is_free;
using holdfast::test::not_renewed;
using holdfast::test::renewed;

TEMPLATE_TEST_CASE("a lock outlives its client", "", HOLDFAST_STORES)
{
    TestType store;
    auto client = std::make_optional(store.another());
    typename TestType::mutex m{*client, "orders", renewed<TestType>()};
    client.reset();
    m.lock();
    CHECK(goes_on(m.lease()));
    m.unlock();
    CHECK(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("a lease outlives its lock and its client", "", HOLDFAST_STORES)
{
    TestType store;
    holdfast::lease held;
    holdfast::lease lost;
    {
        auto client = store.another();
        typename TestType::mutex m{client, "orders", {.ttl = TestType::lasting, .unavailable_after = 1min}};
        m.lock();
        lost = m.lease();
        store.break_lock("orders");
        CHECK(eventually([&] { return lost.lost_token().stop_requested(); }));
        m.unlock();
        m.lock();
        held = m.lease();
        CHECK(held.still_held());
    }
    CHECK_FALSE(held.still_held());
    CHECK_FALSE(held.lost_token().stop_requested());
    CHECK(lost.lost_token().stop_requested());
    CHECK(held.fencing_token() > lost.fencing_token());
    CHECK(held.remaining() == 0ms);
}

TEMPLATE_TEST_CASE("a lock may be destroyed by whoever has it next, before the unlock of the one before has returned",
                   "", HOLDFAST_STORES)
{
    TestType store;
    auto client = store.another();
    for (int turn = 0; turn < 30; ++turn) {
        // Handed on within the process, and by way of the store.
        holdfast::lock_options const options{.max_local_handoffs = turn % 2 == 0 ? 63U : 0U, .unavailable_after = 5min};
        auto m = std::make_unique<typename TestType::mutex>(client, "orders", options);
        auto* const lock = m.get();
        lock->lock();
        holdfast::test::sleeper next{[&] {
            lock->lock();
            lock->unlock();
            m.reset();
        }};
        if (turn % 3 != 0) CHECK(eventually([&] { return next.sleeps(); }));
        lock->unlock();
    }
    CHECK(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("the last lock and its client may be destroyed by the callback of a loss",
                   "[lesson-21]", HOLDFAST_STORES)
{
    TestType store;
    auto client = std::make_optional(store.another(TestType::ttl));
    auto m = std::make_unique<typename TestType::mutex>(*client, "orders", not_renewed<TestType>());
    m->lock();
    auto const lost = m->lease().lost_token();
    std::atomic<bool> destroyed{false};
    std::stop_callback const on_loss{lost, [&] {
                                         client.reset();
                                         m.reset();
                                         destroyed = true;
                                     }};
    CHECK(eventually([&] { return destroyed.load(); }));
    CHECK(eventually([&] { return is_free(store, "orders"); }));
}

TEMPLATE_TEST_CASE("the last lock and its client may be destroyed by the hook that hears of a loss",
                   "[lesson-21]", HOLDFAST_STORES)
{
    TestType store;
    auto client = std::make_optional(store.another(TestType::ttl));
    std::unique_ptr<typename TestType::mutex> m;
    std::atomic<bool> told{false};
    std::atomic<bool> destroyed{false};
    auto options = brief<TestType>();
    options.on_error = [&](holdfast::error const&) {
        if (told.exchange(true)) return;  // the destructor's unlock() tells of the loss, too
        client.reset();
        m.reset();
        destroyed = true;
    };
    m = std::make_unique<typename TestType::mutex>(*client, "orders", options);
    m->lock();
    store.break_lock("orders");
    CHECK(eventually([&] { return destroyed.load(); }));
    CHECK(eventually([&] { return is_free(store, "orders"); }));
}

TEMPLATE_TEST_CASE("the end of a client waits for the function of an asynchronous call", "", HOLDFAST_STORES)
{
    TestType store;
    for (int i = 0; i < 10; ++i) {
        std::atomic<bool> called{false};
        std::atomic<bool> returned{false};
        auto client = std::make_optional(store.another());
        auto m = std::make_unique<typename TestType::mutex>(*client, "orders", renewed<TestType>());
        m->async_lock([&](std::error_code) {
            called = true;
            std::this_thread::sleep_for(5ms);
            returned = true;
        });
        if (i % 2 == 0) CHECK(eventually([&] { return called.load(); }));
        m.reset();
        client.reset();
        REQUIRE(returned);
    }
    CHECK(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("a lock may be destroyed by the hook that hears of its unlock", "[lesson-21]", HOLDFAST_STORES)
{
    TestType store;
    std::unique_ptr<typename TestType::mutex> m;
    int told = 0;
    auto options = renewed<TestType>();
    options.on_error = [&m, &told, owned = std::string(100, 'x')](holdfast::error const&) {
        m.reset();
        told += owned.size() == 100 ? 1 : 100;
    };
    m = std::make_unique<typename TestType::mutex>(store.one, "orders", options);
    m->unlock();
    CHECK(told == 1);
}

TEMPLATE_TEST_CASE("the callback of a loss may lock again", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    typename TestType::mutex beside{store.one, "orders", renewed<TestType>()};
    m.lock();
    std::atomic<int> got{0};
    std::stop_callback const on_loss{m.lease().lost_token(), [&] {
                                         try {
                                             got = beside.try_lock_for(1min) ? 1 : 2;
                                         } catch (holdfast::error const&) {
                                             got = 3;  // from here nothing can be thrown
                                         }
                                     }};
    store.break_lock("orders");
    CHECK(eventually([&] { return got != 0; }));
    CHECK(got == 1);
    CHECK(beside.lease().still_held());
}

TEMPLATE_TEST_CASE("a lock of a name that was used before is as good as the first", "", HOLDFAST_STORES)
{
    TestType store;
    for (int i = 0; i < 5; ++i) {
        typename TestType::mutex m{store.one, "orders"};
        CHECK(m.try_lock_for(1min));
    }
    for (int i = 0; i < 300; ++i) {
        typename TestType::mutex m{store.one, "order " + std::to_string(i)};
        REQUIRE(m.try_lock());
    }
    CHECK(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("a lock that is never used needs no server", "", HOLDFAST_STORES)
{
    std::optional<TestType> store{std::in_place};
    auto client = store->another();
    store.reset();
    typename TestType::mutex m{client, "orders"};
    CHECK_FALSE(m.lease().still_held());
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == holdfast::errc::not_owner);
}

TEMPLATE_TEST_CASE("a slow callback of one lock's loss delays neither the loss of another one nor what is told of it",
                   "", HOLDFAST_STORES)
{
    std::atomic<bool> other_told{false};
    std::atomic<int> in_time{0};
    TestType store;
    auto client = store.another(TestType::ttl);
    auto options = brief<TestType>();
    typename TestType::mutex slow{client, "orders", options};
    options.on_error = [&](holdfast::error const&) { other_told = true; };
    typename TestType::mutex other{client, "invoices", options};
    slow.lock();
    other.lock();
    auto const other_lost = other.lease().lost_token();
    std::atomic<bool> called{false};
    std::atomic<bool> ended{false};
    std::stop_callback const on_loss{slow.lease().lost_token(), [&] {
                                         called = true;
                                         in_time = eventually([&] { return other_lost.stop_requested() && other_told; })
                                                       ? 1
                                                       : 2;
                                         ended = true;
                                     }};
    store.break_lock("orders");
    REQUIRE(eventually([&] { return called.load(); }));
    store.break_lock("invoices");
    REQUIRE(eventually([&] { return ended.load(); }, 5min));
    CHECK(in_time == 1);
}
