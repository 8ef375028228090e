// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/quorum/answer.hpp>
#include <holdfast/quorum/node_failures.hpp>
#include <holdfast/quorum/node_group.hpp>
#include <holdfast/quorum/node_set.hpp>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// What the driver must do for a request that is sent to all nodes once.
struct poll_step {
    node_set ask{};
    node_set give_up{};  ///< the answers of these nodes are overdue
    bool done = false;
};

/// Sends one request to every node and counts the answers. Extend and release are such requests: both may be repeated.
/// Some holds have one of them, so it is small: it refers to the group of nodes, which outlives it.
///
/// | event                                            | next |
/// |--------------------------------------------------|------|
/// | start                                            | ask all |
/// | a majority has applied it                        | done |
/// | no majority can apply it any more                | done |
/// | the answer of a node is unknown, the first time  | ask that node again |
/// | time                                             | missing answers count as unknown; done |
class quorum_poll {
public:
    explicit quorum_poll(node_group const& nodes) noexcept : nodes_{nodes}, pending_{node_set::all(nodes.size)} {}

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept { return wake_at_; }

    [[nodiscard]] poll_step start(boot_clock::time_point now) noexcept
    {
        wake_at_ = now + nodes_.timeout;
        return {.ask = node_set::all(nodes_.size)};
    }

    /// Requires: `node` was asked and has not answered since.
    [[nodiscard]] poll_step on_answer(unsigned node, answer const& a, boot_clock::time_point) noexcept
    {
        if (failures_.asks_again(node, a)) return {.ask = node_set::of(node)};
        pending_.remove(node);
        if (a.what == answer::kind::applied)
            applied_.add(node);
        else if (a.what == answer::kind::refused && !a.error)
            refused_.add(node);  // mutant: a no counted as a yes
        else
            fail({.error = a.error, .node = node, .unknown = a.what == answer::kind::unknown});
        return {.done = decided()};
    }

    [[nodiscard]] poll_step on_time(boot_clock::time_point) noexcept
    {
        auto const overdue = pending_;
        overdue.for_each([&](unsigned node) { fail({.error = nodes_.overdue, .node = node, .unknown = true}); });
        pending_ = {};
        return {.give_up = overdue, .done = true};
    }

    /// Returns: whether a majority has applied it.
    [[nodiscard]] bool carried() const noexcept { return applied_.size() >= majority(); }

    /// Returns: whether so many refused it that no majority can be ours.
    [[nodiscard]] bool rejected() const noexcept { return refused_.size() > nodes_.size - majority(); }

    /// Returns: whether the answers that are missing may still make it so.
    [[nodiscard]] bool may_be_rejected() const noexcept
    {
        return refused_.size() + pending_.size() > nodes_.size - majority();
    }

    /// Returns: whether a majority may have applied it although answers are missing.
    [[nodiscard]] bool may_be_carried() const noexcept { return (applied_ | pending_ | unknown_).size() >= majority(); }

    /// Returns: whether a node refused it only when it was asked again: it may have applied it the first time.
    [[nodiscard]] bool doubtful() const noexcept { return !(refused_ & failures_.asked_again()).empty(); }

    /// Returns: why a node failed.
    [[nodiscard]] node_failures::cause const& why() const noexcept { return failures_.why(); }

private:
    [[nodiscard]] unsigned majority() const noexcept { return majority_of(nodes_.size); }  // mutant: renewal by 2 of 5
    [[nodiscard]] bool decided() const noexcept { return carried() || applied_.size() + pending_.size() < majority(); }

    void fail(node_failures::cause const& c) noexcept
    {
        if (c.unknown) unknown_.add(c.node);
        failures_.add(c);
    }

    node_group const& nodes_;
    boot_clock::time_point wake_at_ = boot_clock::time_point::max();
    node_set pending_;
    node_set applied_;
    node_set refused_;
    node_set unknown_;
    [[no_unique_address]] node_failures failures_;
};

}  // namespace holdfast::quorum
