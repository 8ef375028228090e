// SPDX-License-Identifier: MIT
#include <holdfast/core/acquire_limits.hpp>

#include "support/catch.hpp"

#include <chrono>

using holdfast::acquire_request;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::detail::acquire_limits;
using holdfast::detail::limit_outage;
using holdfast::detail::votes;
using namespace std::chrono_literals;

namespace {

constexpr boot_clock::time_point t0{1h};
constexpr auto never = boot_clock::time_point::max();

}  // namespace

TEST_CASE("at the deadline an acquire has timed out if a quorum could ever be asked, and is unavailable otherwise",
          "[core][acquire_limits]")
{
    acquire_limits unasked{{.deadline = t0 + 1s}};
    acquire_limits asked{{.deadline = t0 + 1s}};
    unasked.not_asked();
    asked.asked(t0);
    asked.not_asked();
    for (auto const* one : {&unasked, &asked}) {
        CHECK(one->until() == t0 + 1s);
        CHECK_FALSE(one->why_over(t0 + 1s - 1ns));
        CHECK_FALSE(one->last_attempt(t0 + 1s - 1ns));
        CHECK(one->last_attempt(t0 + 1s));
    }
    CHECK(unasked.why_over(t0 + 1s) == errc::unavailable);
    CHECK(asked.why_over(t0 + 1s) == errc::timed_out);
}

TEST_CASE("a single attempt is the last, and ends as if the deadline had passed", "[core][acquire_limits]")
{
    acquire_limits one{{.once = true}};
    CHECK(one.last_attempt(t0));
    CHECK(one.why_over(t0) == errc::unavailable);
    one.asked(t0);
    CHECK(one.why_over(t0) == errc::timed_out);
}

TEST_CASE("a single attempt that is to be decided goes on while its votes are split", "[core][acquire_limits]")
{
    acquire_limits one{{.once = true, .until_decided = true, .deadline = t0 + 1s}};
    CHECK(one.last_attempt(t0));
    one.asked(t0, votes::split);
    CHECK_FALSE(one.last_attempt(t0));
    CHECK_FALSE(one.why_over(t0));
    CHECK(one.why_over(t0 + 1s) == errc::unavailable);
    one.asked(t0);
    CHECK(one.why_over(t0) == errc::timed_out);
    one.asked(t0, votes::split);
    one.not_asked();
    CHECK(one.last_attempt(t0));
    CHECK(one.why_over(t0) == errc::unavailable);  // nobody need have it
    CHECK(one.ever_asked());
    one.asked(t0);
    CHECK(one.why_over(t0) == errc::timed_out);
    acquire_limits usual{{.once = true}};
    for (auto const how : {votes::split, votes::doubtful}) {
        usual.asked(t0, how);
        CHECK(usual.why_over(t0) == errc::timed_out);
    }
}

TEST_CASE("a majority that votes for others again and again is one holder", "[core][acquire_limits]")
{
    acquire_limits one{{.once = true, .until_decided = true, .deadline = t0 + 1s}};
    auto const doubtful = [&](int rounds) {
        for (int i = 0; i < rounds; ++i) {
            CHECK_FALSE(one.why_over(t0) == errc::timed_out);
            one.asked(t0, votes::doubtful);
        }
    };
    one.asked(t0, votes::split);
    doubtful(7);
    CHECK(one.why_over(t0 + 1s) == errc::unavailable);
    one.asked(t0, votes::split);  // it was contenders
    doubtful(8);
    CHECK(one.why_over(t0) == errc::timed_out);
}

TEST_CASE("the patience in an outage begins anew whenever a quorum could be asked, and ends no acquire that can ask",
          "[core][acquire_limits]")
{
    acquire_limits l{{.unavailable_at = t0 + 1s, .unavailable_after = 3s}};
    CHECK_FALSE(l.ever_asked());
    CHECK(l.until() == t0 + 1s);  // nothing is known yet
    CHECK(l.why_over(t0 + 1s) == errc::unavailable);
    l.asked(t0 + 2s);
    CHECK(l.ever_asked());
    CHECK(l.until() == never);
    CHECK_FALSE(l.why_over(t0 + 100h));
    l.not_asked();
    l.not_asked();
    CHECK(l.until() == t0 + 5s);
    CHECK_FALSE(l.why_over(t0 + 5s - 1ns));
    CHECK(l.why_over(t0 + 5s) == errc::unavailable);
    CHECK_FALSE(l.last_attempt(t0 + 5s));
}

TEST_CASE("an acquire with a deadline outlasts an outage until then, one without waits for as long as it is told",
          "[core][acquire_limits]")
{
    acquire_request with{.deadline = t0 + 1h};
    limit_outage(with, t0, 3s);
    CHECK(with.unavailable_at == t0 + 1h);
    CHECK(with.unavailable_after == boot_clock::duration::max());

    acquire_request without;
    limit_outage(without, t0, 3s);
    CHECK(without.unavailable_at == t0 + 3s);
    CHECK(without.unavailable_after == 3s);

    acquire_request for_ever;
    limit_outage(for_ever, t0, std::chrono::milliseconds::max());
    CHECK(for_ever.unavailable_at == never);
    CHECK(for_ever.unavailable_after == boot_clock::duration::max());
}
