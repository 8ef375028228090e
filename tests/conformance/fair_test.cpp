// SPDX-License-Identifier: MIT
//
// Locks that are granted in the order of arrival.
#include "mostly.hpp"
#include "sleeper.hpp"
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/refusal.hpp"

#include <holdfast/fair_mutex.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using holdfast::fair_mutex;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::mostly;
using holdfast::test::renewed;
using holdfast::test::sleeper;

namespace {

// Whether so many clients stand in the line of "orders" of a store. A waiter in memory stands there before it sleeps.
bool wait_there(holdfast::test::memory_store& /*store*/, std::size_t /*count*/) { return true; }

bool wait_there(holdfast::test::redis_store& store, std::size_t count)
{
    return eventually([&] {
        return store.server.command({"ZCARD", "holdfast:queue:{orders}"}).integer == static_cast<long long>(count);
    });
}

#ifdef HOLDFAST_TEST_ZOOKEEPER
bool wait_there(holdfast::test::zookeeper_store& store, std::size_t count)
{
    holdfast::test::zookeeper_tree tree{store.server.address(), holdfast::test::zookeeper_store::credential};
    return eventually([&] { return tree.children("/orders").size() == count + 1; });
}
#endif

}  // namespace

#define HOLDFAST_STORES_IN_ORDER holdfast::test::memory_store, holdfast::test::redis_store HOLDFAST_AND_ZOOKEEPER

TEMPLATE_TEST_CASE("a fair lock goes to another client that came before a thread of this one", "",
                   HOLDFAST_STORES_IN_ORDER)
{
    TestType store;
    std::string const in_order = "other client, thread of the holder's client, ";
    CHECK(mostly([&] {
        fair_mutex held{store.one, "orders", renewed<TestType>()};
        held.lock();
        std::mutex guard;
        std::string order;
        auto const note = [&](fair_mutex& by, std::string const& name) {
            std::scoped_lock const hold{by};
            std::scoped_lock const one_at_a_time{guard};
            order += name + ", ";
        };
        fair_mutex there{store.other, "orders", renewed<TestType>()};
        fair_mutex here{store.one, "orders", renewed<TestType>()};
        sleeper first{[&] { note(there, "other client"); }};
        CHECK(first.sleeps());
        CHECK(wait_there(store, 1));
        sleeper second{[&] { note(here, "thread of the holder's client"); }};
        CHECK(second.sleeps());
        held.unlock();
        first.join();
        second.join();
        return order == in_order;
    }));
}

TEMPLATE_TEST_CASE("no lease passes to a fair lock from one of this process that is not", "", HOLDFAST_STORES_IN_ORDER)
{
    TestType store;
    holdfast::mutex held{store.one, "orders", renewed<TestType>()};
    held.lock();
    fair_mutex here{store.one, "orders", renewed<TestType>()};
    sleeper waiter{[&] { here.lock(); }};
    CHECK(waiter.sleeps());
    held.unlock();
    waiter.join();
    here.unlock();
    CHECK(store.one.stats().handed_over == 0);
}

TEMPLATE_TEST_CASE("a fair lock goes to clients in the order in which they came", "", HOLDFAST_STORES_IN_ORDER)
{
    TestType store;
    std::vector<typename TestType::client> clients;
    for (int i = 0; i < 4; ++i) clients.push_back(store.another());
    std::chrono::steady_clock::duration longest{};  // that one took to connect: it knows the server's clock no worse
    for (auto const& one : clients) {
        auto const begun = std::chrono::steady_clock::now();
        fair_mutex m{one, "orders", renewed<TestType>()};
        m.lock();
        m.unlock();
        longest = std::max(longest, std::chrono::steady_clock::now() - begun);
    }
    CHECK(mostly([&] {
        fair_mutex held{store.one, "orders", renewed<TestType>()};
        held.lock();
        std::mutex guard;
        std::vector<std::size_t> order;
        std::vector<std::unique_ptr<sleeper>> all;
        for (std::size_t i = 0; i < clients.size(); ++i) {
            all.push_back(std::make_unique<sleeper>([&, i] {
                fair_mutex m{clients[i], "orders", renewed<TestType>()};
                std::scoped_lock const hold{m};
                std::scoped_lock const one_at_a_time{guard};
                order.push_back(i);
            }));
            CHECK(all.back()->sleeps());
            CHECK(wait_there(store, i + 1));
            auto const came = std::chrono::steady_clock::now();
            CHECK(eventually([&] { return std::chrono::steady_clock::now() - came > longest; }));
        }
        held.unlock();
        for (auto& one : all) one->join();
        return order == std::vector<std::size_t>{0, 1, 2, 3};
    }));
}

TEMPLATE_TEST_CASE("a single attempt does not overtake those who wait for a fair lock", "", HOLDFAST_STORES_IN_ORDER)
{
    TestType store;
    fair_mutex held{store.one, "orders", renewed<TestType>()};
    held.lock();
    fair_mutex there{store.other, "orders", renewed<TestType>()};
    sleeper waiter{[&] { there.lock(); }};
    CHECK(waiter.sleeps());
    CHECK(wait_there(store, 1));
    store.break_lock("orders");
    auto const client = store.another();
    fair_mutex late{client, "orders", renewed<TestType>()};
    CHECK_FALSE(late.try_lock());
    waiter.join();
    CHECK(there.lease().still_held());
    there.unlock();
    held.unlock();
    CHECK(late.try_lock_for(1min));
}

TEST_CASE("a Redlock has no order of arrival, and says so")
{
    holdfast::redlock::masters const masters{{"redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:3"}};
    CHECK_THAT(holdfast::test::refusal([&] {
                   fair_mutex const m{masters, "orders"};
               }),
               contains("fair is set") && contains("consensus"));
    CHECK_THAT(holdfast::test::refusal([&] {
                   holdfast::redlock::mutex const m{masters, "orders", {.fair = true}};
               }),
               contains("fair is set"));
}

#ifdef HOLDFAST_TEST_ZOOKEEPER
TEST_CASE("ZooKeeper's plain form has no order of arrival, and says so")
{
    holdfast::zookeeper::session const session{"127.0.0.1:1"};
    CHECK_THAT(holdfast::test::refusal([&] {
                   holdfast::zookeeper::mutex const m{
                       session, "orders", {.fair = true}, {.queueing = holdfast::zookeeper::queueing::none}};
               }),
               contains("no queue"));
}
#endif
