// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/zookeeper/session_lease.hpp>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::drift;
using holdfast::zookeeper::session_lease;

namespace {

constexpr auto timeout = 8000ms;  // an eighth is 1 s
constexpr boot_clock::time_point at(std::chrono::milliseconds d) { return boot_clock::time_point{100s + d}; }

}  // namespace

TEST_CASE("a new session is good for half of its timeout from when it was asked for")
{
    session_lease s;
    CHECK(s.until() == boot_clock::time_point{});
    s.begin(at(0s), timeout);
    CHECK(s.until() == at(4s) - drift(4000ms));
}

TEST_CASE("an answer of the server alone confirms nothing")
{
    session_lease s;
    s.begin(at(0s), timeout);
    auto const until = s.until();
    for (auto t = 1s; t < 20s; ++t) s.answered(at(t), at(t + 1ms), false);
    CHECK(s.until() == until);
}

TEST_CASE(
    "two answers of a quorum, one behind the other, prove that the leader has heard of what was answered a quarter before the first")
{
    session_lease s;
    s.begin(at(0s), timeout);
    for (auto t = 1s; t < 10s; ++t) s.answered(at(t), at(t + 1ms), false);
    s.answered(at(10s), at(10s + 2ms), true);
    CHECK(s.until() <= at(8s));  // the follower's word may be under way yet
    s.answered(at(10s + 1ms), at(10s + 3ms), true);
    CHECK(s.until() <= at(8s));  // this may have been sent before that word
    s.answered(at(12s), at(12s + 1ms), true);
    CHECK(s.until() == at(7s + timeout) - drift(timeout));  // what was sent at 8 s was answered too late for that
}

TEST_CASE("a session that asks a quorum every eighth of its timeout is good for half of it from each answer on")
{
    session_lease s;
    s.begin(at(0s), timeout);
    for (auto t = 1s; t < 20s; ++t) {
        s.answered(at(t), at(t), true);
        CHECK(s.until() >= at(t + 4s) - drift(timeout));
    }
}

TEST_CASE("a session is good for five twelfths of its timeout from each answer on, however its requests meet")
{
    constexpr auto interval = session_lease::interval(timeout);
    constexpr auto step = interval / 20;
    for (auto idle = step; idle <= interval; idle += step) {  // from its last request to its first lock
        session_lease s;
        s.begin(at(0s), timeout);
        auto t = interval;
        for (; t < 2 * timeout; t += interval) s.answered(at(t), at(t + 1ms), false);
        t += idle - interval;
        for (auto const end = t + 2 * timeout; t < end; t += interval) {
            s.answered(at(t), at(t + 1ms), true);
            s.answered(at(t + 1ms), at(t + 2ms), true);
            CHECK(s.until() >= at(t + timeout * 5 / 12 - 5ms) - drift(timeout));
        }
    }
}

TEST_CASE("a session that was silent is confirmed by little until a quarter later")
{
    session_lease s;
    s.begin(at(0s), timeout);
    for (auto t = 7s; t <= 10s; ++t) {
        s.answered(at(t), at(t + 1ms), true);
        CHECK(s.until() <= at(8s));
    }
    s.answered(at(10s + 2ms), at(10s + 3ms), true);
    CHECK(s.until() == at(14s + 2ms) - drift(4000ms));
}

TEST_CASE("a new connection voids what the last server may not have passed on")
{
    session_lease s;
    s.begin(at(0s), timeout);
    for (auto t = 1s; t <= 4s; ++t) s.answered(at(t), at(t + 1ms), false);
    s.reconnected(at(1s), timeout);
    s.answered(at(10s), at(10s + 1ms), true);
    CHECK(s.until() == at(1s + timeout) - drift(timeout));
}

TEST_CASE("a late answer does not shorten what is known")
{
    session_lease s;
    s.begin(at(0s), timeout);
    s.answered(at(1s), at(1s + 1ms), false);
    s.answered(at(4s), at(5s), true);
    auto const until = s.until();
    s.answered(at(2s), at(6s), true);
    CHECK(s.until() == until);
    s.end();
    CHECK(s.until() == boot_clock::time_point{});
}

TEST_CASE("a session that is granted less time keeps what is known, and its leases are shorter from then on")
{
    session_lease s;
    s.begin(at(0s), timeout);
    auto const until = s.until();
    s.reconnected(at(1s), timeout * 3 / 4);
    CHECK(s.until() == until);
    CHECK(s.timeout() == timeout * 3 / 4);
    s.answered(at(4s), at(4s), false);
    s.answered(at(8s), at(8s), true);
    s.reconnected(at(8s), 2 * timeout);
    CHECK(s.timeout() == timeout * 3 / 4);
    CHECK(s.until() <= at(8s) + session_lease::duration(timeout * 3 / 4));
}
