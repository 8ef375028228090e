// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/quorum/node_set.hpp>

#include <algorithm>
#include <chrono>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// A waiter in the queues of the nodes, each of which calls it when it is its turn there: in which it is, and for how
/// long it relies on calls. Arithmetic only.
///
/// | called by         | it asks |
/// |-------------------|---------|
/// | all that can call | at once |
/// | a majority        | after 1 ms: the others are about to call |
/// | a minority        | after 10 ms; twice as long each time, up to 250 ms |
/// | no node           | after 250 ms; twice as long each time; a quarter of that if the lease is not the same |
/// | no node, after a call in vain | after 2 ms; twice as long each time |
///
/// - Different nodes may have called different waiters, none of them by a majority: the pauses let their reservations
///   run out.
/// - After a call in vain, another client was faster. It may call no waiter when it releases the lock.
class place_in_line {
public:
    /// How long a majority waits for the others.
    static constexpr std::chrono::milliseconds grace{1};

    /// It may sleep for this many times `retry.most`: a release calls it.
    static constexpr int patience = 10;

    /// The longest sleep of a waiter to which no majority reports a release, since its subscriptions were lost.
    static constexpr std::chrono::milliseconds longest_unheard{500};

    void joined(node_set nodes) noexcept { nodes_ = nodes_ | nodes; }
    void left() noexcept { nodes_ = {}; }

    /// Returns: the nodes in whose queues it may be.
    [[nodiscard]] node_set nodes() const noexcept { return nodes_; }
    [[nodiscard]] bool taken() const noexcept { return !nodes_.empty(); }

    /// Effects: notes that it asks because a majority has called it.
    void called() noexcept
    {
        look_ = first_after_call;
        after_minority_ = first_after_minority;
    }

    /// Effects: notes that another client has the lease, or that it was renewed. If that happens at each look, the lock
    /// passes from client to client without a call.
    void others_go_on() noexcept { look_ = std::min(look_, std::max<boot_clock::duration>(look_ / 4, first_look)); }

    /// Returns: when it asks although no node has called it; the next time will be longer.
    [[nodiscard]] boot_clock::duration look() noexcept { return take(look_, longest_look); }

    /// Returns: when it asks after a minority has called it; the next time will be longer.
    [[nodiscard]] boot_clock::duration after_minority() noexcept
    {
        return take(after_minority_, longest_after_minority);
    }

    /// Returns: how long a round waits for the answers that are left. If these can still win it, the next one will wait
    /// for longer: they may come from far away.
    [[nodiscard]] boot_clock::duration for_the_rest(bool lost) noexcept
    {
        return lost ? boot_clock::duration{first_for_the_rest} : take(for_the_rest_, longest_for_the_rest);
    }

private:
    static constexpr std::chrono::milliseconds first_look{250};
    static constexpr std::chrono::milliseconds first_after_call{2};
    static constexpr std::chrono::hours longest_look{1};
    static constexpr std::chrono::milliseconds first_after_minority{10};
    static constexpr std::chrono::milliseconds longest_after_minority{250};
    static constexpr std::chrono::milliseconds first_for_the_rest{3};
    static constexpr std::chrono::hours longest_for_the_rest{1};

    static boot_clock::duration take(boot_clock::duration& next, boot_clock::duration most) noexcept
    {
        auto const now = next;
        next = std::min(2 * next, most);
        return now;
    }

    node_set nodes_;
    boot_clock::duration look_ = first_look;  // mutant: a waiter that is not called looks late
    boot_clock::duration after_minority_ = first_after_minority;
    boot_clock::duration for_the_rest_ = first_for_the_rest;
};

}  // namespace holdfast::quorum
