// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014). For jitter only; the
/// seed comes from outside, so that its use can be replayed.
class random_sequence {
public:
    explicit constexpr random_sequence(std::uint64_t seed) noexcept : state_{seed} {}

    constexpr std::uint64_t next() noexcept
    {
        state_ += 0x9e3779b97f4a7c15U;
        auto z = state_;
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31U);
    }

    /// Returns: a number in [0, bound); 0 if `bound` is 0.
    constexpr std::uint64_t below(std::uint64_t bound) noexcept { return bound == 0 ? 0 : next() % bound; }

private:
    std::uint64_t state_;
};

}  // namespace holdfast::detail
