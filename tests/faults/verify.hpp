// SPDX-License-Identifier: MIT
#pragma once

#include "check/exclusion.hpp"
#include "check/fenced_writes.hpp"
#include "check/fencing.hpp"
#include "check/leftovers.hpp"
#include "check/linearizable.hpp"
#include "crew.hpp"
#include "row.hpp"

#include <support/redis_server.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::faults {

/// Effects: K1, K2, K3 and K5 of a run, and that holders hear of a loss before a rival is granted the lock; the number
/// of its holds is a figure. Where faults are noted, attempts under way in them may leave something behind for a `ttl`.
/// Requires: only leases end locks, and operators where that is noted, not a person that deletes keys, or sessions,
/// behind their holders' backs.
void verify(run_options const& run, findings& to, std::vector<record> const& records, refused_by whom,
            std::size_t least_refused = 0, std::chrono::milliseconds ttl = {});

/// Effects: K4 of the first `locks` locks, but for counters that say nothing: how many these are is a figure.
void verify_counters(findings& to, std::vector<record> const& records, crew& workers, std::uint32_t locks = 1);

/// Returns: what is left of locks on a server, after `limit` at most for it to go.
[[nodiscard]] remains remains_on(test::redis_server& server, std::chrono::milliseconds limit, waiters w);

}  // namespace holdfast::faults
