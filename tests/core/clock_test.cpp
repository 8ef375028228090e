// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/clock.hpp>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>
#include <ratio>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::saturating_add;
using holdfast::to_boot_clock;

namespace {

constexpr auto now = boot_clock::time_point{1000s};
constexpr auto last = boot_clock::time_point::max();
constexpr auto century = std::chrono::years{100};

template <class Clock, class Duration>
using point = std::chrono::time_point<Clock, Duration>;

}  // namespace

TEST_CASE("boot_clock is a clock of the standard, and never goes back")
{
    STATIC_REQUIRE(std::chrono::is_clock_v<boot_clock>);
    STATIC_REQUIRE(boot_clock::is_steady);
    auto before = boot_clock::now();
    CHECK(before > boot_clock::time_point{});
    for (int i = 0; i < 1000; ++i) {
        auto const after = boot_clock::now();
        REQUIRE(after >= before);
        before = after;
    }
}

TEST_CASE("boot_clock is the system's clock that runs on while the machine sleeps", "[lesson-6]")
{
    auto const ask = [] {
        timespec t{};
        REQUIRE(::clock_gettime(CLOCK_BOOTTIME, &t) == 0);
        return std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec};
    };
    auto const before = ask();
    auto const now_there = boot_clock::now().time_since_epoch();
    CHECK(now_there >= before);
    CHECK(now_there <= ask());
}

TEST_CASE("saturating_add adds what can be added")
{
    CHECK(saturating_add(now, 5s) == now + 5s);
    CHECK(saturating_add(now, 1ns) == now + 1ns);
    CHECK(saturating_add(now, std::chrono::duration<double>{0.5}) == now + 500ms);
    CHECK(saturating_add(now, century) == now + century);
    using frames = std::chrono::duration<std::int64_t, std::ratio<1, 30>>;  // no whole nanoseconds
    CHECK(saturating_add(now, frames{30} * 86'400 * 365 * 200) == now + 24h * 365 * 200);
}

TEST_CASE("saturating_add adds nothing that is no number")
{
    using seconds = std::chrono::duration<double>;
    CHECK(saturating_add(now, seconds{std::numeric_limits<double>::quiet_NaN()}) == now);
}

TEST_CASE("saturating_add never ends before the time that was asked for")
{
    using half_nanoseconds = std::chrono::duration<long, std::ratio<1, 2'000'000'000>>;
    CHECK(saturating_add(now, half_nanoseconds{1}) == now + 1ns);
    CHECK(saturating_add(now, half_nanoseconds{3}) == now + 2ns);
}

TEST_CASE("saturating_add ends at the last point where the sum would overflow")
{
    CHECK(saturating_add(now, boot_clock::duration::max()) == last);
    CHECK(saturating_add(now, std::chrono::hours::max()) == last);
    CHECK(saturating_add(now, std::chrono::years::max()) == last);
    CHECK(saturating_add(now, std::chrono::duration<double>{1e300}) == last);
    CHECK(saturating_add(last, 1ns) == last);
    CHECK(saturating_add(last, 0ns) == last);
}

TEST_CASE("saturating_add of nothing or less stays where it is")
{
    CHECK(saturating_add(now, 0s) == now);
    CHECK(saturating_add(now, -1s) == now);
    CHECK(saturating_add(now, std::chrono::hours::min()) == now);
    CHECK(saturating_add(now, boot_clock::duration::min()) == now);
    CHECK(saturating_add(now, std::chrono::duration<double>{-1e300}) == now);
}

TEST_CASE("a point of boot_clock is itself, whatever it is measured in")
{
    CHECK(to_boot_clock(now) == now);
    CHECK(to_boot_clock(last) == last);
    CHECK(to_boot_clock(point<boot_clock, std::chrono::hours>{3h}) == boot_clock::time_point{3h});
}

TEST_CASE("a point of boot_clock that is too far away to be one is the last")
{
    CHECK(to_boot_clock(point<boot_clock, std::chrono::seconds>::max()) == last);
    CHECK(to_boot_clock(point<boot_clock, std::chrono::hours>::max()) == last);
    CHECK(to_boot_clock(point<boot_clock, std::chrono::hours>::min()) <= boot_clock::time_point{});
}

TEMPLATE_TEST_CASE("a point of another clock is as far away as it is there", "", std::chrono::system_clock,
                   std::chrono::steady_clock)
{
    auto const before = boot_clock::now();
    auto const there = to_boot_clock(TestType::now() + 1h);
    CHECK(there > before + 59min);
    CHECK(there < boot_clock::now() + 61min);
}

TEMPLATE_TEST_CASE("a point of another clock that has passed is now", "", std::chrono::system_clock,
                   std::chrono::steady_clock)
{
    using time_point = typename TestType::time_point;
    for (auto const past : {TestType::now() - 1h, time_point{}, time_point::min()}) {
        auto const before = boot_clock::now();
        auto const there = to_boot_clock(past);
        CHECK(there >= before);
        CHECK(there <= boot_clock::now());
    }
}

TEMPLATE_TEST_CASE("the last point of another clock is more than a century away", "", std::chrono::system_clock,
                   std::chrono::steady_clock)
{
    CHECK(to_boot_clock(TestType::time_point::max()) > boot_clock::now() + century);
    CHECK(to_boot_clock(point<TestType, std::chrono::hours>::max()) == last);
}
