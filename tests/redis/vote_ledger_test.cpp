// SPDX-License-Identifier: MIT
//
// The table at `vote_ledger`, row by row.
#include "support/catch.hpp"

#include <holdfast/redis/error.hpp>
#include <holdfast/redis/vote_ledger.hpp>

#include <memory>

using holdfast::owner_token;
using holdfast::redis::answer;
using holdfast::redis::command;
using holdfast::redis::lock_keys;
using holdfast::redis::vote_ledger;
using verb = command::verb;

namespace {

/// The ledger of one node, in which there is a token.
struct noted {
    vote_ledger ledger{std::make_shared<holdfast::redis::vote_table>(), 0};
    owner_token mine = owner_token::from_bits(1, 1);

    noted() { ledger.began(mine); }

    [[nodiscard]] command make(verb what) const
    {
        return {.what = what, .keys = std::make_shared<lock_keys const>("orders"), .token = mine};
    }
    [[nodiscard]] bool voted() const { return ledger.voted_for(mine); }
    [[nodiscard]] bool may_reacquire() const { return ledger.may_reacquire(mine); }
};

}  // namespace

TEST_CASE("a token that was drawn has no vote and may ask for it")
{
    noted const n;
    CHECK_FALSE(n.voted());
    CHECK(n.may_reacquire());
}

TEST_CASE("a vote that was given is not asked for again, until an extension is told that it is gone")
{
    noted n;
    auto const asks = GENERATE(verb::acquire, verb::reacquire);
    auto const extends = GENERATE(verb::extend, verb::reacquire);
    n.ledger.answered(n.make(asks), answer::yes());
    CHECK(n.voted());
    CHECK_FALSE(n.may_reacquire());
    n.ledger.answered(n.make(extends), answer::failed(holdfast::redis::errc::loading));
    CHECK_FALSE(n.may_reacquire());
    n.ledger.answered(n.make(extends), answer::no());
    CHECK_FALSE(n.voted());
    CHECK(n.may_reacquire());
    n.ledger.answered(n.make(extends), answer::yes());  // what was asked for before arrived late
    CHECK(n.voted());
    CHECK_FALSE(n.may_reacquire());
}

TEST_CASE("a no to an acquire takes no vote away, nor does what is confirmed")
{
    noted n;
    n.ledger.answered(n.make(verb::acquire), answer::yes());
    for (auto const what : {verb::acquire, verb::confirm}) n.ledger.answered(n.make(what), answer::no());
    CHECK(n.voted());
    noted other;
    other.ledger.answered(other.make(verb::confirm), answer::yes());
    CHECK_FALSE(other.voted());
}

TEST_CASE("a vote that may have been given is not there once the release that undoes it is answered")
{
    noted n;
    n.ledger.lost(n.make(verb::acquire));
    n.ledger.answered(n.make(verb::release), answer::failed(holdfast::redis::errc::loading));
    CHECK(n.voted());
    n.ledger.answered(n.make(verb::release), GENERATE(answer::yes(), answer::no()));
    CHECK_FALSE(n.voted());
    CHECK(n.may_reacquire());
}

TEST_CASE("what was asked for and not answered may have been given")
{
    noted n;
    n.ledger.lost(n.make(GENERATE(verb::acquire, verb::reacquire)));
    CHECK(n.voted());
    CHECK_FALSE(n.may_reacquire());
    n.ledger.lost(n.make(verb::extend));
    CHECK(n.voted());
}

TEST_CASE("a vote is not asked for again if a release of it may still arrive, or the holder has sent one")
{
    bool const lost = GENERATE(true, false);
    noted n;
    auto const other = owner_token::from_bits(2, 2);
    n.ledger.began(other);
    CHECK(n.ledger.no_release_in_flight(n.mine));
    lost ? n.ledger.lost(n.make(verb::release)) : n.ledger.released(n.mine);
    CHECK_FALSE(n.ledger.no_release_in_flight(n.mine));
    CHECK_FALSE(n.may_reacquire());
    for (auto const& a : {answer::no(), answer::yes()}) n.ledger.answered(n.make(verb::extend), a);
    n.ledger.lost(n.make(verb::acquire));
    CHECK_FALSE(n.ledger.no_release_in_flight(n.mine));
    CHECK_FALSE(n.may_reacquire());
    CHECK_FALSE(n.voted());
    CHECK(n.ledger.may_reacquire(other));
}

TEST_CASE("a token that is not in the ledger is not reacquired, and one that is loses its place to another at last")
{
    vote_ledger ledger{std::make_shared<holdfast::redis::vote_table>(), 0};
    auto const token = [](std::uint64_t n) { return owner_token::from_bits(n * 0x9E3779B97F4A7C15U, n); };
    CHECK_FALSE(ledger.may_reacquire(token(0)));
    CHECK_FALSE(ledger.voted_for(token(0)));
    for (std::uint64_t n = 0; n < vote_ledger::most + 10; ++n) ledger.began(token(n));
    std::size_t there = 0;
    for (std::uint64_t n = 0; n < vote_ledger::most + 10; ++n) there += ledger.may_reacquire(token(n)) ? 1U : 0U;
    CHECK(there == vote_ledger::most);
    CHECK(ledger.may_reacquire(token(vote_ledger::most + 9)));
}

TEST_CASE("the ledgers of two nodes that share a table have their own votes")
{
    auto const all = std::make_shared<holdfast::redis::vote_table>();
    vote_ledger one{all, 0};
    vote_ledger other{all, 1};
    noted const n;
    one.began(n.mine);
    CHECK_FALSE(other.no_release_in_flight(n.mine));
    other.answered(n.make(verb::acquire), answer::yes());
    CHECK_FALSE(other.voted_for(n.mine));
    other.began(n.mine);
    one.answered(n.make(verb::acquire), answer::yes());
    CHECK(one.voted_for(n.mine));
    CHECK(other.may_reacquire(n.mine));
    one.released(n.mine);
    CHECK_FALSE(one.may_reacquire(n.mine));
    CHECK(other.may_reacquire(n.mine));
    other.released(n.mine);
    other.began(n.mine);
    CHECK_FALSE(one.no_release_in_flight(n.mine));
    CHECK(other.may_reacquire(n.mine));
}
