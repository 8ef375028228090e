// SPDX-License-Identifier: MIT
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/goes_on.hpp"
#include "support/process.hpp"
#include "support/shared.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/adapters/recursive_mutex.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::lock_options;
using holdfast::test::brief;
using holdfast::test::child;
using holdfast::test::eventually;
using holdfast::test::goes_on;
using holdfast::test::is_free;
using holdfast::test::renewed;
using holdfast::test::shared;

namespace {

/// What a child writes and the test reads.
struct news {
    std::atomic<bool> held{false};
    std::atomic<bool> go_on{false};
    std::atomic<int> still_held{-1};
    std::atomic<int> announced{0};
    std::atomic<std::uint64_t> token{0};
};

bool is_misconfigured(auto&& f)
try {
    f();
    return false;
} catch (holdfast::error const& e) {
    return e.code() == errc::misconfigured;
}

}  // namespace

TEMPLATE_TEST_CASE("a forked child can neither use nor harm the locks of its parent", "[lesson-7]", HOLDFAST_STORES)
{
    TestType store;
    auto client = std::make_optional(store.another());
    auto m = std::make_unique<typename TestType::mutex>(*client, "orders", renewed<TestType>());
    auto free = std::make_unique<typename TestType::mutex>(*client, "invoices", renewed<TestType>());
    m->lock();
    auto const lease = m->lease();
    auto born = child::fork([&] {
        std::error_code ec;
        int wrong = 0;
        m->unlock(ec);
        wrong += ec == errc::not_owner ? 0 : 1;
        m->unlock();
        wrong += m->extend(1h, ec) ? 2 : 0;
        wrong += is_misconfigured([&] { m->lock(); }) ? 0 : 4;
        wrong += is_misconfigured([&] { (void)free->try_lock(); }) ? 0 : 8;
        wrong += is_misconfigured([&] { (void)free->try_lock_for(1s); }) ? 0 : 16;
        wrong += is_misconfigured([&] { typename TestType::mutex const n{*client, "more"}; }) ? 0 : 32;
        wrong += m->lease().still_held() ? 64 : 0;
        m.reset();
        free.reset();
        client.reset();
        return wrong;
    });
    CHECK(born.wait_for(2min) == 0);
    CHECK(goes_on(lease));
    CHECK_FALSE(is_free(store, "orders"));
    std::error_code ec;
    m->unlock(ec);
    CHECK_FALSE(ec);
}

TEMPLATE_TEST_CASE("a forked child is told through every handle that it holds nothing", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    holdfast::recursive_mutex<typename TestType::mutex> again{store.one, "invoices", renewed<TestType>()};
    typename TestType::mutex third{store.one, "counter", renewed<TestType>()};
    holdfast::multi_mutex several{third};
    holdfast::leased_lock const guard{m};
    holdfast::leased_lock const outer{again};
    holdfast::leased_lock const all{several};
    auto const copy = guard.lease();
    auto const token = guard.fencing_token();
    auto const holds_nothing = [&](auto const& handle) {
        return !handle.still_held() && handle.remaining() == 0s &&
               handle.expires_at() == boot_clock::time_point::min() && handle.lost_token().stop_requested();
    };
    auto born = child::fork([&] {
        int wrong = holds_nothing(guard) ? 0 : 1;
        wrong += holds_nothing(outer) ? 0 : 2;
        wrong += holds_nothing(copy) ? 0 : 4;
        wrong += holds_nothing(holdfast::lease{copy}) ? 0 : 8;
        wrong += guard.fencing_token() == token ? 0 : 16;
        several.unlock();
        wrong += holds_nothing(all) && !several.lease_of(third).still_held() ? 0 : 64;
        auto grandchild = child::fork([&] { return holds_nothing(copy) ? 0 : 1; });
        wrong += grandchild.wait() == 0 ? 0 : 32;
        return wrong;
    });
    CHECK(born.wait_for(2min) == 0);
    CHECK(goes_on(copy));
    CHECK(guard.still_held());
    CHECK(outer.still_held());
    CHECK(all.still_held());
    CHECK_FALSE(guard.lost_token().stop_requested());
}

TEMPLATE_TEST_CASE("a child that is forked while its client is busy waits for nothing that was locked then", "",
                   HOLDFAST_STORES)
{
    TestType store;
    auto client = store.another();
    lock_options const options{.ttl = 1min, .unavailable_after = 1min};
    typename TestType::mutex m{client, "orders", options};
    m.lock();
    std::atomic<bool> stop{false};
    std::vector<std::jthread> busy;
    for (int i = 0; i < 4; ++i)
        busy.emplace_back([&, i] {
            typename TestType::mutex own{client, "orders/" + std::to_string(i), options};
            while (!stop) std::scoped_lock const guard{own};
        });
    for (int n = 0; n < 100; ++n) {
        auto born = child::fork([&] {
            std::error_code ec;
            int wrong = m.extend(30s, ec) || ec != errc::not_owner ? 1 : 0;
            m.unlock(ec);
            wrong += ec == errc::not_owner ? 0 : 2;
            wrong += is_misconfigured([&] { m.lock(); }) ? 0 : 4;
            wrong += m.lease().still_held() ? 8 : 0;
            return wrong;
        });
        auto const status = born.wait_for(2min);
        CHECK(status == 0);
        if (!status) break;  // it hangs
    }
    stop = true;
    busy.clear();
    CHECK(m.lease().still_held());
}

TEMPLATE_TEST_CASE("a forked child may destroy a client whose locks are gone", "", HOLDFAST_STORES)
{
    TestType store;
    auto client = std::make_optional(store.another());
    {
        typename TestType::mutex m{*client, "orders"};
        m.lock();
    }
    auto born = child::fork([&] {
        client.reset();
        return 0;
    });
    CHECK(born.wait_for(2min) == 0);
    typename TestType::mutex m{*client, "orders"};
    CHECK(m.try_lock());
}

TEMPLATE_TEST_CASE("a forked child makes a client of its own", "", HOLDFAST_SERVERS)
{
    TestType store;
    auto born = child::fork([&] {
        auto client = store.another();
        typename TestType::mutex m{client, "orders"};
        return m.try_lock() ? 0 : 1;
    });
    CHECK(born.wait_for(2min) == 0);
    typename TestType::mutex m{store.one, "orders"};
    CHECK(m.try_lock_for(1min));
}

TEMPLATE_TEST_CASE("the lock of a killed process is free after its ttl", "[lesson-10]", HOLDFAST_SERVERS)
{
    constexpr auto ttl = 10s;
    TestType store;
    shared<news> told;
    auto holder = child::fork([&] {
        auto client = store.another(ttl);
        typename TestType::mutex m{client, "orders", {.ttl = ttl, .unavailable_after = 1min}};
        m.lock();
        told->token = m.lease().fencing_token();
        told->held = true;
        for (;;) std::this_thread::sleep_for(1s);
        return 0;
    });
    REQUIRE(eventually([&] { return told->held.load(); }));
    typename TestType::mutex rival{store.one, "orders", {.retry = {.most = 1h}}};
    CHECK_FALSE(rival.try_lock());
    holder.kill();
    auto const killed = boot_clock::now();
    CHECK(rival.try_lock_for(2min));
    CHECK(boot_clock::now() - killed < 2 * ttl + 1min);
    CHECK(rival.lease().fencing_token() > told->token);
}

TEMPLATE_TEST_CASE("a paused holder finds its lease lost on the first question", "[lesson-19]", HOLDFAST_SERVERS)
{
    TestType store;
    shared<news> told;
    auto holder = child::fork([&] {
        auto client = store.another(TestType::ttl);
        typename TestType::mutex m{client, "orders", brief<TestType>()};
        m.lock();
        auto const lease = m.lease();
        std::stop_callback const count{lease.lost_token(), [&] { ++told->announced; }};
        told->token = lease.fencing_token();
        told->held = true;
        while (!told->go_on) std::this_thread::yield();
        told->still_held = lease.still_held() ? 1 : 0;
        bool const heard = eventually([&] { return told->announced > 0; });
        std::error_code ec;
        m.unlock(ec);
        bool const good = heard && ec == errc::lease_lost && told->announced == 1;
        bool anew = true;
        bool const again = eventually([&] {  // unless it stands still for as long as its lease lasts
            std::scoped_lock const hold{m};  // waits for the rival
            anew = anew && m.lease().fencing_token() > told->token;
            return m.lease().still_held();
        });
        return good && anew && again ? 0 : 1;
    });
    REQUIRE(eventually([&] { return told->held.load(); }));
    holder.pause();
    typename TestType::mutex rival{store.one, "orders"};
    CHECK(rival.try_lock_for(2min));
    told->go_on = true;
    holder.resume();
    CHECK(eventually([&] { return told->still_held >= 0; }));
    CHECK(told->still_held == 0);
    CHECK(eventually([&] { return told->announced > 0; }));
    std::this_thread::sleep_for(100ms);  // for a late unlock to do harm
    CHECK(rival.lease().still_held());
    CHECK_FALSE(is_free(store, "orders"));
    CHECK(rival.lease().fencing_token() > told->token);
    rival.unlock();
    CHECK(holder.wait_for(2min) == 0);
    CHECK(told->announced == 1);
}
