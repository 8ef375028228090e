// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/core/hold.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/lock/waiting_line.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

namespace holdfast::detail {

/// What was asked of the store for a lease that there is.
struct lease_request {
    std::uint64_t tenure;
    std::uint64_t number;
    std::chrono::milliseconds ttl;
};

/// A lease from its grant by the store to its end, while it passes from holder to holder of this process. Arithmetic only; guarded by the
/// queue's mutex.
class tenure {
public:
    /// Effects: begins a tenure with what the store granted for `options`.
    void begin(grant const& got, std::shared_ptr<lock_options const> options) noexcept
    {
        ++number_;
        options_ = std::move(options);
        token_ = got.token;
        fixed_ = got.ttl.count() != 0;
        ttl_ = first_ttl_ = fixed_ ? got.ttl : options_->ttl;
        next_fence_ = got.fence;
        handoffs_ = options_->fencing ? std::min(options_->max_local_handoffs, got.fences - 1) : options_->max_local_handoffs;
        handed_on_ = 0;
        begun_ = boot_clock::now();
        count_renewal(got.valid_until);
    }

    /// Effects: `one` is the holder until `deadline`, with the next fencing token of the batch.
    void give(waiter& one, boot_clock::time_point deadline) noexcept
    {
        options_ = one.owner->options;
        holder_ = std::move(one.next_hold);
        holder_->begin(next_fence_, deadline);
        if (next_fence_ != 0) ++next_fence_;
        one.owner->held = holder_;
        one.owner->token = token_;
        held_since_ = boot_clock::now();
    }

    /// Effects: takes one of the handoffs.
    void count_handoff() noexcept
    {
        --handoffs_;
        ++handed_on_;
    }

    /// Returns: for how many handoffs a lease should have fencing tokens that `next` asks for: for all that are allowed; where the lock is taken
    /// again and again, for as many as the last lease needed. Tokens that are reserved and not used would drive a store's counter ahead of its clock.
    [[nodiscard]] unsigned handoffs_for(waiter const& next) const noexcept
    {
        constexpr std::chrono::milliseconds seldom{10};
        auto const most = next.owner->options->max_local_handoffs;
        return boot_clock::now() - begun_ >= seldom ? most : std::min(most, needed_);
    }

    /// Returns: the first holder's deadline under a lease that is valid until `t`.
    [[nodiscard]] boot_clock::time_point deadline_for(boot_clock::time_point t) const noexcept { return t - announcement_margin(ttl_); }

    /// Effects: the lease is over; `next` would have liked to have it, where that is not null.
    void end(waiter const* next) noexcept
    {
        if (!holder_) return;
        needed_ = handoffs_ == 0 && next ? options_->max_local_handoffs : handed_on_;
        holder_ = nullptr;
        options_ = nullptr;  // the lock that they are of may be destroyed: nothing is told to it any more then
    }

    /// Returns: whether a lease that ends at `deadline` is good enough for `next`, too: it is renewed, at least half of it is left, and
    /// it is what `next` wants.
    [[nodiscard]] bool may_pass_to(waiter const& next, boot_clock::time_point deadline) const noexcept
    {
        auto const& wanted = *next.owner->options;
        bool const same = &wanted == options_.get() ||
                          (wanted.ttl == options_->ttl && wanted.renew == options_->renew && wanted.fencing == options_->fencing);
        return handoffs_ > 0 && same && options_->renew && ttl_ == first_ttl_ &&
               deadline - boot_clock::now() >= boot_clock::duration{ttl_} / 2;
    }

    /// Effects: notes that a lease of `ttl` is about to be asked for. Where that is shorter than what is left, it counts from now on: the
    /// store may grant it and the answer be lost.
    [[nodiscard]] lease_request ask(std::chrono::milliseconds ttl) noexcept
    {
        if (fixed_) ttl = ttl_;
        holder_->shorten(valid_until(boot_clock::now(), ttl) - announcement_margin(ttl));
        return {.tenure = number_, .number = ++asked_, .ttl = ttl};
    }

    /// Returns: whether the lease of `r` still is somebody's.
    [[nodiscard]] bool concerns(lease_request const& r) const noexcept { return holder_ && r.tenure == number_; }

    /// Effects: the lease is valid until `t`, as the answer to `r` says; unless another request was sent behind it.
    /// Returns: whether that came in time.
    [[nodiscard]] bool renew(lease_request const& r, boot_clock::time_point t) noexcept
    {
        if (r.number != asked_) return true;
        if (!holder_->renew(t - announcement_margin(r.ttl))) return false;
        ttl_ = r.ttl;
        count_renewal(t);
        // The store may say yes and have nothing newer to prove it by.
        auto const now = boot_clock::now();
        auto const soon = std::min<boot_clock::duration>(boot_clock::duration{ttl_} / 16, (t - now) / 4);
        renew_at_ = std::max(renew_at_, now + std::max<boot_clock::duration>(soon, std::chrono::milliseconds{2}));
        return true;
    }

    /// Effects: has a renewal that failed tried again when a quarter of the time left has passed.
    void retry_later() noexcept
    {
        auto const now = boot_clock::now();
        auto const left = std::max(holder_->deadline(), now) - now;  // the deadline of a hold that is over is the first point of all
        renew_at_ = now + std::max<boot_clock::duration>(left / 4, std::chrono::milliseconds{2});
    }

    /// Returns: whether the lease is to be renewed at all, `max_hold` considered.
    [[nodiscard]] bool renewable() const noexcept
    {
        return options_->renew && (!options_->max_hold || renew_at_ < saturating_add(held_since_, *options_->max_hold));
    }

    /// Returns: whether it is not, since `max_hold` is over.
    [[nodiscard]] bool held_for_most() const noexcept { return options_->renew && !renewable(); }

    [[nodiscard]] boot_clock::time_point renew_at() const noexcept { return renew_at_; }
    [[nodiscard]] std::shared_ptr<hold> const& holder() const noexcept { return holder_; }
    [[nodiscard]] std::shared_ptr<lock_options const> const& options() const noexcept { return options_; }
    [[nodiscard]] owner_token const& token() const noexcept { return token_; }
    [[nodiscard]] std::chrono::milliseconds ttl() const noexcept { return ttl_; }

private:
    /// Effects: the next renewal is due a third of the ttl after the request was sent that made the lease valid until `t`.
    void count_renewal(boot_clock::time_point t) noexcept
    {
        auto const sent = t + drift(ttl_) - ttl_;
        renew_at_ = sent + boot_clock::duration{ttl_} / 3;
    }

    std::uint64_t number_ = 0;  // no other tenure of the queue has it
    std::shared_ptr<hold> holder_;
    boot_clock::time_point held_since_{};
    std::shared_ptr<lock_options const> options_;
    owner_token token_;
    std::chrono::milliseconds ttl_{};
    std::chrono::milliseconds first_ttl_{};  // before it was extended
    bool fixed_ = false;                     // the store knows one ttl only
    std::uint64_t next_fence_ = 0;
    unsigned handoffs_ = 0;  // that are left
    unsigned handed_on_ = 0;
    unsigned needed_ = 0;  // by the last lease, or more
    boot_clock::time_point begun_{};
    std::uint64_t asked_ = 0;
    boot_clock::time_point renew_at_{};
};

}  // namespace holdfast::detail
