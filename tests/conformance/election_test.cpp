// SPDX-License-Identifier: MIT
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/goes_on.hpp"
#include "support/process.hpp"
#include "support/shared.hpp"

#include <holdfast/election.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using holdfast::election;
using holdfast::election_options;
using holdfast::term;
using holdfast::test::brief;
using holdfast::test::child;
using holdfast::test::eventually;
using holdfast::test::goes_on;
using holdfast::test::hear;
using holdfast::test::not_renewed;
using holdfast::test::renewed;
using holdfast::test::shared;

namespace {

/// What the functions of some candidates have seen.
struct reign {
    std::atomic<int> leaders{0};
    std::atomic<bool> alone{true};
    std::atomic<std::uint64_t> last{0};  // the number of a term
    std::atomic<int> terms{0};
    std::atomic<int> deposed{0};

    /// Returns: options of a candidate that has one term after the other, while `it` counts its own.
    [[nodiscard]] election_options candidate(std::atomic<int>& it)
    {
        return {.on_elected =
                    [this, &it](term const& t) {
                        if (++leaders != 1 || t.fencing_token() <= last) alone = false;
                        last = t.fencing_token();
                        ++it;
                        ++terms;
                    },
                .on_deposed =
                    [this] {
                        --leaders;
                        ++deposed;
                    },
                .on_error = hear,
                .pause = 1ms};
    }
};

/// What a child writes and the test reads.
struct news {
    std::atomic<bool> elected{false};
    std::atomic<bool> go_on{false};
    std::atomic<int> still_held{-1};
    std::atomic<bool> stopped{false};
    std::atomic<int> deposed{0};
    std::atomic<std::uint64_t> number{0};
};

}  // namespace

TEMPLATE_TEST_CASE("candidates of two clients take turns, and never lead at the same time", "", HOLDFAST_STORES)
{
    TestType store;
    reign r;
    std::atomic<int> first{0};
    std::atomic<int> second{0};
    typename TestType::mutex here{store.one, "orders", renewed<TestType>()};
    typename TestType::mutex there{store.other, "orders", renewed<TestType>()};
    {
        election one{here, r.candidate(first)};
        election two{there, r.candidate(second)};
        CHECK(eventually([&] {
            static_cast<void>(one.resign());
            static_cast<void>(two.resign());
            return first >= 2 && second >= 2;
        }));
    }
    CHECK(r.alone);
    CHECK(r.leaders == 0);
    CHECK(r.terms == r.deposed);
}

TEMPLATE_TEST_CASE("a leader whose lock is taken away is deposed, and elected again with a greater number", "",
                   HOLDFAST_STORES)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    typename TestType::mutex m{client, "orders", brief<TestType>()};
    reign r;
    std::atomic<int> terms{0};
    election leader{m, r.candidate(terms)};
    REQUIRE(eventually([&] { return terms > 0; }));
    auto const t = leader.term();
    store.break_lock("orders");
    CHECK(eventually([&] { return t.stop_token().stop_requested(); }));
    CHECK_FALSE(t.still_held());
    CHECK(eventually([&] { return r.deposed > 0; }));
    CHECK(eventually([&] { return leader.still_leader(); }));
    CHECK(leader.term().fencing_token() > t.fencing_token());
    CHECK(r.alone);
}

TEMPLATE_TEST_CASE("a term whose lease is not renewed is over before another candidate is elected", "", HOLDFAST_STORES)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    typename TestType::mutex m{client, "orders", not_renewed<TestType>()};
    typename TestType::mutex rival{store.other, "orders", renewed<TestType>()};
    std::atomic<int> deposed{0};
    std::atomic<int> late{-1};
    std::optional<election<typename TestType::mutex>> one;
    // Anew until it has a term: it has none if it stands still until its first lease is over.
    REQUIRE(eventually(
        [&] {
            one.reset();
            deposed = 0;
            one.emplace(m, election_options{
                               .on_deposed = [&] { ++deposed; }, .on_error = hear, .stop_margin = 100ms, .pause = 1h});
            return eventually([&] { return one->term().fencing_token() > 0; }, 10s);
        },
        2min));
    auto const t = one->term();
    election two{rival, {.on_elected = [&](term const&) { late = t.still_held() ? 1 : 0; }, .on_error = hear}};
    CHECK(eventually([&] { return late >= 0; }, 2min));
    CHECK(late == 0);
    CHECK(eventually([&] { return deposed == 1; }));
    CHECK(two.term().fencing_token() > t.fencing_token());
}

TEMPLATE_TEST_CASE("a paused leader finds its term over on the first question", "[lesson-19]", HOLDFAST_SERVERS)
{
    TestType store;
    shared<news> told;
    auto first = child::fork([&] {
        auto client = store.another(TestType::ttl);
        typename TestType::mutex m{client, "orders", brief<TestType>()};
        election leader{m,
                        {.on_elected =
                             [&](term const& t) {
                                 std::stop_callback const at_end{t.stop_token(), [&] { told->stopped = true; }};
                                 told->number = t.fencing_token();
                                 told->elected = true;
                                 while (!told->go_on) std::this_thread::yield();
                                 told->still_held = t.still_held() ? 1 : 0;
                                 static_cast<void>(eventually([&] { return told->stopped.load(); }));
                             },
                         .on_deposed = [&] { ++told->deposed; },
                         .on_error = hear,
                         .pause = 1h}};
        return eventually([&] { return told->deposed > 0; }, 2min) && !leader.still_leader() ? 0 : 1;
    });
    REQUIRE(eventually([&] { return told->elected.load(); }));
    first.pause();
    typename TestType::mutex rival{store.one, "orders", renewed<TestType>()};
    std::atomic<std::uint64_t> number{0};
    election second{rival, {.on_elected = [&](term const& t) { number = t.fencing_token(); }, .on_error = hear}};
    CHECK(eventually([&] { return number > 0; }, 2min));
    told->go_on = true;
    first.resume();
    CHECK(first.wait_for(3min) == 0);
    CHECK(told->still_held == 0);
    CHECK(told->stopped);
    CHECK(told->deposed == 1);
    CHECK(number > told->number);
    CHECK(second.still_leader());
}

TEMPLATE_TEST_CASE("a forked child is not the leader, and ends its copy of the election at once", "", HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    std::atomic<int> deposed{0};
    auto leader = std::make_unique<election<typename TestType::mutex>>(
        m, election_options{.on_deposed = [&] { ++deposed; }, .on_error = hear, .pause = 1h});
    REQUIRE(eventually([&] { return leader->still_leader(); }));
    auto const t = leader->term();
    auto born = child::fork([&] {
        int wrong = t.still_held() || t.remaining() != 0s ? 1 : 0;
        wrong += t.stop_token().stop_requested() ? 0 : 2;
        wrong += leader->still_leader() || leader->resign() ? 4 : 0;
        wrong += leader->term() == term{} ? 0 : 8;
        leader.reset();
        return wrong + (deposed == 0 ? 0 : 16);
    });
    CHECK(born.wait_for(2min) == 0);
    CHECK(goes_on(t.lease()));
    CHECK(leader->still_leader());
    CHECK(leader->resign());
    CHECK(eventually([&] { return deposed == 1; }));
}
