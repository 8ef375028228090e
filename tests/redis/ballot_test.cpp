// SPDX-License-Identifier: MIT
#include "machines.hpp"

#include <holdfast/redis/ballot.hpp>

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::boot_clock;
using holdfast::redis::ballot;
using holdfast::redis::errc;
using holdfast::redis::max_nodes;
using holdfast::redis::node_set;

namespace {

ballot begun(unsigned n)
{
    ballot b{n, node_timeout};
    (void)b.start(t0);
    return b;
}

}  // namespace

TEST_CASE("a ballot asks every node and waits one node timeout")
{
    ballot b{5, node_timeout};
    CHECK(b.wake_at() == boot_clock::time_point::max());
    auto const step = b.start(t0);
    CHECK(step.ask == node_set::all(5));
    CHECK(step.give_up.empty());
    CHECK_FALSE(step.done);
    CHECK(b.wake_at() == t0 + node_timeout);
    CHECK_FALSE(b.carried());
    CHECK_FALSE(b.rejected());
}

TEST_CASE("a ballot is carried as soon as a majority said yes")
{
    auto b = begun(5);
    CHECK_FALSE(b.on_answer(0, no(), t0).done);
    CHECK_FALSE(b.on_answer(1, failed(errc::loading), t0).done);
    CHECK_FALSE(b.on_answer(2, yes(), t0).done);
    CHECK_FALSE(b.on_answer(3, yes(), t0).done);
    CHECK(b.on_answer(4, yes(), t0).done);
    CHECK(b.carried());
    CHECK_FALSE(b.rejected());
}

TEST_CASE("a ballot is rejected as soon as so many said no that no majority can say yes")
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

TEST_CASE("a ballot that failures decide is neither carried nor rejected")
{
    auto b = begun(3);
    CHECK_FALSE(b.on_answer(0, no(), t0).done);
    CHECK(b.on_answer(1, failed(errc::loading), t0).done);
    CHECK_FALSE(b.carried());
    CHECK_FALSE(b.rejected());
    CHECK(b.error() == errc::loading);
    CHECK(b.failed_node() == 1);
}

TEST_CASE("a node whose connection was lost before its answer is asked again, once")
{
    auto b = begun(3);
    auto const again = b.on_answer(2, failed(errc::connection_lost), t0);
    CHECK(again.ask == nodes(2));
    CHECK_FALSE(again.done);
    CHECK_FALSE(b.on_answer(0, yes(), t0).done);
    auto const last = b.on_answer(2, failed(errc::connection_lost), t0);
    CHECK(last.ask.empty());
    CHECK_FALSE(last.done);
    CHECK(b.error() == errc::connection_lost);
    CHECK(b.on_answer(1, yes(), t0).done);
    CHECK(b.carried());
}

TEST_CASE("a node that says no when it is asked again may have said yes before")
{
    auto b = begun(1);
    (void)b.on_answer(0, failed(errc::connection_lost), t0);
    CHECK_FALSE(b.doubtful());
    CHECK(b.on_answer(0, no(), t0).done);
    CHECK(b.rejected());
    CHECK(b.doubtful());

    auto asked_once = begun(1);
    (void)asked_once.on_answer(0, no(), t0);
    CHECK_FALSE(asked_once.doubtful());

    auto yes_at_last = begun(1);
    (void)yes_at_last.on_answer(0, failed(errc::connection_lost), t0);
    (void)yes_at_last.on_answer(0, yes(), t0);
    CHECK(yes_at_last.carried());
    CHECK_FALSE(yes_at_last.doubtful());
}

TEST_CASE("time fails the nodes that did not answer, and ends the ballot")
{
    auto b = begun(5);
    (void)b.on_answer(1, yes(), t0);
    (void)b.on_answer(3, yes(), t0);
    auto const step = b.on_time(t0 + node_timeout);
    CHECK(step.give_up == nodes(0, 2, 4));
    CHECK(step.done);
    CHECK_FALSE(b.carried());
    CHECK_FALSE(b.rejected());
    CHECK(b.error() == errc::no_answer);
    CHECK(b.failed_node() == 0);
}

TEST_CASE("time also fails a node that was asked again")
{
    auto b = begun(1);
    (void)b.on_answer(0, failed(errc::connection_lost), t0);
    CHECK(b.on_time(t0 + node_timeout).give_up == nodes(0));
    CHECK(b.error() == errc::no_answer);
}

TEST_CASE("the error of a ballot is the first, but that of a wrongly configured node before the others")
{
    auto b = begun(5);
    CHECK_FALSE(b.error());
    CHECK(b.failed_node() == max_nodes);
    (void)b.on_answer(4, failed(errc::loading), t0);
    (void)b.on_answer(3, failed(errc::busy), t0);
    CHECK(b.error() == errc::loading);
    CHECK(b.failed_node() == 4);
    (void)b.on_answer(2, failed(errc::not_permitted), t0);
    CHECK(b.error() == errc::not_permitted);
    CHECK(b.failed_node() == 2);
    (void)b.on_answer(1, failed(errc::no_script), t0);
    (void)b.on_time(t0 + node_timeout);
    CHECK(b.error() == errc::not_permitted);
    CHECK(b.failed_node() == 2);
}
