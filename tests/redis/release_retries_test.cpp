// SPDX-License-Identifier: MIT
//
// What is kept for the next connection, for how long, and how much of it.
#include "answers.hpp"
#include "support/catch.hpp"

#include <holdfast/core/options.hpp>
#include <holdfast/redis/release_retries.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::longest_ttl;
using holdfast::owner_token;
using holdfast::redis::command;
using holdfast::redis::lock_keys;
using holdfast::redis::pending_commands;
using holdfast::redis::release_retries;
using holdfast::test::t0;

namespace {

owner_token token(std::size_t number) { return owner_token::from_bits(0, number); }

command release_of(std::size_t number, std::chrono::milliseconds ttl = 10s, char const* lock = "orders")
{
    auto const keys = std::make_shared<lock_keys const>(lock);
    return {.what = command::verb::release, .keys = keys, .token = token(number), .ttl = ttl};
}

/// Returns: of which tokens a release is taken.
std::vector<owner_token> taken(release_retries& from, std::size_t count, boot_clock::time_point now = t0)
{
    pending_commands to;
    from.take(count, to, now);
    std::vector<owner_token> found;
    for (auto const& e : to) found.push_back(e.what.token);
    return found;
}

/// Returns: how many are kept.
std::size_t count(release_retries kept, boot_clock::time_point now = t0)
{
    return taken(kept, release_retries::most + 10, now).size();
}

}  // namespace

TEST_CASE("a release is kept for as long as what it frees may be there, and half a minute at the least")
{
    release_retries kept;
    auto const left = [&](boot_clock::time_point now) { return count(kept, now); };
    kept.keep(release_of(1, 10s), t0);
    kept.keep(release_of(2, 1min), t0);
    kept.keep(release_of(3, 0s), t0);  // of which ttl is not known
    CHECK(left(t0 + 29s) == 3);
    CHECK(left(t0 + 31s) == 2);
    CHECK(left(t0 + 61s) == 1);
    CHECK(left(t0 + longest_ttl - 1s) == 1);
    CHECK(left(t0 + longest_ttl) == 0);
}

TEST_CASE("of each owner token one release is kept, and of all the latest, not more than there may be")
{
    release_retries kept;
    for (int i = 0; i < 2; ++i)
        for (std::size_t n = 0; n < release_retries::most + 10; ++n) {
            kept.keep(release_of(n), t0);
            CHECK(count(kept) == (i == 0 ? std::min(n + 1, release_retries::most) : release_retries::most));
        }
    auto const all = taken(kept, release_retries::most + 10);
    CHECK(all.size() == release_retries::most);
    CHECK(all.front() == token(10));
    CHECK(kept.empty());
}

TEST_CASE("a release that is kept again is kept for as long as the longer of both")
{
    release_retries kept;
    kept.keep(release_of(1, 1min), t0);
    kept.keep(release_of(1, 10s), t0 + 20s);
    kept.keep(release_of(2, 1min), t0);
    kept.keep(release_of(2, 0s), t0);
    kept.keep(release_of(3, 0s), t0);
    kept.keep(release_of(3, 1min), t0);
    CHECK(count(kept, t0 + 79s) == 3);
    CHECK(count(kept, t0 + 81s) == 2);
    CHECK(count(kept, t0 + longest_ttl - 1s) == 2);
}

TEST_CASE("releases are taken in their order, as many as are asked for; those of one lock, too; and are dropped")
{
    release_retries kept;
    for (std::size_t n = 0; n < 6; ++n) kept.keep(release_of(n, 10s, n % 2 == 0 ? "orders" : "invoices"), t0);
    CHECK(taken(kept, 1) == std::vector{token(0)});
    pending_commands some;
    kept.take(release_of(9), some);
    kept.take(release_of(9, 10s, "books"), some);
    REQUIRE(some.size() == 2);
    CHECK(some.front().what.token == token(2));
    CHECK(some.back().what.token == token(4));
    kept.drop(token(3));
    kept.drop(token(7));
    CHECK(taken(kept, 5) == std::vector{token(1), token(5)});
}

TEST_CASE("what is kept of an acquire is its release")
{
    release_retries kept;
    auto acquired = release_of(1);
    acquired.what = command::verb::acquire;
    kept.keep(acquired, t0);
    pending_commands one;
    kept.take(1, one, t0);
    REQUIRE(one.size() == 1);
    CHECK(one.front().what.what == command::verb::release);
    CHECK(one.front().what.rolls_back);
    CHECK(one.front().whom == nullptr);
    CHECK_FALSE(one.front().on_the_wire());
}

TEST_CASE("a release of a holder that is kept is no roll-back, also if one of its token is kept")
{
    auto const rolls_back = [](bool first, bool second) {
        release_retries kept;
        for (bool const one : {first, second}) {
            auto c = release_of(1);
            c.rolls_back = one;
            kept.keep(c, t0);
        }
        pending_commands one;
        kept.take(1, one, t0);
        return one.front().what.rolls_back;
    };
    CHECK(rolls_back(true, true));
    CHECK_FALSE(rolls_back(true, false));
    CHECK_FALSE(rolls_back(false, true));
    CHECK_FALSE(rolls_back(false, false));
}
