// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lease.hpp>

#include <cstdint>
#include <stop_token>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// What every guard lets its holder ask about its hold. After the hold was given back the answers are those of a hold
/// that has ended.
class lease_access {
public:
    /// Returns: as `lease::fencing_token`, of this hold.
    [[nodiscard]] std::uint64_t fencing_token() const noexcept { return lease_.fencing_token(); }
    /// Returns: as `lease::expires_at`.
    [[nodiscard]] boot_clock::time_point expires_at() const noexcept { return lease_.expires_at(); }
    /// Returns: as `lease::remaining`.
    [[nodiscard]] boot_clock::duration remaining() const noexcept { return lease_.remaining(); }
    /// Returns: as `lease::still_held`.
    [[nodiscard]] bool still_held() const noexcept { return lease_.still_held(); }
    /// Returns: as `lease::lost_token`.
    [[nodiscard]] std::stop_token lost_token() const { return lease_.lost_token(); }
    /// Returns: as `lease::at_risk`.
    [[nodiscard]] std::stop_token at_risk() const { return lease_.at_risk(); }
    /// Returns: as `lease::release_requested`.
    [[nodiscard]] std::stop_token release_requested() const { return lease_.release_requested(); }
    /// Returns: the handle that these members ask.
    [[nodiscard]] holdfast::lease const& lease() const noexcept { return lease_; }

    lease_access& operator=(lease_access&&) = delete;

protected:
    lease_access() noexcept = default;
    /// Effects: the members above ask `of`.
    explicit lease_access(holdfast::lease of) noexcept : lease_{std::move(of)} {}
    /// Effects: takes over the handle of `other`, which has none afterwards.
    lease_access(lease_access&& other) noexcept : lease_{std::exchange(other.lease_, {})} {}
    ~lease_access() = default;

    /// The handle of the hold; the guard that derives from this gives the hold back through it.
    holdfast::lease lease_;  // NOLINT(*-non-private-member-variables-in-classes)
};

}  // namespace holdfast
