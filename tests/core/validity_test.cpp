// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/options.hpp>
#include <holdfast/core/validity.hpp>

using namespace std::chrono_literals;
using holdfast::announcement_margin;
using holdfast::boot_clock;
using holdfast::drift;
using holdfast::valid_until;

TEST_CASE("drift is one percent of the ttl and two milliseconds")
{
    STATIC_REQUIRE(drift(0ms) == 2ms);
    STATIC_REQUIRE(drift(1ms) == 2'010us);
    STATIC_REQUIRE(drift(50ms) == 2'500us);
    STATIC_REQUIRE(drift(30'000ms) == 302ms);
    CHECK(drift(holdfast::longest_ttl) == 14min + 24s + 2ms);
}

TEST_CASE("a lease is exclusive for its ttl less drift, from before the sending", "[lesson-19]")
{
    constexpr auto sent = boot_clock::time_point{1000s};
    STATIC_REQUIRE(valid_until(sent, 30'000ms) == sent + 30s - 302ms);
    STATIC_REQUIRE(valid_until(sent, 1000ms) == sent + 988ms);
    CHECK(valid_until(sent, holdfast::longest_ttl) < sent + holdfast::longest_ttl);
}

TEST_CASE("a lease so short that drift eats it was never valid", "[lesson-3]")
{
    constexpr auto sent = boot_clock::time_point{1000s};
    STATIC_REQUIRE(valid_until(sent, 2ms) < sent);
    CHECK(valid_until(sent, 3ms) > sent);
}

TEST_CASE("a loss is announced while the lease is still exclusive")
{
    constexpr auto sent = boot_clock::time_point{1000s};
    for (auto const ttl : {100ms, 1000ms, 30'000ms, std::chrono::milliseconds{holdfast::longest_ttl}}) {
        CHECK(announcement_margin(ttl) >= 2ms);
        CHECK(valid_until(sent, ttl) - announcement_margin(ttl) > sent);
        CHECK(valid_until(sent, ttl) - announcement_margin(ttl) < valid_until(sent, ttl));
    }
}
