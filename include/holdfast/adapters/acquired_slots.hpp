// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/slot_set.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Which slots of a set were taken by `acquire` and are to be given back by `release`. Thread-safe.
class acquired_slots {
public:
    explicit acquired_slots(slot_set const& of) : slots_{of}, taken_(of.size()) {}
    acquired_slots(acquired_slots const&) = delete;
    acquired_slots& operator=(acquired_slots const&) = delete;
    ~acquired_slots() = default;

    /// Effects: notes that these were taken.
    void add(std::vector<std::size_t> const& slots) noexcept
    {
        std::scoped_lock guard{mutex_};
        for (auto const slot : slots) taken_[slot] = ++acquired_;
    }

    /// Returns: the slot that is to be given back: one that is lost, if there is any, or else the oldest; null if there
    /// is none.
    [[nodiscard]] std::shared_ptr<lock_object> let_go() noexcept
    {
        if (origin_.in_child()) return nullptr;  // the mutex may be locked for ever
        std::scoped_lock guard{mutex_};
        return next();
    }

    /// Returns: `n` slots, chosen as above; none if there are fewer. Throws: `std::bad_alloc`: then none is to be given
    /// back.
    [[nodiscard]] std::vector<std::shared_ptr<lock_object>> let_go(std::size_t n)
    {
        if (origin_.in_child()) return {};
        std::vector<std::shared_ptr<lock_object>> chosen;
        std::scoped_lock guard{mutex_};
        auto const free = static_cast<std::size_t>(std::count(taken_.begin(), taken_.end(), std::uint64_t{0}));
        if (n > taken_.size() - free) return {};
        chosen.reserve(n);
        while (chosen.size() < n) chosen.push_back(next());
        return chosen;
    }

private:
    [[nodiscard]] std::shared_ptr<lock_object> next() noexcept
    {
        std::optional<std::size_t> chosen;
        for (std::size_t i = 0; i < taken_.size(); ++i) {
            if (taken_[i] == 0) continue;
            bool const lost = !slots_.at(i)->lease().still_held();
            if (lost || !chosen || taken_[i] < taken_[*chosen]) chosen = i;
            if (lost) break;
        }
        if (!chosen) return nullptr;
        taken_[*chosen] = 0;
        return slots_.at(*chosen);
    }

    slot_set const& slots_;
    std::mutex mutex_;
    std::vector<std::uint64_t> taken_;  // for each slot that was taken, its number in that order; 0: none
    std::uint64_t acquired_ = 0;
    fork_guard const origin_;
};

}  // namespace holdfast::detail
