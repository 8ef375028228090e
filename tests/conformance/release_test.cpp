// SPDX-License-Identifier: MIT
#include "sleeper.hpp"
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/refusal.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::test::eventually;
using holdfast::test::is_free;
using holdfast::test::not_renewed;
using holdfast::test::renewed;
using holdfast::test::sleeper;

TEMPLATE_TEST_CASE("release says what happened", "", HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    std::error_code ec = std::make_error_code(std::errc::io_error);

    m.unlock(ec);
    CHECK(ec == errc::not_owner);
    m.lock();
    m.unlock(ec);
    CHECK_FALSE(ec);
    CHECK(is_free(store, "orders"));
    m.unlock(ec);
    CHECK(ec == errc::not_owner);
}

TEMPLATE_TEST_CASE("a repeated release frees no newer holder, of this client or another",
                   "[lesson-18]", HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    typename TestType::mutex beside{store.one, "orders"};
    typename TestType::mutex rival{store.other, "orders"};
    for (auto* const newer : {&beside, &rival}) {
        std::error_code ec;
        REQUIRE(m.try_lock_for(1min));
        m.unlock(ec);
        CHECK_FALSE(ec);
        REQUIRE(newer->try_lock_for(1min));
        m.unlock(ec);
        CHECK(ec == errc::not_owner);
        m.unlock();
        CHECK(newer->lease().still_held());
        CHECK_FALSE(is_free(store, "orders"));
        newer->unlock(ec);
        CHECK_FALSE(ec);
    }
}

TEMPLATE_TEST_CASE("unlocking what is not locked has no effect and is told to the hook", "",
                   HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    std::atomic<int> told{0};
    typename TestType::mutex m{store.one, "orders", {.on_error = [&](holdfast::error const& e) {
                                   CHECK(e.code() == errc::not_owner);
                                   CHECK_THAT(e.what(), holdfast::test::contains("orders"));
                                   ++told;
                               }}};
    typename TestType::mutex holder{store.other, "orders"};
    holder.lock();
    m.unlock();
    m.unlock();
    CHECK(told == 2);
    CHECK(holder.lease().still_held());
    CHECK_FALSE(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("the release of a lease that ran out says so", "", HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    typename TestType::mutex m{client, "orders", not_renewed<TestType>()};
    std::error_code ec;
    m.lock();
    auto const lease = m.lease();
    CHECK(eventually([&] { return !lease.still_held(); }));
    m.unlock(ec);
    CHECK(ec == errc::lease_lost);
    m.unlock(ec);
    CHECK(ec == errc::not_owner);
}

TEMPLATE_TEST_CASE("the release of a lease that was taken away says so and leaves the new holder alone",
                   "[lesson-18]", HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    typename TestType::mutex rival{store.other, "orders"};
    std::error_code ec;
    m.lock();
    store.break_lock("orders");
    REQUIRE(rival.try_lock());
    m.unlock(ec);
    CHECK(ec == errc::lease_lost);
    CHECK(rival.lease().still_held());
    CHECK_FALSE(is_free(store, "orders"));
    rival.unlock(ec);
    CHECK_FALSE(ec);
}

TEMPLATE_TEST_CASE("a late unlock frees neither a rival nor the next thread of the same object",
                   "[lesson-18]", HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    auto options = not_renewed<TestType>();
    options.ttl = 10s;  // the second lease has to last for a moment
    auto client = store.another(options.ttl);
    typename TestType::mutex m{client, "orders", options};
    typename TestType::mutex rival{store.other, "orders"};
    m.lock();
    auto const lost = m.lease();
    sleeper next{[&] { m.lock(); }};
    CHECK(next.sleeps());
    rival.lock();  // by the end of the lease
    CHECK_FALSE(lost.still_held());
    m.unlock();
    CHECK_FALSE(is_free(store, "orders"));
    CHECK(rival.lease().still_held());
    CHECK_FALSE(next.done());
    rival.unlock();
    next.join();
    CHECK(m.lease().still_held());
    CHECK_FALSE(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("whoever waits on the object of a loser keeps no other object waiting", "",
                   HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    auto options = not_renewed<TestType>();
    options.ttl = 10s;  // the second lease has to last for a moment
    auto client = store.another(options.ttl);
    typename TestType::mutex loser{client, "orders", options};
    typename TestType::mutex beside{client, "orders"};
    loser.lock();
    auto const lost = loser.lease().lost_token();
    sleeper stuck{[&] { loser.lock(); }};
    CHECK(stuck.sleeps());
    CHECK(eventually([&] { return lost.stop_requested(); }));
    CHECK_FALSE(stuck.done());
    CHECK(beside.try_lock_for(1min));
    beside.unlock();
    CHECK(eventually([&] { return beside.try_lock(); }));
    beside.unlock();
    loser.unlock();
    stuck.join();
    CHECK(loser.lease().still_held());
}

TEMPLATE_TEST_CASE("destroying an object that holds releases", "", HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    {
        typename TestType::mutex m{store.one, "orders"};
        m.lock();
        CHECK_FALSE(is_free(store, "orders"));
    }
    CHECK(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("a section that throws releases", "", HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    auto const section = [&] {
        std::scoped_lock const hold{m};
        throw std::runtime_error{"in the section"};
    };
    CHECK_THROWS_AS(section(), std::runtime_error);
    CHECK(is_free(store, "orders"));
    CHECK(m.try_lock());
}

TEMPLATE_TEST_CASE("a deferred release gives the lock back all the same", "", HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", {.deferred_release = true}};
    typename TestType::mutex rival{store.other, "orders"};
    for (int i = 0; i < 20; ++i) {
        m.lock();
        CHECK(m.lease().still_held());
        std::error_code ec = make_error_code(errc::unavailable);
        m.unlock(ec);
        CHECK_FALSE(ec);
        CHECK_FALSE(m.lease().still_held());
    }
    CHECK(rival.try_lock_for(1min));
    rival.unlock();
    m.lock();
    store.break_lock("orders");
    REQUIRE(rival.try_lock());
    m.unlock();
    CHECK(rival.lease().still_held());
    CHECK_FALSE(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("threads of one client give locks back without waiting, and leave nothing behind", "",
                   HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    std::array<int, 4> counted{};
    {
        std::vector<std::jthread> crew;
        for (std::size_t t = 0; t < 6; ++t)
            crew.emplace_back([&, t] {
                for (std::size_t i = 0; i < 60; ++i) {
                    auto const which = (i + t) % counted.size();
                    typename TestType::mutex m{store.one,
                                               "orders/" + std::to_string(which),
                                               {.deferred_release = true, .unavailable_after = 5min}};
                    std::scoped_lock const hold{m};
                    ++counted[which];
                }
            });
    }
    CHECK(std::accumulate(counted.begin(), counted.end(), 0) == 360);
    for (std::size_t i = 0; i < counted.size(); ++i)
        CHECK(eventually([&] { return is_free(store, "orders/" + std::to_string(i)); }));
}

TEMPLATE_TEST_CASE("what a hook throws is dropped", "[lesson-6]", HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    std::atomic<int> told{0};
    auto options = renewed<TestType>();
    options.on_error = [&](holdfast::error const& e) {
        told += e.code() == errc::not_owner || e.code() == errc::lease_lost ? 1 : 0;  // a renewal may fail, too
        throw std::runtime_error{"from the hook"};
    };
    typename TestType::mutex m{store.one, "orders", options};
    m.unlock();
    CHECK(told == 1);
    m.lock();
    store.break_lock("orders");
    CHECK(eventually([&] { return told == 2; }));
    m.unlock();
    CHECK(told == 3);
    m.lock();
    CHECK(m.lease().still_held());
}

TEMPLATE_TEST_CASE("bad names and options are refused when the object is made", "", HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    auto const refusal = [&](std::string const& name, holdfast::lock_options const& options) {
        return holdfast::test::refusal([&] { typename TestType::mutex const m{store.one, name, options}; });
    };
    using holdfast::test::contains;
    CHECK_THAT(refusal("", {}), contains("name"));
    CHECK_THAT(refusal(std::string(64 * 1024 + 1, 'x'), {}), contains("65537"));
    CHECK_THAT(refusal("orders", {.ttl = 0ms}), contains("ttl"));
    CHECK_THAT(refusal("orders", {.ttl = -5ms}), contains("ttl"));
    CHECK_THAT(refusal("orders", {.ttl = 25h}), contains("ttl"));
    CHECK_THAT(refusal("orders", {.max_hold = 0ms}), contains("max_hold"));
    CHECK_THAT(refusal("orders", {.max_local_handoffs = 64}), contains("max_local_handoffs"));
    CHECK_THAT(refusal("orders", {.retry = {.first = 0us}}), contains("retry.first"));
    CHECK_THAT(refusal("orders", {.retry = {.first = 2ms, .most = 1ms}}), contains("retry.most"));
    CHECK_THAT(refusal("orders", {.unavailable_after = -1ms}), contains("unavailable_after"));
    std::size_t const longest = TestType::any_name ? 64 * 1024 : 1'023;  // a path of ZooKeeper's begins with a slash
    CHECK(refusal(std::string(longest, 'x'), {}) == "(not refused)");
    CHECK_THAT(refusal(std::string(longest + 1, 'x'), {}), contains("at most"));
    CHECK((refusal(std::string{"a\0b", 3}, {}) == "(not refused)") == TestType::any_name);
}
