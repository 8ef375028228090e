// SPDX-License-Identifier: MIT
#include "sleeper.hpp"
#include "stores.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::test::eventually;
using holdfast::test::not_renewed;

namespace {

/// A resource that refuses what is older than what it has seen.
class resource {
public:
    void write(std::uint64_t token)
    {
        std::scoped_lock const guard{mutex_};
        ++writes_;
        increasing_ = increasing_ && token > last_;
        last_ = token;
    }

    [[nodiscard]] bool increasing() const noexcept { return increasing_; }
    [[nodiscard]] int writes() const noexcept { return writes_; }
    [[nodiscard]] std::uint64_t last() const noexcept { return last_; }

private:
    std::mutex mutex_;
    std::uint64_t last_ = 0;
    int writes_ = 0;
    bool increasing_ = true;
};

}  // namespace

TEST_CASE("a resource that sees an old token says so")
{
    resource r;
    r.write(2);
    CHECK(r.increasing());
    r.write(2);
    CHECK_FALSE(r.increasing());
}

TEMPLATE_TEST_CASE("fencing tokens increase from holder to holder", "", HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    typename TestType::mutex here{store.one, "orders"};
    typename TestType::mutex there{store.other, "orders", {.max_local_handoffs = 0}};
    resource r;
    for (int i = 0; i < 10; ++i)
        for (auto* const m : {&here, &here, &there}) {
            m->lock();
            r.write(m->lease().fencing_token());
            m->unlock();
        }
    CHECK(r.increasing());
    CHECK(r.writes() == 30);
}

TEMPLATE_TEST_CASE("fencing tokens increase while threads and clients hand the lock on", "",
                   HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    resource r;
    auto const work = [&](typename TestType::client& client, unsigned handoffs) {
        // Nothing can be thrown out of a thread.
        typename TestType::mutex m{client, "orders", {.max_local_handoffs = handoffs, .unavailable_after = 5min}};
        for (int i = 0; i < 20; ++i) {
            std::scoped_lock const hold{m};
            r.write(m.lease().fencing_token());
        }
    };
    {
        std::vector<std::jthread> all;
        for (unsigned const handoffs : {2U, 32U, 63U}) {
            all.emplace_back([&, handoffs] { work(store.one, handoffs); });
            all.emplace_back([&, handoffs] { work(store.other, handoffs); });
        }
    }
    CHECK(r.increasing());
    CHECK(r.writes() == 120);
}

TEMPLATE_TEST_CASE("fencing tokens increase over the end of a lease and over one taken away", "",
                   HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    typename TestType::mutex here{client, "orders", not_renewed<TestType>()};
    typename TestType::mutex there{store.other, "orders"};
    resource r;
    here.lock();
    r.write(here.lease().fencing_token());
    there.lock();  // by expiry
    r.write(there.lease().fencing_token());
    store.break_lock("orders");
    here.unlock();
    here.lock();
    r.write(here.lease().fencing_token());
    CHECK(r.increasing());
}

TEMPLATE_TEST_CASE("the token of a lease stays the same while it is renewed, extended and over", "",
                   HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    m.lock();
    auto const lease = m.lease();
    auto const token = lease.fencing_token();
    CHECK(token > 0);
    m.extend(1h);
    CHECK(lease.fencing_token() == token);
    m.unlock();
    CHECK(lease.fencing_token() == token);
}

TEMPLATE_TEST_CASE("without fencing the token is 0", "", HOLDFAST_STORES_AND_LAYOUTS)
{
    TestType store;
    typename TestType::mutex here{store.one, "orders", {.fencing = false}};
    typename TestType::mutex beside{store.one, "orders", {.fencing = false, .unavailable_after = 5min}};
    typename TestType::mutex there{store.other, "orders"};
    here.lock();
    CHECK(here.lease().fencing_token() == 0);
    CHECK_FALSE(there.try_lock());
    holdfast::test::sleeper waiter{[&] { beside.lock(); }};
    CHECK(waiter.sleeps());
    here.unlock();
    waiter.join();
    CHECK(beside.lease().fencing_token() == 0);
    beside.unlock();
    CHECK(there.try_lock());
    CHECK(there.lease().fencing_token() > 0);
}
