// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <memory>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// A value for each node. That of the first is in the object: most locks have one node, and need no memory beside it.
/// The others may be in memory that is lent, of one less than there are nodes.
template <class T>
class per_node {
public:
    explicit per_node(unsigned nodes, T* lent = nullptr)
        : own_{nodes > 1 && !lent ? std::make_unique<T[]>(nodes - 1) : nullptr}, others_{lent ? lent : own_.get()}
    {
    }

    [[nodiscard]] T& operator[](unsigned node) noexcept { return node == 0 ? first_ : others_[node - 1]; }
    [[nodiscard]] T const& operator[](unsigned node) const noexcept { return node == 0 ? first_ : others_[node - 1]; }

private:
    T first_{};
    std::unique_ptr<T[]> own_;
    T* others_;
};

}  // namespace holdfast::quorum
