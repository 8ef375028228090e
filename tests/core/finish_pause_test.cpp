// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/finish_pause.hpp>

#include <chrono>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::detail::finish_pause;

TEST_CASE("a store is asked to finish after a pause, which doubles up to ten seconds while something is left")
{
    constexpr boot_clock::time_point t0{1h};
    finish_pause p;
    CHECK(p.at() == boot_clock::time_point::max());
    CHECK_FALSE(p.take(t0));
    p.begin(t0);
    p.begin(t0 + 100ms);  // it is not put off
    CHECK(p.at() == t0 + 450ms);
    CHECK_FALSE(p.take(t0 + 449ms));
    auto now = t0 + 450ms;
    for (auto const pause : {900ms, 1800ms, 3600ms, 7200ms, 10'000ms, 10'000ms}) {
        REQUIRE(p.take(now));
        CHECK(p.at() == boot_clock::time_point::max());
        p.go_on(now);
        CHECK(p.at() == now + pause);
        now += pause;
    }
    p.begin(now - 9s);  // something new
    CHECK(p.at() == now - 9s + 450ms);
    CHECK(p.take(now));
    CHECK_FALSE(p.take(now));
}
