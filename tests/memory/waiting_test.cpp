// SPDX-License-Identifier: MIT
#include "conformance/sleeper.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/memory.hpp>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;
using holdfast::memory::mutex;
using holdfast::memory::shared_mutex;
using holdfast::memory::store;
using holdfast::test::eventually;
using holdfast::test::sleeper;

namespace {

/// Effects: waits until one client waits for the lock `name`. (A thread also sleeps while its client begins.)
[[nodiscard]] bool one_comes_to_wait(store const& of, std::string_view name)
{
    return eventually([&] {
        auto const holder = of.holder(name);
        return holder && holder->waiting == 1U;
    });
}

}  // namespace

TEST_CASE("a waiter is woken by the end of a lease that was shortened while it waited, whoever else gave up before")
{
    store here;
    store there = here.another_client();
    store elsewhere = here.another_client();
    mutex holder{here, "orders", {.ttl = 1h, .renew = false}};
    mutex first{there, "orders"};
    mutex second{elsewhere, "orders"};
    for (auto* const one : {&first, &second}) {  // so that their clients have begun
        one->lock();
        one->unlock();
    }
    holder.lock();
    bool const another_gives_up = GENERATE(false, true);
    sleeper gives_up{[&] { return another_gives_up && first.try_lock_for(200ms); }};
    CHECK(gives_up.sleeps());
    sleeper waits{[&] { return second.try_lock_for(1min); }};
    CHECK(waits.sleeps());
    std::error_code ignored;  // the answer may come when the lease has ended
    holder.extend(500ms, ignored);
    CHECK(eventually([&] { return waits.done(); }, 8s));  // whoever sleeps looks again after ten seconds
    CHECK(waits.join());
    CHECK_FALSE(gives_up.join());
    CHECK_FALSE(holder.lease().still_held());
}

TEST_CASE("a client may be gone as soon as it was told of another client's release")
{
    store here;
    mutex holder{here, "orders"};
    for (int i = 0; i < 300; ++i) {
        holder.lock();
        sleeper waits{[there = std::make_unique<store>(here.another_client())]() mutable {
            auto m = std::make_unique<mutex>(*there, "orders");
            bool const got = m->try_lock_for(1min);
            m.reset();
            there.reset();
            return got;
        }};
        if (i % 10 == 0) CHECK(waits.sleeps());
        holder.unlock();
        REQUIRE(waits.join());
    }
}

TEST_CASE("a writer that waits for less lets no readers in before one that waits for longer")
{
    store here;
    store there = here.another_client();
    store elsewhere = here.another_client();
    shared_mutex reads{here, "prices"};
    shared_mutex writes{there, "prices", {.retry = {.most = 1h}}};  // it is known for a minute that it waits
    shared_mutex hurries{elsewhere, "prices"};
    reads.lock_shared();
    sleeper waits{[&] {
        writes.lock();
        return true;
    }};
    CHECK(one_comes_to_wait(here, "prices"));
    CHECK(waits.sleeps());
    CHECK_FALSE(hurries.try_lock_for(20ms));
    std::this_thread::sleep_for(20ms);
    bool const let_in = hurries.try_lock_shared();
    if (let_in) hurries.unlock_shared();
    CHECK_FALSE(let_in);
    reads.unlock_shared();
    CHECK(waits.join());
    writes.unlock();
}

TEST_CASE("a request to release that was answered by a downgrade is not told to the writer of an upgrade")
{
    store here;
    shared_mutex prices{here, "prices"};
    prices.lock();
    CHECK(here.request_release("prices"));
    prices.unlock_and_lock_shared();
    REQUIRE(prices.try_unlock_shared_and_lock());
    auto const holder = here.holder("prices");
    REQUIRE(holder);
    CHECK_FALSE(holder->release_requested);
    CHECK(holder->fencing_token == prices.lease().fencing_token());
    prices.unlock();
}

TEST_CASE("who collects several permits keeps its turn for longer than a permit may be held")
{
    store here;
    auto elsewhere = here.another_client();
    holdfast::memory::semaphore theirs{elsewhere, "jobs", 2};
    holdfast::leased_permit held{theirs};
    holdfast::memory::semaphore jobs{here, "jobs", 2, {.ttl = 600ms, .max_hold = 1ms}};
    std::jthread collects{[&](std::stop_token const& end) {
        if (jobs.acquire(2, end)) jobs.release(2);
    }};
    CHECK(eventually([&] { return here.stats().renewed >= 3; }));  // the permits are not renewed
    CHECK(eventually([&] { return here.holder("jobs#batch").has_value(); }));
    held.release();
    CHECK(eventually([&] { return !here.holder("jobs#batch"); }));
}

TEST_CASE(
    "a writer that gave up its wait, or a single attempt that got the lock, leaves readers and writers as they were")
{
    store here;
    store there = here.another_client();
    store elsewhere = here.another_client();
    holdfast::lock_options const options{.ttl = 1h, .retry = {.most = 1h}};  // it is known for a minute that one waits
    holdfast::memory::shared_mutex reads{here, "prices", options};
    holdfast::memory::shared_mutex writes{there, "prices", options};
    holdfast::memory::shared_mutex late{elsewhere, "prices", options};
    reads.lock_shared();
    std::stop_source stop;
    sleeper waits{[&] { return writes.lock(stop.get_token()); }};
    CHECK(one_comes_to_wait(here, "prices"));
    CHECK(waits.sleeps());
    CHECK_FALSE(late.try_lock_shared());
    stop.request_stop();
    CHECK_FALSE(waits.join());
    CHECK(eventually([&] { return late.try_lock_shared(); }, 20s));
    late.unlock_shared();

    sleeper again{[&] { writes.lock(); }};
    CHECK(one_comes_to_wait(here, "prices"));
    CHECK(again.sleeps());
    CHECK(reads.try_unlock_shared_and_lock());  // it waits for none, and is no reason to forget who does
    reads.unlock_and_lock_shared();
    CHECK_FALSE(late.try_lock_shared());
    reads.unlock_shared();
    again.join();
    writes.unlock();
    CHECK(late.try_lock_shared());
}
