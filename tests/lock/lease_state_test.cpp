// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/lock/lease_state.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::grant;
using holdfast::lock_options;
using holdfast::owner_token;
using holdfast::detail::lease_state;
using holdfast::detail::mutex_state;
using holdfast::detail::waiter;

namespace {

/// One that wants the lock, and needs no signal.
struct quiet final : waiter {
    explicit quiet(mutex_state& of) : waiter{of, {}} {}
    void signal(std::uint32_t) noexcept override {}
};

/// The object of a lock.
struct object : mutex_state {
    explicit object(std::shared_ptr<lock_options const> o) { options = std::move(o); }
};

/// A lease of an hour, which the store granted just now, or of which `left` is left, and its first holder.
struct fixture {
    mutex_state owner;
    std::optional<quiet> first;
    lease_state lease;
    boot_clock::time_point begun = boot_clock::now();
    boot_clock::time_point valid = holdfast::valid_until(begun, 1h);

    explicit fixture(lock_options options = {}, std::chrono::minutes left = 1h)
    {
        valid -= 1h - left;
        options.ttl = 1h;
        owner.options = std::make_shared<lock_options const>(std::move(options));
        first.emplace(owner);
        lease.begin(grant{.token = owner_token::from_bits(1, 2), .valid_until = valid, .fence = 70, .fences = 64},
                    *first);
        lease.give(*first, lease.deadline_for(valid), nullptr);
    }
};

}  // namespace

TEST_CASE("a holder has the lease's token, the first fence, and a margin before the end of its validity")
{
    fixture f;
    CHECK(f.owner.held == f.lease.holder());
    CHECK(f.lease.token() == owner_token::from_bits(1, 2));
    CHECK(f.owner.held->fence() == 70);
    CHECK(f.owner.held->deadline() == f.valid - holdfast::announcement_margin(1h));
    CHECK(f.owner.held->still_held());
    CHECK(f.lease.ttl() == 1h);
}

TEST_CASE("a lease is renewed a third of its ttl after it was asked for, or a little before, with others")
{
    fixture f;
    CHECK(f.lease.next_look() <= f.begun + 20min);
    CHECK(f.lease.next_look() > f.begun + 20min - boot_clock::duration{1h} / 64);
    CHECK(f.lease.next_look().time_since_epoch() % (boot_clock::duration{1h} / 64) == 0ns);
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
    object other{f.owner.options};
    quiet next{other};
    auto const deadline = f.owner.held->deadline();
    REQUIRE(f.lease.may_pass_to(next, deadline));
    f.lease.give(next, deadline, nullptr);
    CHECK(other.held->fence() == 71);
    CHECK(f.lease.token() == owner_token::from_bits(1, 2));
    CHECK(f.lease.holder() == other.held);
}

TEST_CASE("a lease passes on only while half of it and a handoff are left, and to one who wants the like")
{
    fixture f{{.max_local_handoffs = 1}};
    object other{f.owner.options};
    quiet next{other};
    CHECK_FALSE(f.lease.may_pass_to(next, boot_clock::now() + 30min - 1s));
    CHECK(f.lease.may_pass_to(next, boot_clock::now() + 40min));
    for (auto const& different :
         {lock_options{.ttl = 2h}, lock_options{.ttl = 1h, .renew = false}, lock_options{.ttl = 1h, .fencing = false},
          lock_options{.ttl = 1h, .stop_margin = 1ms}}) {
        next.options = std::make_shared<lock_options const>(different);
        CHECK_FALSE(f.lease.may_pass_to(next, boot_clock::now() + 40min));
    }
    next.options = std::make_shared<lock_options const>(lock_options{.ttl = 1h});
    CHECK(f.lease.may_pass_to(next, boot_clock::now() + 40min));
    f.lease.count_handoff();
    CHECK_FALSE(f.lease.may_pass_to(next, boot_clock::now() + 40min));
}

TEST_CASE("a request for a shorter lease counts from its sending, a longer one from its answer")
{
    fixture f;
    auto const before = f.owner.held->deadline();
    f.lease.ask(2h);
    CHECK(f.owner.held->deadline() == before);
    CHECK(f.lease.renew(holdfast::valid_until(boot_clock::now(), 2h)));
    CHECK(f.owner.held->deadline() > before + 50min);
    CHECK(f.lease.ttl() == 2h);
    f.lease.ask(30min);
    CHECK(f.owner.held->deadline() < boot_clock::now() + 30min);
    CHECK(f.lease.ttl() == 2h);
    CHECK(f.lease.renew(holdfast::valid_until(boot_clock::now(), 30min)));
    CHECK(f.owner.held->deadline() < boot_clock::now() + 30min);
    CHECK(f.lease.ttl() == 30min);
}

TEST_CASE("a renewal that brings nothing new is not repeated at once")
{
    fixture f;
    auto const old = holdfast::valid_until(f.begun - 30min, 1h);
    f.lease.ask(1h);
    CHECK(f.lease.renew(old));
    CHECK(f.lease.next_look() >= f.begun + 3min);
    CHECK(f.lease.next_look() < boot_clock::now() + 4min);
    f.lease.ask(1h);
    CHECK(f.lease.renew(f.valid));
    CHECK(f.lease.next_look() > f.begun + 20min - boot_clock::duration{1h} / 64);
    CHECK(f.lease.next_look() <= f.begun + 20min);
}

TEST_CASE(
    "a lease has tokens for all handoffs where the lock is seldom taken, otherwise for as many as the last one needed")
{
    CHECK(lease_state{}.handoffs_for(*fixture{}.first) == 63);
    // Of leases that follow each other at once. On a machine that stood still in between the next has all.
    auto const after = [](unsigned handoffs, bool wanted, unsigned reserved) {
        fixture f;
        f.lease.end(&*f.first);
        quiet next{f.owner};
        f.lease.begin(grant{.token = {}, .valid_until = f.valid, .fence = 70, .fences = reserved + 1}, next);
        f.lease.give(next, f.lease.deadline_for(f.valid), nullptr);
        for (unsigned i = 0; i < handoffs; ++i) f.lease.count_handoff();
        f.lease.end(wanted ? &*f.first : nullptr);
        return f.lease.handoffs_for(*f.first);
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
    quiet next{f.owner};
    f.lease.end(nullptr);
    quiet again{f.owner};
    f.lease.begin(grant{.token = {}, .valid_until = f.valid, .fence = 70, .fences = 2}, again);
    f.lease.give(again, f.lease.deadline_for(f.valid), nullptr);
    auto const deadline = f.lease.deadline_for(f.valid);
    CHECK(f.lease.may_pass_to(next, deadline));
    f.lease.count_handoff();
    CHECK_FALSE(f.lease.may_pass_to(next, deadline));
}

TEST_CASE("a lease is passed on as often only as its next holder allows")
{
    fixture f;
    object other{std::make_shared<lock_options const>(lock_options{.ttl = 1h, .max_local_handoffs = 1})};
    object never{std::make_shared<lock_options const>(lock_options{.ttl = 1h, .max_local_handoffs = 0})};
    quiet next{other};
    quiet direct{never};
    auto const deadline = f.lease.deadline_for(f.valid);
    CHECK_FALSE(f.lease.may_pass_to(direct, deadline));
    CHECK(f.lease.may_pass_to(next, deadline));
    f.lease.count_handoff();
    CHECK_FALSE(f.lease.may_pass_to(next, deadline));
}

TEST_CASE("a lease whose last renewal failed is not passed on; that says nothing of the next lease")
{
    fixture f;
    object other{f.owner.options};
    quiet next{other};
    auto const deadline = f.lease.deadline_for(f.valid);
    f.lease.ask(1h);
    CHECK_FALSE(f.lease.settle(make_error_code(holdfast::errc::unavailable)));
    CHECK_FALSE(f.lease.may_pass_to(next, deadline));
    f.lease.end(nullptr);
    quiet again{f.owner};
    f.lease.begin(grant{.token = {}, .valid_until = f.valid, .fence = 70, .fences = 64}, again);
    f.lease.give(again, deadline, nullptr);
    CHECK(f.lease.may_pass_to(next, deadline));
}

TEST_CASE("a renewal that failed is tried again when a quarter of the time left has passed", "[lesson-9]")
{
    fixture f;
    f.lease.retry_later();
    CHECK(f.lease.next_look() > f.begun + 14min);
    CHECK(f.lease.next_look() < boot_clock::now() + 15min);
}

TEST_CASE("a lease is looked at when a renewal is due, or at its deadline")
{
    fixture f;
    CHECK_FALSE(f.lease.due(f.lease.next_look() - 1ns));
    CHECK(f.lease.due(f.lease.next_look()));
    fixture const kept{{.renew = false}};
    CHECK(kept.lease.next_look() == kept.owner.held->deadline());
    CHECK_FALSE(kept.lease.due(kept.begun + 30min));
}

TEST_CASE("the answer to a renewal says whether the lease is lost")
{
    fixture f;
    using holdfast::detail::loss;
    auto const answered = [&](holdfast::result<boot_clock::time_point> const& answer) {
        f.lease.ask(1h);
        return f.lease.settle(answer);
    };
    CHECK_FALSE(answered(f.valid + 1s));
    CHECK(f.owner.held->deadline() == f.lease.deadline_for(f.valid + 1s));
    CHECK_FALSE(answered(make_error_code(holdfast::errc::unavailable)));
    CHECK(f.lease.next_look() < boot_clock::now() + 15min);
    CHECK(answered(make_error_code(holdfast::errc::lease_lost)) == loss::taken);
    CHECK(answered(f.begun) == loss::late);
}

TEST_CASE("a renewal that is granted, but leaves the end of the lease where it was, has failed when it ends soon")
{
    fixture f;
    auto const renewed_until = [](fixture& of, boot_clock::time_point valid) {
        of.lease.ask(1h);
        CHECK_FALSE(of.lease.settle(valid));
        return of.lease.failing();
    };
    CHECK_FALSE(renewed_until(f, f.valid));  // most of it is left

    fixture late{{.stop_margin = 30min}, 33min};
    CHECK(renewed_until(late, late.valid));
    object other{late.owner.options};
    quiet next{other};
    CHECK_FALSE(late.lease.may_pass_to(next, late.lease.deadline_for(late.valid)));
    CHECK(late.lease.next_look() < boot_clock::now() + 1min);
    CHECK_FALSE(renewed_until(late, late.valid + 1s));
}

TEST_CASE("a lease that its store does not have any more after its deadline was not renewed in time")
{
    fixture f;
    f.lease.ask(1ms);
    CHECK(f.lease.settle(make_error_code(holdfast::errc::lease_lost)) == holdfast::detail::loss::deadline);
}

TEST_CASE("the result of a release is a loss if the lease had ended, or if its store does not have it any more")
{
    using holdfast::errc;
    using holdfast::detail::release_result;
    auto const told = [](bool was_valid, std::error_code answer) {
        return release_result(was_valid, {answer, {}}).code;
    };
    CHECK_FALSE(told(true, {}));
    CHECK(told(true, make_error_code(errc::outcome_unknown)) == errc::outcome_unknown);
    CHECK(told(true, make_error_code(errc::not_owner)) == errc::lease_lost);
    CHECK(told(true, make_error_code(errc::lease_lost)) == errc::lease_lost);
    CHECK(told(false, {}) == errc::lease_lost);
    CHECK(told(false, make_error_code(errc::unavailable)) == errc::lease_lost);
    CHECK(release_result(true, {make_error_code(errc::unavailable), "refused"}).detail == "refused");
}

TEST_CASE("a renewal that failed when the hold was over is not put off")
{
    fixture f;
    f.owner.held->lose();
    f.lease.retry_later();
    CHECK(f.lease.due(boot_clock::now() + 2ms));
}

TEST_CASE("a stop_margin brings the deadline forward, of the first holder, of a renewal and of a request for less")
{
    fixture f{{.stop_margin = 10min}};
    auto const margin = holdfast::announcement_margin(1h) + 10min;
    CHECK(f.owner.held->deadline() == f.valid - margin);
    f.lease.ask(1h);
    CHECK(f.owner.held->deadline() == f.valid - margin);
    CHECK(f.lease.renew(f.valid + 1s));
    CHECK(f.owner.held->deadline() == f.valid + 1s - margin);
    auto const before = boot_clock::now();
    f.lease.ask(30min);
    auto const asked = holdfast::valid_until(before, 30min) - holdfast::announcement_margin(30min) - 10min;
    CHECK(f.owner.held->deadline() >= asked);
    CHECK(f.owner.held->deadline() <= asked + (boot_clock::now() - before));
}

TEST_CASE("a lease with a stop_margin is renewed every third of what is left, and passed on while half of that is left")
{
    fixture f{{.stop_margin = 30min}};
    CHECK(f.lease.next_look() <= f.begun + 10min);
    CHECK(f.lease.next_look() > f.begun + 10min - boot_clock::duration{1h} / 64);
    object other{f.owner.options};
    quiet next{other};
    CHECK(f.lease.may_pass_to(next, boot_clock::now() + 16min));
    CHECK_FALSE(f.lease.may_pass_to(next, boot_clock::now() + 15min - 1s));
}

TEST_CASE("an answer that comes within the stop_margin is late")
{
    fixture f{{.stop_margin = 30min}};
    f.lease.ask(1h);
    CHECK(f.lease.settle(f.begun + 30min) == holdfast::detail::loss::late);
    fixture without;
    without.lease.ask(1h);
    CHECK_FALSE(without.lease.settle(boot_clock::now() + 30min));
}

TEST_CASE("a lease whose duration its store fixes is too short for a stop_margin above a third of it")
{
    auto const granted = [](std::chrono::milliseconds margin, std::chrono::milliseconds fixed) {
        object owner{std::make_shared<lock_options const>(lock_options{.ttl = 1h, .stop_margin = margin})};
        quiet first{owner};
        lease_state lease;
        lease.begin(grant{.token = {}, .valid_until = boot_clock::now() + 1h, .ttl = fixed}, first);
        return lease.too_short();
    };
    CHECK_FALSE(granted(0ms, 9s));
    CHECK_FALSE(granted(3s, 9s));
    CHECK(granted(3001ms, 9s));
    CHECK_FALSE(granted(30min, 0s));
}
