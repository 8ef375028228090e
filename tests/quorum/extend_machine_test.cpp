// SPDX-License-Identifier: MIT
#include "machines.hpp"

#include <holdfast/quorum/extend_machine.hpp>

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::boot_clock;
using holdfast::quorum::extend_machine;
using holdfast::quorum::max_nodes;
using holdfast::quorum::node_set;

namespace {

constexpr auto ttl = 10'000ms;
constexpr auto valid_until = t0 + 10'000ms - 102ms;

extend_machine begun(unsigned n)
{
    extend_machine m{group_of(n), ttl};
    (void)m.start(t0);
    return m;
}

}  // namespace

TEST_CASE("an extend asks every node and waits one node timeout")
{
    extend_machine m{group_of(5), ttl};
    auto const step = m.start(t0);
    CHECK(step.ask == node_set::all(5));
    CHECK_FALSE(step.done);
    CHECK(m.wake_at() == t0 + node_timeout);
}

TEST_CASE("renewed: a majority said yes, validity counts from before the sending, not from the answer", "[lesson-19]")
{
    auto m = begun(5);
    (void)m.on_answer(4, no(), t0 + 10ms);
    (void)m.on_answer(0, yes(), t0 + 20ms);
    (void)m.on_answer(1, yes(), t0 + 30ms);
    REQUIRE(m.on_answer(2, yes(), t0 + 40ms).done);
    CHECK_FALSE(m.outcome().error);
    CHECK(m.outcome().valid_until == valid_until);
}

TEST_CASE("unknown: the majority said yes when the new lease was over already")
{
    auto in_time = begun(1);
    REQUIRE(in_time.on_answer(0, yes(), valid_until - 1ns).done);
    CHECK_FALSE(in_time.outcome().error);

    auto late = begun(1);
    REQUIRE(late.on_answer(0, yes(), valid_until).done);
    CHECK(late.outcome().error == holdfast::errc::outcome_unknown);
    CHECK(late.outcome().node == max_nodes);

    auto beside_a_failure = begun(3);
    (void)beside_a_failure.on_answer(0, failed(node_error::loading), t0);
    (void)beside_a_failure.on_answer(1, yes(), t0);
    REQUIRE(beside_a_failure.on_answer(2, yes(), valid_until).done);
    CHECK(beside_a_failure.outcome().error == holdfast::errc::outcome_unknown);
}

TEST_CASE("lost: so many nodes have not our token that no majority can have it", "[lesson-20]")
{
    auto m = begun(5);
    (void)m.on_answer(0, no(), t0);
    (void)m.on_answer(3, yes(), t0);
    (void)m.on_answer(1, no(), t0);
    REQUIRE(m.on_answer(2, no(), t0).done);
    CHECK(m.outcome().error == holdfast::errc::lease_lost);
}

TEST_CASE("a lease is not lost because nodes that failed leave no majority")
{
    auto m = begun(5);
    (void)m.on_answer(0, no(), t0);
    (void)m.on_answer(1, no(), t0);
    CHECK(m.on_answer(2, lost(), t0).ask == nodes(2));
    CHECK_FALSE(m.on_answer(2, lost(), t0).done);  // two more that said no would show that it is lost
    CHECK_FALSE(m.on_answer(3, yes(), t0).done);
    REQUIRE(m.on_answer(4, yes(), t0).done);
    CHECK(m.outcome().error == holdfast::errc::outcome_unknown);
    CHECK(m.outcome().node == 2);
}

TEST_CASE("lost: the last of the refusals come when it is known already that no majority is left")
{
    auto m = begun(5);
    (void)m.on_answer(0, unsent(), t0);
    (void)m.on_answer(1, unsent(), t0);
    CHECK_FALSE(m.on_answer(2, no(), t0).done);
    CHECK_FALSE(m.on_answer(3, no(), t0).done);
    REQUIRE(m.on_answer(4, no(), t0).done);
    CHECK(m.outcome().error == holdfast::errc::lease_lost);
}

TEST_CASE("an extend that has failed waits for refusals no longer than for any answer")
{
    auto m = begun(5);
    (void)m.on_answer(0, unsent(), t0);
    (void)m.on_answer(1, unsent(), t0);
    CHECK_FALSE(m.on_answer(2, no(), t0).done);
    REQUIRE(m.on_time(t0 + node_timeout).done);
    CHECK(m.outcome().error == holdfast::errc::unavailable);
}

TEST_CASE("refused: a node answered with an error, which is the outcome")
{
    auto m = begun(3);
    (void)m.on_answer(0, yes(), t0);
    (void)m.on_answer(1, failed(node_error::read_only), t0);
    REQUIRE(m.on_answer(2, failed(node_error::loading), t0).done);
    CHECK(m.outcome().error == node_error::read_only);
    CHECK(m.outcome().error == holdfast::errc::unavailable);
    CHECK(m.outcome().node == 1);
}

TEST_CASE("refused: a right that is missing is the outcome if no other node failed")
{
    auto most = begun(3);
    (void)most.on_answer(2, failed(node_error::no_right), t0);
    REQUIRE(most.on_answer(1, failed(node_error::no_right), t0).done);
    CHECK(most.outcome().error == holdfast::errc::misconfigured);
    CHECK(most.outcome().node == 1);

    auto only = begun(3);
    (void)only.on_answer(0, yes(), t0);
    (void)only.on_answer(1, no(), t0);
    REQUIRE(only.on_answer(2, failed(node_error::no_right), t0).done);
    CHECK(only.outcome().error == holdfast::errc::misconfigured);
    CHECK(only.outcome().node == 2);
}

TEST_CASE("refused: a right that is missing does not hide what may pass")
{
    auto m = begun(3);
    (void)m.on_answer(0, failed(node_error::no_right), t0);
    REQUIRE(m.on_answer(1, unsent(), t0).done);
    CHECK(m.outcome().error == holdfast::errc::unavailable);
    CHECK(m.outcome().node == 1);
}

TEST_CASE("unknown: an answer is missing that may have made a majority, whatever failed on the others")
{
    auto const why = GENERATE(node_error::no_right, node_error::loading);
    auto m = begun(3);
    (void)m.on_answer(0, lost(), t0);
    (void)m.on_answer(0, lost(), t0);
    REQUIRE(m.on_answer(2, failed(why), t0).done);
    CHECK(m.outcome().error == holdfast::errc::outcome_unknown);
}

TEST_CASE("unknown: answers are missing")
{
    auto m = begun(3);
    (void)m.on_answer(1, yes(), t0);
    auto const step = m.on_time(t0 + node_timeout);
    CHECK(step.give_up == nodes(0, 2));
    REQUIRE(step.done);
    CHECK(m.outcome().error == holdfast::errc::outcome_unknown);
    CHECK(m.outcome().node == 0);
}

TEST_CASE("unknown: the connection was lost twice")
{
    auto m = begun(1);
    CHECK(m.on_answer(0, lost(), t0).ask == nodes(0));
    REQUIRE(m.on_answer(0, lost(), t0).done);
    CHECK(m.outcome().error == holdfast::errc::outcome_unknown);
}

TEST_CASE("an extend that is asked again after a lost connection may be renewed")
{
    auto m = begun(1);
    (void)m.on_answer(0, lost(), t0);
    REQUIRE(m.on_answer(0, yes(), t0 + 30ms).done);
    CHECK_FALSE(m.outcome().error);
    CHECK(m.outcome().valid_until == valid_until);
}

TEST_CASE("an extend that is asked again and refused is lost: extending twice would have said yes twice")
{
    auto m = begun(1);
    (void)m.on_answer(0, lost(), t0);
    REQUIRE(m.on_answer(0, no(), t0 + 30ms).done);
    CHECK(m.outcome().error == holdfast::errc::lease_lost);
}
