// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/acquire_limits.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/insertion_sort.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/quorum/answer.hpp>
#include <holdfast/quorum/node_failures.hpp>
#include <holdfast/quorum/node_group.hpp>
#include <holdfast/quorum/node_set.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// One attempt to be granted a lock by a majority of the nodes, with one owner token. Counts votes:
///
/// | vote      | meaning                                         | answer                     | next |
/// |-----------|-------------------------------------------------|----------------------------|------|
/// | pending   | asked                                           | applied                    | granted |
/// |           |                                                 | refused without an error   | held |
/// |           |                                                 | refused with one, not sent | failed |
/// |           |                                                 | unknown                    | asked again; failed |
/// | granted   | the lock is ours; its fence is below the agreed | to a confirm: applied      | confirmed |
/// |           |                                                 | to a confirm: another      | failed |
/// | confirmed | the lock is ours and its fence is no less       | | |
/// | held      | the lock is another's                           | | |
/// | failed    | an error, or nothing came in time               | | |
///
/// A node that is asked once more recognises the token, if it had granted the lock before.
///
/// A majority of grants settles the fence: the greatest that was granted. If fewer than a majority have it already, it
/// is written back to the nodes below it, and must be confirmed. So the next holder's token is greater, however long
/// this one is paused: docs/fencing-tokens.md. Why a majority suffices: docs/proofs.md, "A majority".
class acquire_round {
public:
    /// `margin`: how much of a lease of `ttl` must be left at its grant, beyond what is allowed for the clocks.
    acquire_round(node_group const& nodes, std::chrono::milliseconds ttl, std::chrono::milliseconds margin = {})
        : nodes_{nodes.size}, overdue_{nodes.overdue}, ttl_{ttl}, margin_{margin}, votes_(nodes.size)
    {
    }

    /// Effects: forgets all answers. All nodes are asked, with a fresh owner token, at `now`.
    void begin(boot_clock::time_point now) noexcept
    {
        sent_ = now;
        std::fill(votes_.begin(), votes_.end(), vote{});
        failures_ = {};
        settled_ = false;
        fence_ = 0;
    }

    /// What to send after an answer.
    struct reaction {
        node_set ask{};
        node_set confirm{};
        node_set doubt{};  ///< whose fence one does not take, and that one: their clocks may be wrong
    };

    reaction on_answer(unsigned node, answer const& a) noexcept
    {
        auto& v = votes_[node];
        bool const to_confirm = v.now == vote::granted;
        bool const applied = a.what == answer::kind::applied;
        bool const held = a.what == answer::kind::refused && !a.error;
        if (!to_confirm && failures_.asks_again(node, a)) return {.ask = node_set::of(node)};
        if (to_confirm)
            v.now = applied ? vote::confirmed : vote::failed;
        else
            v = {applied ? vote::granted : held ? vote::held : vote::failed, a.in_line, a.fence, a.time_left};
        if (v.now == vote::failed) failures_.add({.error = a.error, .node = node});
        if (to_confirm && held)
            return {.doubt = those([&](vote const& one) { return one.fence == fence_; }) | node_set::of(node)};
        if (!settled_ && count(vote::granted) >= majority()) return {.confirm = settle_fence()};
        if (settled_ && !to_confirm) return {.confirm = below_fence(node)};
        return {};
    }

    /// Effects: counts every unanswered request as failed. Returns: the nodes of these.
    node_set time_out() noexcept
    {
        auto const overdue =
            those([&](vote const& v) { return v.now == vote::pending || (settled_ && v.now == vote::granted); });
        overdue.for_each([&](unsigned node) {
            votes_[node].now = vote::failed;
            failures_.add({.error = overdue_, .node = node});
        });
        return overdue;
    }

    [[nodiscard]] bool won() const noexcept { return count(vote::confirmed) >= majority(); }

    /// Returns: whether no majority is possible any more, and it is known whether a majority could be asked: a lock
    /// that is held is reported as held, not as unavailable, even if a minority is down.
    [[nodiscard]] bool lost() const noexcept
    {
        auto const pending = count(vote::pending);
        if (grants() + pending >= majority()) return false;
        return asked() || grants() + count(vote::held) + pending < majority();
    }

    /// Returns: whether a majority has answered, some of them with votes for others, and those that have not answered
    /// may still win it.
    [[nodiscard]] bool split() const noexcept { return asked() && !settled_; }

    /// Returns: whether the fence is settled, and confirmation is under way.
    [[nodiscard]] bool confirming() const noexcept { return settled_; }

    /// Returns: the greatest fence granted.
    [[nodiscard]] std::uint64_t fence() const noexcept { return fence_; }
    /// Returns: the first of so many fences, of which that is the last; 0 if there is none.
    [[nodiscard]] std::uint64_t first_of(unsigned fences) const noexcept
    {
        return fence_ == 0 ? 0 : fence_ - fences + 1;
    }

    [[nodiscard]] boot_clock::duration took(boot_clock::time_point now) const noexcept { return now - sent_; }
    [[nodiscard]] boot_clock::time_point validity() const noexcept { return valid_until(sent_, ttl_); }

    /// Returns: whether a lease that is won now can be used. Validity ≤ 0 after the last answer is a failure even if
    /// all nodes granted the lock.
    [[nodiscard]] bool usable(boot_clock::time_point now) const noexcept
    {
        return now < validity() - announcement_margin(ttl_) - margin_;
    }

    /// Returns: whether a majority gave a vote, for us or for others.
    [[nodiscard]] bool asked() const noexcept { return grants() + count(vote::held) >= majority(); }

    /// Returns: whether the lock may be another's: a majority has given its vote to others.
    [[nodiscard]] bool held_by_others() const noexcept { return count(vote::held) >= majority(); }

    /// Returns: whose the votes are.
    [[nodiscard]] detail::votes votes_of() const noexcept
    {
        if (grants() == 0) return detail::votes::of_others;
        return held_by_others() ? detail::votes::doubtful : detail::votes::split;
    }

    /// Returns: how many nodes granted the lock to us.
    [[nodiscard]] unsigned grants() const noexcept { return count(vote::granted) + count(vote::confirmed); }

    /// Returns: whether the only node said, when asked once, that the lock is another's. It is then certainly not ours.
    [[nodiscard]] bool certainly_held() const noexcept
    {
        return nodes_ == 1 && votes_[0].now == vote::held && failures_.asked_again().empty();
    }

    /// Returns: the nodes that certainly refused, each asked once, and call us when it is our turn.
    [[nodiscard]] node_set in_line() const noexcept
    {
        return those([](vote const& v) { return v.queued && v.now == vote::held; }) - failures_.asked_again();
    }

    /// Returns: whether a majority has answered, and a vote is not known yet, on which `votes_of` may depend.
    [[nodiscard]] bool votes_unknown() const noexcept { return asked() && unanswered(); }

    /// Returns: whether a node has not answered.
    [[nodiscard]] bool unanswered() const noexcept { return count(vote::pending) > 0; }

    /// Returns: how long until so many of the others' leases have expired that a majority is free. `unknown` stands for
    /// a lease that does not expire, and for a node that did not say.
    [[nodiscard]] boot_clock::duration until_majority_expires(boot_clock::duration unknown) const
    {
        std::array<boot_clock::duration, max_nodes> left{};
        for (unsigned node = 0; node < nodes_; ++node) {
            auto const& v = votes_[node];
            left[node] = unknown;
            if (v.now == vote::granted || v.now == vote::confirmed) left[node] = {};  // it is rolled back
            if (v.now == vote::held && v.time_left.count() >= 0)
                left[node] = std::min(v.time_left, longest_ttl) + std::chrono::milliseconds{1};
        }
        auto const at = left.begin() + (majority() - 1);
        detail::insertion_sort(left.begin(), left.begin() + nodes_);
        return *at;
    }

    /// Returns: until when others have the lock, as a majority said at `now`; 0: it did not say.
    [[nodiscard]] boot_clock::time_point held_until(boot_clock::time_point now) const
    {
        auto const left = until_majority_expires(boot_clock::duration::max());
        return held_by_others() && left != boot_clock::duration::max() ? now + left : boot_clock::time_point{};
    }

    /// Returns: the error to report.
    [[nodiscard]] node_failures::cause const& why() const noexcept { return failures_.why(nodes_); }

    /// Returns: whether so many nodes are misconfigured that no majority is possible.
    [[nodiscard]] bool hopeless() const noexcept { return failures_.hopeless(nodes_); }

private:
    struct vote {
        enum state : std::uint8_t { pending, granted, confirmed, held, failed };
        state now = pending;
        bool queued = false;
        std::uint64_t fence = 0;
        std::chrono::milliseconds time_left{};
    };

    [[nodiscard]] unsigned majority() const noexcept { return majority_of(nodes_); }  // mutant: quorum of 2 of 5

    template <class F>
    [[nodiscard]] node_set those(F const& f) const noexcept
    {
        node_set nodes;
        for (unsigned node = 0; node < nodes_; ++node)
            if (f(votes_[node])) nodes.add(node);
        return nodes;
    }

    [[nodiscard]] unsigned count(vote::state s) const noexcept
    {
        return those([s](vote const& v) { return v.now == s; }).size();
    }

    node_set settle_fence() noexcept
    {
        settled_ = true;
        for (auto const& v : votes_)
            // mutant: least fence instead of the greatest
            if (v.now == vote::granted) fence_ = std::max(fence_, v.fence);
        node_set below;
        for (unsigned node = 0; node < nodes_; ++node) below = below | below_fence(node);
        return below;
    }

    /// Returns: the node, if it granted with a fence below the settled one. A node that is not below counts as
    /// confirmed.
    node_set below_fence(unsigned node) noexcept
    {
        auto& v = votes_[node];
        if (v.now != vote::granted) return {};
        if (v.fence < fence_) return node_set::of(node);  // mutant: fence without write-back
        v.now = vote::confirmed;
        return {};
    }

    unsigned nodes_;
    std::error_code overdue_;
    std::chrono::milliseconds ttl_;
    std::chrono::milliseconds margin_;
    boot_clock::time_point sent_{};
    std::vector<vote> votes_;
    attempt_failures failures_;
    bool settled_ = false;
    std::uint64_t fence_ = 0;
};

}  // namespace holdfast::quorum
