// SPDX-License-Identifier: MIT
//
// What is kept for the next connection, for how long, and how much of it.
#include "machines.hpp"
#include "support/catch.hpp"

#include <holdfast/core/options.hpp>
#include <holdfast/redis/kept_releases.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>

using namespace std::chrono_literals;
using holdfast::longest_ttl;
using holdfast::owner_token;
using holdfast::redis::command;
using holdfast::redis::kept_releases;
using holdfast::redis::lock_keys;
using holdfast::test::t0;

namespace {

command release_of(std::size_t number, std::chrono::milliseconds ttl)
{
    return {.what = command::verb::release,
            .keys = std::make_shared<lock_keys const>("orders"),
            .token = owner_token::from_bits(0, number),
            .ttl = ttl};
}

}  // namespace

TEST_CASE("a release is kept for as long as what it frees may be there, and half a minute at the least")
{
    kept_releases kept;
    kept.keep(release_of(1, 10s), t0);
    kept.keep(release_of(2, 1min), t0);
    kept.keep(release_of(3, 0s), t0);  // nobody said of which ttl
    CHECK(kept.wanted(t0 + 29s).size() == 3);
    CHECK(kept.wanted(t0 + 31s).size() == 2);
    CHECK(kept.wanted(t0 + 61s).size() == 1);
    CHECK(kept.wanted(t0 + longest_ttl - 1s).size() == 1);
    CHECK(kept.wanted(t0 + longest_ttl).empty());
}

TEST_CASE("of each owner token one release is kept, and of all the latest, not more than there may be")
{
    kept_releases kept;
    for (int i = 0; i < 2; ++i)
        for (std::size_t n = 0; n < kept_releases::most + 10; ++n) {
            kept.keep(release_of(n, 10s), t0);
            CHECK(kept.wanted(t0).size() == (i == 0 ? std::min(n + 1, kept_releases::most) : kept_releases::most));
        }
    CHECK_FALSE(kept.has(owner_token::from_bits(0, 1)));
    CHECK(kept.has(owner_token::from_bits(0, 10)));
    kept.drop(owner_token::from_bits(0, kept_releases::most + 9));
    CHECK(kept.wanted(t0).size() == kept_releases::most - 1);
}

TEST_CASE("a release that is kept again is kept for as long as the longer of both")
{
    kept_releases kept;
    kept.keep(release_of(1, 1min), t0);
    kept.keep(release_of(1, 10s), t0 + 20s);
    kept.keep(release_of(2, 1min), t0);
    kept.keep(release_of(2, 0s), t0);
    kept.keep(release_of(3, 0s), t0);
    kept.keep(release_of(3, 1min), t0);
    CHECK(kept.wanted(t0 + 79s).size() == 3);
    CHECK(kept.wanted(t0 + 81s).size() == 2);
    CHECK(kept.wanted(t0 + longest_ttl - 1s).size() == 2);
}

TEST_CASE("an extension drops what is kept of its token, but for what may still arrive")
{
    kept_releases kept;
    kept.keep(release_of(1, 10s), t0);
    kept.keep(release_of(2, 10s), t0, t0);
    kept.keep(release_of(3, 10s), t0);
    kept.keep(release_of(3, 10s), t0, t0);
    for (std::size_t n : {1U, 2U, 3U}) kept.drop_extended(owner_token::from_bits(0, n));
    CHECK_FALSE(kept.has(owner_token::from_bits(0, 1)));
    CHECK(kept.has(owner_token::from_bits(0, 2)));
    CHECK(kept.has(owner_token::from_bits(0, 3)));
}

TEST_CASE("what is kept of an acquire is its release, as text")
{
    kept_releases kept;
    auto acquired = release_of(1, 10s);
    acquired.what = command::verb::acquire;
    kept.keep(acquired, t0);
    auto const& one = kept.wanted(t0).front();
    CHECK(one.what.what == command::verb::release);
    CHECK(one.form == holdfast::redis::script_form::by_text);
    CHECK(one.whom == nullptr);
}
