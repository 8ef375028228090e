// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/hold_state.hpp>
#include <holdfast/core/lease.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// A hold of several locks: it lasts as long as each of them, and is lost with the first. It has no fencing token: each
/// lock has one of its own.
class joint_hold final : public hold_state {
public:
    /// `most`: of how many locks, at most.
    explicit joint_hold(std::size_t most) { parts_.reserve(most); }

    /// Effects: `part` is one more of its locks. Not to be called while another thread may ask `self`, which is this;
    /// one that announces a loss may do so.
    void add(lease const& part, std::shared_ptr<joint_hold> const& self) noexcept
    {
        parts_.push_back(part);
        if (part.hold_) part.hold_->join(self);
    }

    /// Effects: what is lost from now on is not announced as its loss until `released`: the locks are given back.
    void release() noexcept
    {
        for (auto const& one : parts_)
            if (one.hold_) one.hold_->join({});
    }

    /// Returns: whether one of them was lost, which is not announced yet.
    [[nodiscard]] bool part_lost() const noexcept
    {
        return !std::all_of(parts_.begin(), parts_.end(),
                            [](lease const& one) { return !one.hold_ || one.hold_->join({}); });
    }

    /// Effects: if one of them was lost, announces that, in this thread.
    void released() noexcept
    {
        if (part_lost()) lose();
    }

    [[nodiscard]] boot_clock::time_point deadline() const noexcept override
    {
        auto least = boot_clock::time_point::max();
        for (auto const& one : parts_) least = std::min(least, one.expires_at());
        return least;
    }

    [[nodiscard]] bool still_held() noexcept override
    {
        // mutant: a hold that goes on without one of its locks
        return std::all_of(parts_.begin(), parts_.end(), [](lease const& one) { return one.still_held(); });
    }

private:
    std::vector<lease> parts_;
};

}  // namespace holdfast::detail
