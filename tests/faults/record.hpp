// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace holdfast::faults {

/// What a client, or the one who does the faults, writes down.
enum class event : std::uint32_t {
    none,  ///< not written to its end
    acquire_begun,
    acquire_ok,       ///< token, valid_until
    acquire_failed,   ///< others have the lock
    acquire_unknown,  ///< an exception: not held, what the servers made of it is open
    renewed,          ///< valid_until
    shared_on,        ///< of a hold that is not shared: its holder is about to become one of those who share it
    loss_announced,
    answered,     ///< value: what `still_held()` said
    write_taken,  ///< by the register that checks tokens; value: which of those that it took; a shared hold reads
    write_refused,
    counter_written,  ///< the counter without a guard; value: what it says now
    release_begun,
    release_done,  ///< value: a `release_result`; valid_until: the lock is kept until then although it is given up
    paused,        ///< of the one who does the faults: client, and so below
    continued,
    killed,  ///< value: when that was begun
    broken,  ///< of the process that does the faults: the hold of another, as an operator does; value: as above
    fault_begun,
    fault_ended,
};

enum class release_result : std::uint64_t { freed, lost, unknown };

/// One entry of a journal. A client is one process or thread that locks; a new one has a new number. `hold` counts its
/// attempts from 1.
struct record {
    std::int64_t at = 0;           ///< ns of CLOCK_MONOTONIC
    std::int64_t valid_until = 0;  ///< the same
    std::uint64_t token = 0;
    std::uint64_t value = 0;
    std::uint32_t client = 0;
    std::uint32_t lock = 0;
    std::uint32_t hold = 0;
    event what = event::none;
    bool shared = false;  ///< of a hold, or an attempt at one, together with others that are, too
};

/// The client number of the one who does the faults.
inline constexpr std::uint32_t director = 0;

}  // namespace holdfast::faults
