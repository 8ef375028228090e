// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/lock/report.hpp>
#include <holdfast/lock/slot_sizes.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The slots of one `semaphore`, and which of them `acquire` has taken.
class permits final {
public:
    /// Throws: as `slot_sizes`.
    permits(std::string_view name, std::ptrdiff_t max, slot_sizes::maker make) : sizes_{name, max, std::move(make)} {}
    permits(permits const&) = delete;
    permits& operator=(permits const&) = delete;
    ~permits() = default;

    [[nodiscard]] slot_sizes& sizes() noexcept { return sizes_; }
    [[nodiscard]] slot_sizes const& sizes() const noexcept { return sizes_; }
    /// Returns: whether this is a child of `fork`.
    [[nodiscard]] bool in_child() const noexcept { return origin_.in_child(); }
    /// Returns: what is stopped by `close`.
    [[nodiscard]] std::stop_token closing() const noexcept { return closing_.get_token(); }

    /// Effects: as `semaphore::resize`.
    void resize(std::ptrdiff_t max)
    {
        if (in_child()) throw made_before_fork(sizes_.name());
        sizes_.resize(max);
    }

    /// Effects: gives back all slots that are taken; what waits is cancelled, also if it is granted one of these.
    void close() noexcept
    {
        if (!in_child()) closing_.request_stop();
        sizes_.close();
    }

    /// Effects: `some` are of those that `release` gives back. Returns: whether there are any.
    bool keep(held_slots some) noexcept
    {
        if (some.empty() || in_child()) return !some.empty();  // the mutex may be locked for ever
        std::scoped_lock guard{mutex_};
        taken_.splice(taken_.end(), some);
        return true;
    }

    /// Effects: `n` of those that were kept, and are to be given back by the caller, are not kept any more: those that
    /// are lost, and else those that were kept first. Returns: which; none if fewer were kept.
    [[nodiscard]] held_slots let_go(std::size_t n = 1) noexcept
    {
        held_slots chosen;
        if (in_child()) return chosen;
        std::scoped_lock guard{mutex_};
        if (n > taken_.size()) return chosen;
        while (chosen.size() < n) {
            auto const lost = std::find_if(taken_.begin(), taken_.end(),
                                           [](auto const& one) { return !one.lock->lease().still_held(); });
            chosen.splice(chosen.end(), taken_, lost != taken_.end() ? lost : taken_.begin());
        }
        return chosen;
    }

private:
    slot_sizes sizes_;
    std::mutex mutex_;
    held_slots taken_;  // those that were taken by `acquire`, in that order
    std::stop_source closing_;
    fork_guard const origin_;
};

}  // namespace holdfast::detail
