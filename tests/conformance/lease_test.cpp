// SPDX-License-Identifier: MIT
#include "sleeper.hpp"
#include "stores.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <stop_token>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::test::eventually;
using holdfast::test::goes_on;
using holdfast::test::is_free;
using holdfast::test::not_renewed;
using holdfast::test::renewed;
using holdfast::test::sleeper;

TEMPLATE_TEST_CASE("a lease is renewed for as long as it is held", "", HOLDFAST_STORES)
{
    constexpr auto ttl = 12s;
    TestType store;
    auto client = store.another(ttl);
    auto options = renewed<TestType>();
    options.ttl = ttl;
    typename TestType::mutex m{client, "orders", options};
    typename TestType::mutex rival{store.other, "orders"};
    m.lock();
    auto const lease = m.lease();
    CHECK_FALSE(rival.try_lock_for(ttl + 1s));
    CHECK(goes_on(lease));
    CHECK_FALSE(lease.lost_token().stop_requested());
    CHECK(lease.remaining() > 0ms);
    CHECK(lease.remaining() < ttl);
    std::error_code ec;
    m.unlock(ec);
    CHECK_FALSE(ec);
}

TEMPLATE_TEST_CASE("a lease that is not renewed is lost before another can have the lock", "", HOLDFAST_STORES)
{
    std::atomic<int> told{0};
    TestType store;
    auto options = not_renewed<TestType>();
    options.on_error = [&](holdfast::error const& e) { told += e.code() == errc::lease_lost ? 1 : 100; };
    auto client = store.another(TestType::ttl);
    typename TestType::mutex m{client, "orders", options};
    typename TestType::mutex rival{store.other, "orders"};
    auto const begun = boot_clock::now();
    m.lock();
    auto const lease = m.lease();
    std::atomic<int> announced{0};
    std::stop_callback const count{lease.lost_token(), [&] { ++announced; }};

    rival.lock();
    CHECK_FALSE(lease.still_held());
    CHECK(boot_clock::now() - begun >= TestType::ttl);
    CHECK(eventually([&] { return announced == 1 && told == 1; }));
    CHECK(lease.lost_token().stop_requested());
    CHECK(lease.remaining() == 0ms);
    CHECK(lease.expires_at() == boot_clock::time_point::min());
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == errc::lease_lost);
    CHECK(announced == 1);
    CHECK(told == 1);
}

TEMPLATE_TEST_CASE("a lease that was taken away is found lost by its renewal", "", HOLDFAST_STORES)
{
    std::atomic<int> told{0};
    TestType store;
    auto options = renewed<TestType>();
    options.on_error = [&](holdfast::error const& e) {
        told += e.code() == errc::lease_lost ? 1 : 0;
    };  // a renewal may fail before
    typename TestType::mutex m{store.one, "orders", options};
    m.lock();
    auto const lease = m.lease();
    store.break_lock("orders");
    CHECK(eventually([&] { return lease.lost_token().stop_requested() && told == 1; }));
    CHECK_FALSE(lease.still_held());
    m.unlock();
    CHECK(m.try_lock());
    CHECK(m.lease().still_held());
}

TEMPLATE_TEST_CASE("after a loss renewals go on for the next lease", "[lesson-9]", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    m.lock();
    auto const lost = m.lease();
    store.break_lock("orders");
    CHECK(eventually([&] { return lost.lost_token().stop_requested(); }));
    m.unlock();
    m.lock();
    CHECK(goes_on(m.lease()));
    CHECK_FALSE(lost.still_held());
}

TEMPLATE_TEST_CASE("renewal ends when a holder has had the lock for max_hold", "", HOLDFAST_STORES)
{
    constexpr auto ttl = 12s;
    TestType store;
    auto client = store.another(ttl);
    auto options = renewed<TestType>();
    options.ttl = ttl;
    options.max_hold = ttl / 2;  // the renewal after a third of the ttl is the last
    typename TestType::mutex m{client, "orders", options};
    typename TestType::mutex rival{store.other, "orders"};
    auto const begun = boot_clock::now();
    m.lock();
    auto const lease = m.lease();
    CHECK(goes_on(lease));
    rival.lock();
    auto const lasted = boot_clock::now() - begun;
    CHECK_FALSE(lease.still_held());
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK(lasted >= *options.max_hold);
    CHECK(lasted < *options.max_hold + ttl + 1min);
}

TEMPLATE_TEST_CASE("extend makes a lease longer", "", HOLDFAST_STORES_WITH_TTL)
{
    constexpr auto ttl = 10s;
    TestType store;
    auto client = store.another(ttl);
    typename TestType::mutex m{client, "orders", {.ttl = ttl, .renew = false}};
    m.lock();
    auto const lease = m.lease();
    auto const asked = boot_clock::now();
    m.extend(1h);
    CHECK(lease.expires_at() > asked + 58min);
    CHECK(lease.expires_at() < boot_clock::now() + 1h);
    CHECK_FALSE(eventually([&] { return !lease.still_held(); }, ttl + 100ms));
    CHECK_FALSE(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("extend makes a lease shorter", "", HOLDFAST_STORES)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    typename TestType::mutex m{client, "orders", {.ttl = 1h, .renew = false}};
    typename TestType::mutex rival{store.other, "orders"};
    m.lock();
    CHECK(eventually([&] {  // where the store did not answer for long, it is left open
        auto const asked = boot_clock::now();
        std::error_code ec;
        if (m.extend(TestType::ttl, ec)) return !ec;
        CHECK((ec == errc::outcome_unknown || ec == errc::lease_lost));
        CHECK(boot_clock::now() - asked >= TestType::ttl / 2);
        m.unlock();
        m.lock();
        return false;
    }));
    auto const lease = m.lease();
    CHECK(lease.remaining() < TestType::ttl);
    CHECK(eventually([&] { return !lease.still_held(); }));
    m.unlock();
    CHECK(rival.try_lock_for(1min));
}

TEMPLATE_TEST_CASE("renewals keep to the ttl that was asked for last", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", {.ttl = 1h}};
    m.lock();
    m.extend(TestType::lasting);
    auto const lease = m.lease();
    auto const asked_for = lease.expires_at();
    CHECK(eventually([&] { return lease.expires_at() != asked_for; }));
    CHECK(lease.still_held());
    CHECK(lease.remaining() <= TestType::lasting);
}

TEMPLATE_TEST_CASE("what cannot be extended is refused", "[lesson-4]", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", {.ttl = 1h}};
    std::error_code ec;
    CHECK_FALSE(m.extend(1min, ec));
    CHECK(ec == errc::not_owner);
    CHECK_THROWS_AS(m.extend(1min), holdfast::error);
    m.lock();
    auto const lease = m.lease();
    using std::chrono::milliseconds;
    for (auto const bad :
         {0ms, -1ms, milliseconds{25h}, milliseconds::min(), milliseconds{-9223372036855}, milliseconds::max()}) {
        CHECK_FALSE(m.extend(bad, ec));
        CHECK(ec == errc::misconfigured);
    }
    CHECK_THROWS_WITH(m.extend(25h),
                      holdfast::test::contains("\"orders\": extend to 90000000 ms, but at most a day is allowed"));
    CHECK(lease.still_held());
    store.break_lock("orders");
    CHECK_FALSE(m.extend(1min, ec));
    CHECK(ec == errc::lease_lost);
    CHECK_FALSE(lease.still_held());
    CHECK(lease.lost_token().stop_requested());
    CHECK_FALSE(m.extend(1min, ec));
    CHECK(ec == errc::lease_lost);
    CHECK(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("a lock may be given back while threads extend it", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", {.ttl = 1h}};
    auto const extend_until_over = [&] {
        std::error_code ec;
        do m.extend(1h, ec);
        while (ec != errc::lease_lost && ec != errc::not_owner);
    };
    for (int i = 0; i < 20; ++i) {
        m.lock();
        auto const lease = m.lease();
        sleeper one{extend_until_over};
        sleeper other{extend_until_over};
        std::this_thread::sleep_for(std::chrono::milliseconds{i / 4});
        CHECK(lease.still_held());
        std::error_code ec;
        m.unlock(ec);
        CHECK_FALSE(ec);
        one.join();
        other.join();
    }
    CHECK(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("a release is no loss", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    CHECK_FALSE(m.lease().still_held());
    m.lock();
    auto const lease = m.lease();
    CHECK(lease.still_held());
    m.unlock();
    CHECK_FALSE(lease.still_held());
    CHECK_FALSE(lease.lost_token().stop_requested());
    CHECK(lease.remaining() == 0ms);
    CHECK_FALSE(m.lease().still_held());
    CHECK(m.lease().fencing_token() == 0);
}

TEMPLATE_TEST_CASE("a stop_margin brings the end of a lease forward, and the lease is renewed before it", "",
                   HOLDFAST_STORES)
{
    constexpr auto margin = TestType::lasting / 5;
    TestType store;
    auto options = renewed<TestType>();
    options.ttl = TestType::lasting + margin;  // what is left is as long as the client needs
    options.stop_margin = margin;
    typename TestType::mutex m{store.one, "orders", options};
    auto const most = TestType::keeps_to_ttl ? TestType::lasting : TestType::lasting - margin;
    m.lock();
    auto const lease = m.lease();
    CHECK(lease.expires_at() < boot_clock::now() + most);
    CHECK(goes_on(lease));
    CHECK(lease.expires_at() < boot_clock::now() + most);
    CHECK_FALSE(lease.at_risk().stop_requested());
    std::error_code ec;
    m.unlock(ec);
    CHECK_FALSE(ec);
}
