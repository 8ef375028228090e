// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace holdfast::test {

/// The resource that knows about fencing tokens: takes no write with a token below the greatest it has seen, and no read
/// with one below the greatest of a write. Made for memory that processes share, any of which may be stopped or killed
/// at any point without being in the way of the others. Takes `Capacity` of them; tokens are less than 2^63.
template <std::size_t Capacity>
class fenced_register {
public:
    /// Returns: which of those that were taken this one is, from 1; 0 where it is refused. Throws: `std::length_error`
    /// when it is full.
    std::uint64_t write(std::uint64_t token)
    {
        return take(token, [this, token](std::size_t count) { return token >= greatest(count); });
    }

    /// As above, but takes every write: to show what the tokens are for.
    std::uint64_t write_unchecked(std::uint64_t token)
    {
        return take(token, [](std::size_t) { return true; });
    }

    /// As `write`, but is refused only after a write with a greater token: those who read together have any order.
    std::uint64_t read(std::uint64_t token)
    {
        return take(token | read_mark, [this, token](std::size_t count) { return token >= last_write(count); });
    }

private:
    static constexpr std::uint64_t read_mark = std::uint64_t{1} << 63U;

    template <class F>
    std::uint64_t take(std::uint64_t entry, F const& allowed)
    {
        for (;;) {
            auto next = count_.load(std::memory_order_acquire);
            if (next == Capacity) throw std::length_error{"the register has taken as many writes as it can"};
            if (!allowed(next)) return 0;
            std::uint64_t none = 0;
            bool const ours = taken_[next].compare_exchange_strong(none, entry, std::memory_order_acq_rel);
            auto const turn = next + 1;
            count_.compare_exchange_strong(
                next, turn, std::memory_order_acq_rel);  // also for one who was stopped just before this line
            if (ours) return turn;
        }
    }

    /// Returns: the token of the last write among the first `count`; no write was taken that is greater.
    [[nodiscard]] std::uint64_t last_write(std::size_t count) const
    {
        while (count != 0)
            if (auto const entry = taken_[--count].load(std::memory_order_acquire); (entry & read_mark) == 0)
                return entry;
        return 0;
    }

    /// Returns: the greatest token among the first `count`: that of the last write, or of a read after it.
    [[nodiscard]] std::uint64_t greatest(std::size_t count) const
    {
        std::uint64_t most = 0;
        while (count != 0) {
            auto const entry = taken_[--count].load(std::memory_order_acquire);
            most = std::max(most, entry & ~read_mark);
            if ((entry & read_mark) == 0) break;
        }
        return most;
    }

    std::array<std::atomic<std::uint64_t>, Capacity> taken_{};  // the tokens; none of them is 0
    std::atomic<std::size_t> count_{0};
};

}  // namespace holdfast::test
