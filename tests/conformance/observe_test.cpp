// SPDX-License-Identifier: MIT
//
// Who leads, as processes see it that stand for election or do not.
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/shared.hpp"
#include "support/told_leaders.hpp"

#include <holdfast/election.hpp>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <system_error>
#include <thread>
#include <type_traits>

using namespace std::chrono_literals;
using holdfast::election;
using holdfast::election_observer;
using holdfast::test::brief;
using holdfast::test::child;
using holdfast::test::eventually;
using holdfast::test::hear;
using holdfast::test::renewed;
using holdfast::test::shared;
using holdfast::test::told_leaders;

namespace {

template <class Store>
constexpr bool has_labels = !std::is_base_of_v<holdfast::test::memory_store, Store>;

/// The masters of a Redlock may differ in the number that they show.
template <class Store>
constexpr bool has_masters = std::is_same_v<Store, holdfast::test::redlock_store>;

}  // namespace

TEMPLATE_TEST_CASE("a process that is no candidate is told each leader, and that there is none", "",
                   HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    told_leaders told;
    election_observer const seen{store.other, "orders", told.options()};
    CHECK(told.leads(false));
    CHECK_FALSE(seen.leader());
    auto first_client = store.named("first");
    auto second_client = store.named("second");
    typename TestType::mutex first{first_client, "orders", renewed<TestType>()};
    typename TestType::mutex second{second_client, "orders", renewed<TestType>()};
    std::atomic<bool> go_on{false};
    std::atomic<bool> deposing{false};
    election one{first,
                 {.on_deposed =
                      [&] {
                          deposing = true;
                          static_cast<void>(eventually([&] { return go_on.load(); }, 5min));
                      },
                  .on_error = hear,
                  .pause = 1h}};
    CHECK(told.leads(true));
    CHECK(told.all().back()->pid == ::getpid());
    if constexpr (has_labels<TestType>) CHECK(told.all().back()->label == "first");
    auto const before = told.count();

    // It has resigned, and leads until it has given the lock back.
    CHECK(eventually([&] { return one.resign(); }));  // the store knows that it leads, before it does itself
    CHECK(eventually([&] { return deposing.load(); }));
    CHECK_FALSE(one.still_leader());
    CHECK(seen.leader());
    CHECK(one.leader());
    CHECK(told.count() == before);
    go_on = true;
    CHECK(told.leads(false));

    election two{second, {.on_error = hear, .pause = 1h}};
    CHECK(told.leads(true));
    auto const now = seen.leader();
    REQUIRE(now);
    if constexpr (has_labels<TestType>) CHECK(now->label == "second");
    CHECK(eventually([&] { return two.still_leader(); }));
    auto const t = two.term().fencing_token();
    CHECK((now->fencing_token == t || (now->fencing_token == 0 && has_masters<TestType>)));
    CHECK(told.count() == 4);  // none, the first, none, the second
}

TEMPLATE_TEST_CASE("a further term of the same leader is told, also if its client leaves no record", "",
                   HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    told_leaders told;
    m.lock();
    election_observer const seen{store.other, "orders", told.options()};
    CHECK(told.leads(true));
    std::size_t before = told.count();
    m.unlock();
    m.lock();
    CHECK(eventually([&] { return told.count() > before && told.all().back().has_value(); }));
    before = told.count();
    std::this_thread::sleep_for(50ms);
    CHECK(told.count() == before);  // no change
    m.unlock();
    CHECK(told.leads(false));
}

TEMPLATE_TEST_CASE("a leader that was killed leads until its lease ends, and then another one or none", "",
                   HOLDFAST_SERVERS)
{
    TestType store;
    shared<std::atomic<bool>> elected;
    auto leader = child::fork([&] {
        auto client = store.another(TestType::ttl);
        typename TestType::mutex m{client, "orders", brief<TestType>()};
        election const one{m, {.on_elected = [&](holdfast::term const&) { *elected = true; }, .on_error = hear}};
        std::this_thread::sleep_for(1h);
        return 0;
    });
    REQUIRE(eventually([&] { return elected->load(); }, 5min));
    told_leaders told;
    election_observer const seen{store.other, "orders", told.options()};
    CHECK(told.leads(true));
    leader.kill();
    CHECK(told.leads(false));
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    election const next{m, {.on_error = hear}};
    CHECK(told.leads(true));
    CHECK(next.leader());
}

TEMPLATE_TEST_CASE("a forked child neither observes nor asks, and ends its copy at once", "", HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    told_leaders told;
    auto seen = std::make_unique<election_observer>(store.other, "orders", told.options());
    CHECK(told.leads(false));
    auto born = child::fork([&] {
        std::error_code ec;
        bool const none = !seen->leader(ec);
        seen.reset();
        return none && ec == holdfast::errc::misconfigured ? 0 : 1;
    });
    CHECK(born.wait_for(2min) == 0);
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    m.lock();
    CHECK(told.leads(true));
}
