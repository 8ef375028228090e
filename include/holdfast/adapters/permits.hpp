// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/slot_set.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/fork_guard.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The permits of one `semaphore`: its slots, and which of them `acquire` has taken.
class permits final {
public:
    permits(std::string_view name, std::ptrdiff_t max, slot_set::maker const& make)
        : slots_{name, max, make}, taken_(slots_.size())
    {
    }

    [[nodiscard]] slot_set& slots() noexcept { return slots_; }
    [[nodiscard]] slot_set const& slots() const noexcept { return slots_; }

    /// Effects: gives back all slots that are taken; what waits is cancelled, also if it is granted one of these.
    void close() noexcept
    {
        closing_.request_stop();
        slots_.close();
    }

    /// Returns: what is stopped by `close`.
    [[nodiscard]] std::stop_token closing() const noexcept { return closing_.get_token(); }

    /// Returns: whether this is a child of `fork`.
    [[nodiscard]] bool in_child() const noexcept { return origin_.in_child(); }

    /// Effects: `slot` is one of those that `release` gives back.
    void keep(std::size_t slot) noexcept
    {
        if (origin_.in_child()) return;  // the mutex may be locked for ever
        std::scoped_lock guard{mutex_};
        taken_[slot] = ++acquired_;
    }

    /// As above, for several.
    void keep(std::vector<std::size_t> const& slots) noexcept
    {
        if (origin_.in_child()) return;
        std::scoped_lock guard{mutex_};
        for (auto const slot : slots) taken_[slot] = ++acquired_;
    }

    /// Effects: one of those that were kept, and is to be given back by the caller, is not kept any more: one that is
    /// lost, if there is any, or else the one that was kept first. Returns: which one; nothing if none was kept.
    [[nodiscard]] std::optional<std::size_t> let_go() noexcept
    {
        if (origin_.in_child()) return std::nullopt;
        std::scoped_lock guard{mutex_};
        return next_to_give_back();
    }

    /// As above, for `n` of them. Returns: which; none if fewer were kept. Throws: `std::bad_alloc`: then all are kept.
    [[nodiscard]] std::vector<std::size_t> let_go(std::size_t n)
    {
        if (origin_.in_child()) return {};
        std::vector<std::size_t> chosen;
        std::scoped_lock guard{mutex_};
        auto const free = static_cast<std::size_t>(std::count(taken_.begin(), taken_.end(), std::uint64_t{0}));
        if (n > taken_.size() - free) return {};
        chosen.reserve(n);
        while (chosen.size() < n) chosen.push_back(next_to_give_back().value());
        return chosen;
    }

private:
    [[nodiscard]] std::optional<std::size_t> next_to_give_back() noexcept
    {
        std::optional<std::size_t> chosen;
        for (std::size_t i = 0; i < taken_.size(); ++i) {
            if (taken_[i] == 0) continue;
            bool const lost = !slots_.at(i)->lease().still_held();
            if (lost || !chosen || taken_[i] < taken_[*chosen]) chosen = i;
            if (lost) break;
        }
        if (chosen) taken_[*chosen] = 0;
        return chosen;
    }

    slot_set slots_;
    std::mutex mutex_;
    std::vector<std::uint64_t> taken_;  // for each slot that was taken by `acquire`, its number in that order; 0: none
    std::uint64_t acquired_ = 0;
    std::stop_source closing_;
    fork_guard const origin_;
};

}  // namespace holdfast::detail
