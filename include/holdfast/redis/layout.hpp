// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// How a lock is kept on a server. Clients exclude each other, and hear of each other's releases, if they use the same
/// layout; a key of the other layout counts as held, and its release is not heard of.
enum class layout : std::uint8_t {
    /// The key is a string, the owner token: what clients use that `SET key token NX PX`.
    string,

    /// That of Redisson's `RLock`, `RFencedLock` and `RReadWriteLock`: the key is a hash, in which the owner's field
    /// counts its holds. Waiters stand in no queue: each of them hears of each release. Not possible then
    /// (`misconfigured`): `fair`, `list()`, `request_release()`, and a `shared_mutex` with a ttl of more than 30 s, as
    /// the renewals of Redisson's readers shorten the leases of all readers to that. No record of the holder is kept.
    redisson,
};

}  // namespace holdfast::redis
