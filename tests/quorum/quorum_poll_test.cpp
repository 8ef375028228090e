// SPDX-License-Identifier: MIT
#include "machines.hpp"

#include <holdfast/quorum/quorum_poll.hpp>

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::boot_clock;
using holdfast::quorum::max_nodes;
using holdfast::quorum::node_set;
using holdfast::quorum::quorum_poll;

namespace {

quorum_poll begun(unsigned n)
{
    quorum_poll b{group_of(n)};
    (void)b.start(t0);
    return b;
}

}  // namespace

TEST_CASE("a poll asks every node and waits one node timeout")
{
    quorum_poll b{group_of(5)};
    CHECK(b.wake_at() == boot_clock::time_point::max());
    auto const step = b.start(t0);
    CHECK(step.ask == node_set::all(5));
    CHECK(step.give_up.empty());
    CHECK_FALSE(step.done);
    CHECK(b.wake_at() == t0 + node_timeout);
    CHECK_FALSE(b.carried());
    CHECK_FALSE(b.rejected());
}

TEST_CASE("a poll is carried as soon as a majority said yes")
{
    auto b = begun(5);
    CHECK_FALSE(b.on_answer(0, no(), t0).done);
    CHECK_FALSE(b.on_answer(1, failed(node_error::loading), t0).done);
    CHECK_FALSE(b.on_answer(2, yes(), t0).done);
    CHECK_FALSE(b.on_answer(3, yes(), t0).done);
    CHECK(b.on_answer(4, yes(), t0).done);
    CHECK(b.carried());
    CHECK_FALSE(b.rejected());
}

TEST_CASE("a poll is rejected as soon as so many said no that no majority can say yes", "[lesson-20]")
{
    auto five = begun(5);
    CHECK_FALSE(five.on_answer(0, no(), t0).done);
    CHECK_FALSE(five.on_answer(1, no(), t0).done);
    CHECK_FALSE(five.rejected());
    CHECK(five.on_answer(2, no(), t0).done);
    CHECK(five.rejected());

    auto four = begun(4);
    CHECK_FALSE(four.on_answer(0, no(), t0).done);
    CHECK(four.on_answer(1, no(), t0).done);
    CHECK(four.rejected());
}

TEST_CASE("a poll that failures decide is neither carried nor rejected")
{
    auto b = begun(3);
    CHECK_FALSE(b.on_answer(0, no(), t0).done);
    CHECK(b.on_answer(1, failed(node_error::loading), t0).done);
    CHECK_FALSE(b.carried());
    CHECK_FALSE(b.rejected());
    CHECK(b.why().error == node_error::loading);
    CHECK(b.why().node == 1);
}

TEST_CASE("a node whose answer is unknown is asked again, once")
{
    auto const why = GENERATE(node_error::connection_lost, node_error::unreadable);
    auto b = begun(3);
    auto const again = b.on_answer(2, lost(why), t0);
    CHECK(again.ask == nodes(2));
    CHECK_FALSE(again.done);
    CHECK_FALSE(b.on_answer(0, yes(), t0).done);
    auto const last = b.on_answer(2, lost(why), t0);
    CHECK(last.ask.empty());
    CHECK_FALSE(last.done);
    CHECK(b.why().error == why);
    CHECK(b.why().unknown);
    CHECK(b.on_answer(1, yes(), t0).done);
    CHECK(b.carried());
}

TEST_CASE("a node that says no when it is asked again may have said yes before")
{
    auto b = begun(1);
    (void)b.on_answer(0, lost(), t0);
    CHECK_FALSE(b.doubtful());
    CHECK(b.on_answer(0, no(), t0).done);
    CHECK(b.rejected());
    CHECK(b.doubtful());

    auto asked_once = begun(1);
    (void)asked_once.on_answer(0, no(), t0);
    CHECK_FALSE(asked_once.doubtful());

    auto yes_at_last = begun(1);
    (void)yes_at_last.on_answer(0, lost(), t0);
    (void)yes_at_last.on_answer(0, yes(), t0);
    CHECK(yes_at_last.carried());
    CHECK_FALSE(yes_at_last.doubtful());
}

TEST_CASE("time fails the nodes that did not answer, and ends the poll")
{
    auto b = begun(5);
    (void)b.on_answer(1, yes(), t0);
    (void)b.on_answer(3, yes(), t0);
    auto const step = b.on_time(t0 + node_timeout);
    CHECK(step.give_up == nodes(0, 2, 4));
    CHECK(step.done);
    CHECK_FALSE(b.carried());
    CHECK_FALSE(b.rejected());
    CHECK(b.why().error == node_error::overdue);
    CHECK(b.why().node == 0);
}

TEST_CASE("time also fails a node that was asked again")
{
    auto b = begun(1);
    (void)b.on_answer(0, lost(), t0);
    CHECK(b.on_time(t0 + node_timeout).give_up == nodes(0));
    CHECK(b.why().error == node_error::overdue);
}

TEST_CASE("the error of a poll is that of the first node, but a wrongly configured node comes after the others")
{
    auto b = begun(5);
    CHECK_FALSE(b.why().error);
    CHECK(b.why().node == max_nodes);
    (void)b.on_answer(1, failed(node_error::no_right), t0);
    CHECK(b.why().error == node_error::no_right);
    CHECK(b.why().node == 1);
    (void)b.on_answer(0, failed(node_error::no_scripts), t0);
    CHECK(b.why().error == node_error::no_scripts);
    CHECK(b.why().node == 0);
    (void)b.on_answer(4, failed(node_error::loading), t0);
    CHECK(b.why().error == node_error::loading);
    CHECK(b.why().node == 4);
    (void)b.on_answer(3, failed(node_error::busy), t0);
    (void)b.on_time(t0 + node_timeout);
    CHECK(b.why().error == node_error::busy);
    CHECK(b.why().node == 3);
}

TEST_CASE("an error of which a poll is certain comes before a missing answer")
{
    auto b = begun(3);
    (void)b.on_answer(2, failed(node_error::loading), t0);
    (void)b.on_time(t0 + node_timeout);
    CHECK(b.why().error == node_error::loading);
    CHECK(b.why().node == 2);
    CHECK_FALSE(b.why().unknown);
}

TEST_CASE("a node that was not reached, or answered with an error, is not asked again, and has not applied it")
{
    for (auto const& bad : {unsent(), failed(node_error::loading), failed(node_error::no_right)}) {
        auto b = begun(1);
        auto const step = b.on_answer(0, bad, t0);
        CHECK(step.ask.empty());
        CHECK(step.done);
        CHECK_FALSE(b.may_be_carried());
        CHECK_FALSE(b.why().unknown);
    }
}
