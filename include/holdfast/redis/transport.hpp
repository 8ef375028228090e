// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/io/running.hpp>
#include <holdfast/quorum/node_group.hpp>
#include <holdfast/quorum/node_set.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

using quorum::max_nodes;
using quorum::node_set;

/// What a transport tells an operation: answers, and news of the lock it watches. One call at a time.
class listener {
public:
    explicit listener(unsigned nodes = max_nodes) : links_(nodes) {}
    listener(listener const&) = delete;
    listener& operator=(listener const&) = delete;

    virtual void on_answer(unsigned node, answer const& a, boot_clock::time_point now) = 0;

    /// The node now reports releases of the watched lock; earlier releases were not reported.
    virtual void on_watching(unsigned node, boot_clock::time_point now) = 0;

    /// The node cannot report releases; `why` is `misconfigured` if it never will.
    virtual void on_watch_failed(unsigned node, std::error_code why, boot_clock::time_point now) = 0;

    /// The watched lock was released on the node, or it is this waiter's turn there.
    virtual void on_released(unsigned node, boot_clock::time_point now) = 0;

    /// The node says `text` on a channel that this listener watches.
    virtual void on_message(unsigned node, std::string_view /*text*/, boot_clock::time_point now)
    {
        on_released(node, now);
    }

protected:
    virtual ~listener() = default;

private:
    friend class listener_link;
    std::vector<void*> links_;
};

/// Gives a transport a place in each listener to note what is in flight for it on a node. It is found there, however
/// much else is in flight.
class listener_link {
public:
    static void set(listener& l, unsigned node, void* link) noexcept { l.links_[node] = link; }
    [[nodiscard]] static void* get(listener const& l, unsigned node) noexcept { return l.links_[node]; }
};

/// An operation as its transport sees it.
class running_operation : public listener, public io::running {
protected:
    using listener::listener;
    ~running_operation() override = default;
};

/// The seam between the protocol and the connections to the servers: sockets, or a simulated network.
///
/// - Calls are made with the transport's lock held (`lock()`/`unlock()` make it a *BasicLockable*), and so are those to
///   a listener.
/// - `send(node, c, l)` sends `c` after everything that was sent to this node before. Its answer comes to `l`, later,
///   never from inside `send`; null: no listener wants it. At most one answer for a listener is in flight on a node. If
///   nothing can be sent, the code says why and no answer follows.
/// - `send`, `watch` and `give_up` may find that a connection is over. Then what others wait for there fails at once,
///   from inside them; so does what the same listener waits for on another node.
/// - `began(token)`: an owner token was drawn, and nothing of it was sent. `refused(node, token)`: the node has
///   certainly refused it, and it is not used again.
/// - `may_reacquire(node, token, now)`: whether a renewal may send a reacquire now: the node is connected, has a vote,
///   and has not given it to `token`, and no release of `token` may still arrive.
/// - `forget(node, l)`: `l` no longer wants the answer in flight. An acquire that has not been written is not sent.
/// - `give_up(node, l)`: the answer in flight to `l` is overdue, and forgotten. If the node has answered nothing at all
///   since it was asked, the connection is not used again, and every answer in flight on it is an error. Otherwise the
///   connection stays, and only that answer is late: what is sent after it is answered after it.
/// - `may_vote(node, now)`: no error, or why the node's grants do not count now.
/// - `undecided(node, now)`: whether its vote depends on what other nodes will say.
/// - `proposal(now)`: the value that missing counters begin with: ahead of every server's clock, in µs since 1970; 0
///   for none.
/// - `watch(node, channel, l, in_line)` tells `l` of releases on the node until `unwatch(channel, l)`. If it cannot
///   report any now, the code says why; `l` is told when it can. With `in_line`, and where there is a queue
///   (`queues(node)`), `l` is only told when it is its turn.
/// - `enter(l)`: the waiter that `l` is until `leave(waiter)`; none for want of memory. `calls()`, `calls(node)`:
///   whether any node, or this one, calls waiters now. `cannot_call(node)`: whether it was asked to call them, and
///   cannot. `score(entered)`: the place in a queue of one that came then; 0 if no clock of a server is known.
/// - `begin(operation, done)` runs the operation: from now on `on_time` is called when `wake_at()` has come.
///   `updated(operation)`: its `wake_at()` may have changed. `ended(operation)`: it no longer runs, and `done` is told
///   when the lock is given up. `abandon(operation)`: the same, and `done` is not told.
/// - `describe(node, why)` names the node for messages, without secrets, and says more about `why`; no error: the name
///   alone. Called without the lock.
template <class T>
concept Transport =
    requires(T& transport, unsigned node, command const& c, listener* l, running_operation& operation, completion& done,
             std::string const& channel, owner_token const& token, boot_clock::time_point now, std::error_code why) {
        {
            transport.size()
        } -> std::convertible_to<unsigned>;
        {
            transport.now()
        } -> std::same_as<boot_clock::time_point>;
        {
            transport.send(node, c, l)
        } -> std::same_as<std::error_code>;
        transport.began(token);
        transport.refused(node, token);
        {
            transport.may_reacquire(node, token, now)
        } -> std::same_as<bool>;
        transport.forget(node, l);
        transport.give_up(node, l);
        {
            transport.may_vote(node, now)
        } -> std::same_as<std::error_code>;
        {
            transport.undecided(node, now)
        } -> std::convertible_to<bool>;
        {
            transport.proposal(now)
        } -> std::same_as<std::uint64_t>;
        {
            transport.max_lead()
        } -> std::same_as<std::chrono::microseconds>;
        {
            transport.node_timeout()
        } -> std::same_as<std::chrono::milliseconds>;
        {
            transport.fencing()
        } -> std::same_as<fence_source>;
        {
            transport.watch(node, channel, l, true)
        } -> std::same_as<std::error_code>;
        transport.unwatch(channel, l);
        {
            transport.enter(l)
        } -> std::same_as<waiter_id>;
        transport.leave(waiter_id{});
        {
            transport.calls() || transport.calls(node) || transport.cannot_call(node) || transport.queues(node)
        } -> std::same_as<bool>;
        {
            transport.score(now)
        } -> std::same_as<std::int64_t>;
        {
            transport.fresh_token()
        } -> std::same_as<owner_token>;
        {
            transport.random()
        } -> std::same_as<std::uint64_t>;
        transport.begin(operation, done);
        transport.updated(operation);
        transport.ended(operation);
        transport.abandon(operation);
        {
            transport.describe(node, why)
        } -> std::convertible_to<std::string>;
        transport.lock();
        transport.unlock();
    };

/// Returns: the nodes of a transport, as the machines ask them.
template <Transport T>
[[nodiscard]] quorum::node_group nodes_of(T& transport)
{
    return {.size = transport.size(), .timeout = transport.node_timeout(), .overdue = errc::no_answer};
}

}  // namespace holdfast::redis
