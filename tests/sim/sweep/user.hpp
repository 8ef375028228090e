// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"
#include "schedule.hpp"
#include "verdict.hpp"

#include <holdfast/core/backend.hpp>
#include <holdfast/redis/acquire_operation.hpp>
#include <holdfast/redis/ballot_operation.hpp>
#include <holdfast/sim/process.hpp>
#include <holdfast/sim/transport.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

namespace holdfast::test {

/// A user of one lock: takes it, works for a while, renewing the lease every third of its ttl, and gives it back; again and again. What
/// it was promised becomes part of the history.
class user {
public:
    user(sim::transport& way, redis::shared_keys key, schedule const& plan, boot_clock::time_point end, history& claims, verdict& v)
        : way_{way}, me_{way.client()}, key_{std::move(key)}, plan_{plan}, end_{end}, claims_{claims}, verdict_{v}
    {
        ttl_ = me_.world().below(3) == 0 ? plan.ttl * 2 / 3 : plan.ttl;
        renews_ = me_.world().below(4) != 0;
    }

    sim::process live()
    {
        while (me_.world().now() < end_) {
            auto const wish = next_wish();
            redis::acquire_operation<sim::transport> acquire{way_, key_, wish};
            acquire.start();
            auto const patience = one_in(20) ? me_.present() + up_to(plan_.ttl) : end_ + plan_.ttl;
            auto const done_at = co_await way_.finished(acquire, patience);
            if (!acquire.done()) {
                if (one_in(2)) acquire.cancel();
                continue;
            }
            if (plan_.calm && is_late(wish, done_at)) breach("a deadline was not kept");
            if (auto const got = acquire.outcome()) {
                note("ACQUIRED", got->fence);
                ++verdict_.acquired;
                claims_.push_back({.client = me_.index(),
                                   .granted = done_at,
                                   .valid_until = me_.clock().when(got->valid_until),
                                   .first_fence = got->fence,
                                   .last_fence = got->fence + wish.fences - 1});
                co_await hold(*got, claims_.size() - 1);
            } else {
                note("refused", static_cast<std::uint64_t>(got.code().value()));
                ++verdict_.refused;
                co_await me_.sleep_until(me_.present() + up_to(plan_.ttl / 8));
            }
        }
    }

private:
    using duration = boot_clock::duration;
    using time_point = boot_clock::time_point;

    sim::process hold(grant got, std::size_t mine)
    {
        auto const leave_at = me_.present() + up_to(one_in(4) ? 3 * plan_.ttl : plan_.ttl / 6);
        auto const margin = announcement_margin(ttl_);
        auto deadline = got.valid_until - margin;
        auto renew_at = renews_ ? me_.clock().when(got.valid_until - ttl_ * 2 / 3) : time_point::max();
        for (;;) {
            co_await me_.sleep_until(std::min(leave_at, renew_at));
            if (me_.present() >= leave_at || me_.now() >= deadline) break;
            renew_at = me_.present() + ttl_ / 3;
            redis::extend_operation<sim::transport> extend{way_, key_, got.token, ttl_};
            extend.start();
            auto const answered = co_await way_.finished(extend);
            auto const until = extend.outcome();
            if (until.code() == errc::lease_lost) {
                claims_[mine].ended = answered;
                break;
            }
            if (!until || me_.clock().at(answered) >= deadline) continue;
            ++verdict_.renewed;
            deadline = std::max(deadline, *until - margin);
            claims_[mine].valid_until = me_.clock().when(deadline + margin);
        }
        bool const lost = me_.now() >= deadline || claims_[mine].ended != time_point::max();
        if (lost) ++verdict_.lost;
        if (plan_.mortal && one_in(30)) co_return;

        claims_[mine].ended = std::min(claims_[mine].ended, me_.present());
        note("RELEASES", got.fence);
        redis::release_operation<sim::transport> release{way_, key_, got.token};
        release.start();
        co_await way_.finished(release);
        if (plan_.calm && !lost && release.outcome()) breach("a release failed without a cause: " + release.outcome().message());
    }

    acquire_request next_wish()
    {
        auto const now = me_.now();
        auto const deadline = one_in(8) ? time_point::min() : me_.clock().at(one_in(2) ? end_ : std::min(end_, me_.present() + up_to(3 * plan_.ttl)));
        return {.ttl = ttl_,
                .fences = one_in(4) ? 33U : 1U,
                .retry = {.first = std::chrono::microseconds{500}, .most = ttl_},
                .deadline = deadline,
                .unavailable_at = one_in(2) ? time_point::max() : now + 2 * plan_.ttl};
    }

    /// Returns: whether an acquire took longer than its deadline and one node timeout, and a message more.
    [[nodiscard]] bool is_late(acquire_request const& wish, time_point done_at) const
    {
        if (wish.deadline == time_point::min()) return false;
        return done_at > me_.clock().when(wish.deadline) + plan_.node_timeout + plan_.wrong.longest_delay;
    }

    [[nodiscard]] duration up_to(duration most) { return me_.world().between({}, most); }
    [[nodiscard]] bool one_in(unsigned n) { return me_.world().below(n) == 0; }
    void note(std::string_view what, std::uint64_t value) { me_.world().note(what, me_.index(), sim::event::nobody, value); }
    void breach(std::string what) { verdict_.breaches.push_back(std::move(what)); }

    sim::transport& way_;
    sim::host& me_;
    redis::shared_keys key_;
    schedule const& plan_;
    time_point end_;
    history& claims_;
    verdict& verdict_;
    std::chrono::milliseconds ttl_{};
    bool renews_ = false;
};

}  // namespace holdfast::test
