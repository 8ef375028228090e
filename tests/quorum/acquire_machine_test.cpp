// SPDX-License-Identifier: MIT
//
// How a round is asked, won, lost and rolled back, and how an acquire ends. Where it waits: acquire_waiting_test.cpp.
#include "acquire.hpp"

#include <tuple>

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::boot_clock;
using holdfast::errc;
namespace quorum = holdfast::quorum;
using holdfast::quorum::max_nodes;
using holdfast::quorum::node_set;

TEST_CASE("an acquire begins by asking every node for a fresh token, with one node timeout to answer")
{
    acquire a{5};
    auto const step = a.machine.start(t0);
    CHECK(step.new_token);
    CHECK(step.ask == node_set::all(5));
    CHECK(step.roll_back.empty());
    CHECK(step.give_up.empty());
    CHECK(step.confirm.empty());
    CHECK_FALSE(step.watch);
    CHECK_FALSE(step.done);
    CHECK(a.machine.wake_at() == t0 + node_timeout);
}

TEST_CASE("a confirmation is not waited for longer than one node timeout behind the deadline")
{
    for (auto const& [once, deadline, end] :
         {std::tuple{false, t0 + 1ms, t0 + 51ms}, std::tuple{false, t0 + 20ms, t0 + 70ms},
          std::tuple{false, t0 + 1h, t0 + 99ms}, std::tuple{true, t0 + 1ms, t0 + 99ms},
          std::tuple{true, boot_clock::time_point::max(), t0 + 99ms}}) {
        acquire a{3, {.once = once, .deadline = deadline}};
        (void)a.machine.start(t0);
        (void)a.machine.on_answer(0, yes(70), t0 + 49ms);
        CHECK(a.machine.on_answer(1, yes(90), t0 + 49ms).confirm == nodes(0));
        CHECK(a.machine.wake_at() == end);
    }
}

TEST_CASE("a majority of grants ends the acquire with the first fence of the batch and the validity since the sending")
{
    acquire a{5, {.fences = 33}};
    (void)a.machine.start(t0);
    CHECK_FALSE(a.machine.on_answer(0, yes(1000), t0 + 1ms).done);
    CHECK_FALSE(a.machine.on_answer(1, yes(1000), t0 + 2ms).done);
    auto const step = a.machine.on_answer(2, yes(1000), t0 + 3ms);
    REQUIRE(step.done);
    CHECK_FALSE(step.done->error);
    CHECK(step.done->fence == 968);
    CHECK(step.done->valid_until == t0 + 10'000ms - 102ms);
    CHECK(step.roll_back.empty());
    CHECK(a.machine.wake_at() == boot_clock::time_point::max());
}

TEST_CASE("an acquire without fencing ends with fence 0")
{
    acquire a{1, {.fences = 0}};
    (void)a.machine.start(t0);
    auto const step = a.machine.on_answer(0, yes(), t0);
    REQUIRE(step.done);
    CHECK_FALSE(step.done->error);
    CHECK(step.done->fence == 0);
}

TEST_CASE("fences that differ are confirmed, with another node timeout to answer, before the acquire ends")
{
    acquire a{3};
    (void)a.machine.start(t0);
    (void)a.machine.on_answer(0, yes(70), t0 + 10ms);
    auto const settled = a.machine.on_answer(1, yes(90), t0 + 20ms);
    CHECK(settled.confirm == nodes(0));
    CHECK_FALSE(settled.new_token);
    CHECK_FALSE(settled.done);
    CHECK(a.machine.fence() == 90);
    CHECK(a.machine.wake_at() == t0 + 20ms + node_timeout);

    auto const straggler = a.machine.on_answer(2, yes(80), t0 + 30ms);
    CHECK(straggler.confirm == nodes(2));
    CHECK(a.machine.wake_at() == t0 + 20ms + node_timeout);

    auto const step = a.machine.on_answer(2, yes(), t0 + 40ms);
    REQUIRE(step.done);
    CHECK_FALSE(step.done->error);
    CHECK(step.done->fence == 90);
    CHECK(step.done->valid_until == t0 + 10'000ms - 102ms);
}

TEST_CASE("a round that is won when the lease can no longer be used is a failure and is rolled back everywhere",
          "[lesson-3]")
{
    auto const too_late = t0 + 10'000ms - 204ms;
    acquire in_time{5};
    (void)in_time.machine.start(t0);
    auto const won = in_time.first_answer(3, yes(70), too_late - 1ns);
    REQUIRE(won.done);
    CHECK_FALSE(won.done->error);

    acquire late{5};
    (void)late.machine.start(t0);
    auto const lost = late.first_answer(3, yes(70), too_late);
    CHECK(lost.roll_back == node_set::all(5));
    CHECK_FALSE(lost.done);

    acquire last_attempt{1, {.once = true}};
    (void)last_attempt.machine.start(t0);
    auto const failure = last_attempt.machine.on_answer(0, yes(70), too_late);
    CHECK(failure.roll_back == nodes(0));
    REQUIRE(failure.done);
    CHECK(failure.done->error == holdfast::errc::timed_out);
}

TEST_CASE("a confirmation that comes when the lease can no longer be used is a failure, too", "[lesson-3]")
{
    acquire a{3};
    (void)a.machine.start(t0);
    (void)a.machine.on_answer(0, yes(70), t0);
    (void)a.machine.on_answer(1, yes(90), t0);
    auto const step = a.machine.on_answer(0, yes(), t0 + 10'000ms - 204ms);
    CHECK(step.roll_back == node_set::all(3));
    CHECK_FALSE(step.done);
}

TEST_CASE("a lost round is rolled back on every node, those that refused or failed too", "[lesson-2][lesson-3]")
{
    acquire a{5};
    (void)a.machine.start(t0);
    (void)a.machine.on_answer(0, yes(70), t0);
    (void)a.machine.on_answer(1, no(1s), t0);
    (void)a.machine.on_answer(2, failed(node_error::loading), t0);
    auto const step = a.machine.on_answer(3, no(1s), t0);
    CHECK(step.roll_back == node_set::all(5));
    CHECK(step.ask.empty());
    CHECK_FALSE(step.done);
}

TEST_CASE("a lone server's first word that the lock is held is the last: there is nothing to roll back")
{
    acquire a{1};
    (void)a.machine.start(t0);
    auto const step = a.machine.on_answer(0, no(1s), t0);
    CHECK(step.roll_back.empty());
    CHECK(step.watch);
}

TEST_CASE("a node that lost the connection is asked again once, for the same token", "[lesson-2]")
{
    acquire a{1};
    (void)a.machine.start(t0);
    auto const again = a.machine.on_answer(0, lost(), t0 + 10ms);
    CHECK(again.ask == nodes(0));
    CHECK_FALSE(again.new_token);
    CHECK(again.roll_back.empty());
    CHECK(a.machine.wake_at() == t0 + node_timeout);

    SECTION("and may have granted the first time, so that its no is rolled back")
    {
        CHECK(a.machine.on_answer(0, no(1s), t0 + 20ms).roll_back == nodes(0));
    }
    SECTION("and a second loss is a failure")
    {
        auto const step = a.machine.on_answer(0, lost(), t0 + 20ms);
        CHECK(step.ask.empty());
        CHECK(step.roll_back == nodes(0));
        CHECK_FALSE(step.done);
    }
}

TEST_CASE("time gives up the nodes that have not answered and loses the round")
{
    acquire a{5};
    (void)a.machine.start(t0);
    (void)a.machine.on_answer(0, yes(70), t0);
    (void)a.machine.on_answer(4, yes(70), t0);
    auto const step = a.machine.on_time(t0 + node_timeout);
    CHECK(step.give_up == nodes(1, 2, 3));
    CHECK(step.roll_back == node_set::all(5));
    CHECK_FALSE(step.done);
}

TEST_CASE("time gives up the nodes that have not confirmed")
{
    acquire a{3};
    (void)a.machine.start(t0);
    (void)a.machine.on_answer(0, yes(70), t0);
    (void)a.machine.on_answer(1, yes(90), t0);
    auto const step = a.machine.on_time(t0 + node_timeout);
    CHECK(step.give_up == nodes(0, 2));
    CHECK(step.roll_back == node_set::all(3));
}

TEST_CASE("a majority that is wrongly configured ends the acquire at once and says who and why")
{
    acquire a{3};
    (void)a.machine.start(t0);
    CHECK_FALSE(a.machine.on_answer(1, failed(node_error::no_right), t0).done);
    auto const step = a.machine.on_answer(2, failed(node_error::wrong_password), t0);
    CHECK(step.roll_back == node_set::all(3));
    REQUIRE(step.done);
    CHECK(step.done->error == holdfast::errc::misconfigured);
    CHECK(step.done->error == node_error::no_right);
    CHECK(step.done->node == 1);
}

TEST_CASE("a minority that is wrongly configured does not end the acquire")
{
    acquire a{3};
    (void)a.machine.start(t0);
    (void)a.machine.on_answer(0, failed(node_error::no_right), t0);
    auto const step = a.machine.on_answer(1, failed(node_error::loading), t0);
    CHECK(step.roll_back == node_set::all(3));
    CHECK_FALSE(step.done);
    CHECK(a.machine.unavailable_so_far() == true);
}

TEST_CASE("an outage in which a minority is wrongly configured is unavailable, and the cause is what may pass")
{
    auto const limit = t0 + 1s;
    acquire tries{3, {.once = true}};
    acquire waits{3, {.unavailable_at = limit}};
    for (auto* const one : {&tries, &waits}) {
        auto const now = one == &tries ? t0 : limit;
        (void)one->machine.start(now);
        (void)one->machine.on_answer(0, failed(node_error::no_right), now);
        auto const step = one->machine.on_answer(1, failed(node_error::loading), now);
        REQUIRE(step.done);
        CHECK(step.done->error == holdfast::errc::unavailable);
        CHECK(step.done->error == node_error::loading);
        CHECK(step.done->node == 1);
    }
}

TEST_CASE("an outage in which only a minority that is wrongly configured has failed is unavailable without a cause")
{
    acquire a{3, {.once = true}};
    (void)a.machine.start(t0);
    (void)a.machine.on_answer(2, failed(node_error::no_right), t0);
    (void)a.machine.on_answer(0, yes(70), t0);
    CHECK(a.machine.on_answer(1, yes(90), t0).confirm == nodes(0));
    auto const step = a.machine.on_answer(0, no(), t0);  // it has forgotten its grant
    REQUIRE(step.done);
    CHECK(step.done->error == holdfast::errc::unavailable);
    CHECK(step.done->node == max_nodes);
}

TEST_CASE("one attempt only: held elsewhere is timed_out")
{
    acquire one{1, {.once = true}};
    (void)one.machine.start(t0);
    auto const step = one.machine.on_answer(0, no(1s), t0);
    REQUIRE(step.done);
    CHECK(step.done->error == holdfast::errc::timed_out);
    CHECK_FALSE(step.watch);
    CHECK(one.machine.wake_at() == boot_clock::time_point::max());
}

TEST_CASE("one attempt only: with a minority down, too, a lock that is held elsewhere is timed_out and not unavailable")
{
    acquire three{3, {.once = true}};
    (void)three.machine.start(t0);
    (void)three.machine.on_answer(0, no(1s), t0);
    (void)three.machine.on_answer(1, unsent(), t0);
    auto const step = three.machine.on_answer(2, no(1s), t0);
    REQUIRE(step.done);
    CHECK(step.done->error == holdfast::errc::timed_out);
}

TEST_CASE("one attempt only: no majority that could be asked is unavailable, with the node and the cause")
{
    acquire three{3, {.once = true}};
    (void)three.machine.start(t0);
    (void)three.machine.on_answer(0, no(1s), t0);
    CHECK_FALSE(three.machine.on_answer(1, unsent(), t0).done);
    auto const step = three.machine.on_time(t0 + node_timeout);
    CHECK(step.give_up == nodes(2));
    REQUIRE(step.done);
    CHECK(step.done->error == holdfast::errc::unavailable);
    CHECK(step.done->node == 1);
    CHECK(step.done->error == node_error::cannot_connect);
    CHECK(step.roll_back == node_set::all(3));
}

TEST_CASE("one attempt that is to be decided is made again after a short pause if the votes were split")
{
    acquire five{5, {.once = true, .until_decided = true, .deadline = t0 + 1s}};
    (void)five.machine.start(t0);
    auto const others = GENERATE(2U, 3U);  // nodes that have voted for others; the last is down, if there is one
    for (unsigned node = 0; node < 2; ++node) (void)five.machine.on_answer(node, yes(), t0);
    quorum::acquire_step lost;
    for (unsigned node = 2; node < 2 + others; ++node) lost = five.machine.on_answer(node, no(1h), t0);
    if (others == 2) lost = five.machine.on_answer(4, unsent(), t0);
    CHECK_FALSE(lost.done);
    CHECK_FALSE(lost.watch);
    CHECK(lost.roll_back == node_set::all(5));
    auto const again = five.machine.wake_at();
    CHECK(again <= t0 + 500us);
    auto const step = five.machine.on_time(again);
    CHECK(step.new_token);
    CHECK(step.ask == node_set::all(5));
    auto const decided = five.first_answer(5, no(1h), again);
    REQUIRE(decided.done);
    CHECK(decided.done->error == errc::timed_out);
}

TEST_CASE("one attempt that is to be decided is over when a majority has been another's for some rounds")
{
    acquire five{5, {.once = true, .until_decided = true, .deadline = t0 + 1s}};
    auto now = t0;
    auto step = five.machine.start(now);
    int rounds = 0;
    for (; !step.done && rounds < 20; ++rounds) {
        for (unsigned node = 0; node < 5; ++node) step = five.machine.on_answer(node, node < 2 ? yes() : no(1h), now);
        if (step.done) break;
        now = five.machine.wake_at();
        step = five.machine.on_time(now);
    }
    REQUIRE(step.done);
    CHECK(step.done->error == errc::timed_out);
    CHECK(rounds > 2);
    CHECK(now < t0 + 1s);
}

TEST_CASE("one attempt that is to be decided hears all votes, as refusals may come before grants")
{
    acquire five{5, {.once = true, .until_decided = true, .deadline = t0 + 1s}};
    (void)five.machine.start(t0);
    CHECK_FALSE(five.first_answer(3, no(1h), t0).done);
    CHECK(five.machine.wake_at() == t0 + node_timeout);
    bool const votes = GENERATE(true, false);
    CHECK_FALSE(five.machine.on_answer(3, votes ? yes() : no(1h), t0).done);
    CHECK(five.machine.wake_at() == t0 + node_timeout);
    auto const step = five.machine.on_time(t0 + node_timeout);
    CHECK(step.roll_back == node_set::all(5));
    if (votes) {
        CHECK_FALSE(step.done);
        CHECK(five.machine.on_time(five.machine.wake_at()).new_token);
        return;
    }
    REQUIRE(step.done);
    CHECK(step.done->error == errc::timed_out);
}

TEST_CASE("one attempt that is to be decided is unavailable if it is not by the deadline, or no majority answers")
{
    acquire split{4, {.once = true, .until_decided = true, .deadline = t0 + 1s}};
    auto now = t0;
    auto step = split.machine.start(now);
    while (!step.done && now < t0 + 2s) {
        for (unsigned node = 0; node < 4 && !step.done; ++node)
            step = split.machine.on_answer(node, node < 2 ? yes() : no(1h), now);
        if (step.done) break;
        now = split.machine.wake_at();
        step = split.machine.on_time(now);
    }
    REQUIRE(step.done);
    CHECK(now == t0 + 1s);
    CHECK(step.done->error == errc::unavailable);
    acquire alone{5, {.once = true, .until_decided = true, .deadline = t0 + 1s}};
    (void)alone.machine.start(t0);
    (void)alone.machine.on_answer(0, yes(), t0);
    for (unsigned node = 1; node < 5; ++node) step = alone.machine.on_answer(node, unsent(), t0);
    REQUIRE(step.done);
    CHECK(step.done->error == errc::unavailable);
}

TEST_CASE("cancel while asking rolls back on every node")
{
    acquire a{5};
    (void)a.machine.start(t0);
    (void)a.machine.on_answer(0, yes(70), t0);
    auto const step = a.machine.cancel(t0 + 1ms);
    CHECK(step.roll_back == node_set::all(5));
    REQUIRE(step.done);
    CHECK(step.done->error == std::errc::operation_canceled);
    CHECK(a.machine.wake_at() == boot_clock::time_point::max());
}

TEST_CASE("cancel while confirming rolls back on every node")
{
    acquire a{3};
    (void)a.machine.start(t0);
    (void)a.machine.on_answer(0, yes(70), t0);
    (void)a.machine.on_answer(1, yes(90), t0);
    auto const step = a.machine.cancel(t0 + 1ms);
    CHECK(step.roll_back == node_set::all(3));
    REQUIRE(step.done);
    CHECK(step.done->error == std::errc::operation_canceled);
}

TEST_CASE("cancel while waiting has nothing left to roll back")
{
    acquire a{3};
    (void)a.machine.start(t0);
    for (unsigned node = 0; node < 2; ++node) (void)a.machine.on_answer(node, no(1s), t0);
    auto const step = a.machine.cancel(t0 + 1ms);
    CHECK(step.roll_back.empty());
    REQUIRE(step.done);
    CHECK(step.done->error == std::errc::operation_canceled);
    CHECK(step.done->node == max_nodes);
    CHECK(a.machine.wake_at() == boot_clock::time_point::max());
}
