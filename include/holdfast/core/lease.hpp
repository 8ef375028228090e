// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/hold_state.hpp>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

namespace detail {
class joint_hold;
}

/// What a holder may ask about its hold of a lock. A cheap copyable handle; it may outlive the hold and the lock, and
/// is safe to use from any thread. One that was default-constructed, or whose hold has ended, is not held. In a child
/// of `fork` every copy answers as if its hold had ended: the lock is the parent's.
class lease {
public:
    lease() noexcept = default;
    /// Effects: makes a handle to `hold`. For the library itself and for authors of a mutex.
    explicit lease(std::shared_ptr<detail::hold_state> hold) noexcept : hold_{std::move(hold)} {}

    /// Returns: the number by which a resource tells this holder from earlier ones: greater than that of every holder
    /// of this name before. 0 if the lock was made with `fencing = false`, and for a hold of several locks.
    [[nodiscard]] std::uint64_t fencing_token() const noexcept { return hold_ ? hold_->fence() : 0; }

    /// Returns: when the lease will be lost if it is not renewed before, which is `lock_options::stop_margin` before
    /// another client can get the lock, or earlier; `time_point::min()` once it has ended.
    [[nodiscard]] boot_clock::time_point expires_at() const noexcept
    {
        return hold_ ? hold_->deadline() : boot_clock::time_point::min();
    }

    /// Returns: the time from now to `expires_at()`; zero once it has passed.
    [[nodiscard]] boot_clock::duration remaining() const noexcept
    {
        auto const end = expires_at();
        auto const now = boot_clock::now();
        return end > now ? end - now : boot_clock::duration::zero();
    }

    /// Returns: whether the lock is still ours. Reads the clock, so it is right even in the first call after the
    /// process was stopped. Once false for this hold, it stays false. In a child of `fork` it is false.
    [[nodiscard]] bool still_held() const noexcept { return hold_ && hold_->still_held(); }

    /// Returns: a token that is stopped when the lease is lost. Its callbacks run in a thread that is begun for them; a
    /// client has up to 16 of these. If `unlock` or `extend` finds the loss, they run in its thread, before it returns.
    /// In a child of `fork` it is stopped; one that was asked for before the fork is not.
    [[nodiscard]] std::stop_token lost_token() const { return hold_ ? hold_->lost_token() : std::stop_token{}; }

    /// Returns: an early warning: a token that is stopped when a renewal or an extension has failed and the lease goes
    /// on. One that is granted, and leaves the end of the lease where it was, has failed when that end is near. Unless
    /// a later one succeeds, the lease is lost at `expires_at()`. It is stopped with the first event
    /// `lock_event::kind::at_risk` in a row, and with the loss at the latest: a loss that no failed renewal precedes
    /// has no earlier warning. After a renewal that succeeds, this returns a new token, which is not stopped; one that
    /// was asked for before stays stopped. Its callbacks run as those of `lost_token()`. In a child of `fork` it is
    /// stopped.
    [[nodiscard]] std::stop_token at_risk() const { return hold_ ? hold_->at_risk() : std::stop_token{}; }

    /// Returns: a token that is stopped when an operator asks the holder to release the lock (`request_release`), with
    /// the renewal that follows at the latest; never if the lock is not renewed. Its callbacks run as those of
    /// `lost_token()`. The lock stays held until its holder releases it. In a child of `fork` it is never stopped.
    [[nodiscard]] std::stop_token release_requested() const
    {
        return hold_ ? hold_->release_requested() : std::stop_token{};
    }

    /// Returns: whether both are handles to the same hold.
    [[nodiscard]] friend bool operator==(lease const& a, lease const& b) noexcept { return a.hold_ == b.hold_; }

private:
    friend class detail::joint_hold;

    std::shared_ptr<detail::hold_state> hold_;
};

}  // namespace holdfast
