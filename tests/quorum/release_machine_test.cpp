// SPDX-License-Identifier: MIT
#include "machines.hpp"

#include <holdfast/quorum/release_machine.hpp>

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::quorum::node_set;
using holdfast::quorum::release_machine;

namespace {

release_machine begun(unsigned n)
{
    release_machine m{group_of(n)};
    (void)m.start(t0);
    return m;
}

}  // namespace

TEST_CASE("a release asks every node and waits one node timeout")
{
    release_machine m{group_of(5)};
    auto const step = m.start(t0);
    CHECK(step.ask == node_set::all(5));
    CHECK_FALSE(step.done);
    CHECK(m.wake_at() == t0 + node_timeout);
}

TEST_CASE("a release is done without error as soon as a majority freed the lock")
{
    auto m = begun(5);
    CHECK_FALSE(m.on_answer(0, yes(), t0).done);
    CHECK_FALSE(m.on_answer(4, no(), t0).done);
    CHECK_FALSE(m.on_answer(1, yes(), t0).done);
    REQUIRE(m.on_answer(2, yes(), t0).done);
    CHECK_FALSE(m.outcome());
}

TEST_CASE("a release that so many nodes refuse that no majority was ours is not_owner")
{
    auto m = begun(5);
    (void)m.on_answer(0, no(), t0);
    (void)m.on_answer(1, no(), t0);
    REQUIRE(m.on_answer(2, no(), t0).done);
    CHECK(m.outcome() == holdfast::errc::not_owner);
}

TEST_CASE("a refusal behind a release whose answer was lost is no error: one of the two freed the lock, or it was free")
{
    auto m = begun(1);
    CHECK(m.on_answer(0, lost(), t0).ask == nodes(0));
    REQUIRE(m.on_answer(0, no(), t0).done);
    CHECK_FALSE(m.outcome());
}

TEST_CASE("a release that a node answers with an error ends with that error")
{
    auto m = begun(3);
    (void)m.on_answer(0, yes(), t0);
    (void)m.on_answer(1, failed(node_error::loading), t0);
    REQUIRE(m.on_answer(2, failed(node_error::busy), t0).done);
    CHECK(m.outcome() == node_error::loading);
    CHECK(m.outcome() == holdfast::errc::unavailable);
}

TEST_CASE("a release that refusals and missing answers leave open is outcome_unknown, whichever came first")
{
    auto m = begun(5);  // two may have freed it, one certainly has not
    (void)m.on_answer(0, yes(), t0);
    (void)m.on_answer(1, unsent(), t0);
    (void)m.on_answer(2, unsent(), t0);
    REQUIRE(m.on_time(t0 + node_timeout).done);
    CHECK(m.outcome() == holdfast::errc::outcome_unknown);

    auto twice = begun(3);
    (void)twice.on_answer(0, yes(), t0);
    (void)twice.on_answer(1, lost(), t0);
    (void)twice.on_answer(1, lost(), t0);
    REQUIRE(twice.on_answer(2, unsent(), t0).done);
    CHECK(twice.outcome() == holdfast::errc::outcome_unknown);
}

TEST_CASE("a release that certainly no majority has carried out says why")
{
    auto m = begun(5);
    (void)m.on_answer(0, unsent(), t0);
    (void)m.on_answer(1, unsent(), t0);
    (void)m.on_answer(2, lost(), t0);
    (void)m.on_answer(2, lost(), t0);
    (void)m.on_answer(3, unsent(), t0);
    CHECK(m.outcome() == node_error::cannot_connect);

    auto lost_first = begun(5);
    (void)lost_first.on_answer(2, lost(), t0);
    (void)lost_first.on_answer(2, lost(), t0);
    for (unsigned const node : {0U, 1U, 3U}) (void)lost_first.on_answer(node, unsent(), t0);
    CHECK(lost_first.outcome() == holdfast::errc::unavailable);
}

TEST_CASE("a right that is missing is the outcome if no other node failed")
{
    auto most = begun(3);
    (void)most.on_answer(0, failed(node_error::no_right), t0);
    REQUIRE(most.on_answer(2, failed(node_error::no_right), t0).done);
    CHECK(most.outcome() == holdfast::errc::misconfigured);

    auto only = begun(3);
    (void)only.on_answer(0, no(), t0);
    REQUIRE(only.on_answer(2, failed(node_error::no_right), t0).done);
    CHECK(only.outcome() == holdfast::errc::misconfigured);
    CHECK(only.failed_node() == 2);
}

TEST_CASE("a right that is missing does not hide what may pass, or that answers are missing")
{
    auto refused = begun(3);
    (void)refused.on_answer(0, failed(node_error::no_right), t0);
    REQUIRE(refused.on_answer(1, unsent(), t0).done);
    CHECK(refused.outcome() == holdfast::errc::unavailable);
    CHECK(refused.failed_node() == 1);

    auto silent = begun(3);
    (void)silent.on_answer(0, lost(), t0);
    (void)silent.on_answer(0, lost(), t0);
    REQUIRE(silent.on_answer(1, failed(node_error::no_right), t0).done);
    CHECK(silent.outcome() == holdfast::errc::outcome_unknown);
}

TEST_CASE("a release without enough answers is outcome_unknown")
{
    auto m = begun(3);
    (void)m.on_answer(1, yes(), t0);
    auto const step = m.on_time(t0 + node_timeout);
    CHECK(step.give_up == nodes(0, 2));
    REQUIRE(step.done);
    CHECK(m.outcome() == holdfast::errc::outcome_unknown);
}

TEST_CASE("a release whose connection was lost twice is outcome_unknown")
{
    auto m = begun(1);
    (void)m.on_answer(0, lost(), t0);
    REQUIRE(m.on_answer(0, lost(), t0).done);
    CHECK(m.outcome() == holdfast::errc::outcome_unknown);
}

TEST_CASE("a release knows that others wait where a node told somebody")
{
    auto m = begun(3);
    (void)m.on_answer(0, yes(), t0);
    CHECK_FALSE(m.others_wait());
    REQUIRE(m.on_answer(2, {.what = holdfast::quorum::answer::kind::applied, .others_wait = true}, t0).done);
    CHECK(m.others_wait());
    CHECK_FALSE(m.outcome());
}
