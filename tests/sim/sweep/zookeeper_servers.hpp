// SPDX-License-Identifier: MIT
#pragma once

#include "../ensemble.hpp"

#include <holdfast/core/clock.hpp>
#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/decision.hpp>
#include <holdfast/sim/inbox.hpp>
#include <holdfast/sim/world.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

/// A request that deletes or writes a node that ends with a session, when the leader decides on it.
struct node_change {
    boot_clock::time_point at{};
    zookeeper::request what;
    std::int64_t node = 0;     ///< the transaction that made it
    unsigned client = 0;       ///< that asked for it
    bool of_another = false;   ///< the node ends with another ZooKeeper session
    bool passed_over = false;  ///< and there is an earlier one of the same lock that waits, or is held
    /// Earlier ones that were made to convert a hold: if that failed, they are left for a moment, and count no more.
    std::vector<std::int64_t> converted{};
};

/// Three ZooKeeper servers in time: when a server applies what the leader has decided, what a leader hears of sessions
/// and when it ends them, and what becomes of it all when servers hang, are cut off or have no leader.
///
/// The leader asks every server each quarter of the session timeout whom it has heard of: that is as rare as half a
/// tick can be; one that stood still asks first of all. Leader and server talk over one connection, on which nothing
/// overtakes anything: the question comes before what is decided after it, and its answer before what the server passes
/// on later. A session ends as soon as the leader, by its own clock, has not heard of it for the timeout; that it
/// decides on a write is no word of the session. A new leader counts anew. A server that is cut off goes on answering
/// reads and touches from what it knows.
/// Source: LearnerHandler, Learner.ping and SessionTrackerImpl of ZooKeeper 3.8.
class zookeeper_servers {
public:
    using time_point = boot_clock::time_point;
    using duration = boot_clock::duration;
    static constexpr unsigned count = 3;

    zookeeper_servers(sim::world& w, std::int32_t first_number, duration timeout, std::array<sim::clock, count> clocks)
        : world_{w}, ensemble_{count, first_number}, timeout_{timeout}, clocks_{clocks}
    {
        ask_again();
    }

    [[nodiscard]] ensemble& state() noexcept { return ensemble_; }
    [[nodiscard]] duration timeout() const noexcept { return timeout_; }
    [[nodiscard]] bool hangs(unsigned server) const { return world_.now() < hung_until_[server]; }
    [[nodiscard]] time_point hung_until(unsigned server) const { return hung_until_[server]; }

    void hang(unsigned server, duration d)
    {
        hung_until_[server] = std::max(hung_until_[server], world_.now() + d);
        world_.at(hung_until_[server], [this] { ask_whom_they_heard_of(); });
    }
    void isolate(unsigned server, duration d)
    {
        isolated_until_[server] = std::max(isolated_until_[server], world_.now() + d);
        if (server == leader_) elect(std::min(d, timeout_ / 2));
    }

    /// Effects: there is no leader for a while, then one that knows no session's last word.
    void elect(duration d)
    {
        no_leader_until_ = std::max(no_leader_until_, world_.now() + d);
        world_.note("no leader, us", sim::event::nobody, leader_, static_cast<std::uint64_t>(d.count() / 1000));
        leader_ = (leader_ + 1) % count;
        ++epoch_;
        world_.at(no_leader_until_, [this] {
            for (auto& [session, expires] : expires_) touch(session);
            ask_whom_they_heard_of();
        });
    }

    /// Returns: since when, from now on, the server can ask the leader, and the leader a quorum.
    [[nodiscard]] time_point reaches_quorum(unsigned server) const
    {
        auto t = std::max({world_.now(), no_leader_until_, out_until(server), out_until(leader_)});
        std::array<time_point, count> others{};
        for (unsigned s = 0; s < count; ++s) others[s] = out_until(s);
        std::sort(others.begin(), others.end());
        return std::max(t, others[count / 2]);
    }

    /// Effects: a session of `client` begins, and the leader has heard of it.
    [[nodiscard]] std::int64_t open_session(unsigned client)
    {
        auto const session = ensemble_.open_session();
        clients_[session] = client;
        expires_[session] = {};
        touch(session);
        expire(session);
        return session;
    }

    /// Effects: the leader has heard of the session now.
    void touch(std::int64_t session)
    {
        auto const found = expires_.find(session);
        if (found == expires_.end()) return;
        auto const& clock = clocks_[leader_];
        found->second = clock.when(clock.at(world_.now()) + timeout_);
    }

    /// Effects: the server says something to the leader, behind what it said before: `f` is called when the leader has
    /// it.
    void say(unsigned server, std::function<void()> f)
    {
        heeded_[server] = std::max(heeded_[server], world_.now() + world_.delay(sim::decision::nobody, server));
        world_.at(heeded_[server], [this, server, f = std::move(f)]() mutable {
            auto const ready = [this, server] {
                return std::max({no_leader_until_, out_until(server), out_until(leader_)});
            };
            to_leader_[server].put(world_, std::move(f), ready);
        });
    }

    /// Effects: the server has heard of the session, and will tell the leader.
    void hear(unsigned server, std::int64_t session) { heard_[server].push_back(session); }

    /// Effects: from now on so many of a thousand requests are answered `postponed`, as by a server that is throttled:
    /// it has heard of the session, and does no more. Source: RequestThrottler of ZooKeeper 3.8.
    void postpone(unsigned per_thousand) noexcept { postponed_ = per_thousand; }
    [[nodiscard]] bool postpones(unsigned client, unsigned server)
    {
        return world_.strikes(sim::decision::kind::refusal, client, server, postponed_);
    }

    /// Effects: the leader decides on a write; every server will apply it.
    [[nodiscard]] zookeeper::reply decide(unsigned server, std::int64_t session, zookeeper::request const& r,
                                          bool pass_the_end)
    {
        note_change(session, r);
        auto const reply = ensemble_.process(server, session, r, pass_the_end);
        spread();
        return reply;
    }

    /// Returns: when the leader ended the session; `max()` if it has not.
    [[nodiscard]] time_point ended(std::int64_t session) const
    {
        auto const found = ended_.find(session);
        return found == ended_.end() ? time_point::max() : found->second;
    }

    /// Returns: what was done to nodes that end with a session, in the order of the times.
    [[nodiscard]] std::vector<node_change> const& changes() const noexcept { return changes_; }

    void collect()
    {
        ensemble_.collect();
        spread();
    }

    /// Returns: how much the leader has decided; and how much of it a server has applied.
    [[nodiscard]] std::size_t decided() const { return ensemble_.applied(0) + ensemble_.lag(0); }
    [[nodiscard]] std::size_t applied(unsigned server) const { return ensemble_.applied(server); }

    /// Effects: has `f` called when the server has applied so much, after whatever was to be called before.
    void when_applied(unsigned server, std::size_t decided, std::function<void()> f)
    {
        waiting_[server].emplace(decided, std::move(f)), apply_now(server);
    }

    /// Effects: the leader answers the server, behind what it said before: `f` is called when the server has applied
    /// all that is decided by now.
    void answer(unsigned server, std::function<void()> f)
    {
        tell(server, [this, server, so_far = decided(), f = std::move(f)] { when_applied(server, so_far, f); });
    }

    /// Effects: has `f` called whenever a server has applied a change.
    void on_change(std::function<void(unsigned, ensemble::change const&)> f) { changed_ = std::move(f); }

private:
    [[nodiscard]] time_point out_until(unsigned s) const { return std::max(hung_until_[s], isolated_until_[s]); }

    /// Effects: notes what the leader does with `r`, if that deletes or writes a node that ends with a session.
    void note_change(std::int64_t session, zookeeper::request const& r)
    {
        using kind = zookeeper::request::kind;
        auto const* const node = r.what == kind::erase || r.what == kind::write ? ensemble_.ephemeral(r.path) : nullptr;
        if (!node) return;
        changes_.push_back({.at = world_.now(),
                            .what = r,
                            .node = node->czxid,
                            .client = clients_.at(session),
                            .of_another = node->owner != session});
        if (changes_.back().of_another) note_earlier(r.path, *node, changes_.back());
    }

    /// Effects: notes in `as` which nodes of other sessions, of the same lock, come before `node`, at `path`.
    void note_earlier(std::string const& path, ensemble::node const& node, node_change& as) const
    {
        auto const above = std::string{zookeeper::parent_of(path)};
        auto const line = zookeeper::contenders_among(ensemble_.children(above));
        auto const number = zookeeper::sequence_of(zookeeper::leaf_of(path));
        for (auto const& one : line) {
            auto const* const other = ensemble_.ephemeral(above + '/' + one.name);
            if (!other || other->owner == node.owner) continue;
            if (std::pair{one.sequence, other->czxid} >= std::pair{number.value_or(0), node.czxid}) continue;
            if (one.converted)
                as.converted.push_back(other->czxid);
            else
                as.passed_over = true;
        }
    }

    void expire(std::int64_t session)
    {
        auto const found = expires_.find(session);
        if (found == expires_.end()) return;
        auto const t = std::max(found->second, reaches_quorum(leader_));
        if (t > world_.now()) return world_.at(t, [this, session] { expire(session); });
        expires_.erase(found);
        ended_[session] = world_.now();
        world_.note("session ends", sim::event::nobody, leader_, static_cast<std::uint64_t>(session));
        ensemble_.end_session(session);
        spread();
    }

    void ask_again()
    {
        world_.at(world_.now() + timeout_ / 4, [this] {
            ask_whom_they_heard_of();
            ask_again();
        });
    }

    /// Effects: the leader asks every server, behind what it has decided.
    void ask_whom_they_heard_of()
    {
        if (hangs(leader_) || world_.now() < no_leader_until_) return;
        for (unsigned s = 0; s < count; ++s) tell(s, [this, s, epoch = epoch_] { be_asked(s, epoch); });
    }

    /// Effects: the server says whom it has heard of since it was asked last; what was under way from or to an earlier
    /// leader is lost.
    void be_asked(unsigned s, std::uint64_t epoch)
    {
        if (epoch != epoch_) return;
        say(s, [this, epoch, heard = std::exchange(heard_[s], {})] {
            if (epoch != epoch_) return;
            for (auto const session : heard) touch(session);
        });
    }

    /// Effects: the leader says something to the server, behind what it said before: `f` is called when the server has
    /// it.
    void tell(unsigned s, std::function<void()> f)
    {
        arrives_[s] = std::max(arrives_[s], world_.now() + world_.delay(sim::decision::nobody, s));
        world_.at(arrives_[s], [this, s, f = std::move(f)]() mutable {
            to_server_[s].put(world_, std::move(f), [this, s] { return out_until(s); });
        });
    }

    /// Effects: servers will apply what they have not, each at its own pace.
    void spread()
    {
        for (unsigned s = 0; s < count; ++s)
            for (; sent_[s] < decided(); ++sent_[s]) tell(s, [this, s] { apply_next(s); });
    }

    void apply_next(unsigned s)
    {
        auto const change = ensemble_.catch_up(s);
        if (changed_) changed_(s, change);
        apply_now(s);
    }

    void apply_now(unsigned s)
    {
        auto& w = waiting_[s];
        while (!w.empty() && w.begin()->first <= ensemble_.applied(s)) {
            auto const f = std::move(w.extract(w.begin()).mapped());
            f();
        }
    }

    sim::world& world_;
    ensemble ensemble_;
    duration timeout_;
    unsigned postponed_ = 0;
    std::array<sim::clock, count> clocks_;
    unsigned leader_ = 0;
    std::uint64_t epoch_ = 0;
    time_point no_leader_until_{};
    std::array<time_point, count> hung_until_{};
    std::array<time_point, count> isolated_until_{};
    std::array<time_point, count> arrives_{};  ///< what the leader said last to each
    std::array<time_point, count> heeded_{};   ///< what each said last to the leader
    std::array<std::size_t, count> sent_{};
    std::array<sim::inbox, count> to_server_;
    std::array<sim::inbox, count> to_leader_;
    std::array<std::multimap<std::size_t, std::function<void()>>, count> waiting_;
    std::array<std::vector<std::int64_t>, count> heard_;
    std::map<std::int64_t, time_point> expires_;
    std::map<std::int64_t, time_point> ended_;
    std::map<std::int64_t, unsigned> clients_;  ///< whose each session is
    std::vector<node_change> changes_;
    std::function<void(unsigned, ensemble::change const&)> changed_;
};

}  // namespace holdfast::test
