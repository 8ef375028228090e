// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/hold_state.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/lock/activity.hpp>
#include <holdfast/lock/waiter.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Returns: what the holder is told of a release whose result was `answer`. `was_valid`: the holder still had the lease
/// when it released it. If it is told `lease_lost`, the loss is to be announced.
[[nodiscard]] inline failure release_result(bool was_valid, failure answer) noexcept
{
    if (was_valid && answer.code != errc::not_owner && answer.code != errc::lease_lost) return answer;
    return {make_error_code(errc::lease_lost), {}};
}

/// A lease from its grant by the store to its end, while it passes from holder to holder of this process. Arithmetic
/// only; guarded by the queue's mutex.
class lease_state {
public:
    /// Effects: begins a lease with what the store granted for `first`, to whom it is to be given first.
    void begin(grant const& got, waiter& first) noexcept
    {
        options_ = first.options;
        holder_ = nullptr;
        first.next_hold->token = got.token;
        fixed_ = got.ttl.count() != 0;
        ttl_ = first_ttl_ = fixed_ ? got.ttl : options_->ttl;
        next_fence_ = got.fence;
        handoffs_ =
            options_->fencing ? std::min(options_->max_local_handoffs, got.fences - 1) : options_->max_local_handoffs;
        handed_on_ = 0;
        failing_ = false;
        release_at_ = boot_clock::time_point::max();
        begun_ = boot_clock::now();
        count_renewal(got.valid_until);
    }

    /// Effects: makes `one` the holder until `deadline`, with the next fencing token of the batch. What it has to give
    /// the lease back is its own, or else `releasing`.
    void give(waiter& one, boot_clock::time_point deadline, std::unique_ptr<release_call> releasing) noexcept
    {
        options_ = one.options;
        if (holder_) one.next_hold->token = token();
        holder_ = std::move(one.next_hold);
        holder_->begin(next_fence_, deadline);
        release_at_ = boot_clock::time_point::max();
        if (next_fence_ != 0) ++next_fence_;
        one.owner->held = holder_;
        holder_->unused = one.limit.told_later;
        one.owner->releasing = std::move(one.releasing ? one.releasing : releasing);
        if (one.owner->releasing) one.owner->releasing->bind(token());
    }

    /// Effects: gives the lease, which ends at `deadline`, to `kept`, which has no user, until `release_at`; then it is
    /// given back. Returns: whether it may end before, so that more is to be asked for.
    bool keep(std::shared_ptr<hold_state> kept, std::shared_ptr<lock_options const> options,
              boot_clock::time_point deadline, boot_clock::time_point release_at) noexcept
    {
        options_ = std::move(options);
        kept->begin(holder_->fence(), deadline);
        kept->token = token();
        holder_ = std::move(kept);
        release_at_ = release_at;
        return !fixed_ && release_at > deadline;
    }

    /// Returns: the earliest time at which its holder gives the lease back to the store, see `min_hold`. Requires: it
    /// has a holder.
    [[nodiscard]] boot_clock::time_point earliest_release() const noexcept
    {
        if (holder_->unused) return {};
        return saturating_add(holder_->since(), options_->min_hold);  // mutant: min_hold ignored
    }

    /// Returns: when a lease that is kept is given back; `time_point::max()` if it is not kept.
    [[nodiscard]] boot_clock::time_point release_at() const noexcept { return release_at_; }
    [[nodiscard]] bool kept() const noexcept { return release_at_ != boot_clock::time_point::max(); }

    /// Effects: uses one of the handoffs.
    void count_handoff() noexcept
    {
        --handoffs_;
        ++handed_on_;
    }

    /// Effects: the lease is not handed on any more: when its holder releases it, it is given back.
    void end_handoffs() noexcept { handoffs_ = 0; }

    /// Returns: for how many handoffs `next` should reserve fencing tokens with its lease: for all that are allowed,
    /// or, if the lock is taken again and again, for as many as the last lease needed. Unused reserved tokens would
    /// drive a store's counter ahead of its clock.
    [[nodiscard]] unsigned handoffs_for(waiter const& next) const noexcept
    {
        constexpr std::chrono::milliseconds seldom{10};
        auto const most = next.options->max_local_handoffs;
        return boot_clock::now() - begun_ >= seldom ? most : std::min(most, needed_);
    }

    /// Returns: the first holder's deadline under a lease that is valid until `t`.
    [[nodiscard]] boot_clock::time_point deadline_for(boot_clock::time_point t) const noexcept
    {
        return t - margin(ttl_);
    }

    /// Returns: whether the store fixes how long the lease is, and that is too short for `stop_margin`.
    [[nodiscard]] bool too_short() const noexcept { return fixed_ && options_->stop_margin > ttl_ / 3; }

    /// Effects: ends the lease. If `next` is not null, it would have taken the lease over.
    void end(waiter const* next) noexcept
    {
        if (!holder_) return;
        needed_ = handoffs_ == 0 && next ? options_->max_local_handoffs : handed_on_;
        holder_ = nullptr;
        release_at_ = boot_clock::time_point::max();
        options_ = nullptr;  // their lock may be destroyed: nothing is reported to it after that
    }

    /// Returns: whether a lease that ends at `deadline` is good enough for `next`: it is renewed, at least half of it
    /// is left, and its options are what `next` wants, which allows one more handoff, too.
    [[nodiscard]] bool may_pass_to(waiter const& next, boot_clock::time_point deadline) const noexcept
    {
        auto const& wanted = *next.options;
        bool const same = &wanted == options_.get() ||
                          (wanted.ttl == options_->ttl && wanted.renew == options_->renew &&
                           wanted.fencing == options_->fencing && wanted.stop_margin == options_->stop_margin);
        return handoffs_ > 0 && handed_on_ < wanted.max_local_handoffs && !failing_ && same && options_->renew &&
               ttl_ == first_ttl_ && deadline - boot_clock::now() >= usable(ttl_) / 2;
    }

    /// Effects: notes that a lease of `ttl` is about to be asked for; the answer to an earlier request does not count
    /// any more. If that ends before the present lease, the earlier deadline counts at once: the store may grant the
    /// request, and the answer may be lost.
    void ask(std::chrono::milliseconds ttl) noexcept
    {
        asked_for_ = fixed_ ? ttl_ : ttl;
        if (asked_for_ >= ttl_) return;  // it ends later
        holder_->shorten(valid_until(boot_clock::now(), asked_for_) - margin(asked_for_));
    }

    /// Effects: makes the lease valid until `t`, as the answer to the last request says. Returns: whether it came in
    /// time.
    [[nodiscard]] bool renew(boot_clock::time_point t) noexcept
    {
        if (!holder_->renew(t - margin(asked_for_))) return false;
        ttl_ = asked_for_;
        count_renewal(t);
        // The store may say yes although its last proof is old: do not ask again at once.
        auto const now = boot_clock::now();
        auto const soon =
            std::min<boot_clock::duration>(boot_clock::duration{pace()} / 16, (t - now - options_->stop_margin) / 4);
        renew_at_ = std::max(renew_at_, now + std::max<boot_clock::duration>(soon, std::chrono::milliseconds{2}));
        return true;
    }

    /// Effects: acts on the answer to the last request; the caller handles a loss. Requires: the lease has a holder.
    [[nodiscard]] std::optional<loss> settle(result<boot_clock::time_point> const& outcome) noexcept
    {
        auto const before = holder_->deadline();
        if (outcome && !renew(*outcome)) return loss::late;
        if (outcome.code() == errc::lease_lost) return holder_->still_held() ? loss::taken : loss::deadline;
        failing_ = !outcome || runs_out(before);
        if (!outcome) retry_later();
        return std::nullopt;
    }

    /// Returns: whether the last renewal failed, or was granted and is of no use: the lease ends when it did before,
    /// and soon.
    [[nodiscard]] bool failing() const noexcept { return failing_; }

    /// Effects: schedules the retry of a failed renewal after a quarter of the time left.
    void retry_later() noexcept
    {
        auto const now = boot_clock::now();
        // The deadline of a hold that is over is `time_point::min()`.
        auto const left = std::max(holder_->deadline(), now) - now;
        // mutant: renewal stops at the first error
        renew_at_ = now + std::max<boot_clock::duration>(left / 4, std::chrono::milliseconds{2});
    }

    /// Returns: whether the lease is to be renewed, with regard to `max_hold`.
    [[nodiscard]] bool renewable() const noexcept
    {
        if (kept()) return holder_->deadline() < release_at_;
        return options_->renew &&
               (!options_->max_hold || renew_at_ < saturating_add(holder_->since(), *options_->max_hold));
    }

    /// Returns: whether it is not renewed any more because `max_hold` is over.
    [[nodiscard]] bool held_for_most() const noexcept { return !kept() && options_->renew && !renewable(); }

    /// Returns: whether it is time for a renewal.
    [[nodiscard]] bool due(boot_clock::time_point now) const noexcept { return renewable() && now >= renew_at_; }

    /// Returns: when a renewal is due, or the deadline if none is before it.
    [[nodiscard]] boot_clock::time_point next_look() const noexcept
    {
        auto const end = std::min(holder_->deadline(), release_at_);
        return renewable() ? std::min(renew_at_, end) : end;
    }

    [[nodiscard]] std::shared_ptr<hold_state> const& holder() const noexcept { return holder_; }
    [[nodiscard]] std::shared_ptr<lock_options const> const& options() const noexcept { return options_; }
    /// Requires: it has a holder.
    [[nodiscard]] owner_token const& token() const noexcept { return holder_->token; }
    [[nodiscard]] std::chrono::milliseconds ttl() const noexcept { return ttl_; }

    /// Returns: for how long a renewal is to ask: as before, or, if the lease is kept, for no longer than is needed.
    [[nodiscard]] std::chrono::milliseconds wanted_ttl() const noexcept
    {
        if (!kept() || fixed_) return ttl_;
        auto const rest = std::chrono::ceil<std::chrono::milliseconds>(release_at_ - boot_clock::now());
        return std::max(first_ttl_, rest);  // mutant: a lock kept for its ttl only
    }

private:
    /// Returns: how long before the end of its validity the loss of a lease of `ttl` is announced.
    [[nodiscard]] boot_clock::duration margin(std::chrono::milliseconds ttl) const noexcept
    {
        return announcement_margin(ttl) + options_->stop_margin;  // mutant: stop_margin ignored
    }

    /// Returns: what `stop_margin` leaves of `ttl`.
    [[nodiscard]] boot_clock::duration usable(std::chrono::milliseconds ttl) const noexcept
    {
        return ttl - options_->stop_margin;
    }

    /// Returns: whether a renewal that was granted is of no use: the lease does not end later than `before`, and less
    /// than an eighth of it is left. A ZooKeeper session that was confirmed anew is in that state for a while, and may
    /// begin it with a quarter.
    [[nodiscard]] bool runs_out(boot_clock::time_point before) const noexcept
    {
        auto const end = holder_->deadline();
        // mutant: a renewal that is of no use taken for one that succeeds
        return end <= before && end - boot_clock::now() < usable(ttl_) / 8;
    }

    /// Returns: the ttl that says how often the lease is renewed. One that is kept for longer is renewed as before, so
    /// that it is found out no later that it was deleted.
    [[nodiscard]] std::chrono::milliseconds pace() const noexcept { return kept() ? std::min(ttl_, first_ttl_) : ttl_; }

    /// Effects: sets the next renewal to a third of the ttl, less `stop_margin`, after the request that made the lease
    /// valid until `t`, or up to ttl / 64 before that: leases of the same ttl are renewed together.
    void count_renewal(boot_clock::time_point t) noexcept
    {
        auto const at = sent_at(t, ttl_) + usable(pace()) / 3;
        renew_at_ = at - at.time_since_epoch() % (boot_clock::duration{pace()} / 64);
    }

    std::shared_ptr<hold_state> holder_;
    std::shared_ptr<lock_options const> options_;
    std::chrono::milliseconds ttl_{};
    std::chrono::milliseconds first_ttl_{};  // before it was extended
    std::uint64_t next_fence_ = 0;
    unsigned handoffs_ = 0;  // that are left
    unsigned handed_on_ = 0;
    unsigned needed_ = 0;   // for the next lease: what the last one needed, or more
    bool failing_ = false;  // see `failing()`
    bool fixed_ = false;    // the store fixes the ttl
    boot_clock::time_point begun_{};
    std::chrono::milliseconds asked_for_{};
    boot_clock::time_point renew_at_{};
    boot_clock::time_point release_at_ = boot_clock::time_point::max();  // of a lease that is kept
};

}  // namespace holdfast::detail
