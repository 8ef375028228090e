// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Whose the votes of a lost round are.
enum class votes : std::uint8_t {
    of_others,  ///< none is ours: another client has the lock, or goes on
    doubtful,   ///< a majority is of others, some are ours: another has it with a bare majority, or several contend
    split,      ///< no majority is of others, and some are ours
};

/// Until when an acquire goes on, and how it ends if it does not get the lock. It is told whether a quorum could be
/// asked. Arithmetic only.
///
/// | a quorum               | it goes on until                                 | and ends with |
/// |------------------------|--------------------------------------------------|---------------|
/// | was never asked        | the deadline, or `unavailable_at`                | unavailable   |
/// | can be asked           | the deadline                                     | timed_out     |
/// | can no longer be asked | the deadline                                     | timed_out     |
/// |                        | `unavailable_after` after it could last be asked | unavailable   |
///
/// A single attempt ends as if the deadline had passed. One that is to be decided goes on while its votes are split,
/// and through a few rounds in which they are doubtful. It ends with unavailable if it is not decided at the deadline.
/// An undisputed one whose votes are split has asked no quorum: what the other nodes would say is not known.
class acquire_limits {
public:
    explicit acquire_limits(acquire_request const& r) noexcept
        : once_{r.once},
          until_decided_{r.until_decided},
          undisputed_{r.undisputed},
          deadline_{r.deadline},
          outage_ends_{r.unavailable_at},
          unavailable_after_{r.unavailable_after}
    {
    }

    /// Returns: how an acquire ends whose time is over.
    [[nodiscard]] static std::error_code when_over(bool ever_asked) noexcept
    {
        return make_error_code(ever_asked ? errc::timed_out : errc::unavailable);
    }

    /// Effects: notes that a quorum could be asked at `t`, and voted as `how` says.
    void asked(boot_clock::time_point t, votes how = votes::of_others) noexcept
    {
        if (undisputed_ && how == votes::split) return not_asked();
        split_ = how == votes::split && until_decided_;
        doubts_ = how == votes::doubtful && until_decided_ ? doubts_ + 1 : 0;
        ever_asked_ = true;
        in_doubt_ = false;
        in_outage_ = false;
        outage_ends_ = saturating_add(t, unavailable_after_);
    }

    /// Effects: notes that none can be asked now.
    void not_asked() noexcept
    {
        in_doubt_ = in_doubt_ || !decided();
        split_ = false;
        doubts_ = 0;
        in_outage_ = true;
    }

    [[nodiscard]] bool ever_asked() const noexcept { return ever_asked_; }

    /// Returns: until when it goes on if no quorum can be asked before.
    [[nodiscard]] boot_clock::time_point outage_ends() const noexcept
    {
        return in_outage_ ? outage_ends_ : boot_clock::time_point::max();
    }

    /// Returns: until when attempts may begin, as far as is known, if there may be several.
    [[nodiscard]] boot_clock::time_point until() const noexcept { return std::min(deadline_, outage_ends()); }

    /// Returns: whether an attempt that begins or ends at `now` is the last one.
    [[nodiscard]] bool last_attempt(boot_clock::time_point now) const noexcept
    {
        return (once_ && decided()) || now >= deadline_;
    }

    /// Returns: how it ends at `now`, after an attempt; no error if it goes on.
    [[nodiscard]] std::error_code why_over(boot_clock::time_point now) const noexcept
    {
        if (last_attempt(now)) return when_over(ever_asked_ && decided() && !in_doubt_);
        return now >= outage_ends() ? make_error_code(errc::unavailable) : std::error_code{};
    }

private:
    /// After so many rounds in succession it is one holder: of several that contend, one has won by then.
    static constexpr unsigned most_doubts = 8;

    /// Returns: whether it is known that another client has the lock, or that none can be asked.
    [[nodiscard]] bool decided() const noexcept { return !split_ && (doubts_ == 0 || doubts_ >= most_doubts); }

    bool once_;
    bool until_decided_;
    bool undisputed_;
    boot_clock::time_point deadline_;
    boot_clock::time_point outage_ends_;
    boot_clock::duration unavailable_after_;
    bool ever_asked_ = false;
    bool split_ = false;
    unsigned doubts_ = 0;    // rounds in succession
    bool in_doubt_ = false;  // it was not decided when the outage began
    bool in_outage_ = true;  // none could be asked so far
};

/// Effects: lets `r` end in an outage that is known since `since`: after `patience`; with a deadline, only if no quorum
/// can be asked until then.
inline void limit_outage(acquire_request& r, boot_clock::time_point since, std::chrono::milliseconds patience) noexcept
{
    r.unavailable_at = r.deadline;
    if (r.once || r.deadline != boot_clock::time_point::max()) return;
    r.unavailable_at = saturating_add(since, patience);
    if (r.unavailable_at != boot_clock::time_point::max()) r.unavailable_after = patience;
}

}  // namespace holdfast::detail
