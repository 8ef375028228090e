// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/quorum/answer.hpp>
#include <holdfast/quorum/node_set.hpp>

#include <cstdint>
#include <system_error>
#include <tuple>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// Which nodes have to be asked once more, and why nodes failed.
class node_failures {
public:
    struct cause {
        std::error_code error{};
        unsigned node = max_nodes;
        bool unknown = false;  ///< the node may have done what it was asked
    };

    /// Returns: whether to ask the node once more: its answer is unknown, for the first time.
    [[nodiscard]] bool asks_again(unsigned node, answer const& a) noexcept
    {
        if (a.what != answer::kind::unknown || asked_again_.has(node)) return false;
        asked_again_.add(node);
        return true;
    }

    /// Effects: notes that a node failed.
    void add(cause const& c) noexcept
    {
        ++size_;
        if (c.error && rank(c) < rank(why_)) why_ = c;
    }

    /// Returns: the error to report: one that may pass before that of a misconfigured node, because a majority may be
    /// possible then; one that is certain before a missing answer. Among equals it is that of the lowest node, not the
    /// earliest: a failure that lasts is reported as the same one, whichever answer comes first.
    [[nodiscard]] cause const& why() const noexcept { return why_; }

    /// Returns: how many nodes failed.
    [[nodiscard]] unsigned size() const noexcept { return size_; }
    [[nodiscard]] node_set asked_again() const noexcept { return asked_again_; }

private:
    [[nodiscard]] static std::tuple<bool, bool, unsigned> rank(cause const& c) noexcept
    {
        return {!c.error || c.error == errc::misconfigured, c.unknown || !c.error, c.node};
    }

    cause why_;
    node_set asked_again_;
    std::uint8_t size_ = 0;
};

/// The same for an attempt at which a majority may never be possible.
class attempt_failures : public node_failures {
public:
    /// Effects: notes that a node failed.
    void add(cause const& c) noexcept
    {
        node_failures::add(c);
        if (c.error == errc::misconfigured) permanent_.add(c);
    }

    /// Returns: whether so many of `nodes` are misconfigured that no majority is possible.
    [[nodiscard]] bool hopeless(unsigned nodes) const noexcept
    {
        return nodes - permanent_.size() < majority_of(nodes);
    }

    /// Returns: the error to report: that of a misconfigured node only if it is hopeless, or no other error came.
    [[nodiscard]] cause const& why(unsigned nodes) const noexcept
    {
        return hopeless(nodes) ? permanent_.why() : node_failures::why();
    }

private:
    node_failures permanent_;  // those of misconfigured nodes
};

}  // namespace holdfast::quorum
