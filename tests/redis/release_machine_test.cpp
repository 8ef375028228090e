// SPDX-License-Identifier: MIT
#include "machines.hpp"

#include <holdfast/redis/release_machine.hpp>

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::redis::errc;
using holdfast::redis::node_set;
using holdfast::redis::release_machine;

namespace {

release_machine begun(unsigned n)
{
    release_machine m{n, node_timeout};
    (void)m.start(t0);
    return m;
}

}  // namespace

TEST_CASE("a release asks every node and waits one node timeout")
{
    release_machine m{5, node_timeout};
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
    CHECK(m.on_answer(0, failed(errc::connection_lost), t0).ask == nodes(0));
    REQUIRE(m.on_answer(0, no(), t0).done);
    CHECK_FALSE(m.outcome());
}

TEST_CASE("a release that a node answers with an error ends with that error")
{
    auto m = begun(3);
    (void)m.on_answer(0, yes(), t0);
    (void)m.on_answer(1, failed(errc::loading), t0);
    REQUIRE(m.on_answer(2, failed(errc::busy), t0).done);
    CHECK(m.outcome() == errc::loading);
    CHECK(m.outcome() == holdfast::errc::unavailable);
}

TEST_CASE("a release that refusals and missing answers leave open is outcome_unknown, whichever came first")
{
    auto m = begun(5);  // two may have freed it, one certainly has not
    (void)m.on_answer(0, yes(), t0);
    (void)m.on_answer(1, failed(errc::cannot_connect), t0);
    (void)m.on_answer(2, failed(errc::cannot_connect), t0);
    REQUIRE(m.on_time(t0 + node_timeout).done);
    CHECK(m.outcome() == holdfast::errc::outcome_unknown);

    auto lost = begun(3);
    (void)lost.on_answer(0, yes(), t0);
    (void)lost.on_answer(1, failed(errc::connection_lost), t0);
    (void)lost.on_answer(1, failed(errc::connection_lost), t0);
    REQUIRE(lost.on_answer(2, failed(errc::cannot_connect), t0).done);
    CHECK(lost.outcome() == holdfast::errc::outcome_unknown);
}

TEST_CASE("a release that certainly no majority has carried out says why")
{
    auto m = begun(5);
    (void)m.on_answer(0, failed(errc::cannot_connect), t0);
    (void)m.on_answer(1, failed(errc::cannot_connect), t0);
    (void)m.on_answer(2, failed(errc::connection_lost), t0);
    (void)m.on_answer(2, failed(errc::connection_lost), t0);
    (void)m.on_answer(3, failed(errc::cannot_connect), t0);
    CHECK(m.outcome() == errc::cannot_connect);

    auto lost_first = begun(5);
    (void)lost_first.on_answer(2, failed(errc::connection_lost), t0);
    (void)lost_first.on_answer(2, failed(errc::connection_lost), t0);
    for (unsigned const node : {0U, 1U, 3U}) (void)lost_first.on_answer(node, failed(errc::cannot_connect), t0);
    CHECK(lost_first.outcome() == holdfast::errc::unavailable);
}

TEST_CASE("a right that is missing is the outcome, whatever else failed")
{
    auto m = begun(3);
    (void)m.on_answer(0, failed(errc::no_answer), t0);
    REQUIRE(m.on_answer(1, failed(errc::not_permitted), t0).done);
    CHECK(m.outcome() == holdfast::errc::misconfigured);
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
    (void)m.on_answer(0, failed(errc::connection_lost), t0);
    REQUIRE(m.on_answer(0, failed(errc::connection_lost), t0).done);
    CHECK(m.outcome() == holdfast::errc::outcome_unknown);
}

TEST_CASE("a release knows that others wait where a node told somebody")
{
    auto m = begun(3);
    (void)m.on_answer(0, yes(), t0);
    CHECK_FALSE(m.others_wait());
    REQUIRE(m.on_answer(2, {.what = holdfast::redis::answer::kind::yes, .told = 1}, t0).done);
    CHECK(m.others_wait());
    CHECK_FALSE(m.outcome());
}
