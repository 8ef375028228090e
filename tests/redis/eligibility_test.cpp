// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/redis/eligibility.hpp>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::redis::eligibility;
using holdfast::redis::errc;

namespace {

constexpr auto now = boot_clock::time_point{500s};
constexpr auto epoch = std::chrono::microseconds{1'700'000'000'000'000};
constexpr auto long_up = 24h;

eligibility five(std::array<std::chrono::milliseconds, 5> const& offsets, std::chrono::milliseconds guard = 30s)
{
    eligibility a{5, guard};
    for (unsigned node = 0; node < 5; ++node) a.connected(node, epoch + offsets[node], long_up, now);
    return a;
}

}  // namespace

TEST_CASE("a node that is not connected has no vote")
{
    eligibility a{1, 30s};
    CHECK(a.may_vote(0, now) == errc::cannot_connect);
    a.connected(0, epoch, long_up, now);
    CHECK_FALSE(a.may_vote(0, now));
    a.disconnected(0);
    CHECK(a.may_vote(0, now) == errc::cannot_connect);
}

TEST_CASE("no node has a vote until a majority's clocks are known")
{
    eligibility a{5, 30s};
    a.connected(4, epoch, long_up, now);
    a.connected(2, epoch, long_up, now);
    CHECK(a.may_vote(2, now) == errc::clock_not_compared);
    a.connected(0, epoch, long_up, now);
    CHECK_FALSE(a.may_vote(2, now));
    CHECK_FALSE(a.may_vote(4, now));
}

TEST_CASE("a clock is out of line only when no clock that is still unknown can bring it in line")
{
    eligibility a{5, 30s};
    for (unsigned node = 0; node < 3; ++node) a.connected(node, epoch + node * 1h, long_up, now);
    CHECK(a.may_vote(0, now) == errc::clock_not_compared);
    a.connected(3, epoch + 2h, long_up, now);
    CHECK(a.may_vote(0, now) == errc::clock_out_of_line);
    CHECK(a.may_vote(2, now) == errc::clock_not_compared);
    a.connected(4, epoch + 2h, long_up, now);
    CHECK_FALSE(a.may_vote(2, now));
}

TEST_CASE("a minority of clocks out of line gets no vote, whichever clocks are known")
{
    for (unsigned known = 0; known < 32; ++known) {
        eligibility a{5, 30s};
        for (unsigned node = 0; node < 5; ++node)
            if ((known >> node & 1U) != 0) a.connected(node, node < 2 ? epoch + 60s : epoch, long_up, now);
        CHECK(a.may_vote(0, now));
        CHECK(a.may_vote(1, now));
    }
}

TEST_CASE("a node that was restarted has no vote until the guard has passed, by the slowest clock of a holder")
{
    eligibility a{1, 30s};
    a.connected(0, epoch, 12s, now);
    CHECK(a.may_vote(0, now) == errc::restarted_recently);
    CHECK(a.may_vote(0, now + 18s + 302ms - 1ns) == errc::restarted_recently);
    CHECK(a.guarded_for(0, now) == 18s + 302ms);
    CHECK_FALSE(a.may_vote(0, now + 18s + 302ms));
}

TEST_CASE("a later connection replaces what was known of the node")
{
    eligibility a{1, 30s};
    a.connected(0, epoch, long_up, now);
    a.disconnected(0);
    a.connected(0, epoch, 0s, now + 1s);
    CHECK(a.may_vote(0, now + 1s) == errc::restarted_recently);
    CHECK_FALSE(a.may_vote(0, now + 32s));
}

TEST_CASE("without a guard every node that is connected has a vote")
{
    eligibility a{3, 0ms};
    a.connected(0, epoch, 0s, now);
    a.connected(1, epoch + 1h, 0s, now);
    CHECK_FALSE(a.may_vote(0, now));
    CHECK_FALSE(a.may_vote(1, now));
}

TEST_CASE("a node whose clock is out of line by more than half the guard has no vote")
{
    auto const a = five({0ms, 15'000ms, 15'001ms, -15'000ms, -15'001ms});
    CHECK_FALSE(a.may_vote(0, now));
    CHECK_FALSE(a.may_vote(1, now));
    CHECK(a.may_vote(2, now) == errc::clock_out_of_line);
    CHECK_FALSE(a.may_vote(3, now));
    CHECK(a.may_vote(4, now) == errc::clock_out_of_line);
}

TEST_CASE("clocks are compared as of the same time")
{
    eligibility a{3, 30s};
    a.connected(0, epoch, long_up, now);
    a.connected(1, epoch + 1h, long_up, now + 1h);
    a.connected(2, epoch, long_up, now + 1h);
    CHECK_FALSE(a.may_vote(0, now + 1h));
    CHECK_FALSE(a.may_vote(1, now + 1h));
    CHECK(a.may_vote(2, now + 1h) == errc::clock_out_of_line);
}

TEST_CASE("a clock is in line only where the time that its greeting took leaves no doubt")
{
    eligibility a{3, 30s};
    a.connected(0, epoch, long_up, now);
    a.connected(1, epoch - 16s, long_up, now, 32s);
    CHECK(a.may_vote(0, now) == errc::clock_not_compared);
    a.connected(2, epoch - 4s, long_up, now, 8s);
    CHECK_FALSE(a.may_vote(0, now));
    CHECK(a.may_vote(1, now));
    CHECK_FALSE(a.may_vote(2, now));
}

TEST_CASE("the clock of a node that is gone still counts")
{
    auto a = five({0ms, 0ms, 0ms, 60'000ms, 60'000ms});
    a.disconnected(0);
    a.disconnected(1);
    CHECK_FALSE(a.may_vote(2, now));
    CHECK(a.may_vote(3, now) == errc::clock_out_of_line);
}

TEST_CASE("of two clocks that differ by more than half the guard neither is in line")
{
    eligibility a{2, 30s};
    a.connected(0, epoch, long_up, now);
    a.connected(1, epoch + 15'001ms, long_up, now);
    CHECK(a.may_vote(0, now) == errc::clock_out_of_line);
    CHECK(a.may_vote(1, now) == errc::clock_out_of_line);
}

TEST_CASE("the latest clock is the furthest one in line, or what another client takes it for")
{
    eligibility a{3, 1min};
    CHECK(a.latest(now) == 0);
    a.connected(0, epoch, 1h, now);
    a.connected(1, epoch + 2s, 1h, now);
    auto const shown = [](std::chrono::microseconds t) { return static_cast<std::uint64_t>(t.count()); };
    CHECK(a.latest(now + 1s) == shown(epoch + 3s));
    a.heard((epoch + 3s).count(), now + 2s);  // of a waiter that came before
    CHECK(a.latest(now + 2s) == shown(epoch + 4s));
    a.heard((epoch + 9s).count(), now + 2s);
    CHECK(a.latest(now + 2s) == shown(epoch + 9s));
    a.heard((epoch + 5s).count(), now + 2s);
    CHECK(a.latest(now + 2s) == shown(epoch + 9s));
    CHECK(a.latest(now + 102s) == shown(epoch + 108s));  // it fades
    CHECK(a.latest(now + 1h) == shown(epoch + 1h + 2s));
}

TEST_CASE("what no clock in line can show is not heard")
{
    auto const limit = GENERATE(0s, 60s);
    eligibility a{3, limit};
    auto const wrong = GENERATE(std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0},
                                std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 62,
                                std::int64_t{(epoch + 2h).count()}, std::int64_t{(epoch + 61s).count()});
    a.heard(epoch.count(), now);  // it knows no clock to compare it with
    CHECK(a.latest(now) == 0);
    a.connected(0, epoch, 1h, now);
    a.heard(wrong, now);
    CHECK(a.latest(now) == static_cast<std::uint64_t>(epoch.count()));
}

TEST_CASE("a proposal is a lead ahead of the furthest clock that is in line")
{
    auto const a = five({0ms, 20ms, 40ms, -30ms, 60'000ms});
    auto const later = now + 3s;
    CHECK(a.proposal(later) == static_cast<std::uint64_t>((epoch + 3s + 40ms + 1s).count()));
    CHECK(a.max_lead() == 15s);
}

TEST_CASE("the lead is a quarter of a short guard")
{
    auto const a = five({0ms, 0ms, 0ms, 0ms, 0ms}, 400ms);
    CHECK(a.proposal(now) == static_cast<std::uint64_t>((epoch + 100ms).count()));
    CHECK(a.max_lead() == 200ms);
}

TEST_CASE("a proposal is never so far ahead that a node which begins anew has not caught up after the guard")
{
    auto const a = five({0ms, 0ms, 0ms, 0ms, 180ms}, 400ms);
    CHECK(a.proposal(now) == static_cast<std::uint64_t>((epoch + 200ms).count()));

    eligibility knows_the_slowest_three{5, 400ms};
    knows_the_slowest_three.connected(0, epoch - 100ms, long_up, now);
    knows_the_slowest_three.connected(1, epoch, long_up, now);
    knows_the_slowest_three.connected(2, epoch + 50ms, long_up, now);
    CHECK(knows_the_slowest_three.proposal(now) == static_cast<std::uint64_t>((epoch + 100ms).count()));
}

TEST_CASE("the floor is the start of the node on its own clock and a guard and a half")
{
    eligibility a{5, 30s};
    a.connected(0, epoch + 1s, 10min, now);
    CHECK(a.floor(0) == static_cast<std::uint64_t>((epoch + 1s - 10min + 45s).count()));
    a.connected(1, 5s, 1h, now);
    CHECK(a.floor(1) == 1);
}

TEST_CASE("counters are kept for an hour, or for twice as long as a long guard")
{
    CHECK(eligibility{5, 30s}.fence_lifetime() == 1h);
    CHECK(eligibility{5, 12h}.fence_lifetime() == 24h);
    CHECK(eligibility{1, 0s}.fence_lifetime() == 1h);
}

TEST_CASE("without a guard counters of several masters are kept until any clock has reached them")
{
    CHECK(eligibility{5, 0s}.fence_lifetime() == 25h);
}

TEST_CASE("a clock that looks out of line is looked at again only where it is known roughly")
{
    auto const seen = [](boot_clock::duration guard, std::chrono::milliseconds off, boot_clock::duration took) {
        eligibility a{3, guard};
        a.connected(0, epoch, long_up, now);
        a.connected(1, epoch, long_up, now);
        a.connected(2, epoch + off, long_up, now, took);
        return a;
    };
    CHECK(seen(4s, 1500ms, 3s).vague(2));
    CHECK_FALSE(seen(4s, 1500ms, 3s).vague(0));
    CHECK_FALSE(seen(4s, 3s, 1s).vague(2));  // out of line, and well known
    CHECK_FALSE(seen(4s, 0s, 1500ms).vague(2));
    CHECK_FALSE(seen(0s, 3s, 3s).vague(2));
    auto gone = seen(4s, 1500ms, 3s);
    gone.disconnected(2);
    CHECK_FALSE(gone.vague(2));
    eligibility alone{3, 4s};
    alone.connected(2, epoch, long_up, now, 3s);
    CHECK_FALSE(alone.vague(2));
}

TEST_CASE("a clock that is out of line may have been set when it was seen a while ago")
{
    eligibility a{3, 4s};
    for (unsigned node : {0U, 1U}) a.connected(node, epoch, long_up, now);
    a.connected(2, epoch + 3s, long_up, now);
    CHECK_FALSE(a.out_of_line(0));
    CHECK(a.out_of_line(2));
    CHECK_FALSE(a.outdated(2, now + 9s));
    CHECK(a.outdated(2, now + 10s));
    a.connected(2, epoch + 10s, long_up, now + 10s);
    CHECK_FALSE(a.out_of_line(2));
    CHECK_FALSE(a.outdated(2, now + 11s));
    a.connected(2, epoch + 14s, long_up, now + 10s);
    CHECK(a.out_of_line(2));
    a.disconnected(2);
    CHECK_FALSE(a.out_of_line(2));
}

TEST_CASE("one whose clock looks out of line since long after the others were seen shows that they may have been set")
{
    eligibility a{3, 4s};
    for (unsigned node : {0U, 1U, 2U}) a.connected(node, epoch, long_up, now);
    a.connected(2, epoch + 9s + 3s, long_up, now + 9s);
    CHECK(a.out_of_line(2));
    CHECK_FALSE(a.contradicted(0, now + 9s));
    a.connected(2, epoch + 10s, long_up, now + 10s);
    CHECK_FALSE(a.out_of_line(2));
    a.connected(2, epoch + 11s + 3s, long_up, now + 11s);
    CHECK(a.contradicted(0, now + 11s));
    CHECK_FALSE(a.contradicted(1, now + 11s));  // not together
    CHECK(a.contradicted(1, now + 12s));
    CHECK_FALSE(a.contradicted(2, now + 13s));
    for (unsigned node : {0U, 1U}) a.connected(node, epoch + 13s, long_up, now + 13s);
    a.connected(2, epoch + 99s + 3s, long_up, now + 99s);  // it is still the only one
    CHECK(a.out_of_line(2));
    CHECK_FALSE(a.contradicted(0, now + 99s));
    a.connected(2, epoch + 2h + 3s, long_up, now + 2h);
    CHECK(a.contradicted(0, now + 2h));
    eligibility late{3, 4s};
    for (unsigned node : {0U, 1U}) late.connected(node, epoch, long_up, now);
    late.connected(2, epoch + 60s + 3s, long_up, now + 60s);  // seen for the first time
    CHECK(late.contradicted(0, now + 60s));
}

TEST_CASE("where no clock is in line nothing is proposed") { CHECK(eligibility{5, 30s}.proposal(now) == 0); }

TEST_CASE("an uptime in whole seconds of the wall clock may be one too large")
{
    CHECK(eligibility::certain_uptime(0s) == 0s);
    CHECK(eligibility::certain_uptime(1s) == 0s);
    CHECK(eligibility::certain_uptime(7s) == 6s);
}
