// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/quorum/answer.hpp>
#include <holdfast/quorum/node_group.hpp>
#include <holdfast/quorum/node_set.hpp>
#include <holdfast/quorum/quorum_poll.hpp>
#include <holdfast/redis/error.hpp>

#include <chrono>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Asks every node, and waits for all answers. An operator, unlike a lock, is not in a hurry, and often the first to
/// use its connections: it may add the time for one.
///
/// | event | next |
/// |---|---|
/// | start | ask all |
/// | an answer after which there is more to ask | ask that node for it |
/// | the connection broke, the first time, and the question may be repeated | ask that node again |
/// | all have answered, or cannot be asked | done |
/// | one node timeout without an answer | done, if a majority has answered |
/// | that, and the time for a connection | the other answers are missing; done |
///
/// A node that was asked and has not answered, or not the last time, may have done what was asked: it is in doubt.
class question_machine {
public:
    /// `repeats`: whether the question may be repeated.
    question_machine(quorum::node_group const& nodes, std::chrono::milliseconds connect_timeout, bool repeats) noexcept
        : nodes_{nodes},
          connect_timeout_{connect_timeout},
          repeats_{repeats},
          pending_{quorum::node_set::all(nodes.size)}
    {
    }

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept
    {
        return answered_.size() >= quorum::majority_of(nodes_.size) ? soon_ : soon_ + connect_timeout_;
    }

    [[nodiscard]] quorum::poll_step start(boot_clock::time_point now) noexcept
    {
        soon_ = now + nodes_.timeout;
        return {.ask = pending_};
    }

    /// Effects: notes that there is more to ask of `node` after its next answer.
    void expect_more(unsigned node) noexcept { more_.add(node); }

    [[nodiscard]] quorum::poll_step on_answer(unsigned node, quorum::answer const& a,
                                              boot_clock::time_point now) noexcept
    {
        soon_ = now + nodes_.timeout;
        bool const unknown = a.what == quorum::answer::kind::unknown;
        bool const again = unknown && a.error == errc::connection_lost && repeats_ && !asked_again_.has(node);
        if (again) asked_again_.add(node);
        if (unknown) doubtful_.add(node);  // mutant: a lost answer taken for a question that was not asked
        if (!a.error) doubtful_.remove(node);
        if (again || more_.has(node)) {
            more_.remove(node);
            return {.ask = quorum::node_set::of(node)};
        }
        pending_.remove(node);
        if (!a.error) answered_.add(node);
        return {.done = pending_.empty()};
    }

    [[nodiscard]] quorum::poll_step on_time(boot_clock::time_point) noexcept
    {
        doubtful_ = doubtful_ | pending_;  // mutant: a lost answer taken for a question that was not asked
        return {.give_up = pending_, .done = true};
    }

    /// Returns: the nodes that have answered all.
    [[nodiscard]] quorum::node_set answered() const noexcept { return answered_; }

    /// Returns: the nodes that may have done what was asked, or not.
    [[nodiscard]] quorum::node_set doubtful() const noexcept { return doubtful_; }

private:
    quorum::node_group nodes_;
    std::chrono::milliseconds connect_timeout_;
    bool repeats_;
    quorum::node_set pending_;
    quorum::node_set more_;
    quorum::node_set answered_;
    quorum::node_set asked_again_;
    quorum::node_set doubtful_;
    boot_clock::time_point soon_{};
};

}  // namespace holdfast::redis
