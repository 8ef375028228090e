// SPDX-License-Identifier: MIT
#include "machines.hpp"

#include <holdfast/quorum/acquire_round.hpp>

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::quorum::acquire_round;
using holdfast::quorum::max_nodes;

namespace {

constexpr auto ttl = 10'000ms;

acquire_round round_of(unsigned nodes)
{
    acquire_round r{group_of(nodes), ttl};
    r.begin(t0);
    return r;
}

}  // namespace

TEST_CASE("a round that was just begun is neither won nor lost")
{
    for (unsigned n = 1; n <= max_nodes; ++n) {
        auto const r = round_of(n);
        CHECK_FALSE(r.won());
        CHECK_FALSE(r.lost());
        CHECK_FALSE(r.confirming());
        CHECK_FALSE(r.asked());
        CHECK(r.grants() == 0);
    }
}

TEST_CASE("a round that is begun anew knows nothing of the one before, and its lease counts from then on")
{
    for (unsigned n = 1; n <= max_nodes; ++n) {
        auto r = round_of(n);
        for (unsigned node = 0; node < n; ++node) (void)r.on_answer(node, node % 2 == 0 ? yes(70 + node) : lost());
        auto const until = r.validity();
        r.begin(t0 + 1s);
        CHECK_FALSE(r.won());
        CHECK_FALSE(r.lost());
        CHECK_FALSE(r.confirming());
        CHECK_FALSE(r.asked());
        CHECK(r.grants() == 0);
        CHECK(r.fence() == 0);
        CHECK(r.validity() == until + 1s);
        for (unsigned node = 0; node < n; ++node) CHECK(r.on_answer(node, lost()).ask.has(node));
    }
}

TEST_CASE("a majority that grants the same fence wins the round with that fence and asks for nothing more")
{
    auto r = round_of(5);
    for (unsigned node = 0; node < 2; ++node) {
        auto const next = r.on_answer(node, yes(70));
        CHECK(next.ask.empty());
        CHECK(next.confirm.empty());
        CHECK_FALSE(r.won());
    }
    CHECK(r.on_answer(4, yes(70)).confirm.empty());
    CHECK(r.won());
    CHECK(r.fence() == 70);
    CHECK(r.grants() == 3);
}

TEST_CASE("where fences differ the greatest is written back to those below it and has to be confirmed by a majority")
{
    auto r = round_of(5);
    (void)r.on_answer(0, yes(70));
    (void)r.on_answer(1, yes(90));
    CHECK(r.on_answer(2, yes(80)).confirm == nodes(0, 2));
    CHECK(r.confirming());
    CHECK(r.fence() == 90);
    CHECK_FALSE(r.won());
    CHECK(r.on_answer(2, yes()).confirm.empty());
    CHECK_FALSE(r.won());
    (void)r.on_answer(0, yes());
    CHECK(r.won());
    CHECK(r.fence() == 90);
}

TEST_CASE("a straggler below the settled fence is asked to confirm, one that is not below counts at once")
{
    auto r = round_of(5);
    (void)r.on_answer(0, yes(70));
    (void)r.on_answer(1, yes(90));
    (void)r.on_answer(2, yes(70));
    CHECK(r.on_answer(3, yes(80)).confirm == nodes(3));
    CHECK_FALSE(r.won());
    (void)r.on_answer(3, yes());
    CHECK_FALSE(r.won());
    CHECK(r.on_answer(4, yes(95)).confirm.empty());
    CHECK(r.won());
    CHECK(r.fence() == 90);
}

TEST_CASE("a confirm that is refused or fails takes the node's vote back")
{
    for (auto const& bad : {no(), failed(node_error::loading), lost()}) {
        auto r = round_of(3);
        (void)r.on_answer(0, yes(70));
        CHECK(r.on_answer(1, yes(90)).confirm == nodes(0));
        auto const next = r.on_answer(0, bad);
        CHECK(next.ask.empty());
        CHECK(next.confirm.empty());
        CHECK_FALSE(r.lost());
        (void)r.on_answer(2, no());
        CHECK(r.lost());
    }
}

TEST_CASE("if a node refuses to confirm a fence, its clock and those of who granted it are in doubt")
{
    auto r = round_of(5);
    (void)r.on_answer(0, yes(1000));
    (void)r.on_answer(1, yes(70));
    (void)r.on_answer(2, yes(70));
    CHECK(r.on_answer(1, no()).doubt == nodes(0, 1));
    CHECK(r.on_answer(2, failed(node_error::loading)).doubt.empty());
}

TEST_CASE("a node whose connection was lost, or whose answer was none, is asked once more, and only once")
{
    auto const why = GENERATE(node_error::connection_lost, node_error::unreadable);
    auto r = round_of(3);
    CHECK(r.on_answer(1, lost(why)).ask == nodes(1));
    CHECK(r.on_answer(1, lost(why)).ask.empty());
    CHECK(r.why().error == why);
    CHECK_FALSE(r.lost());
    CHECK(r.on_answer(2, lost(why)).ask == nodes(2));
    CHECK(r.on_answer(2, yes(70)).ask.empty());
    CHECK(r.on_answer(0, yes(70)).ask.empty());
    CHECK(r.won());
}

TEST_CASE("a node that answered with an error, or was not reached, is not asked again")
{
    for (auto const& bad : {unsent(), failed(node_error::loading), failed(node_error::no_right)}) {
        auto r = round_of(1);
        CHECK(r.on_answer(0, bad).ask.empty());
        CHECK(r.lost());
    }
}

TEST_CASE("a round is lost exactly when no majority is possible any more")
{
    auto r = round_of(5);
    (void)r.on_answer(0, yes(70));
    (void)r.on_answer(1, no());
    (void)r.on_answer(2, failed(node_error::loading));
    CHECK_FALSE(r.lost());
    (void)r.on_answer(3, no());
    CHECK(r.lost());
    CHECK_FALSE(r.won());
}

TEST_CASE("a round that cannot be won goes on until it is known whether a majority could be asked")
{
    auto r = round_of(3);
    (void)r.on_answer(0, no());
    (void)r.on_answer(1, failed(node_error::loading));
    CHECK_FALSE(r.lost());

    auto answered = r;
    (void)answered.on_answer(2, no());
    CHECK(answered.lost());
    CHECK(answered.asked());

    auto silent = r;
    CHECK(silent.time_out() == nodes(2));
    CHECK(silent.lost());
    CHECK_FALSE(silent.asked());

    auto down = round_of(3);
    (void)down.on_answer(0, failed(node_error::loading));
    (void)down.on_answer(1, failed(node_error::loading));
    CHECK(down.lost());
}

TEST_CASE("time fails what was asked and not answered, and leaves grants as they are")
{
    auto r = round_of(5);
    (void)r.on_answer(0, yes(70));
    (void)r.on_answer(3, no());
    CHECK(r.time_out() == nodes(1, 2, 4));
    CHECK(r.lost());
    CHECK(r.grants() == 1);
    CHECK(r.why().error == node_error::overdue);
    CHECK(r.why().node == 1);
    CHECK(r.time_out().empty());
}

TEST_CASE("time fails a grant whose confirmation is under way")
{
    auto r = round_of(3);
    (void)r.on_answer(0, yes(70));
    (void)r.on_answer(2, yes(90));
    CHECK(r.time_out() == nodes(0, 1));
    CHECK(r.lost());
    CHECK(r.grants() == 1);
}

TEST_CASE("validity is the ttl from before the sending, less drift, and is used up to a margin before its end")
{
    auto const r = round_of(3);
    CHECK(r.validity() == t0 + 10'000ms - 102ms);
    CHECK(r.usable(t0 + 10'000ms - 204ms - 1ns));
    CHECK_FALSE(r.usable(t0 + 10'000ms - 204ms));
}

TEST_CASE("a majority was asked when it voted for us or for others, errors are no votes")
{
    auto r = round_of(5);
    (void)r.on_answer(0, yes(70));
    (void)r.on_answer(1, no());
    (void)r.on_answer(2, failed(node_error::loading));
    CHECK_FALSE(r.asked());
    (void)r.on_answer(3, no());
    CHECK(r.asked());
    CHECK(r.grants() == 1);
}

TEST_CASE("only a lone node that was asked once is believed that the lock is not ours")
{
    auto one = round_of(1);
    CHECK_FALSE(one.certainly_held());
    (void)one.on_answer(0, no());
    CHECK(one.certainly_held());

    auto asked_twice = round_of(1);
    (void)asked_twice.on_answer(0, lost());
    (void)asked_twice.on_answer(0, no());
    CHECK_FALSE(asked_twice.certainly_held());

    auto three = round_of(3);
    for (unsigned node = 0; node < 3; ++node) (void)three.on_answer(node, no());
    CHECK(three.lost());
    CHECK_FALSE(three.certainly_held());
}

TEST_CASE("a majority is free when the middle one of the keys in the way has expired")
{
    auto r = round_of(5);
    (void)r.on_answer(0, no(700ms));
    (void)r.on_answer(1, no(300ms));
    (void)r.on_answer(2, no(500ms));
    (void)r.on_answer(3, no(100ms));
    (void)r.on_answer(4, no(900ms));
    CHECK(r.until_majority_expires(1s) == 501ms);
}

TEST_CASE("a key that does not expire, or a node that did not say, counts as the time given for unknown")
{
    auto r = round_of(3);
    (void)r.on_answer(0, no(5ms));
    (void)r.on_answer(1, no(holdfast::quorum::unknown_time_left));
    (void)r.on_answer(2, failed(node_error::loading));
    CHECK(r.until_majority_expires(1s) == 1s);
}

TEST_CASE("a key of another program that expires in a million years is waited for as for a very long time")
{
    auto r = round_of(1);
    (void)r.on_answer(0, no(std::chrono::milliseconds{9'000'000'000'000'000}));
    CHECK(r.until_majority_expires(1s) >= 24h);
}

TEST_CASE("the cause of a lost round is a failure that may pass, or a wrong configuration that leaves no majority")
{
    auto r = round_of(5);
    CHECK(r.why().node == max_nodes);
    CHECK_FALSE(r.why().error);
    (void)r.on_answer(0, no());
    (void)r.on_answer(1, failed(node_error::loading));
    (void)r.on_answer(2, failed(node_error::no_right));
    (void)r.on_answer(3, failed(node_error::wrong_password));
    CHECK(r.why().node == 1);
    CHECK(r.why().error == node_error::loading);
    CHECK_FALSE(r.hopeless());
    (void)r.on_answer(4, failed(node_error::no_scripts));
    CHECK(r.why().node == 2);
    CHECK(r.why().error == node_error::no_right);
    CHECK(r.hopeless());
}

TEST_CASE("a lease that has no more than the stop margin left is no use")
{
    acquire_round r{group_of(1), ttl, 4s};
    r.begin(t0);
    (void)r.on_answer(0, yes(70));
    REQUIRE(r.won());
    auto const last = r.validity() - holdfast::announcement_margin(ttl) - 4s;
    CHECK(r.usable(last - 1ns));
    CHECK_FALSE(r.usable(last));
    CHECK(round_of(1).usable(last));
}
