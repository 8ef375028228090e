// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/io/running.hpp>
#include <holdfast/quorum/node_group.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/eligibility.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/inbox.hpp>
#include <holdfast/redis/keys.hpp>
#include <holdfast/redis/listener.hpp>
#include <holdfast/redis/node.hpp>
#include <holdfast/redis/subscriptions.hpp>
#include <holdfast/redis/waiter_id.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

using io::running;

/// The seam between the protocol and the connections to the servers: the nodes and their votes, whatever the way to the
/// nodes is. A derived class has the connections: sockets, or a simulated network.
///
/// - Calls are made with the transport's lock held (`lock()`/`unlock()` make it a *BasicLockable*), and so are those to
///   a listener. What does not change, `random` and `fresh_token` need no lock.
/// - `send`, `watch`, `give_up` and `unlock` may find that a connection is over. Then what others wait for there fails
///   at once, from inside them; so does what the same listener waits for on another node.
class transport {
public:
    transport(transport const&) = delete;
    transport& operator=(transport const&) = delete;

    virtual void lock() = 0;
    virtual void unlock() noexcept = 0;

    [[nodiscard]] virtual boot_clock::time_point now() const noexcept = 0;
    /// Returns: how long each step of making a connection may take.
    [[nodiscard]] virtual std::chrono::milliseconds connect_timeout() const noexcept = 0;
    [[nodiscard]] virtual owner_token fresh_token() = 0;
    /// Returns: a number for jitter, which must differ but need not be secret.
    [[nodiscard]] virtual std::uint64_t random() noexcept = 0;

    /// Effects: runs the operation: from now on `on_time` is called when `wake_at()` has come.
    virtual void begin(running& operation, completion& done) = 0;
    /// Effects: notes that its `wake_at()` may have changed.
    virtual void updated(running& operation) = 0;
    /// Effects: it no longer runs, and its completion is told when the lock is given up.
    virtual void ended(running& operation) = 0;
    /// Effects: as `ended`, but its completion is not told.
    virtual void abandon(running& operation) = 0;

    /// Returns: the name of the node for messages, without secrets, and more about `why` unless that is no error.
    /// Called without the lock.
    [[nodiscard]] virtual std::string describe(unsigned n, std::error_code why) = 0;

    [[nodiscard]] unsigned size() const noexcept { return group_.size; }
    [[nodiscard]] std::chrono::milliseconds node_timeout() const noexcept { return group_.timeout; }

    /// Returns: the nodes, as the machines ask them.
    [[nodiscard]] quorum::node_group const& nodes() const noexcept { return group_; }

    /// Returns: the same, for `request`. One that is to be decided has the time for a connection, too, until its
    /// deadline, unless a majority has been connected before: a job that has just been started would never run.
    [[nodiscard]] quorum::node_group nodes_for(acquire_request const& request)
    {
        auto group = group_;
        if (!request.until_decided) return group;
        std::scoped_lock guard{*this};
        auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(request.deadline - now());
        if (!was_reached_) group.connecting = std::clamp(left, std::chrono::milliseconds{0}, connect_timeout());
        return group;
    }

    [[nodiscard]] fence_source fencing() const noexcept
    {
        return size() == 1 ? fence_source::clock : fence_source::counter;
    }

    /// Returns: the value that missing counters begin with: ahead of every server's clock, in µs since 1970; 0 for
    /// none.
    [[nodiscard]] std::uint64_t proposal(boot_clock::time_point now) const noexcept { return votes_.proposal(now); }
    [[nodiscard]] std::chrono::microseconds max_lead() const noexcept { return votes_.max_lead(); }

    /// Effects: notes that an owner token was drawn, and nothing of it was sent. One node alone has nothing to
    /// reacquire: a key that is gone there is lost.
    void began(owner_token const& token) noexcept
    {
        if (size() == 1) return;
        for (auto const& one : nodes_) one.commands->began(token);
    }

    /// Effects: notes that the node has certainly refused the token, which is not used again.
    void refused(unsigned n, owner_token const& token) noexcept { nodes_[n].commands->refused(token); }

    /// Effects: sends `c` after everything that was sent to this node before. Its answer comes to `whom`, later, never
    /// from inside `send`; null: no listener wants it. At most one answer for a listener is in flight on a node.
    /// Returns: if nothing can be sent, why; then no answer follows.
    std::error_code send(unsigned n, command const& c, listener* whom) noexcept
    {
        auto const at = now();
        auto const why = nodes_[n].commands->send(c, whom, at);
        if (nodes_[n].commands->up()) nodes_[n].releases->keep_up(at);
        return why;
    }

    /// Effects: the answer in flight to `whom` is overdue, and forgotten. If the node has answered nothing at all since
    /// it was asked, the connection is not used again, and every answer in flight on it is an error. Otherwise the
    /// connection stays, and only that answer is late: what is sent after it is answered after it.
    void give_up(unsigned n, listener* whom) noexcept { nodes_[n].commands->give_up(*whom, now()); }

    /// Effects: `whom` no longer wants the answer in flight. An acquire that has not been written is not sent.
    void forget(unsigned n, listener* whom) noexcept { nodes_[n].commands->forget(*whom); }

    /// Effects: the waiter of `whom` waits no longer: a node that refuses the acquire in flight is told so.
    void leave_if_refused(unsigned n, listener* whom) noexcept { nodes_[n].commands->leave_if_refused(*whom); }

    /// Returns: no error, or why the node's grants do not count now.
    [[nodiscard]] virtual std::error_code may_vote(unsigned n, boot_clock::time_point now) noexcept
    {
        nodes_[n].commands->discard_outdated(now);
        return nodes_[n].commands->may_vote(now);
    }

    /// Effects: the node's clock may have been set since it was seen: it is looked at again.
    void doubt_clock(unsigned n) noexcept { nodes_[n].commands->doubt_clock(now()); }

    /// Returns: whether a renewal may send a reacquire now: the node is connected, has a vote, and has not given it to
    /// `token`, and no release of `token` may still arrive.
    [[nodiscard]] bool may_reacquire(unsigned n, owner_token const& token) const noexcept
    {
        return nodes_[n].commands->lacks_vote_for(token) && nodes_[n].commands->has_vote(now());
    }

    /// Returns: whether the vote of a node depends on what other nodes will say.
    [[nodiscard]] bool undecided(unsigned n, boot_clock::time_point now) const noexcept
    {
        return nodes_[n].commands->undecided(now);
    }

    /// Effects: tells `whom` of releases on the node until `unwatch`. With `in_line`, and if the node has a queue, it
    /// is only told when it is its turn. Returns: if it cannot report any now, why; `whom` is told when it can.
    virtual std::error_code watch(unsigned n, std::string const& channel, listener* whom, bool in_line) noexcept
    {
        auto& releases = *nodes_[n].releases;
        if (!in_line || !queues(n)) return releases.watch(channel, whom, now());
        if (!inbox_.begins(n)) return inbox_.works(n) ? std::error_code{} : make_error_code(errc::cannot_connect);
        auto const why = releases.watch(inbox_.channel(), &inbox_, now());
        if (why == std::errc::not_enough_memory) inbox_.not_begun(n);
        return why;
    }

    void unwatch(std::string const& channel, listener* whom) noexcept
    {
        for (auto const& one : nodes_) one.releases->unwatch(channel, whom, now());
    }

    /// Returns: the waiter that `whom` is until `leave`; null: it is not called. None for want of memory.
    [[nodiscard]] waiter_id enter(listener* whom) noexcept
    try {
        return inbox_.enter(whom, reservation());
    } catch (std::bad_alloc const&) {
        return {};
    }

    void leave(waiter_id const& w) noexcept { inbox_.leave(w); }
    /// Returns: whether any node calls waiters now.
    [[nodiscard]] bool calls() const noexcept { return inbox_.works(); }
    /// Returns: whether this node does.
    [[nodiscard]] bool calls(unsigned n) const noexcept { return inbox_.works(n); }
    /// Returns: whether it was asked to call them, and cannot.
    [[nodiscard]] bool cannot_call(unsigned n) const noexcept { return inbox_.fails(n); }
    /// Returns: whether it has queues of waiters.
    [[nodiscard]] virtual bool queues(unsigned n) const noexcept
    {
        return nodes_[n].commands->queues() && !inbox_.refused(n);
    }
    /// Returns: the place in a queue of one that came then; 0 if no clock of a server is known.
    [[nodiscard]] std::int64_t score(boot_clock::time_point entered) const noexcept
    {
        // What a client knows of a clock may be wrong by as long as its connection took.
        if (size() == 1) return -1 - std::chrono::duration_cast<std::chrono::microseconds>(now() - entered).count();
        return static_cast<std::int64_t>(votes_.latest(entered));  // mutant: a place by the client's own clock
    }

    /// Effects: notes the score of another waiter, which came before now. A client that does not know the clock that is
    /// most ahead, as that server was down, would come before all others by the difference, again and again.
    /// Source: Lamport's logical clocks: who sees a later time than his own sets his clock.
    void saw(std::int64_t score) noexcept { votes_.heard(score, now()); }  // mutant: a later place of another forgotten

    /// Returns: whether a node may not have got a release yet that no operation waits for.
    [[nodiscard]] bool unfinished() noexcept
    {
        // All are asked: each notes it.
        return std::count_if(nodes_.begin(), nodes_.end(), [](way& one) { return one.commands->unfinished(); }) != 0;
    }
    /// Effects: sends it again. Returns: whether one is late or not under way.
    bool finish() noexcept
    {
        auto const left = [at = now()](way const& one) { return one.commands->finish(at); };
        return std::count_if(nodes_.begin(), nodes_.end(), left) != 0;
    }

protected:
    /// `inbox_number`: no other client has it.
    transport(unsigned size, std::chrono::milliseconds node_timeout, std::uint64_t inbox_number,
              std::chrono::milliseconds restart_guard,
              std::chrono::milliseconds fence_lifetime = shortest_fence_lifetime)
        // mutant: a node waited for twice as long
        : group_{.size = size, .timeout = node_timeout, .overdue = errc::no_answer},
          votes_{size, restart_guard, fence_lifetime},
          inbox_{inbox_number, [this](unsigned n, waiter_id const& w, std::string_view lock) { pass_on(n, w, lock); }}
    {
    }
    virtual ~transport() = default;

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
        auto const connected = std::count_if(nodes_.begin(), nodes_.end(), [](way const& one) {
            return one.commands->fastest() != boot_clock::duration::max();
        });
        if (connected >= quorum::majority_of(size())) was_reached_ = true;
        for (auto const& one : nodes_) one.commands->decide(now);
    }

    /// Effects: gives up connections that have not answered in time. Requires: no operation is in the middle of a step.
    void discard_unanswered() noexcept
    {
        auto const at = now();
        for (auto const& one : nodes_) {
            if (one.commands->busy()) one.commands->discard_unanswered(at);
            if (one.releases->waits()) one.releases->discard_unanswered(at);
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
        return waiter_id::shortest_reservation + std::chrono::ceil<std::chrono::milliseconds>(3 * farthest);
    }

    /// Farther than between continents. What took longer was late.
    static constexpr std::chrono::milliseconds farthest_considered{66};
    static_assert(waiter_id::shortest_reservation + 3 * farthest_considered <= waiter_id::longest_reservation);

    void pass_on(unsigned n, waiter_id const& w, std::string_view lock) noexcept
    try {
        auto keys = std::make_shared<lock_keys const>(std::string{lock});
        send(n, {.what = command::verb::leave, .keys = std::move(keys), .token = {}, .waiter = w}, nullptr);
    } catch (...) {  // NOLINT(bugprone-empty-catch): the reservation runs out
    }

    quorum::node_group group_;
    eligibility votes_;
    std::vector<way> nodes_;
    inbox inbox_;
    bool was_reached_ = false;  // a majority was connected at one time
};

}  // namespace holdfast::redis
