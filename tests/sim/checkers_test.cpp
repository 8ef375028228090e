// SPDX-License-Identifier: MIT
//
// A checker that cannot refuse is no checker: each is shown histories that it must refuse.
#include "sweep/exclusion.hpp"
#include "sweep/fencing.hpp"
#include "sweep/idleness.hpp"

#include "support/catch.hpp"

#include <chrono>

using namespace holdfast;
using namespace std::chrono_literals;
using test::claim;
using test::history;

namespace {

boot_clock::time_point at(boot_clock::duration since_begin) { return boot_clock::time_point{} + since_begin; }

/// A claim that was granted, and released in time.
claim released(unsigned client, boot_clock::duration from, boot_clock::duration to, std::uint64_t fence = 1)
{
    return {.client = client, .granted = at(from), .valid_until = at(to + 1s), .ended = at(to), .first_fence = fence, .last_fence = fence};
}

/// A claim that nobody ended before its lease did.
claim abandoned(unsigned client, boot_clock::duration from, boot_clock::duration to)
{
    return {.client = client, .granted = at(from), .valid_until = at(to), .first_fence = 1, .last_fence = 1};
}

}  // namespace

TEST_CASE("claims that follow each other exclude each other")
{
    CHECK_FALSE(test::exclusion::breach({}));
    CHECK_FALSE(test::exclusion::breach({released(0, 1ms, 5ms), released(1, 5ms, 9ms), abandoned(2, 10ms, 20ms), released(0, 20ms, 21ms)}));
}

TEST_CASE("claims may be told in any order")
{
    CHECK_FALSE(test::exclusion::breach({released(1, 5ms, 9ms), released(0, 1ms, 5ms)}));
    CHECK(test::exclusion::breach({released(1, 5ms, 9ms), released(0, 1ms, 6ms)}));
}

TEST_CASE("a claim granted before the last one was released is refused")
{
    CHECK(test::exclusion::breach({released(0, 1ms, 5ms), released(1, 5ms - 1ns, 9ms)}));
}

TEST_CASE("a claim granted before the last one's lease ended is refused")
{
    CHECK(test::exclusion::breach({abandoned(0, 1ms, 5ms), released(1, 4ms, 9ms)}));
}

TEST_CASE("a claim within another one is refused, also behind a shorter one")
{
    CHECK(test::exclusion::breach({released(0, 1ms, 50ms), released(1, 2ms, 3ms)}));
    CHECK(test::exclusion::breach({released(0, 1ms, 50ms), released(1, 60ms, 61ms), released(2, 60ms, 70ms), released(3, 65ms, 66ms)}));
}

TEST_CASE("two claims of one client exclude each other, too")
{
    CHECK(test::exclusion::breach({released(0, 1ms, 5ms), released(0, 4ms, 9ms)}));
}

TEST_CASE("a claim to a lease that was over when it was granted is refused")
{
    CHECK(test::exclusion::breach({abandoned(0, 5ms, 5ms)}));
    CHECK(test::exclusion::breach({abandoned(0, 5ms, 4ms)}));
}

TEST_CASE("fences that rise are in order")
{
    CHECK_FALSE(test::fencing::breach({}));
    CHECK_FALSE(test::fencing::breach({released(0, 1ms, 2ms, 7), released(1, 3ms, 4ms, 8), released(0, 5ms, 6ms, 100)}));
}

TEST_CASE("a fence that was granted before is refused")
{
    CHECK(test::fencing::breach({released(0, 1ms, 2ms, 7), released(1, 3ms, 4ms, 7)}));
}

TEST_CASE("a fence below an earlier one is refused, however the history is told")
{
    CHECK(test::fencing::breach({released(0, 1ms, 2ms, 8), released(1, 3ms, 4ms, 7)}));
    CHECK(test::fencing::breach({released(1, 3ms, 4ms, 7), released(0, 1ms, 2ms, 8)}));
}

TEST_CASE("batches of fences that overlap are refused")
{
    auto batch = released(0, 1ms, 2ms, 8);
    batch.last_fence = 40;
    CHECK(test::fencing::breach({batch, released(1, 3ms, 4ms, 40)}));
    CHECK_FALSE(test::fencing::breach({batch, released(1, 3ms, 4ms, 41)}));
}

TEST_CASE("a claim without a fence is refused")
{
    CHECK(test::fencing::breach({released(0, 1ms, 2ms, 0)}));
}

TEST_CASE("a lock that lies idle for too long is noticed: at first, between claims, and at last")
{
    history const claims{released(0, 1ms, 5ms), released(1, 6ms, 9ms)};
    CHECK_FALSE(test::idleness::breach(claims, at(0ms), at(10ms), 1ms));
    CHECK(test::idleness::breach(claims, at(0ms), at(10ms), 1ms - 1ns));
    CHECK(test::idleness::breach(claims, at(0ms), at(11ms), 1ms));
    CHECK(test::idleness::breach({released(0, 0ms, 5ms), released(1, 7ms, 10ms)}, at(0ms), at(10ms), 1ms));
    CHECK(test::idleness::breach({}, at(0ms), at(10ms), 9ms));
}
