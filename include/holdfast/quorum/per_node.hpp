// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <memory>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// A value for each node. That of the first is in the object: most locks have one node, and need no memory beside it.
template <class T>
class per_node {
public:
    explicit per_node(unsigned nodes) : others_{nodes > 1 ? std::make_unique<T[]>(nodes - 1) : nullptr} {}

    [[nodiscard]] T& operator[](unsigned node) noexcept { return node == 0 ? first_ : others_[node - 1]; }
    [[nodiscard]] T const& operator[](unsigned node) const noexcept { return node == 0 ? first_ : others_[node - 1]; }

private:
    T first_{};
    std::unique_ptr<T[]> others_;
};

}  // namespace holdfast::quorum
