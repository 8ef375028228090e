// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/token.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace holdfast::inline HOLDFAST_ABI {

/// What an acquire asks of a store.
struct acquire_request {
    /// How long the lease lasts if it is not renewed.
    std::chrono::milliseconds ttl{};

    /// How much earlier than it has to be the loss of the lease is announced: a lease that has no more than that left
    /// is no use.
    std::chrono::milliseconds stop_margin{};

    /// How many consecutive fencing tokens to reserve, at most 64; 0 for none.
    unsigned fences = 1;

    /// It may not overtake those who wait, even with a single attempt; see `lock_options::fair`.
    bool in_order = false;

    /// How the attempts are spaced.
    backoff_options retry{};

    /// Exactly one attempt, whatever `deadline` is; with `until_decided` more, until then.
    bool once = false;

    /// With `once`: if some nodes grant the lock, but no majority does, another attempt follows, until `deadline`; if a
    /// majority votes for others, a few times. If that is not decided then, the acquire fails with `unavailable`.
    /// So `timed_out` says that another client has the lock, or goes on. No effect if the servers decide as one.
    bool until_decided = false;

    /// Once it is called, it leaves the lock free for so long, for clients that only poll. No effect on servers that do
    /// not call waiters.
    boot_clock::duration leaves_free{};

    /// Its place in a queue is that of a client that came then, if that is before now. Only servers of Redis know it.
    boot_clock::time_point since = boot_clock::time_point::max();

    /// No attempt begins after it.
    boot_clock::time_point deadline = boot_clock::time_point::max();

    /// The acquire fails with `unavailable` if by then, and ever since it began, no quorum could be asked.
    boot_clock::time_point unavailable_at = boot_clock::time_point::max();

    /// It also fails so if no quorum could be asked for this long after one could.
    boot_clock::duration unavailable_after = boot_clock::duration::max();

    /// The lease of the same name and owner, in the other mode of a `shared_mutex`, which does not refuse this one:
    /// the way from one mode to the other without a gap. It is untouched, whatever comes of this; after a grant, which
    /// is a lease of its own with a token of its own, the caller gives it back. Asked for once (`once`).
    ///
    /// | asked for | granted if |
    /// |-----------|------------|
    /// | shared    | this lease has the lock exclusively |
    /// | exclusive | no other lease shares the lock; waiting writers do not matter |
    std::optional<owner_token> beside{};

    /// No other client can rightly have it, as with a shared lease beside the exclusive one: nodes that refuse may just
    /// not know of that. If they are no majority, the acquire fails with `unavailable`, not with `timed_out`.
    bool undisputed = false;
};

/// What an acquire got.
struct grant {
    /// The owner token of the lease, which `extend` and `bind` take.
    owner_token token;

    /// ttl − elapsed − drift, counted from before the first byte was sent. Before that, a store must not grant the
    /// lock to another owner.
    boot_clock::time_point valid_until;

    /// The first of the reserved fencing tokens; the others follow it. 0 if none was asked for.
    std::uint64_t fence = 0;

    /// How many are reserved: as many as were asked for, or more.
    unsigned fences = 1;

    /// The lease duration, if the store fixes it (a ZooKeeper session), also for every extension; 0: as requested.
    std::chrono::milliseconds ttl{0};
};

}  // namespace holdfast
