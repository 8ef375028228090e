// SPDX-License-Identifier: MIT
//
// Several locks that are taken together, in every store. What one request saves: redis/joint_test.cpp.
#include "sleeper.hpp"
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/philosophers.hpp"

#include <holdfast/adapters/multi_mutex.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::multi_mutex;
using holdfast::test::eventually;
using holdfast::test::is_free;
using holdfast::test::sleeper;

TEMPLATE_TEST_CASE("several locks are held together and free together, each with a token of its own", "",
                   HOLDFAST_BLOCKING_STORES_AND_LAYOUTS)
{
    TestType store;
    typename TestType::mutex a{store.one, "a"};
    typename TestType::mutex b{store.one, "b"};
    typename TestType::mutex orders{store.one, "orders"};
    multi_mutex all{orders, b, a};
    std::uint64_t last_of_a = 0;
    std::uint64_t last_of_b = 0;
    for (int i = 0; i < 2; ++i) {
        std::scoped_lock const hold{all};
        CHECK(all.lease().still_held());
        CHECK(all.lease().fencing_token() == 0);
        for (auto const* const name : {"a", "b", "orders"}) CHECK_FALSE(is_free(store, name));
        CHECK(all.lease_of(a).fencing_token() > last_of_a);
        CHECK(all.lease_of(b).fencing_token() > last_of_b);
        CHECK(all.lease_of(orders).fencing_token() == orders.lease().fencing_token());
        last_of_a = all.lease_of(a).fencing_token();
        last_of_b = all.lease_of(b).fencing_token();
    }
    for (auto const* const name : {"a", "b", "orders"}) CHECK(is_free(store, name));
    std::error_code ec;
    all.unlock(ec);
    CHECK(ec == errc::not_owner);
}

TEMPLATE_TEST_CASE("of several locks none is held if one is refused, which is named", "",
                   HOLDFAST_BLOCKING_STORES_AND_LAYOUTS)
{
    TestType store;
    typename TestType::mutex a{store.one, "a"};
    typename TestType::mutex b{store.one, "b"};
    typename TestType::mutex orders{store.one, "orders"};
    multi_mutex all{b, orders, a};
    CHECK(all.blocker().empty());
    for (std::string const taken : {"a", "b", "orders"}) {
        CAPTURE(taken);
        typename TestType::mutex theirs{store.other, taken};
        REQUIRE(theirs.try_lock_for(1min));
        CHECK_FALSE(all.try_lock());
        CHECK(all.blocker() == taken);
        CHECK(all.blocker_remaining().has_value() == TestType::keeps_to_ttl);  // a session's end is not known
        CHECK(all.blocker_remaining().value_or(1ms) > 0ms);
        CHECK(all.blocker_remaining().value_or(1ms) < holdfast::lock_options{}.ttl + 1s);
        CHECK_FALSE(all.lease().still_held());
        for (std::string const name : {"a", "b", "orders"}) CHECK(is_free(store, name) == (name != taken));
        CHECK(theirs.lease().still_held());
    }
    CHECK(all.try_lock_for(1min));
}

TEMPLATE_TEST_CASE("a wait for several locks ends when it is stopped, or the last of them is given back", "",
                   HOLDFAST_BLOCKING_STORES_AND_LAYOUTS)
{
    TestType store;
    auto const options = holdfast::test::renewed<TestType>();  // nothing can be thrown out of a thread
    typename TestType::mutex a{store.one, "a", options};
    typename TestType::mutex b{store.one, "b", options};
    multi_mutex both{b, a};
    typename TestType::mutex theirs{store.other, "b"};
    theirs.lock();
    std::stop_source stop;
    sleeper stopped{[&] { return both.lock(stop.get_token()); }};
    CHECK(stopped.sleeps());
    stop.request_stop();
    CHECK_FALSE(stopped.join());
    CHECK(is_free(store, "a"));
    bool held = false;
    sleeper waiter{[&] {
        std::scoped_lock const hold{both};
        held = both.lease().still_held();
    }};
    CHECK(waiter.sleeps());
    CHECK_FALSE(waiter.done());
    theirs.unlock();
    waiter.join();
    CHECK(held);
    CHECK(is_free(store, "a"));
    CHECK(is_free(store, "b"));
}

TEMPLATE_TEST_CASE("a name that is given twice is one lock, also as that of another client", "",
                   HOLDFAST_BLOCKING_STORES_AND_LAYOUTS)
{
    TestType store;
    holdfast::store const same = store.one;
    typename TestType::mutex a{store.one, "a"};
    typename TestType::mutex b{store.one, "b"};
    typename TestType::mutex again{store.one, "a"};
    holdfast::mutex copied{same, "b"};
    typename TestType::mutex there{store.other, "a"};
    multi_mutex all{there, b, again, a, copied, a};
    CHECK(all.name() == "a, b");
    std::scoped_lock const hold{all};
    CHECK(all.lease_of(a) == all.lease_of(there));
    CHECK(all.lease_of(a) == all.lease_of(again));
    CHECK(all.lease_of(b) == all.lease_of(copied));
    CHECK_FALSE(is_free(store, "a"));
    CHECK_FALSE(is_free(store, "b"));
}

TEMPLATE_TEST_CASE("several locks are taken in one order, however they are named", "",
                   HOLDFAST_BLOCKING_STORES_AND_LAYOUTS)
{
    TestType store;
    typename TestType::mutex a{store.one, "a"};
    typename TestType::mutex b{store.one, "b"};
    multi_mutex const straight{a, b};
    multi_mutex const turned{b, a};
    CHECK(straight.name() == turned.name());
    std::vector<holdfast::store> const seats{store.one, store.other, store.one};
    CHECK(holdfast::test::dine(seats, 20, "orders/"));
}

TEMPLATE_TEST_CASE("locks of equal names in two stores are taken in one order, however they are named", "",
                   HOLDFAST_BLOCKING_STORES_AND_LAYOUTS)
{
    TestType store;
    holdfast::memory::store const memory;
    std::vector<holdfast::store> const first{store.one, memory};
    std::vector<holdfast::store> const second{store.other, memory.another_client()};
    CHECK(holdfast::test::dine({first, second, first, second, first}, 50, "orders/"));
}

TEMPLATE_TEST_CASE("several locks get on with std::scoped_lock of the same ones", "",
                   HOLDFAST_BLOCKING_STORES_AND_LAYOUTS)
{
    using mutex = typename TestType::mutex;
    TestType store;
    auto const options = holdfast::test::renewed<TestType>();
    std::atomic<int> inside{0};
    std::atomic<int> sum{0};
    std::atomic<bool> alone{true};
    auto const work = [&](auto& taken) {
        for (int i = 0; i < 8; ++i) {
            taken([&] {
                if (++inside != 1) alone = false;
                std::this_thread::yield();
                ++sum;
                --inside;
            });
        }
    };
    {
        std::jthread const together{[&] {
            mutex a{store.one, "a", options};
            mutex b{store.one, "b", options};
            multi_mutex both{b, a};
            auto const taken = [&](auto const& section) {
                std::scoped_lock const hold{both};
                section();
            };
            work(taken);
        }};
        std::jthread const one_by_one{[&] {
            mutex a{store.other, "a", options};
            mutex b{store.other, "b", options};
            auto const taken = [&](auto const& section) {
                std::scoped_lock const hold{b, a};
                section();
            };
            work(taken);
        }};
    }
    CHECK(alone);
    CHECK(sum == 16);
    CHECK(is_free(store, "a"));
    CHECK(is_free(store, "b"));
}

TEMPLATE_TEST_CASE("several locks are lost with the first, and nothing of the others stays", "",
                   HOLDFAST_BLOCKING_STORES_AND_LAYOUTS)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    auto const options = holdfast::test::brief<TestType>();
    typename TestType::mutex a{client, "a", options};
    typename TestType::mutex b{client, "b", options};
    multi_mutex both{a, b};
    both.lock();
    auto const lost = both.lease().lost_token();
    store.break_lock("b");
    CHECK(eventually([&] { return lost.stop_requested(); }));
    CHECK_FALSE(both.lease().still_held());
    std::error_code ec;
    both.unlock(ec);
    CHECK(ec == errc::lease_lost);
    CHECK(is_free(store, "a"));
    CHECK(is_free(store, "b"));
}
