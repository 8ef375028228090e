// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// How soon a waiter asks for a lock that is reported to be free: at once, unless again and again the answer after such
/// a report showed the same lease. Every client that may publish can send endless false reports.
///
/// A lease is the same if it ends when the last one did. One that ends later is another lease, or was renewed. An
/// answer that is late shows an end that is too late, but not an ever later one.
class report_pace {
public:
    /// After up to this many looks in vain, the next one still comes at once: a crowd may have been faster that often.
    static constexpr int free_looks = 32;

    /// The limit of the doubling pause. Among false reports, a release may go unnoticed for this long.
    static constexpr std::chrono::milliseconds longest{16};

    /// Effects: notes that a waiter is about to ask because of a report. Returns: how long it waits before that, at
    /// most.
    [[nodiscard]] boot_clock::duration reported(boot_clock::time_point now) noexcept
    {
        if (now - std::exchange(reported_at_, now) > quiet) in_vain_ = 0;
        looks_ = true;
        if (in_vain_ < free_looks) return {};
        auto const doublings = std::min(in_vain_ - free_looks, 10);
        return std::min<boot_clock::duration>(std::chrono::milliseconds{1 << doublings}, longest);
    }

    /// Effects: notes that a look found a lease that ends after `left`; `unknown` if it is not known. Returns: whether
    /// it is another one than before.
    bool found(boot_clock::duration left, boot_clock::time_point now) noexcept
    {
        bool const by_report = std::exchange(looks_, false);
        if (left != unknown && (now + left > ends_ + later || now + left + earlier < ends_)) {
            ends_ = now + left;
            in_vain_ = 0;
            return true;
        }
        if (by_report) in_vain_ = std::min(in_vain_ + 1, free_looks + 10);
        return false;
    }

    static constexpr boot_clock::duration unknown = boot_clock::duration::max();

private:
    static constexpr std::chrono::milliseconds later{2};
    static constexpr std::chrono::milliseconds earlier{1000};  // several servers may have it with different ends
    static constexpr std::chrono::milliseconds quiet{1000};    // without reports

    boot_clock::time_point ends_{};
    boot_clock::time_point reported_at_{};
    int in_vain_ = 0;
    bool looks_ = false;
};

}  // namespace holdfast::quorum
