// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/hold_state.hpp>

#include <chrono>
#include <stop_token>
#include <thread>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::detail::hold_state;

namespace {

constexpr auto over = boot_clock::time_point::min();

}  // namespace

TEST_CASE("a hold that has not begun is not held")
{
    hold_state h;
    CHECK_FALSE(h.still_held());
    CHECK(h.deadline() == over);
    CHECK(h.fence() == 0);
}

TEST_CASE("a hold is held until its deadline")
{
    hold_state h;
    auto const deadline = boot_clock::now() + 1h;
    h.begin(7, deadline);
    CHECK(h.still_held());
    CHECK(h.deadline() == deadline);
    CHECK(h.fence() == 7);
}

TEST_CASE("the first question after the deadline finds the hold over, for ever")
{
    hold_state h;
    h.begin(7, boot_clock::now());
    CHECK_FALSE(h.still_held());
    CHECK(h.deadline() == over);
    CHECK_FALSE(h.renew(boot_clock::now() + 1h));
    CHECK_FALSE(h.still_held());
    CHECK(h.deadline() == over);
}

TEST_CASE("a renewal that comes after the deadline does not revive the hold, though nobody asked in between")
{
    hold_state h;
    h.begin(7, boot_clock::now());
    CHECK_FALSE(h.renew(boot_clock::now() + 1h));
    CHECK_FALSE(h.still_held());
}

TEST_CASE("a renewal moves the deadline, in either direction")
{
    hold_state h;
    auto const now = boot_clock::now();
    h.begin(7, now + 1h);
    CHECK(h.renew(now + 2h));
    CHECK(h.deadline() == now + 2h);
    CHECK(h.renew(now + 30min));
    CHECK(h.deadline() == now + 30min);
    CHECK(h.still_held());
    CHECK(h.fence() == 7);
}

TEST_CASE("a renewal whose own deadline has passed changes nothing")
{
    hold_state h;
    auto const deadline = boot_clock::now() + 1h;
    h.begin(7, deadline);
    CHECK_FALSE(h.renew(boot_clock::now()));
    CHECK(h.deadline() == deadline);
    CHECK(h.still_held());
}

TEST_CASE("shortening moves the deadline nearer and never further")
{
    hold_state h;
    auto const now = boot_clock::now();
    h.begin(7, now + 2h);
    h.shorten(now + 3h);
    CHECK(h.deadline() == now + 2h);
    h.shorten(now + 1h);
    CHECK(h.deadline() == now + 1h);
    CHECK(h.still_held());
    h.shorten(now);
    CHECK_FALSE(h.still_held());
    CHECK_FALSE(h.renew(now + 1h));
}

TEST_CASE("neither renewing nor shortening revives a hold that is over", "[lesson-8]")
{
    for (bool const by_loss : {false, true}) {
        hold_state h;
        h.begin(7, boot_clock::now() + 1h);
        if (by_loss)
            h.lose();
        else
            h.end();
        CHECK_FALSE(h.renew(boot_clock::now() + 1h));
        h.shorten(boot_clock::now() + 1h);
        CHECK_FALSE(h.still_held());
        CHECK(h.deadline() == over);
    }
}

TEST_CASE("a hold that its owner ends is over and not lost")
{
    hold_state h;
    h.begin(7, boot_clock::now() + 1h);
    auto const before = h.lost_token();
    h.end();
    CHECK_FALSE(h.still_held());
    CHECK_FALSE(before.stop_requested());
    CHECK_FALSE(h.lost_token().stop_requested());
}

TEST_CASE("a loss stops the tokens that were taken before it and those taken after")
{
    hold_state h;
    h.begin(7, boot_clock::now() + 1h);
    auto const before = h.lost_token();
    CHECK(before.stop_possible());
    CHECK_FALSE(before.stop_requested());
    h.lose();
    CHECK(before.stop_requested());
    CHECK(h.lost_token().stop_requested());
    CHECK_FALSE(h.still_held());

    hold_state never_asked;
    never_asked.begin(8, boot_clock::now() + 1h);
    never_asked.lose();
    CHECK(never_asked.lost_token().stop_requested());
}

TEST_CASE("a loss is announced once, also where it is found twice")
{
    hold_state h;
    h.begin(7, boot_clock::now() + 1h);
    int told = 0;
    std::stop_callback const count{h.lost_token(), [&] { ++told; }};
    h.lose();
    h.lose();
    CHECK(told == 1);
}

TEST_CASE("whoever is told of a loss may ask the hold")
{
    hold_state h;
    h.begin(7, boot_clock::now() + 1h);
    bool held = true;
    bool stopped = false;
    std::stop_callback const ask{h.lost_token(), [&] {
                                     held = h.still_held();
                                     stopped = h.lost_token().stop_requested();
                                 }};
    h.lose();
    CHECK_FALSE(held);
    CHECK(stopped);
}

TEST_CASE("a hold that was once seen to be over is never seen to be held, whoever renews it meanwhile")
{
    for (int round = 0; round < 50; ++round) {
        hold_state h;
        h.begin(7, boot_clock::now() + 50us);
        std::jthread const renewing{[&](std::stop_token const& stop) {
            while (!stop.stop_requested()) (void)h.renew(boot_clock::now() + 50us);
        }};
        int revived = 0;
        bool seen_over = false;
        for (int i = 0; i < 2000; ++i) {
            bool const held = h.still_held();
            if (seen_over && held) ++revived;
            seen_over = seen_over || !held;
        }
        CHECK(revived == 0);
    }
}
