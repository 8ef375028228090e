// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace holdfast::redis {

/// How soon a waiter looks at a lock that is reported to be free: at once, unless such reports have again and again been followed by a look that
/// found the same lease. Anybody who may publish can report what is not so, as often as he likes.
///
/// A lease is the same if it ends when the last one did. One that ends later is another, or was renewed; a look that is late sees an end that is
/// late, but not again and again a later one.
class report_pace {
public:
    /// So many looks in vain are followed by the next one at once: a crowd may have been faster that often.
    static constexpr int free_looks = 32;

    /// What the pause doubles up to: what a release may go unnoticed for among reports that are not true.
    static constexpr std::chrono::milliseconds longest{16};

    /// Effects: notes that a report has a waiter look. Returns: how long he waits before he does, at most.
    [[nodiscard]] boot_clock::duration reported(boot_clock::time_point now) noexcept
    {
        if (now - std::exchange(reported_at_, now) > quiet) in_vain_ = 0;
        looks_ = true;
        if (in_vain_ < free_looks) return {};
        return std::min<boot_clock::duration>(std::chrono::milliseconds{1 << std::min(in_vain_ - free_looks, 10)}, longest);
    }

    /// Effects: notes that a look found a lease that ends after `left`; `unknown` if nobody knows.
    void found(boot_clock::duration left, boot_clock::time_point now) noexcept
    {
        bool const by_report = std::exchange(looks_, false);
        if (left != unknown && (now + left > ends_ + later || now + left + earlier < ends_)) {
            ends_ = now + left;
            in_vain_ = 0;
        } else if (by_report) {
            in_vain_ = std::min(in_vain_ + 1, free_looks + 10);
        }
    }

    static constexpr boot_clock::duration unknown = boot_clock::duration::max();

private:
    static constexpr std::chrono::milliseconds later{2};
    static constexpr std::chrono::milliseconds earlier{1000};  // several servers may have it for different times
    static constexpr std::chrono::milliseconds quiet{1000};    // without reports

    boot_clock::time_point ends_{};
    boot_clock::time_point reported_at_{};
    int in_vain_ = 0;
    bool looks_ = false;
};

}  // namespace holdfast::redis
