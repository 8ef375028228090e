// SPDX-License-Identifier: MIT
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <chrono>
#include <stdexcept>
#include <stop_token>

using namespace std::chrono_literals;
using holdfast::leased_lock;
using holdfast::with_lock;
using holdfast::test::brief;
using holdfast::test::eventually;
using holdfast::test::is_free;
using holdfast::test::renewed;

TEMPLATE_TEST_CASE("leased_lock holds for its scope and answers for its lease", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    typename TestType::mutex there{store.other, "orders"};
    if (leased_lock hold{m, 1min}) {
        CHECK(hold.fencing_token() > 0);
        CHECK(hold.still_held());
        CHECK(hold.remaining() > 0ms);
        CHECK_FALSE(hold.lost_token().stop_requested());
        hold.extend(1h);
        if (TestType::keeps_to_ttl) CHECK(hold.remaining() > 30min);
        leased_lock const other{there, 20ms};
        CHECK_FALSE(other);
        CHECK(other.fencing_token() == 0);
    } else {
        FAIL("the lock is free");
    }
    CHECK(is_free(store, "orders"));
}

TEMPLATE_TEST_CASE("leased_lock learns of a loss", "", HOLDFAST_STORES)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    typename TestType::mutex m{client, "orders", brief<TestType>()};
    leased_lock hold{m};
    store.break_lock("orders");
    CHECK(eventually([&] { return hold.lost_token().stop_requested(); }));
    CHECK_FALSE(hold.still_held());
    CHECK(hold.owns_lock());
    std::error_code ec;
    hold.unlock(ec);
    CHECK(ec == holdfast::errc::lease_lost);
    CHECK_FALSE(hold.owns_lock());
}

TEMPLATE_TEST_CASE("leased_lock waits no longer than its stop token", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    typename TestType::mutex there{store.other, "orders"};
    std::stop_source stop;
    leased_lock const hold{m, stop.get_token()};
    CHECK(hold);
    stop.request_stop();
    CHECK_FALSE(leased_lock{there, stop.get_token()});
    CHECK_FALSE(leased_lock{there, stop.get_token(), 1h});
}

TEMPLATE_TEST_CASE("with_lock runs a function while the lock is held", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    typename TestType::mutex there{store.other, "orders"};

    CHECK(with_lock(m, [&] { return is_free(store, "orders") ? 1 : 2; }) == 2);
    auto const token = with_lock(m, [](holdfast::lease const& l) { return l.still_held() ? l.fencing_token() : 0; });
    CHECK(token > 0);
    CHECK(with_lock(m, 1min, [](holdfast::lease const& l) { return l.fencing_token(); }).value() > token);
    CHECK(with_lock(m, 1min, [] {}));
    CHECK(is_free(store, "orders"));

    there.lock();
    bool ran = false;
    CHECK_FALSE(with_lock(m, 20ms, [&] { ran = true; }));
    CHECK_FALSE(with_lock(m, 20ms, [&] { return ran = true; }).has_value());
    CHECK_FALSE(ran);
}

TEMPLATE_TEST_CASE("with_lock gives the lock back when the function throws", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    CHECK_THROWS_AS(with_lock(m, [] { throw std::runtime_error{"in the section"}; }), std::runtime_error);
    CHECK(is_free(store, "orders"));
}
