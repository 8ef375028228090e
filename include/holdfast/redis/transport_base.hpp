// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/eligibility.hpp>
#include <holdfast/redis/node.hpp>
#include <holdfast/redis/subscriptions.hpp>
#include <holdfast/redis/transport.hpp>

#include <chrono>
#include <cstdint>
#include <system_error>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// The nodes of a transport, and their votes: what is the same whatever the way to the nodes. See `Transport`.
class transport_base {
public:
    transport_base(transport_base const&) = delete;
    transport_base& operator=(transport_base const&) = delete;

    [[nodiscard]] virtual boot_clock::time_point now() const noexcept = 0;
    [[nodiscard]] unsigned size() const noexcept { return size_; }
    [[nodiscard]] fence_source fencing() const noexcept
    {
        return size() == 1 ? fence_source::clock : fence_source::counter;
    }

    [[nodiscard]] std::uint64_t proposal(boot_clock::time_point now) const noexcept { return votes_.proposal(now); }
    [[nodiscard]] std::chrono::microseconds max_lead() const noexcept { return votes_.max_lead(); }

    /// One node alone has nothing to reacquire: a key that is gone there is lost.
    void began(owner_token const& token) noexcept
    {
        if (size() == 1) return;
        for (auto const& one : nodes_) one.commands->began(token);
    }

    std::error_code send(unsigned n, command const& c, listener* whom) noexcept
    {
        nodes_[n].releases->keep_up(now());
        return nodes_[n].commands->send(c, whom, now());
    }

    void give_up(unsigned n, listener* whom) noexcept { nodes_[n].commands->give_up(*whom, now()); }

    [[nodiscard]] bool may_reacquire(unsigned n, owner_token const& token, boot_clock::time_point now) const noexcept
    {
        return nodes_[n].commands->may_reacquire(token, now);
    }

    void forget(unsigned n, listener* whom) noexcept { nodes_[n].commands->forget(*whom); }

    [[nodiscard]] bool undecided(unsigned n, boot_clock::time_point now) const noexcept
    {
        return nodes_[n].commands->undecided(now);
    }

    std::error_code watch(unsigned n, shared_keys const& keys, listener* whom) noexcept
    {
        return nodes_[n].releases->watch(keys->channel, whom, now());
    }

    void unwatch(shared_keys const& keys, listener* whom) noexcept
    {
        for (auto const& one : nodes_) one.releases->unwatch(keys->channel, whom, now());
    }

protected:
    transport_base(unsigned size, std::chrono::milliseconds restart_guard,
                   std::chrono::milliseconds fence_lifetime = shortest_fence_lifetime)
        : size_{size}, votes_{size, restart_guard, fence_lifetime}
    {
    }
    ~transport_base() = default;

    /// Effects: these, which live as long as this, are the next node and what it reports.
    void add(node& commands, subscriptions& releases) { nodes_.push_back({&commands, &releases}); }

    [[nodiscard]] eligibility& votes() noexcept { return votes_; }
    [[nodiscard]] eligibility const& votes() const noexcept { return votes_; }

    /// Effects: a node has said what its clock shows, which may decide the votes of others.
    void decide(boot_clock::time_point now) noexcept
    {
        for (auto const& one : nodes_) one.commands->decide(now);
    }

    /// Effects: gives up connections that have not answered in time. Requires: no operation is in the middle of a step.
    void discard_unanswered() noexcept
    {
        for (auto const& one : nodes_) {
            if (one.commands->busy()) one.commands->discard_unanswered(now());
            if (one.releases->waits()) one.releases->discard_unanswered(now());
        }
    }

private:
    struct way {
        node* commands;
        subscriptions* releases;
    };

    unsigned size_;
    eligibility votes_;
    std::vector<way> nodes_;
};

}  // namespace holdfast::redis
