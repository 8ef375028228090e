// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/eligibility.hpp>
#include <holdfast/redis/inbox.hpp>
#include <holdfast/redis/keys.hpp>
#include <holdfast/redis/node.hpp>
#include <holdfast/redis/subscriptions.hpp>
#include <holdfast/redis/transport.hpp>
#include <holdfast/redis/waiter_id.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
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

    void refused(unsigned n, owner_token const& token) noexcept { nodes_[n].commands->refused(token); }

    std::error_code send(unsigned n, command const& c, listener* whom) noexcept
    {
        auto const why = nodes_[n].commands->send(c, whom, now());
        if (nodes_[n].commands->up()) nodes_[n].releases->keep_up(now());
        return why;
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

    std::error_code watch(unsigned n, std::string const& channel, listener* whom, bool in_line) noexcept
    {
        auto& releases = *nodes_[n].releases;
        if (!in_line || !queues(n)) return releases.watch(channel, whom, now());
        if (inbox_.begins(n)) return releases.watch(inbox_.channel(), &inbox_, now());
        return inbox_.works(n) ? std::error_code{} : make_error_code(errc::cannot_connect);
    }

    void unwatch(std::string const& channel, listener* whom) noexcept
    {
        for (auto const& one : nodes_) one.releases->unwatch(channel, whom, now());
    }

    [[nodiscard]] waiter_id enter(listener* whom) noexcept
    try {
        return whom ? inbox_.enter(*whom, reservation()) : inbox_.enter_without_call(reservation());
    } catch (std::bad_alloc const&) {
        return {};
    }

    void leave(waiter_id const& w) noexcept { inbox_.leave(w); }

    [[nodiscard]] bool calls() const noexcept { return inbox_.works(); }
    [[nodiscard]] bool calls(unsigned n) const noexcept { return inbox_.works(n); }
    [[nodiscard]] bool cannot_call(unsigned n) const noexcept { return inbox_.fails(n); }
    [[nodiscard]] bool queues(unsigned n) const noexcept { return nodes_[n].commands->queues() && !inbox_.refused(n); }
    [[nodiscard]] std::int64_t score(boot_clock::time_point entered) const noexcept
    {
        // What a client knows of a clock may be wrong by as long as its connection took.
        if (size_ == 1) return -1 - std::chrono::duration_cast<std::chrono::microseconds>(now() - entered).count();
        return static_cast<std::int64_t>(votes_.latest(entered));  // mutant: a place by the client's own clock
    }

protected:
    /// `inbox_number`: no other client has it.
    transport_base(unsigned size, std::uint64_t inbox_number, std::chrono::milliseconds restart_guard,
                   std::chrono::milliseconds fence_lifetime = shortest_fence_lifetime)
        : size_{size},
          votes_{size, restart_guard, fence_lifetime},
          inbox_{inbox_number, [this](unsigned n, waiter_id const& w, std::string_view lock) { pass_on(n, w, lock); }}
    {
    }
    ~transport_base() = default;

    /// Effects: these, which live as long as this, are the next node and what it reports.
    void add(node& commands, subscriptions& releases) { nodes_.push_back({&commands, &releases}); }

    /// Effects: connects again to where releases are to be reported, if the node itself can be reached.
    void keep_up() noexcept
    {
        for (auto const& one : nodes_)
            if (one.commands->up()) one.releases->keep_up(now());
    }

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

    /// Returns: for how long a lock is kept for a waiter here: by the time that is lost on the way to the farthest
    /// node.
    [[nodiscard]] std::chrono::milliseconds reservation() const noexcept
    {
        boot_clock::duration farthest{};
        for (auto const& one : nodes_)
            if (auto const d = one.commands->fastest(); d != boot_clock::duration::max())
                farthest = std::max(farthest, d);
        farthest = std::min<boot_clock::duration>(farthest, farthest_considered);
        auto const d = waiter_id::shortest_reservation + std::chrono::ceil<std::chrono::milliseconds>(3 * farthest);
        return std::min<std::chrono::milliseconds>(d, waiter_id::longest_reservation);
    }

    /// Farther than between continents. What took longer was late.
    static constexpr std::chrono::milliseconds farthest_considered{66};

    void pass_on(unsigned n, waiter_id const& w, std::string_view lock) noexcept
    try {
        auto keys = std::make_shared<lock_keys const>(std::string{lock});
        send(n, {.what = command::verb::leave, .keys = std::move(keys), .token = {}, .waiter = w}, nullptr);
    } catch (...) {  // NOLINT(bugprone-empty-catch): the reservation runs out
    }

    unsigned size_;
    eligibility votes_;
    std::vector<way> nodes_;
    inbox inbox_;
};

}  // namespace holdfast::redis
