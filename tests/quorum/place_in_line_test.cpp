// SPDX-License-Identifier: MIT
//
// An acquire whose nodes put it into their queues: how it waits to be called, and what it does if it is not.
#include "acquire.hpp"

#include <algorithm>
#include <chrono>

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::boot_clock;
using holdfast::quorum::acquire_step;
using holdfast::quorum::answer;
using holdfast::quorum::node_set;

namespace {

answer in_line(std::chrono::milliseconds left = 10s)
{
    auto a = no(left);
    a.in_line = true;
    return a;
}

/// Effects: all of five nodes refuse, and put the waiter in line. Returns: the last step.
acquire_step refused_by_all(acquire& a, boot_clock::time_point now, boot_clock::time_point ends = t0 + 10s)
{
    acquire_step step;
    auto const left = std::chrono::floor<std::chrono::milliseconds>(ends - now);
    for (unsigned node = 0; node < 5; ++node) step = a.machine.on_answer(node, in_line(left), now);
    return step;
}

}  // namespace

TEST_CASE("a round that all nodes refuse needs no roll-back: they have put the waiter in line")
{
    acquire a{5};
    (void)a.machine.start(t0);
    auto const step = refused_by_all(a, t0);
    CHECK(step.roll_back.empty());
    CHECK(step.refused == node_set::all(5));
    CHECK(step.watch);
    CHECK_FALSE(step.done);
}

TEST_CASE("a lost round waits up to 3 ms for the answers that are left, and rolls back only what it must")
{
    acquire a{5};
    (void)a.machine.start(t0);
    (void)a.machine.on_answer(0, yes(70), t0);
    (void)a.machine.on_answer(1, in_line(), t0);
    (void)a.machine.on_answer(2, in_line(), t0);
    auto step = a.machine.on_answer(3, in_line(), t0);
    CHECK(step.roll_back.empty());
    CHECK(a.machine.wake_at() == t0 + 3ms);
    SECTION("the rest comes")
    {
        step = a.machine.on_answer(4, in_line(), t0 + 1ms);
        CHECK(step.roll_back == nodes(0));
    }
    SECTION("it does not")
    {
        step = a.machine.on_time(t0 + 3ms);
        CHECK(step.roll_back == nodes(0, 4));
        CHECK(step.give_up.empty());
    }
    CHECK(step.stays);
    CHECK_FALSE(step.done);
}

TEST_CASE("a waiter whose votes are split does not wait for a node that hangs as long as it may, but longer each time")
{
    acquire a{5};
    auto now = t0;
    (void)a.machine.start(now);
    for (auto const pause : {3ms, 6ms, 12ms, 24ms}) {
        (void)a.machine.on_answer(0, yes(70), now);
        (void)a.machine.on_answer(1, yes(70), now);
        (void)a.machine.on_answer(2, in_line(), now);
        CHECK(a.machine.on_answer(3, in_line(), now).roll_back.empty());
        CHECK(a.machine.wake_at() == now + pause);
        auto const step = a.machine.on_time(now + pause);
        CHECK(step.roll_back == nodes(0, 1, 4));
        CHECK(step.give_up.empty());
        CHECK(step.stays);
        now = a.machine.wake_at();
        (void)a.machine.on_time(now);
    }
    (void)a.machine.on_answer(0, yes(70), now);
    (void)a.machine.on_answer(1, yes(70), now);
    (void)a.machine.on_answer(2, in_line(), now);
    CHECK(a.machine.on_answer(4, yes(70), now + 40ms).done);
}

TEST_CASE("a single attempt does not wait for the rest")
{
    acquire a{5, {.once = true}};
    (void)a.machine.start(t0);
    for (unsigned node = 0; node < 3; ++node) (void)a.machine.on_answer(node, no(1s), t0);
    CHECK(a.machine.wake_at() == boot_clock::time_point::max());
}

TEST_CASE("a waiter that is to leave the lock free for those who poll asks that much later when it is called")
{
    acquire a{5, {.leaves_free = 20ms}};
    (void)a.machine.start(t0);
    (void)refused_by_all(a, t0);
    auto const now = t0 + 30ms;
    for (unsigned node = 0; node < 5; ++node) CHECK(a.machine.on_released(node, now).ask.empty());
    CHECK(a.machine.wake_at() == now + 20ms);
    CHECK(a.machine.on_time(now + 20ms).ask == node_set::all(5));
    // A call that comes after that one was in vain is answered at once.
    (void)refused_by_all(a, now + 20ms);
    for (unsigned node = 0; node < 4; ++node) CHECK(a.machine.on_released(node, now + 21ms).ask.empty());
    CHECK(a.machine.on_released(4, now + 21ms).ask == node_set::all(5));
}

TEST_CASE("a waiter that wins too late each time leaves its place to others, and asks again after a pause that grows")
{
    acquire a{5};
    auto now = t0;
    (void)a.machine.start(now);
    (void)refused_by_all(a, now);
    for (unsigned node = 0; node < 4; ++node) (void)a.machine.on_released(node, now);
    CHECK(a.machine.on_released(4, now).ask == node_set::all(5));
    boot_clock::duration longest{};
    for (int round = 0; round < 100; ++round) {
        now += 10s;  // the lease
        auto const step = a.first_answer(3, yes(70), now);
        CHECK(step.roll_back == node_set::all(5));
        CHECK_FALSE(step.stays);
        // What it gives back is told to it, too.
        for (unsigned node = 0; node < 5; ++node) (void)a.machine.on_released(node, now);
        auto const at = a.machine.wake_at();
        CHECK(at <= now + 8ms);
        longest = std::max(longest, at - now);
        now = at;
        CHECK(a.machine.on_time(now).ask == node_set::all(5));
    }
    CHECK(longest > 4ms);
}

TEST_CASE("a waiter that has no time to leave the lock free for those who poll asks at once")
{
    acquire a{5, {.deadline = t0 + 50ms, .leaves_free = 20ms}};
    (void)a.machine.start(t0);
    (void)refused_by_all(a, t0);
    for (unsigned node = 0; node < 4; ++node) CHECK(a.machine.on_released(node, t0 + 40ms).ask.empty());
    CHECK(a.machine.on_released(4, t0 + 40ms).ask == node_set::all(5));
}

TEST_CASE("a waiter asks when all nodes have called it, or a millisecond after a majority, or some after fewer")
{
    acquire a{5};
    (void)a.machine.start(t0);
    (void)refused_by_all(a, t0);
    auto const now = t0 + 20ms;
    CHECK(a.machine.on_released(0, now).ask.empty());
    CHECK(a.machine.wake_at() >= now + 5ms);
    CHECK(a.machine.wake_at() <= now + 10ms);
    SECTION("fewer") { CHECK(a.machine.on_time(now + 10ms).ask == node_set::all(5)); }
    SECTION("a majority")
    {
        CHECK(a.machine.on_released(3, now + 1ms).ask.empty());
        CHECK(a.machine.on_released(4, now + 2ms).ask.empty());
        CHECK(a.machine.wake_at() == now + 3ms);
        CHECK(a.machine.on_time(now + 3ms).ask == node_set::all(5));
    }
    SECTION("all")
    {
        for (unsigned node = 1; node < 4; ++node) CHECK(a.machine.on_released(node, now).ask.empty());
        CHECK(a.machine.on_released(4, now).ask == node_set::all(5));
    }
    SECTION("all that can")
    {
        (void)a.machine.on_watch_failed(4, make_error_code(node_error::connection_lost), now);
        for (unsigned node = 1; node < 3; ++node) CHECK(a.machine.on_released(node, now).ask.empty());
        CHECK(a.machine.on_released(3, now).ask == node_set::all(5));
    }
}

TEST_CASE("a waiter that nobody calls looks after a quarter of a second, and twice as long while the lease is the same")
{
    acquire a{5, {.retry = {.most = 1min}}};
    auto now = t0;
    (void)a.machine.start(now);
    bool const goes_on = GENERATE(true, false);
    for (auto const pause : {250ms, 500ms, 1000ms, 2000ms, 4000ms}) {
        if (goes_on) {
            (void)refused_by_all(a, now, now + 1h);
            CHECK(a.machine.wake_at() <= now + 250ms);
            now = a.machine.wake_at();
            CHECK(a.machine.on_time(now).ask == node_set::all(5));
            continue;
        }
        (void)refused_by_all(a, now, t0 + 1h);
        CHECK(a.machine.wake_at() > now + pause / 2 - 1ms);
        CHECK(a.machine.wake_at() <= now + pause);
        now = a.machine.wake_at();
        CHECK(a.machine.on_time(now).ask == node_set::all(5));
    }
}

TEST_CASE(
    "a waiter in line sleeps for up to ten times `most`, and for less if the lease is not the same again and again")
{
    acquire a{5};
    auto now = t0;
    (void)a.machine.start(now);
    auto const look = [&](boot_clock::time_point ends) {
        (void)refused_by_all(a, now, ends);
        auto const pause = a.machine.wake_at() - now;
        now = a.machine.wake_at();
        (void)a.machine.on_time(now);
        return pause;
    };
    for (int i = 0; i < 5; ++i) (void)look(t0 + 1h);
    for (int i = 0; i < 3; ++i) {
        auto const pause = look(t0 + 1h);
        CHECK(pause > 3900ms);
        CHECK(pause <= 10s);
    }
    boot_clock::duration last{};
    for (int i = 0; i < 8; ++i) last = look(now + 2h);
    CHECK(last <= 250ms);
}

TEST_CASE("a waiter that was called, and another was faster, looks again soon: that one may call nobody")
{
    acquire a{1};
    (void)a.machine.start(t0);
    (void)a.machine.on_answer(0, in_line(), t0);
    CHECK(a.machine.on_released(0, t0 + 1ms).ask == node_set::all(1));
    auto now = t0 + 1ms;
    for (auto const pause : {2ms, 4ms, 8ms, 16ms}) {
        (void)a.machine.on_answer(0, in_line(), now);
        CHECK(a.machine.wake_at() >= now + pause / 2);
        CHECK(a.machine.wake_at() <= now + pause);
        now = a.machine.wake_at();
        (void)a.machine.on_time(now);
    }
}

TEST_CASE("a round that is given up says which nodes have certainly refused it")
{
    acquire a{5};
    (void)a.machine.start(t0);
    (void)a.machine.on_answer(0, in_line(), t0);
    (void)a.machine.on_answer(1, yes(70), t0);
    auto const step = a.machine.cancel(t0);
    CHECK(step.refused == nodes(0));
    CHECK(step.roll_back == nodes(1, 2, 3, 4));
}

TEST_CASE("who gives up while it asks leaves the queues by the roll-back")
{
    acquire a{5};
    (void)a.machine.start(t0);
    (void)refused_by_all(a, t0);
    (void)a.machine.on_time(a.machine.wake_at());
    (void)a.machine.on_answer(3, in_line(), t0 + 1s);
    auto const step = a.machine.cancel(t0 + 1s);
    CHECK(step.roll_back == nodes(0, 1, 2, 4));
    CHECK_FALSE(step.stays);
}

TEST_CASE("votes that are split among those in line do not spread them out at random: the first one is called")
{
    acquire a{3};
    (void)a.machine.start(t0);
    auto granted = yes(70);
    granted.in_line = true;
    (void)a.machine.on_answer(0, granted, t0);
    (void)a.machine.on_answer(1, in_line(50ms), t0);
    auto const step = a.machine.on_answer(2, failed(node_error::loading), t0);
    CHECK(step.roll_back == nodes(0, 2));
    CHECK(step.stays);
    CHECK(step.watch);
    CHECK(a.machine.wake_at() > t0 + 20ms);
    CHECK(a.machine.on_released(0, t0 + 1ms).ask.empty());
    CHECK(a.machine.on_released(1, t0 + 1ms).ask == node_set::all(3));
}

TEST_CASE("a round that was lost, and is open again after a confirm failed, does not wake up again and again")
{
    acquire a{7};
    (void)a.machine.start(t0);
    for (unsigned node : {0U, 1U}) (void)a.machine.on_answer(node, in_line(), t0);
    for (unsigned node : {2U, 3U, 4U}) (void)a.machine.on_answer(node, yes(70), t0);
    CHECK(a.machine.on_answer(5, yes(90), t0).confirm == nodes(2, 3, 4));
    for (unsigned node : {2U, 3U}) (void)a.machine.on_answer(node, failed(node_error::loading), t0);
    auto const rest = a.machine.wake_at();
    (void)a.machine.on_answer(4, failed(node_error::loading), t0);
    auto const step = a.machine.on_time(rest);
    CHECK((a.machine.wake_at() > rest || step.done || !step.roll_back.empty()));
}
