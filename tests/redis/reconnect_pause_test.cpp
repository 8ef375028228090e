// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/redis/reconnect_pause.hpp>

#include <algorithm>
#include <chrono>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::redis::reconnect_pause;
using end = holdfast::redis::reconnect_pause::end;

namespace {

constexpr boot_clock::time_point t0{1h};

/// Returns: how long after `now` the next connection may begin, in whole milliseconds.
std::chrono::milliseconds left(reconnect_pause const& p, boot_clock::time_point now)
{
    auto d = 0ms;
    while (!p.over(now + d)) ++d;
    return d;
}

}  // namespace

TEST_CASE(
    "a server that was lost is connected to at once, one that cannot be reached after a pause that doubles to 450 ms")
{
    reconnect_pause p;
    CHECK(p.over(t0));
    p.begin(t0);
    p.ended(end::lost, t0);
    CHECK(p.over(t0));
    for (auto const pause : {5ms, 10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 450ms, 450ms}) {
        p.ended(end::refused, t0);
        CHECK(left(p, t0) == pause);
    }
    p.ended(end::lost, t0);
    CHECK(p.over(t0));
    p.ended(end::refused, t0);
    CHECK(left(p, t0) == 5ms);
    p.put_back(3ms);
    CHECK(left(p, t0) == 2ms);
}

TEST_CASE("a server that breaks the protocol again and again is left alone for longer each time, up to ten seconds")
{
    auto const how = GENERATE(end::lost, end::refused);
    reconnect_pause p;
    auto now = t0;
    auto unreached = 0ms;
    for (auto const distrust :
         {0ms, 5ms, 10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 640ms, 1280ms, 2560ms, 5120ms, 10'000ms, 10'000ms}) {
        p.begin(now);
        p.spoilt(how, now + 1ms);
        now += 1ms;
        unreached = std::clamp(2 * unreached, 5ms, 450ms);
        CHECK(left(p, now) == (how == end::refused ? std::max(distrust, unreached) : distrust));
        now += left(p, now);
    }
}

TEST_CASE("a server that breaks the protocol now and then is connected to at once")
{
    reconnect_pause p;
    auto now = t0;
    for (int i = 0; i < 5; ++i) {
        p.begin(now);
        now += 10s;
        p.spoilt(end::lost, now);
        CHECK(p.over(now));
    }
    p.begin(now);
    p.spoilt(end::lost, now + 1s);
    CHECK(left(p, now + 1s) == 5ms);
}
