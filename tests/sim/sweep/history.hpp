// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::test {

/// One claim to have the lock, in the time of the world.
struct claim {
    unsigned client = 0;
    boot_clock::time_point granted{};      ///< when the acquire was done
    boot_clock::time_point valid_until{};  ///< what the acquire, or the last renewal that came in time, promised
    boot_clock::time_point ended =
        boot_clock::time_point::max();  ///< release begun, or loss learnt; `max()` for neither
    std::uint64_t first_fence = 0;      ///< of those reserved
    std::uint64_t last_fence = 0;
    bool shared = false;             ///< with others that are, too
    boot_clock::time_point asked{};  ///< when the acquire began
    bool waited = false;             ///< the acquire was no single attempt
    bool beside = false;             ///< it was granted beside another claim of its client, which it replaces
    bool release_sent = false;
    boot_clock::time_point stops_by{};    ///< if it was over by itself: until when its holder has time to stop
    boot_clock::time_point kept_until{};  ///< if it was released in time: until when no other is to get the lock
    std::size_t permits = 1;              ///< of how many it is one, as its client says
    std::size_t slot = 0;                 ///< which of them, if they have numbers
    std::int64_t node = 0;                ///< on ZooKeeper: the transaction that made its node; 0: not known

    [[nodiscard]] boot_clock::time_point over() const noexcept { return valid_until < ended ? valid_until : ended; }
    /// Returns: whether it was released before the lease was over.
    [[nodiscard]] bool given_back() const noexcept { return release_sent && ended < valid_until; }
};

/// All claims to one lock.
using history = std::vector<claim>;

/// One wait for a lock with two modes, or for permits, in the time of the world.
struct wait {
    unsigned client = 0;
    bool shared = false;
    boot_clock::time_point asked{};
    boot_clock::time_point over{};  ///< when the lock was granted; or until when the client waited in vain
    std::size_t permits = 1;        ///< for how many
};

/// One call to a lock, in the time of the world, and what the caller was told.
struct call {
    enum class kind : std::uint8_t { acquire, renew, release };
    enum class answer : std::uint8_t {
        done,     ///< it is the caller's; it is renewed; it is given back
        refused,  ///< it is another's; it is the caller's no more
        unknown,  ///< anything else: it may take effect at any time from the call on, or never
    };

    kind what = kind::acquire;
    answer told = answer::unknown;
    unsigned client = 0;
    std::size_t claim =
        0;  ///< which of its claims it is about: that of the acquire; any number that no other claim has
    boot_clock::time_point called{};
    boot_clock::time_point returned = boot_clock::time_point::max();
    boot_clock::time_point until{};  ///< acquire and renew that are done: the lease does not end before
};

/// All calls to one lock, each client's in their order.
using calls = std::vector<call>;

}  // namespace holdfast::test
