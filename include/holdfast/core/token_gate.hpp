// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <cstdint>
#include <mutex>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// Stands before a resource that fencing tokens protect, in the service that has the resource: it lets no write through
/// whose token is smaller than one that it has seen. One for each lock name, or each slot of a semaphore. Not for the
/// readers of a `shared_mutex`, of whom those that hold it together may have different tokens. Thread-safe.
///
/// It forgets with its process. A service that may be restarted keeps the token beside what was written, in the same
/// step, and gives it back to the constructor.
///
/// Source: M. Kleppmann, "How to do distributed locking", 2016.
class token_gate {
public:
    /// Effects: counts `seen` as the greatest token so far; 0 for none.
    explicit token_gate(std::uint64_t seen = 0) noexcept : seen_{seen} {}
    token_gate(token_gate const&) = delete;
    token_gate& operator=(token_gate const&) = delete;

    /// Effects: if no token greater than `token` was seen, notes it and calls `write`. Calls are made one at a time:
    /// otherwise a write that was let through could overtake one with a greater token. `write` must not use this gate.
    /// Returns: whether it called `write`; never for a token of 0, which is none. Throws: what `write` throws; the
    /// token stays noted, as the write may have been made.
    template <class F>
    bool pass(std::uint64_t token, F&& write)
    {
        std::scoped_lock guard{mutex_};
        if (token == 0 || token < seen_) return false;
        seen_ = token;
        std::forward<F>(write)();
        return true;
    }

    /// Returns: the greatest token so far; 0 for none.
    [[nodiscard]] std::uint64_t seen() const noexcept
    {
        std::scoped_lock guard{mutex_};
        return seen_;
    }

private:
    mutable std::mutex mutex_;
    std::uint64_t seen_;
};

}  // namespace holdfast
