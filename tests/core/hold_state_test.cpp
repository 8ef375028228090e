// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/hold_state.hpp>
#include <holdfast/core/joint_hold.hpp>
#include <holdfast/core/lease.hpp>

#include <chrono>
#include <memory>
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

TEST_CASE("a renewal that fails stops the tokens of the risk, taken before it and after, and no token of a loss")
{
    hold_state h;
    h.begin(7, boot_clock::now() + 1h);
    auto const before = h.at_risk();
    CHECK(before.stop_possible());
    CHECK_FALSE(before.stop_requested());
    auto warned = h.mark_at_risk();
    REQUIRE(warned.own.stop_possible());
    CHECK_FALSE(warned.joint.stop_possible());
    CHECK(h.at_risk() == before);
    warned.own.request_stop();
    CHECK(before.stop_requested());
    CHECK_FALSE(h.lost_token().stop_requested());
    CHECK(h.still_held());

    hold_state never_asked;
    never_asked.begin(8, boot_clock::now() + 1h);
    CHECK_FALSE(never_asked.mark_at_risk().own.stop_possible());
    CHECK(never_asked.at_risk().stop_requested());
}

TEST_CASE("of renewals that fail in a row the first is the warning; after one that succeeds there is a new token")
{
    hold_state h;
    h.begin(7, boot_clock::now() + 1h);
    auto const first = h.at_risk();
    h.mark_renewed();
    CHECK(h.at_risk() == first);
    CHECK(h.mark_at_risk().own.request_stop());
    CHECK_FALSE(h.mark_at_risk().own.stop_possible());
    h.mark_renewed();
    auto const second = h.at_risk();
    CHECK(first.stop_requested());
    CHECK_FALSE(second.stop_requested());
    CHECK(h.mark_at_risk().own.request_stop());
    CHECK(second.stop_requested());
}

TEST_CASE("a warning that is not told yet when the next renewal succeeds stops no token that is taken then")
{
    hold_state h;
    h.begin(7, boot_clock::now() + 1h);
    auto const first = h.at_risk();
    auto warned = h.mark_at_risk();
    h.mark_renewed();
    auto const second = h.at_risk();
    REQUIRE(warned.own.stop_possible());
    warned.own.request_stop();
    CHECK(first.stop_requested());
    CHECK_FALSE(second.stop_requested());
}

TEST_CASE("a loss is a risk, too, and the end of a hold is none")
{
    hold_state h;
    h.begin(7, boot_clock::now() + 1h);
    auto const before = h.at_risk();
    h.lose();
    CHECK(before.stop_requested());
    CHECK(h.at_risk().stop_requested());

    hold_state never_asked;
    never_asked.begin(8, boot_clock::now() + 1h);
    never_asked.lose();
    CHECK(never_asked.at_risk().stop_requested());

    hold_state given_back;
    given_back.begin(9, boot_clock::now() + 1h);
    auto const of = given_back.at_risk();
    given_back.end();
    CHECK_FALSE(of.stop_requested());
    CHECK_FALSE(given_back.at_risk().stop_requested());
}

TEST_CASE("a hold of several locks is at risk while one of them is")
{
    auto const first = std::make_shared<hold_state>();
    auto const second = std::make_shared<hold_state>();
    first->begin(7, boot_clock::now() + 1h);
    second->begin(8, boot_clock::now() + 1h);
    CHECK_FALSE(first->mark_at_risk().own.stop_possible());  // before it is a part
    auto const both = std::make_shared<holdfast::detail::joint_hold>(2);
    both->add(holdfast::lease{first}, both);
    both->add(holdfast::lease{second}, both);
    CHECK(both->at_risk().stop_requested());
    CHECK_FALSE(second->mark_at_risk().joint.stop_possible());
    first->mark_renewed();
    CHECK(both->at_risk().stop_requested());
    second->mark_renewed();
    auto const after = both->at_risk();
    CHECK_FALSE(after.stop_requested());
    auto warned = second->mark_at_risk();
    REQUIRE(warned.joint.stop_possible());
    CHECK_FALSE(first->mark_at_risk().joint.stop_possible());
    warned.joint.request_stop();
    CHECK(after.stop_requested());
    CHECK_FALSE(both->lost_token().stop_requested());
}
