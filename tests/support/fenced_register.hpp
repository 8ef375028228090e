// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace holdfast::test {

/// The resource that knows about fencing tokens: takes no write with a token below the greatest it has seen. Made for
/// memory that processes share, any of which may be stopped or killed at any point without being in the way of the
/// others. Takes `Capacity` writes.
template <std::size_t Capacity>
class fenced_register {
public:
    /// Returns: which of the writes that were taken this one is, from 1; 0 where it is refused. Throws:
    /// `std::length_error` when it is full.
    std::uint64_t write(std::uint64_t token) { return write_unless(token, true); }

    /// As above, but takes every write: to show what the tokens are for.
    std::uint64_t write_unchecked(std::uint64_t token) { return write_unless(token, false); }

private:
    std::uint64_t write_unless(std::uint64_t token, bool checked)
    {
        for (;;) {
            auto next = count_.load(std::memory_order_acquire);
            if (next == Capacity) throw std::length_error{"the register has taken as many writes as it can"};
            if (checked && next != 0 && token < taken_[next - 1].load(std::memory_order_acquire)) return 0;
            std::uint64_t none = 0;
            bool const ours = taken_[next].compare_exchange_strong(none, token, std::memory_order_acq_rel);
            auto const turn = next + 1;
            count_.compare_exchange_strong(
                next, turn, std::memory_order_acq_rel);  // also for one who was stopped just before this line
            if (ours) return turn;
        }
    }

    std::array<std::atomic<std::uint64_t>, Capacity> taken_{};  // the tokens; none of them is 0
    std::atomic<std::size_t> count_{0};
};

}  // namespace holdfast::test
