// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/node_set.hpp>

#include <system_error>

namespace holdfast::redis {

/// What the driver is to do for a question that is put to all nodes once.
struct ballot_step {
    node_set ask{};
    node_set give_up{};
    bool done = false;
};

/// Counts the answers to one yes-or-no question put to every node. Extend and release are such questions.
///
/// | event                                      | next |
/// |--------------------------------------------|------|
/// | start                                      | ask all |
/// | a majority said yes                        | done |
/// | so many did not that no majority can       | done |
/// | connection lost before the answer, once    | the node is asked again: both questions may be repeated |
/// | time                                       | the nodes that did not answer have failed; done |
class ballot {
public:
    ballot(unsigned nodes, std::chrono::milliseconds node_timeout) noexcept
        : all_{node_set::all(nodes)}, pending_{all_}, node_timeout_{node_timeout}
    {
    }

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept { return wake_at_; }

    [[nodiscard]] ballot_step start(boot_clock::time_point now) noexcept
    {
        wake_at_ = now + node_timeout_;
        return {.ask = all_};
    }

    /// Requires: `node` was asked and has not answered since.
    [[nodiscard]] ballot_step on_answer(unsigned node, answer const& a, boot_clock::time_point) noexcept
    {
        if (a.what == answer::kind::error && a.error == errc::connection_lost && !asked_again_.has(node)) {
            asked_again_.add(node);
            return {.ask = node_set::of(node)};
        }
        pending_.remove(node);
        switch (a.what) {
        case answer::kind::yes: yes_.add(node); break;
        case answer::kind::no: no_.add(node); break;
        case answer::kind::error: fail(node, a.error); break;
        }
        return {.done = decided()};
    }

    [[nodiscard]] ballot_step on_time(boot_clock::time_point) noexcept
    {
        auto const overdue = pending_;
        overdue.for_each([&](unsigned node) { fail(node, errc::no_answer); });
        pending_ = {};
        return {.give_up = overdue, .done = true};
    }

    [[nodiscard]] bool carried() const noexcept { return yes_.size() >= majority(); }

    /// Returns: whether so many said no that no majority can be ours.
    [[nodiscard]] bool rejected() const noexcept { return no_.size() > all_.size() - majority(); }

    /// Returns: whether a majority may have said yes all the same: answers are missing.
    [[nodiscard]] bool may_be_carried() const noexcept { return (yes_ | pending_ | silent_).size() >= majority(); }

    /// Returns: whether one that said no was asked twice: the first time it may have said yes.
    [[nodiscard]] bool doubtful() const noexcept { return !(no_ & asked_again_).empty(); }

    /// Returns: why a node failed; that of a wrongly configured one first.
    [[nodiscard]] std::error_code error() const noexcept { return error_; }

    /// Returns: the node of `error()`.
    [[nodiscard]] unsigned failed_node() const noexcept { return failed_node_; }

private:
    [[nodiscard]] unsigned majority() const noexcept { return quorum(all_.size()); }
    [[nodiscard]] bool decided() const noexcept { return carried() || yes_.size() + pending_.size() < majority(); }

    void fail(unsigned node, std::error_code why) noexcept
    {
        if (why == errc::no_answer || why == errc::connection_lost) silent_.add(node);
        if (error_ && !(why == holdfast::errc::misconfigured && error_ != holdfast::errc::misconfigured)) return;
        error_ = why;
        failed_node_ = node;
    }

    node_set all_;
    node_set pending_;
    node_set yes_;
    node_set no_;
    node_set silent_;  // were asked, and nobody knows what they did
    node_set asked_again_;
    std::chrono::milliseconds node_timeout_;
    boot_clock::time_point wake_at_ = boot_clock::time_point::max();
    std::error_code error_;
    unsigned failed_node_ = max_nodes;
};

}  // namespace holdfast::redis
