// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/parker.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::detail::parker;

namespace {

constexpr auto for_ever = boot_clock::time_point::max();

/// A parked thread may wake for no reason: it looks again.
std::uint32_t park(parker& p)
{
    std::uint32_t got = 0;
    while (got == 0) got = p.park_until(for_ever);
    return got;
}

}  // namespace

TEST_CASE("a signal that came before is collected at once, and once")
{
    parker p;
    p.unpark();
    CHECK(p.park_until(for_ever) == 1);
    CHECK(p.park_until(boot_clock::now()) == 0);
}

TEST_CASE("a signal that came before is collected also when the deadline has passed")
{
    parker p;
    p.unpark(4);
    CHECK(p.park_until(boot_clock::time_point::min()) == 4);
}

TEST_CASE("signals gather until somebody looks")
{
    parker p;
    p.unpark(1);
    p.unpark(4);
    p.unpark(4);
    CHECK(p.park_until(for_ever) == 5);
    p.unpark(2);
    CHECK(p.park_until(for_ever) == 2);
}

TEST_CASE("a deadline that has passed is not waited for")
{
    parker p;
    for (auto const t : {boot_clock::time_point::min(), boot_clock::time_point{}, boot_clock::now()})
        CHECK(p.park_until(t) == 0);
}

TEST_CASE("a parked thread that gets no signal returns at its deadline, not before, but for wake-ups without a reason")
{
    parker p;
    auto const deadline = boot_clock::now() + 20ms;
    while (boot_clock::now() < deadline) CHECK(p.park_until(deadline) == 0);
    CHECK(p.park_until(deadline) == 0);
}

TEST_CASE("a signal wakes a parked thread")
{
    parker p;
    std::atomic<std::uint32_t> got{0};
    {
        std::jthread const parked{[&] { got = park(p); }};
        p.unpark(2);
    }
    CHECK(got == 2);
}

TEST_CASE("no signal is lost between two threads that wake each other in turn")
{
    constexpr int rounds = 5000;
    parker here;
    parker there;
    int answered = 0;
    std::jthread const other{[&] {
        for (int i = 0; i < rounds; ++i) {
            (void)park(there);
            here.unpark();
        }
    }};
    for (int i = 0; i < rounds; ++i) {
        there.unpark();
        answered += park(here) == 1 ? 1 : 0;
    }
    CHECK(answered == rounds);
}

TEST_CASE("a parker may be destroyed as soon as its last signal has been collected")
{
    constexpr int rounds = 2000;
    int collected = 0;
    for (int i = 0; i < rounds; ++i) {
        auto p = std::make_unique<parker>();
        std::jthread const waking{[&at = *p] { at.unpark(); }};
        collected += park(*p) == 1 ? 1 : 0;
        p.reset();
    }
    CHECK(collected == rounds);
}
