// SPDX-License-Identifier: MIT
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/goes_on.hpp"
#include "support/process.hpp"
#include "support/shared.hpp"

#include <holdfast/core/clock.hpp>
#include <holdfast/election.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using holdfast::boot_clock;
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

/// Returns: `not_renewed`, for three seconds or more.
template <class Store>
holdfast::lock_options unhurried()
{
    auto options = not_renewed<Store>();
    options.ttl = std::max<std::chrono::milliseconds>(options.ttl, 3s);
    return options;
}

/// How much earlier than such a lease a term ends: the most that is allowed.
template <class Store>
constexpr auto margin = std::max<std::chrono::milliseconds>(Store::ttl, 3s) / 3;

/// What a leader has seen until another one is elected.
struct change_of_leaders {
    std::atomic<bool> other_elected{false};
    std::atomic<int> deposed{0};
    std::atomic<boot_clock::duration> longest{boot_clock::duration::zero()};

    /// Returns: options of the leader. `goes_on`: its `on_elected` returns when the other one is elected.
    [[nodiscard]] election_options first(bool goes_on, std::chrono::milliseconds stop_margin)
    {
        return {.on_elected =
                    [this, goes_on](term const&) {
                        auto last = boot_clock::now();
                        auto const other_leads = [&] {
                            auto const now = boot_clock::now();
                            longest = std::max(longest.load(), now - std::exchange(last, now));
                            return other_elected.load();
                        };
                        if (goes_on) static_cast<void>(eventually(other_leads, 2min));
                    },
                .on_deposed = [this] { ++deposed; },
                .on_error = hear,
                .stop_margin = stop_margin,
                .pause = 1h};
    }

    /// Returns: for how long the thread that went on did not run, at most.
    [[nodiscard]] boot_clock::duration stood_still() const { return longest; }
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
    typename TestType::mutex m{client, "orders", unhurried<TestType>()};
    typename TestType::mutex rival{store.other, "orders", renewed<TestType>()};
    // In the first way the leader gives the lock back when it is deposed. In the second one, its `on_elected` has not
    // returned then, and the lock is free when the lease ends.
    bool const goes_on = GENERATE(false, true);
    CAPTURE(goes_on);
    bool in_time = false;
    auto const limit = std::chrono::steady_clock::now() + 5min;
    while (!in_time && std::chrono::steady_clock::now() < limit) {
        change_of_leaders seen;
        election one{m, seen.first(goes_on, margin<TestType>)};
        // It has no term if it stands still until its first lease is over.
        if (!eventually([&] { return one.term().fencing_token() > 0; }, 10s)) continue;
        auto const t = one.term();
        auto const lease_ends = t.lease().expires_at();
        boot_clock::time_point elected{};
        int deposed = -1;
        bool stopped = false;
        bool still_held = true;
        election two{rival,
                     {.on_elected =
                          [&](term const&) {
                              deposed = seen.deposed;
                              still_held = t.still_held();
                              stopped = t.stop_token().stop_requested();
                              elected = boot_clock::now();
                              seen.other_elected = true;
                          },
                      .on_error = hear,
                      .pause = 1h}};
        REQUIRE(eventually([&] { return seen.other_elected.load(); }, 2min));
        CHECK(eventually([&] { return seen.deposed == 1; }));
        CHECK_FALSE(still_held);
        CHECK(two.term().fencing_token() > t.fencing_token());
        // If not, the machine was so slow that the margin was over, and it has to be seen once more.
        in_time = goes_on ? seen.stood_still() < margin<TestType> / 4 : elected < lease_ends;
        if (!in_time) continue;
        CHECK(stopped);
        if (!goes_on) CHECK(deposed == 1);
    }
    CHECK(in_time);
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
