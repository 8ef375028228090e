// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/redis/pulse.hpp>

#include <chrono>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::redis::pulse;

namespace {

constexpr boot_clock::time_point t0{1000s};

}  // namespace

TEST_CASE("a connection that answered others meanwhile is not silent, however late one answer is")
{
    pulse p{50ms};
    p.greeted(1ms, t0);
    CHECK(p.silent_since(t0, t0 + 50ms));
    p.beat(t0, t0 + 1ms);
    CHECK_FALSE(p.silent_since(t0, t0 + 50ms));
    CHECK_FALSE(p.silent_since(t0, t0 + 1h));
    CHECK(p.silent_since(t0 + 2ms, t0 + 52ms));
}

TEST_CASE("a connection that was made a moment ago is not silent")
{
    pulse p{50ms};
    p.greeted(1ms, t0 + 45ms);
    CHECK_FALSE(p.silent_since(t0 + 45ms, t0 + 50ms));
    CHECK(p.silent_since(t0 + 45ms, t0 + 95ms));
}

TEST_CASE("a connection over which nothing comes for the time of an answer has stopped, whatever it answered before")
{
    pulse p{50ms};
    p.greeted(1ms, t0);
    CHECK_FALSE(p.stopped(t0 - 40ms, t0 + 50ms));
    CHECK(p.stopped(t0 - 40ms, t0 + 51ms));
    CHECK_FALSE(p.stopped(t0 + 20ms, t0 + 70ms));
    CHECK(p.stopped(t0 + 20ms, t0 + 71ms));
}

TEST_CASE("a connection whose answers lag far behind has stopped, though they come")
{
    pulse p{50ms};
    for (auto now = t0; now < t0 + 400ms; now += 10ms) {
        p.beat(t0, now);
        CHECK_FALSE(p.stopped(t0, now));
    }
    p.beat(t0, t0 + 401ms);
    CHECK(p.stopped(t0, t0 + 401ms));
}

TEST_CASE("the fastest answer is that of this connection: the next may lead to a server that is farther away")
{
    pulse p{50ms};
    CHECK(p.fastest() == boot_clock::duration::max());
    p.greeted(3ms, t0);
    CHECK(p.fastest() == 3ms);
    p.beat(t0, t0 + 1ms);
    p.beat(t0, t0 + 2ms);
    CHECK(p.fastest() == 1ms);
    p.greeted(20ms, t0 + 1s);
    CHECK(p.fastest() == 20ms);
}
