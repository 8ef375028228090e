// SPDX-License-Identifier: MIT
//
// The table at `votes`, row by row.
#include "support/catch.hpp"

#include <holdfast/redis/error.hpp>
#include <holdfast/redis/votes.hpp>

#include <memory>

using holdfast::owner_token;
using holdfast::redis::answer;
using holdfast::redis::command;
using holdfast::redis::lock_keys;
using verb = command::verb;
namespace votes = holdfast::redis::votes;

namespace {

constexpr unsigned node = 1;

/// A lock on three nodes, and what is known of one of them.
struct known_votes {
    holdfast::redis::shared_keys keys = std::make_shared<lock_keys const>("orders", 3);
    owner_token mine = owner_token::from_bits(1, 1);

    known_votes() { votes::begin(*keys, mine); }

    [[nodiscard]] command make(verb what) const { return {.what = what, .keys = keys, .token = mine}; }
    [[nodiscard]] bool may_be_there() const { return votes::may_be_there(make(verb::release), node); }
    [[nodiscard]] bool may_regain() const { return votes::may_regain(make(verb::extend), node); }
};

}  // namespace

TEST_CASE("a token that was drawn has no vote and may ask for it")
{
    known_votes const v;
    CHECK_FALSE(v.may_be_there());
    CHECK(v.may_regain());
}

TEST_CASE("a vote that was given is not asked for again, until an extension is told that it is gone")
{
    known_votes const v;
    auto const asks = GENERATE(verb::acquire, verb::regain);
    auto const extends = GENERATE(verb::extend, verb::regain);
    votes::note(v.make(asks), node, answer::yes());
    CHECK(v.may_be_there());
    CHECK_FALSE(v.may_regain());
    votes::note(v.make(extends), node, answer::failed(holdfast::redis::errc::connection_lost));
    CHECK_FALSE(v.may_regain());
    votes::note(v.make(extends), node, answer::no());
    CHECK_FALSE(v.may_be_there());
    CHECK(v.may_regain());
    votes::note(v.make(extends), node, answer::yes());  // what was asked for before arrived late
    CHECK(v.may_be_there());
    CHECK_FALSE(v.may_regain());
}

TEST_CASE("what was asked for and not answered may have been given")
{
    known_votes const v;
    votes::lost(v.make(GENERATE(verb::acquire, verb::regain)), node);
    CHECK(v.may_be_there());
    CHECK_FALSE(v.may_regain());
    votes::lost(v.make(verb::extend), node);
    CHECK(v.may_be_there());
}

TEST_CASE("a vote is not asked for again where a release of it may still arrive")
{
    known_votes v;
    votes::lost(v.make(verb::release), node);
    CHECK_FALSE(v.may_regain());
    CHECK(votes::may_regain(v.make(verb::extend), node + 1));
    votes::note(v.make(verb::extend), node, answer::no());
    CHECK_FALSE(v.may_regain());
    v.mine = owner_token::from_bits(2, 2);
    votes::begin(*v.keys, v.mine);
    CHECK(v.may_regain());
}

TEST_CASE("a vote is not asked for again where the holder has sent a release")
{
    known_votes v;
    CHECK(votes::intact(v.make(verb::release), node));
    votes::released(v.make(verb::release), node);
    CHECK_FALSE(votes::intact(v.make(verb::release), node));
    CHECK_FALSE(v.may_regain());
    CHECK(votes::may_regain(v.make(verb::extend), node + 1));
    auto const late = v.make(verb::release);
    v.mine = owner_token::from_bits(2, 2);
    votes::begin(*v.keys, v.mine);
    votes::released(late, node);
    CHECK(v.may_regain());
}

TEST_CASE("what comes late for an earlier token changes nothing")
{
    known_votes v;
    auto const late = v.make(verb::release);
    auto const no = v.make(verb::extend);
    v.mine = owner_token::from_bits(2, 2);
    votes::begin(*v.keys, v.mine);
    votes::lost(late, node);
    CHECK(v.may_regain());
    votes::note(v.make(verb::acquire), node, answer::yes());
    votes::note(no, node, answer::no());
    CHECK(v.may_be_there());
}

TEST_CASE("nothing is known of the votes for keys that nobody notes")
{
    command const c{.what = verb::extend, .keys = std::make_shared<lock_keys const>("orders"), .token = owner_token::from_bits(1, 1)};
    votes::begin(*c.keys, c.token);
    votes::note(c, node, answer::no());
    votes::lost(c, node);
    CHECK_FALSE(votes::may_be_there(c, node));
    votes::released(c, node);
    CHECK_FALSE(votes::may_regain(c, node));
    CHECK(votes::intact(c, node));
}
