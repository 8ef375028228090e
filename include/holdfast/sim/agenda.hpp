// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/timer_queue.hpp>

#include <deque>
#include <functional>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// A function that is called once.
using task = std::function<void()>;

/// What will happen, in the order of the times; what is due together, in the order in which it was asked for.
class agenda {
public:
    [[nodiscard]] bool empty() const noexcept { return queue_.first() == nullptr; }
    [[nodiscard]] boot_clock::time_point next() const noexcept { return queue_.next(); }

    void add(boot_clock::time_point when, task f)
    {
        if (free_.empty()) free_.push_back(&entries_.emplace_back());
        auto& one = *free_.back();
        free_.pop_back();
        one.what = std::move(f);
        queue_.add(one, when);
    }

    /// Effects: removes the next task. Returns: it.
    [[nodiscard]] task take()
    {
        auto& one = static_cast<entry&>(*queue_.first());
        queue_.remove(one);
        free_.push_back(&one);
        return std::move(one.what);
    }

private:
    struct entry : holdfast::detail::timed {
        task what;
    };

    holdfast::detail::timer_queue queue_;
    std::deque<entry> entries_;
    std::vector<entry*> free_;
};

}  // namespace holdfast::sim
