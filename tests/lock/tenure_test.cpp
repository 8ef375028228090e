// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/lock/tenure.hpp>

#include <chrono>
#include <memory>
#include <utility>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::grant;
using holdfast::lock_options;
using holdfast::owner_token;
using holdfast::detail::lock_owner;
using holdfast::detail::tenure;
using holdfast::detail::waiter;

namespace {

/// A lease of an hour, which the store granted just now, and its first holder.
struct fixture {
    lock_owner owner;
    waiter first{owner};
    tenure lease;
    boot_clock::time_point begun = boot_clock::now();
    boot_clock::time_point valid = holdfast::valid_until(begun, 1h);

    explicit fixture(lock_options options = {})
    {
        options.ttl = 1h;
        owner.options = std::make_shared<lock_options const>(std::move(options));
        lease.begin(grant{.token = owner_token::from_bits(1, 2), .valid_until = valid, .fence = 70, .fences = 64}, owner.options);
        lease.give(first, lease.deadline_for(valid));
    }
};

}  // namespace

TEST_CASE("a holder has the lease's token, the first fence, and a margin before the end of its validity")
{
    fixture f;
    CHECK(f.owner.held == f.lease.holder());
    CHECK(f.owner.token == owner_token::from_bits(1, 2));
    CHECK(f.owner.held->fence() == 70);
    CHECK(f.owner.held->deadline() == f.valid - holdfast::announcement_margin(1h));
    CHECK(f.owner.held->still_held());
    CHECK(f.lease.ttl() == 1h);
}

TEST_CASE("a lease is renewed a third of its ttl after it was asked for")
{
    fixture f;
    CHECK(f.lease.renew_at() == f.begun + 20min);
    CHECK(f.lease.renewable());
    CHECK_FALSE(fixture{{.renew = false}}.lease.renewable());
}

TEST_CASE("a lease that would be renewed after max_hold is not renewed")
{
    CHECK(fixture{{.max_hold = 30min}}.lease.renewable());
    CHECK_FALSE(fixture{{.max_hold = 10min}}.lease.renewable());
}

TEST_CASE("the next holder has the next fence")
{
    fixture f;
    lock_owner other{.held = nullptr, .token = {}, .options = f.owner.options};
    waiter next{other};
    auto const deadline = f.owner.held->deadline();
    REQUIRE(f.lease.may_pass_to(next, deadline));
    f.lease.give(next, deadline);
    CHECK(other.held->fence() == 71);
    CHECK(other.token == f.owner.token);
    CHECK(f.lease.holder() == other.held);
}

TEST_CASE("a lease passes on only while half of it and a handoff are left, and to one who wants the like")
{
    fixture f{{.max_local_handoffs = 1}};
    lock_owner other{.held = nullptr, .token = {}, .options = f.owner.options};
    waiter next{other};
    CHECK_FALSE(f.lease.may_pass_to(next, boot_clock::now() + 30min - 1s));
    CHECK(f.lease.may_pass_to(next, boot_clock::now() + 40min));
    for (auto const& different : {lock_options{.ttl = 2h}, lock_options{.ttl = 1h, .renew = false}, lock_options{.ttl = 1h, .fencing = false}}) {
        other.options = std::make_shared<lock_options const>(different);
        CHECK_FALSE(f.lease.may_pass_to(next, boot_clock::now() + 40min));
    }
    other.options = std::make_shared<lock_options const>(lock_options{.ttl = 1h});
    CHECK(f.lease.may_pass_to(next, boot_clock::now() + 40min));
    f.lease.count_handoff();
    CHECK_FALSE(f.lease.may_pass_to(next, boot_clock::now() + 40min));
}

TEST_CASE("a request for a shorter lease counts from its sending, a longer one from its answer")
{
    fixture f;
    auto const before = f.owner.held->deadline();
    auto const longer = f.lease.ask(2h);
    CHECK(f.owner.held->deadline() == before);
    auto const shorter = f.lease.ask(30min);
    CHECK(f.owner.held->deadline() < boot_clock::now() + 30min);
    CHECK(f.lease.concerns(longer));
    CHECK(f.lease.renew(longer, holdfast::valid_until(boot_clock::now(), 2h)));
    CHECK(f.owner.held->deadline() < boot_clock::now() + 30min);
    CHECK(f.lease.ttl() == 1h);
    CHECK(f.lease.renew(shorter, holdfast::valid_until(boot_clock::now(), 30min)));
    CHECK(f.lease.ttl() == 30min);
}

TEST_CASE("a renewal that brings nothing new is not repeated at once")
{
    fixture f;
    auto const old = holdfast::valid_until(f.begun - 30min, 1h);
    CHECK(f.lease.renew(f.lease.ask(1h), old));
    CHECK(f.lease.renew_at() >= f.begun + 3min);
    CHECK(f.lease.renew_at() < boot_clock::now() + 4min);
    CHECK(f.lease.renew(f.lease.ask(1h), f.valid));
    CHECK(f.lease.renew_at() == f.begun + 20min);
}

TEST_CASE("an answer concerns no lease that has ended, nor the next one")
{
    fixture f;
    auto const request = f.lease.ask(1h);
    f.lease.end(nullptr);
    CHECK_FALSE(f.lease.concerns(request));
    lock_owner other{.held = nullptr, .token = {}, .options = f.owner.options};
    waiter next{other};
    f.lease.begin(grant{.token = owner_token::from_bits(3, 4), .valid_until = f.valid, .fence = 200}, other.options);
    f.lease.give(next, f.lease.deadline_for(f.valid));
    CHECK_FALSE(f.lease.concerns(request));
    CHECK(f.lease.concerns(f.lease.ask(1h)));
}

TEST_CASE("a lease has tokens for all handoffs where the lock is seldom taken, otherwise for as many as the last one needed")
{
    CHECK(tenure{}.handoffs_for(fixture{}.first) == 63);
    // Of leases that follow each other at once. On a machine that stood still in between the next has all.
    auto const after = [](unsigned handoffs, bool wanted, unsigned reserved) {
        fixture f;
        f.lease.end(&f.first);
        f.lease.begin(grant{.token = {}, .valid_until = f.valid, .fence = 70, .fences = reserved + 1}, f.owner.options);
        waiter next{f.owner};
        f.lease.give(next, f.lease.deadline_for(f.valid));
        for (unsigned i = 0; i < handoffs; ++i) f.lease.count_handoff();
        f.lease.end(wanted ? &f.first : nullptr);
        return f.lease.handoffs_for(f.first);
    };
    auto const quick = [&](unsigned expected, auto... how) {
        return holdfast::test::eventually([&] { return after(how...) == expected; });
    };
    CHECK(quick(0, 0U, false, 63U));
    CHECK(quick(3, 3U, false, 63U));
    CHECK(quick(3, 3U, true, 63U));
    CHECK(quick(63, 3U, true, 3U));
    CHECK(quick(63, 0U, true, 0U));
}

TEST_CASE("a lease is passed on as often only as it has tokens for")
{
    fixture f;
    waiter next{f.owner};
    f.lease.end(nullptr);
    f.lease.begin(grant{.token = {}, .valid_until = f.valid, .fence = 70, .fences = 2}, f.owner.options);
    waiter again{f.owner};
    f.lease.give(again, f.lease.deadline_for(f.valid));
    auto const deadline = f.lease.deadline_for(f.valid);
    CHECK(f.lease.may_pass_to(next, deadline));
    f.lease.count_handoff();
    CHECK_FALSE(f.lease.may_pass_to(next, deadline));
}

TEST_CASE("a renewal that failed is tried again when a quarter of the time left has passed")
{
    fixture f;
    f.lease.retry_later();
    CHECK(f.lease.renew_at() > f.begun + 14min);
    CHECK(f.lease.renew_at() < boot_clock::now() + 15min);
}

TEST_CASE("a renewal that failed when the hold was over is not put off")
{
    fixture f;
    f.owner.held->lose();
    f.lease.retry_later();
    CHECK(f.lease.renew_at() <= boot_clock::now() + 2ms);
}
