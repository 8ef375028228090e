// SPDX-License-Identifier: MIT
//
// How an acquire waits after a lost round: for a release, after split votes, in an outage; and for how long.
#include "acquire.hpp"

#include <algorithm>
#include <array>

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::boot_clock;
using holdfast::quorum::acquire_step;
using holdfast::quorum::node_set;

namespace {

/// Effects: two of three nodes vote for others. Returns: the step that follows.
acquire_step held(acquire& a, boot_clock::time_point now, std::chrono::milliseconds left = 400ms)
{
    (void)a.machine.on_answer(0, no(left), now);
    return a.machine.on_answer(1, no(left), now);
}

/// Effects: one of three nodes votes for us, the others for two others.
acquire_step split(acquire& a, boot_clock::time_point now)
{
    (void)a.machine.on_answer(0, yes(70), now);
    (void)a.machine.on_answer(1, no(400ms), now);
    return a.machine.on_answer(2, failed(node_error::loading), now);
}

/// Effects: two of three nodes cannot be asked.
acquire_step outage(acquire& a, boot_clock::time_point now)
{
    (void)a.machine.on_answer(0, unsent(), now);
    return a.machine.on_answer(2, failed(node_error::loading), now);
}

}  // namespace

TEST_CASE("a held lock is watched, and looked at again when its keys expire, or a little later", "[lesson-11]")
{
    boot_clock::duration latest{};
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        acquire a{3, {.seed = seed}};
        (void)a.machine.start(t0);
        CHECK(held(a, t0).watch);
        auto const pause = a.machine.wake_at() - t0;
        CHECK(pause >= 401ms);
        CHECK(pause < 401ms + 401ms / 8);
        latest = std::max(latest, pause);
    }
    CHECK(latest > 425ms);
}

TEST_CASE("a held lock is looked at after the longest pause at the latest, also one that does not expire")
{
    constexpr auto endless = std::chrono::milliseconds{9'000'000'000'000'000};
    for (auto const left : {std::chrono::milliseconds{1h}, holdfast::quorum::unknown_time_left, endless}) {
        acquire a{1, {.retry = {.most = 300ms}}};
        (void)a.machine.start(t0);
        (void)a.machine.on_answer(0, no(left), t0);
        CHECK(a.machine.wake_at() == t0 + 300ms);
    }
}

TEST_CASE("when its time has come a waiter asks every node for a fresh token, and does not watch twice")
{
    acquire a{3};
    (void)a.machine.start(t0);
    CHECK(held(a, t0).watch);
    auto const again = a.machine.on_time(t0 + 500ms);
    CHECK(again.new_token);
    CHECK(again.ask == node_set::all(3));
    CHECK(again.roll_back.empty());
    CHECK(a.machine.wake_at() == t0 + 500ms + node_timeout);
    CHECK_FALSE(held(a, t0 + 501ms).watch);
}

TEST_CASE("a lease that is granted after many rounds is as long as one that is granted in the first", "[lesson-13]")
{
    acquire a{3};
    auto now = t0;
    (void)a.machine.start(now);
    for (int round = 0; round < 10; ++round) {
        (void)held(a, now + 1ms);
        now = a.machine.wake_at();
        REQUIRE(a.machine.on_time(now).ask == node_set::all(3));
    }
    (void)a.machine.on_answer(0, yes(70), now + 10ms);
    auto const step = a.machine.on_answer(1, yes(70), now + 20ms);
    REQUIRE(step.done);
    CHECK_FALSE(step.done->error);
    CHECK(step.done->valid_until == now + 10'000ms - 102ms);
}

TEST_CASE("a release that a majority reports is followed by a fresh attempt at once")
{
    acquire a{5};
    (void)a.machine.start(t0);
    (void)a.first_answer(3, no(1s), t0);
    CHECK(a.machine.on_released(0, t0 + 1ms).ask.empty());
    CHECK(a.machine.on_released(0, t0 + 2ms).ask.empty());
    CHECK(a.machine.on_released(1, t0 + 3ms).ask.empty());
    auto const step = a.machine.on_released(4, t0 + 4ms);
    CHECK(step.ask == node_set::all(5));
    CHECK(step.new_token);
    CHECK(a.machine.wake_at() == t0 + 4ms + node_timeout);
}

TEST_CASE("a release that is reported before the round is lost is not missed", "[lesson-11]")
{
    acquire a{3};
    (void)a.machine.start(t0);
    (void)a.machine.on_released(0, t0);
    (void)a.machine.on_released(2, t0);
    auto const step = held(a, t0 + 1ms);
    CHECK(step.roll_back == node_set::all(3));
    CHECK(step.ask == node_set::all(3));
    CHECK(step.new_token);
    CHECK(step.watch);
}

TEST_CASE("a release counts for the round in which it was reported, not for the next one")
{
    acquire a{3};
    (void)a.machine.start(t0);
    (void)held(a, t0);
    (void)a.machine.on_released(0, t0 + 1ms);
    (void)a.machine.on_time(t0 + 500ms);
    (void)held(a, t0 + 501ms);
    CHECK(a.machine.on_released(1, t0 + 502ms).ask.empty());
    CHECK(a.machine.on_released(2, t0 + 503ms).ask == node_set::all(3));
}

TEST_CASE("split votes wait a random time, within a window that doubles up to sixteen times the first")
{
    std::array<boot_clock::duration, 14> longest{};
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        acquire a{3, {.retry = {.first = 500us, .most = 1000ms}, .seed = seed}};
        auto now = t0;
        (void)a.machine.start(now);
        for (auto& most : longest) {
            CHECK(split(a, now).roll_back == node_set::all(3));
            most = std::max(most, a.machine.wake_at() - now);
            now = a.machine.wake_at();
            CHECK(a.machine.on_time(now).ask == node_set::all(3));
        }
    }
    boot_clock::duration window = 500us;
    for (auto const most : longest) {
        CHECK(most < window);
        CHECK(most > window / 2);
        window = std::min<boot_clock::duration>(2 * window, 8000us);
    }
}

TEST_CASE("a release does not cut the wait after split votes short; the nodes are asked to put the waiter in line")
{
    acquire a{3};
    (void)a.machine.start(t0);
    CHECK(split(a, t0).watch);
    auto const wake_at = a.machine.wake_at();
    for (unsigned node = 0; node < 3; ++node) CHECK(a.machine.on_released(node, t0).ask.empty());
    CHECK(a.machine.wake_at() == wake_at);
}

TEST_CASE("a lock that a majority holds for others is waited for, although one vote was ours")
{
    acquire a{3};
    (void)a.machine.start(t0);
    (void)a.machine.on_answer(0, yes(70), t0);
    (void)a.machine.on_answer(1, no(400ms), t0);
    auto const step = a.machine.on_answer(2, no(400ms), t0);
    CHECK(step.watch);
    CHECK(step.roll_back == node_set::all(3));
    CHECK(a.machine.wake_at() >= t0 + 400ms);
    CHECK(a.machine.on_released(1, t0 + 10ms).ask.empty());
    (void)a.machine.on_released(2, t0 + 10ms);
    CHECK(a.machine.wake_at() < t0 + 20ms);
}

TEST_CASE("contenders who collided before spread out when the lock is released")
{
    bool some_wait = false;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        acquire a{3, {.retry = {.first = 8ms}, .seed = seed}};
        (void)a.machine.start(t0);
        (void)split(a, t0);
        (void)a.machine.on_time(a.machine.wake_at());
        (void)held(a, t0 + 100ms);
        (void)a.machine.on_released(0, t0 + 200ms);
        auto const step = a.machine.on_released(1, t0 + 200ms);
        if (!step.ask.empty()) continue;
        some_wait = true;
        CHECK(a.machine.wake_at() > t0 + 200ms);
        CHECK(a.machine.wake_at() < t0 + 208ms);
        CHECK(a.machine.on_released(2, t0 + 200ms).ask.empty());
        CHECK(a.machine.on_time(a.machine.wake_at()).ask == node_set::all(3));
    }
    CHECK(some_wait);
}

TEST_CASE("servers that cannot be asked are tried again after a pause that doubles to the longest, until they answer")
{
    acquire a{3, {.retry = {.most = 100ms}}};
    auto now = t0;
    (void)a.machine.start(now);
    for (auto const pause : {10ms, 20ms, 40ms, 80ms, 100ms, 100ms}) {
        auto const step = outage(a, now);
        CHECK_FALSE(step.watch);
        CHECK_FALSE(step.done);
        CHECK(a.machine.wake_at() >= now + pause / 2);
        CHECK(a.machine.wake_at() < now + pause);
        now = a.machine.wake_at();
        (void)a.machine.on_time(now);
    }
    (void)held(a, now);
    now = a.machine.wake_at();
    (void)a.machine.on_time(now);
    (void)outage(a, now);
    CHECK(a.machine.wake_at() < now + 10ms);
}

TEST_CASE("no wait goes beyond the deadline, at which a waiter that was told that others hold the lock has timed out")
{
    auto const deadline = t0 + 100ms;
    acquire a{3, {.deadline = deadline}};
    (void)a.machine.start(t0);
    (void)held(a, t0);
    CHECK(a.machine.wake_at() == deadline);
    auto const step = a.machine.on_time(deadline);
    CHECK(step.ask.empty());
    CHECK(step.roll_back.empty());
    REQUIRE(step.done);
    CHECK(step.done->error == holdfast::errc::timed_out);
}

TEST_CASE("a deadline that passes while asking ends the acquire with that round")
{
    acquire a{3, {.deadline = t0 + 10ms}};
    (void)a.machine.start(t0);
    auto const step = a.machine.on_time(t0 + node_timeout);
    CHECK(step.roll_back == node_set::all(3));
    REQUIRE(step.done);
    CHECK(step.done->error == holdfast::errc::unavailable);
    CHECK(step.done->error == node_error::overdue);
}

TEST_CASE("a deadline passes: timed_out if a majority ever answered, otherwise unavailable")
{
    auto const deadline = t0 + 1s;
    acquire never{3, {.deadline = deadline}};
    acquire once{3, {.deadline = deadline}};
    (void)never.machine.start(t0);
    (void)outage(never, t0);
    (void)once.machine.start(t0);
    (void)split(once, t0);
    (void)once.machine.on_time(once.machine.wake_at());
    (void)outage(once, t0 + 10ms);

    auto const unasked = never.machine.on_time(deadline);
    REQUIRE(unasked.done);
    CHECK(unasked.done->error == holdfast::errc::unavailable);
    CHECK(unasked.done->node == 0);
    CHECK(unasked.done->error == node_error::cannot_connect);

    auto const asked = once.machine.on_time(deadline);
    REQUIRE(asked.done);
    CHECK(asked.done->error == holdfast::errc::timed_out);
}

TEST_CASE("an outage that lasts to unavailable_at ends the acquire, no pause goes beyond it")
{
    auto const limit = t0 + 6ms;
    acquire a{3, {.unavailable_at = limit}};
    (void)a.machine.start(t0);
    CHECK_FALSE(outage(a, t0).done);
    CHECK(a.machine.wake_at() <= limit);
    (void)a.machine.on_time(limit - 1ns);
    CHECK_FALSE(outage(a, limit - 1ns).done);
    CHECK(a.machine.unavailable_so_far() == true);
    CHECK(a.machine.wake_at() == limit);
    (void)a.machine.on_time(limit);
    auto const step = outage(a, limit);
    CHECK(step.roll_back == node_set::all(3));
    REQUIRE(step.done);
    CHECK(step.done->error == holdfast::errc::unavailable);
    CHECK(step.done->node == 0);
    CHECK(step.done->error == node_error::cannot_connect);
    CHECK(a.machine.unavailable_so_far() == true);  // for those who stand behind it, until they have heard of it
}

TEST_CASE("the patience with an outage begins anew whenever a majority has answered")
{
    acquire a{3, {.unavailable_at = t0 - 1s, .unavailable_after = 1s}};  // it began at the end of another outage
    (void)a.machine.start(t0);
    CHECK_FALSE(a.machine.unavailable_so_far());
    (void)held(a, t0 + 40ms);
    CHECK(a.machine.unavailable_so_far() == false);
    (void)a.machine.on_time(t0 + 500ms);
    CHECK_FALSE(outage(a, t0 + 500ms).done);
    (void)a.machine.on_time(t0 + 1039ms);
    CHECK_FALSE(outage(a, t0 + 1039ms).done);
    (void)a.machine.on_time(t0 + 1040ms);
    CHECK(outage(a, t0 + 1040ms).done);
    CHECK(a.machine.unavailable_so_far() == false);
}

TEST_CASE("an acquire without a limit to its patience outlasts any outage")
{
    acquire a{1};
    (void)a.machine.start(t0);
    CHECK_FALSE(a.machine.on_answer(0, failed(node_error::loading), t0 + 1000h).done);
    CHECK(a.machine.wake_at() > t0 + 1000h);
}

TEST_CASE("a majority that never will report releases is a wrong configuration, what was asked is rolled back")
{
    acquire a{3};
    (void)a.machine.start(t0);
    (void)held(a, t0);
    auto const refused = make_error_code(node_error::no_right);
    CHECK_FALSE(a.machine.on_watch_failed(0, refused, t0).done);
    CHECK_FALSE(a.machine.on_watch_failed(0, refused, t0).done);
    CHECK_FALSE(a.machine.on_watch_failed(1, make_error_code(node_error::loading), t0).done);
    (void)a.machine.on_time(t0 + 500ms);
    auto const step = a.machine.on_watch_failed(2, refused, t0 + 501ms);
    CHECK(step.roll_back == node_set::all(3));
    REQUIRE(step.done);
    CHECK(step.done->error == node_error::no_right);
    CHECK(step.done->node == 2);
    CHECK_FALSE(a.machine.on_watch_failed(1, refused, t0 + 502ms).done);
}

namespace {

/// Effects: has a waiter told of releases without end for `time`, while the lease that it finds ends at `ends(now)`. An
/// answer takes 100 µs.
/// Returns: how many times it asks.
template <class Ends>
int looks(acquire& a, unsigned nodes, boot_clock::duration time, Ends ends)
{
    auto now = t0;
    int count = 0;
    (void)a.machine.start(now);
    auto const refuse = [&] {
        now += 100us;
        auto const left = std::chrono::floor<std::chrono::milliseconds>(ends(now) - now);
        acquire_step step;
        for (unsigned node = 0; node <= nodes / 2; ++node) step = a.machine.on_answer(node, no(left), now);
        return step;
    };
    auto step = refuse();
    while (now < t0 + time) {
        for (unsigned node = 0; node < nodes && step.ask.empty(); ++node) step = a.machine.on_released(node, now);
        if (step.ask.empty() && now >= a.machine.wake_at()) step = a.machine.on_time(now);
        if (step.ask.empty()) {
            now += 10us;
        } else {
            ++count;
            step = refuse();
        }
    }
    return count;
}

}  // namespace

TEST_CASE("a waiter that is told of releases without end, while one holds the lock, asks at a bounded rate")
{
    unsigned const nodes = GENERATE(1U, 5U);
    acquire a{nodes};
    auto const ends = t0 + 60s;
    CHECK(looks(a, nodes, 10s, [&](auto) { return ends; }) < 1500);
}

TEST_CASE("the same where nobody knows when the lease ends, and where it is renewed")
{
    acquire a{1};
    CHECK(looks(a, 1, 10s, [&](auto now) { return now - 1ms; }) < 1500);
    acquire b{1};
    auto const renewed = [](auto now) { return now - (now - t0) % 1s + 3s; };
    CHECK(looks(b, 1, 10s, renewed) < 2000);
}

TEST_CASE("a waiter in a crowd, where others hold the lock one after the other, asks at once each time")
{
    acquire a{1};
    CHECK(looks(a, 1, 1s, [](auto now) { return now + 10s; }) > 8000);
}

TEST_CASE("among false reports a release is looked at within some milliseconds, and one that comes alone at once")
{
    acquire a{1};
    auto const ends = t0 + 60s;
    (void)looks(a, 1, 10s, [&](auto) { return ends; });
    auto const now = std::max(t0 + 10s, a.machine.wake_at());
    CHECK(a.machine.wake_at() < t0 + 10s + 20ms);
    (void)a.machine.on_time(now);
    (void)a.machine.on_answer(0, no(50s), now);
    CHECK(a.machine.on_released(0, now + 2s).ask == node_set::all(1));
}
