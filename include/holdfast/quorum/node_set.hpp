// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <bit>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// The most nodes that one lock can have.
inline constexpr unsigned max_nodes = 31;

/// A set of nodes, each known by its index.
class node_set {
public:
    constexpr node_set() noexcept = default;

    [[nodiscard]] static constexpr node_set all(unsigned count) noexcept
    {
        return node_set{(std::uint32_t{1} << count) - 1};
    }
    [[nodiscard]] static constexpr node_set of(unsigned node) noexcept { return node_set{std::uint32_t{1} << node}; }

    [[nodiscard]] constexpr bool has(unsigned node) const noexcept { return ((bits_ >> node) & 1U) != 0; }
    [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }
    [[nodiscard]] constexpr unsigned size() const noexcept { return static_cast<unsigned>(std::popcount(bits_)); }

    constexpr void add(unsigned node) noexcept { bits_ |= std::uint32_t{1} << node; }
    constexpr void remove(unsigned node) noexcept { bits_ &= ~(std::uint32_t{1} << node); }

    [[nodiscard]] friend constexpr node_set operator|(node_set a, node_set b) noexcept
    {
        return node_set{a.bits_ | b.bits_};
    }
    [[nodiscard]] friend constexpr node_set operator&(node_set a, node_set b) noexcept
    {
        return node_set{a.bits_ & b.bits_};
    }
    [[nodiscard]] friend constexpr node_set operator-(node_set a, node_set b) noexcept
    {
        return node_set{a.bits_ & ~b.bits_};
    }
    [[nodiscard]] friend constexpr bool operator==(node_set, node_set) noexcept = default;

    /// Requires: not `empty()`.
    [[nodiscard]] constexpr unsigned first() const noexcept { return static_cast<unsigned>(std::countr_zero(bits_)); }

    /// Effects: calls `f(node)` for every node of the set.
    template <class F>
    constexpr void for_each(F&& f) const
    {
        for (auto rest = bits_; rest != 0; rest &= rest - 1) f(static_cast<unsigned>(std::countr_zero(rest)));
    }

private:
    explicit constexpr node_set(std::uint32_t bits) noexcept : bits_{bits} {}
    std::uint32_t bits_ = 0;
};

/// Returns: how many of `nodes` are a majority. Two majorities share a node.
[[nodiscard]] constexpr unsigned majority_of(unsigned nodes) noexcept { return nodes / 2 + 1; }

}  // namespace holdfast::quorum
