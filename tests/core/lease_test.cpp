// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/lease.hpp>

#include <chrono>
#include <memory>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::lease;
using holdfast::detail::hold_state;

namespace {

std::shared_ptr<hold_state> held_for(std::chrono::seconds d)
{
    auto h = std::make_shared<hold_state>();
    h->begin(7, boot_clock::now() + d);
    return h;
}

}  // namespace

TEST_CASE("a lease of nothing is held no more, and never lost")
{
    for (auto const& l : {lease{}, lease{nullptr}}) {
        CHECK(l.fencing_token() == 0);
        CHECK(l.expires_at() == boot_clock::time_point::min());
        CHECK(l.remaining() == 0ns);
        CHECK_FALSE(l.still_held());
        CHECK_FALSE(l.lost_token().stop_possible());
        CHECK_FALSE(l.at_risk().stop_possible());
    }
}

TEST_CASE("a lease answers for its hold")
{
    auto const h = held_for(1h);
    lease const l{h};
    CHECK(l.fencing_token() == 7);
    CHECK(l.expires_at() == h->deadline());
    CHECK(l.still_held());
    CHECK(l.remaining() > 0ns);
    CHECK(l.remaining() <= 1h);
    CHECK(l.lost_token().stop_possible());
    CHECK_FALSE(l.lost_token().stop_requested());
    CHECK(l.at_risk() == h->at_risk());
    CHECK_FALSE(l.at_risk().stop_requested());
}

TEST_CASE("a lease follows the renewals of its hold")
{
    auto const h = held_for(1h);
    lease const l{h};
    CHECK(h->renew(boot_clock::now() + 3h));
    CHECK(l.remaining() > 2h);
    CHECK(l.expires_at() == h->deadline());
}

TEST_CASE("a lease whose deadline has passed is found lost by the first question, and stays so")
{
    auto const h = held_for(0s);
    lease const l{h};
    CHECK(l.remaining() == 0ns);
    CHECK_FALSE(l.still_held());
    CHECK_FALSE(h->renew(boot_clock::now() + 1h));
    CHECK_FALSE(l.still_held());
    CHECK(l.remaining() == 0ns);
    CHECK(l.expires_at() == boot_clock::time_point::min());
    CHECK(l.fencing_token() == 7);
}

TEST_CASE("copies of a lease share its hold and outlive everything else that has it")
{
    auto h = held_for(1h);
    lease const one{h};
    lease const other = one;
    auto const token = one.lost_token();
    h->lose();
    h.reset();
    CHECK_FALSE(one.still_held());
    CHECK_FALSE(other.still_held());
    CHECK(token.stop_requested());
    CHECK(other.lost_token().stop_requested());
    CHECK(other.fencing_token() == 7);
}

TEST_CASE("two leases are equal if they are of one hold")
{
    auto const one = held_for(1h);
    auto const other = held_for(1h);
    CHECK(lease{one} == lease{one});
    CHECK_FALSE(lease{one} == lease{other});
    CHECK_FALSE(lease{one} == lease{});
    CHECK(one->renew(boot_clock::now() + 3h));
    lease const same{one};
    CHECK(same == lease{one});
}
