// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/node_set.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

namespace holdfast::redis {

/// One attempt to be granted a lock by a majority of the nodes, with one owner token. Counts votes:
///
/// | vote      | meaning                                         | left by |
/// |-----------|-------------------------------------------------|---------|
/// | pending   | asked                                           | yes → granted; no → held; error → failed, or asked once more where it may have been done: the connection was lost, or the answer was none; the server recognises the token |
/// | granted   | the key is ours; its fence is below the agreed  | confirm: yes → confirmed; no, error → failed |
/// | confirmed | the key is ours and its fence is no less        | |
/// | held      | the key is another's                            | |
/// | failed    | an error, or nothing came in time               | |
///
/// A majority of grants settles the fence: the greatest that was granted. Where fewer than a majority has it already, it is written back
/// to those that are below and has to be confirmed. Any later majority shares a node with the one that confirmed, and counts on from
/// there: the next holder's token is greater, however long this one is paused.
class acquire_round {
public:
    acquire_round(unsigned nodes, std::chrono::milliseconds ttl) noexcept : nodes_{nodes}, ttl_{ttl} {}

    /// Effects: forgets what was answered. All nodes are asked, with a fresh owner token, at `now`.
    void begin(boot_clock::time_point now) noexcept
    {
        sent_ = now;
        std::fill_n(votes_.begin(), nodes_, vote{});
        asked_again_ = {};
        settled_ = false;
        fence_ = 0;
    }

    /// What to send after an answer.
    struct reaction {
        node_set ask{};
        node_set confirm{};
    };

    reaction on_answer(unsigned node, answer const& a) noexcept
    {
        reaction next;
        auto& v = votes_[node];
        bool const to_confirm = v.now == vote::granted;
        bool const yes = a.what == answer::kind::yes;
        bool const unclear = a.what == answer::kind::error && (a.error == errc::connection_lost || a.error == errc::protocol_error);
        if (!to_confirm && unclear && !asked_again_.has(node)) {
            asked_again_.add(node);
            next.ask.add(node);
            return next;
        }
        if (to_confirm)
            v.now = yes ? vote::confirmed : vote::failed;
        else
            v = {.now = yes ? vote::granted : a.what == answer::kind::no ? vote::held : vote::failed, .fence = a.fence, .time_left = a.time_left};
        v.error = a.error;
        if (!settled_ && count(vote::granted) >= majority())
            next.confirm = settle_fence();
        else if (settled_ && !to_confirm)
            next.confirm = below_fence(node);
        return next;
    }

    /// Effects: what was asked and not answered has failed. Returns: those nodes.
    node_set time_out() noexcept
    {
        node_set overdue;
        for (unsigned node = 0; node < nodes_; ++node) {
            auto& v = votes_[node];
            if (v.now != vote::pending && !(settled_ && v.now == vote::granted)) continue;
            overdue.add(node);
            v.now = vote::failed;
            v.error = errc::no_answer;
        }
        return overdue;
    }

    [[nodiscard]] bool won() const noexcept { return count(vote::confirmed) >= majority(); }

    /// Returns: whether no majority is possible any more, and it is known whether a majority could be asked: with a minority down, too, a
    /// lock that is held is held, and not unavailable.
    [[nodiscard]] bool lost() const noexcept
    {
        auto const pending = count(vote::pending);
        if (grants() + pending >= majority()) return false;
        return asked() || grants() + count(vote::held) + pending < majority();
    }

    /// Returns: whether the fence is settled, and confirmation is under way.
    [[nodiscard]] bool confirming() const noexcept { return settled_; }

    /// Returns: the greatest fence granted.
    [[nodiscard]] std::uint64_t fence() const noexcept { return fence_; }

    [[nodiscard]] boot_clock::time_point validity() const noexcept { return valid_until(sent_, ttl_); }

    /// Returns: whether a lease that is won now can be used. Validity ≤ 0 after the last answer is a failure even with every node granted.
    [[nodiscard]] bool usable(boot_clock::time_point now) const noexcept { return now < validity() - announcement_margin(ttl_); }

    /// Returns: whether a majority gave a vote, for us or for others.
    [[nodiscard]] bool asked() const noexcept { return grants() + count(vote::held) >= majority(); }

    /// Returns: whether the lock may be another's: a majority has given its vote to others.
    [[nodiscard]] bool held_by_others() const noexcept { return count(vote::held) >= majority(); }

    /// Returns: how many nodes have been ours.
    [[nodiscard]] unsigned grants() const noexcept { return count(vote::granted) + count(vote::confirmed); }

    /// Returns: whether the only node there is said, when asked once, that the lock is another's. It is then certainly not ours.
    [[nodiscard]] bool certainly_held() const noexcept { return nodes_ == 1 && votes_[0].now == vote::held && asked_again_.empty(); }

    /// Returns: how long until so many of the keys that stand in the way have expired that a majority is free; `unknown` stands for a
    /// key that does not expire and for a node that did not say.
    [[nodiscard]] boot_clock::duration until_majority_expires(boot_clock::duration unknown) const
    {
        std::array<boot_clock::duration, max_nodes> left{};
        for (unsigned node = 0; node < nodes_; ++node) {
            auto const& v = votes_[node];
            bool const known = v.now == vote::held && v.time_left.count() >= 0;
            bool const ours = v.now == vote::granted || v.now == vote::confirmed;  // and rolled back
            left[node] = ours ? boot_clock::duration::zero() : known ? boot_clock::duration{std::min(v.time_left, longest_ttl) + std::chrono::milliseconds{1}} : unknown;
        }
        auto const at = left.begin() + (majority() - 1);
        std::nth_element(left.begin(), at, left.begin() + nodes_);
        return *at;
    }

    struct cause {
        unsigned node = max_nodes;
        std::error_code error{};
        bool hopeless = false;  ///< so many nodes are wrongly configured that no majority can ever be had
    };

    /// Returns: the error to report: that of a wrongly configured node before that of one that is unavailable.
    [[nodiscard]] cause why() const noexcept
    {
        cause found;
        unsigned wrong = 0;
        for (unsigned node = 0; node < nodes_; ++node) {
            auto const& v = votes_[node];
            if (v.now != vote::failed || !v.error) continue;
            bool const permanent = v.error == holdfast::errc::misconfigured;
            if (!found.error || (permanent && wrong == 0)) found = {.node = node, .error = v.error};
            wrong += permanent ? 1U : 0U;
        }
        found.hopeless = nodes_ - wrong < majority();
        return found;
    }

private:
    struct vote {
        enum state : std::uint8_t { pending, granted, confirmed, held, failed };
        state now = pending;
        std::uint64_t fence = 0;
        std::chrono::milliseconds time_left{};
        std::error_code error{};
    };

    [[nodiscard]] unsigned majority() const noexcept { return quorum(nodes_); }

    [[nodiscard]] unsigned count(vote::state s) const noexcept
    {
        return static_cast<unsigned>(std::count_if(votes_.begin(), votes_.begin() + nodes_, [s](vote const& v) { return v.now == s; }));
    }

    node_set settle_fence() noexcept
    {
        settled_ = true;
        for (auto const& v : votes_)
            if (v.now == vote::granted) fence_ = std::max(fence_, v.fence);
        node_set below;
        for (unsigned node = 0; node < nodes_; ++node) below = below | below_fence(node);
        return below;
    }

    /// Returns: the node, where it granted with a fence below the settled one; where it is not below, it has confirmed.
    node_set below_fence(unsigned node) noexcept
    {
        auto& v = votes_[node];
        if (v.now != vote::granted) return {};
        if (v.fence < fence_) return node_set::of(node);
        v.now = vote::confirmed;
        return {};
    }

    unsigned nodes_;
    std::chrono::milliseconds ttl_;
    boot_clock::time_point sent_{};
    std::array<vote, max_nodes> votes_{};
    node_set asked_again_;
    bool settled_ = false;
    std::uint64_t fence_ = 0;
};

}  // namespace holdfast::redis
