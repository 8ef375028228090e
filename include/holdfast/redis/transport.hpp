// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/awaited.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/node_set.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <system_error>

namespace holdfast::redis {

/// What an operation is told by its transport: answers, and news of the lock it watches. One call at a time.
class listener {
public:
    listener() = default;
    listener(listener const&) = delete;
    listener& operator=(listener const&) = delete;

    virtual void on_answer(unsigned node, answer const& a, boot_clock::time_point now) = 0;

    /// The node now reports releases of the watched lock; a release before this was not reported.
    virtual void on_watching(unsigned node, boot_clock::time_point now) = 0;

    /// The node cannot report releases; `why` is `misconfigured` where it never will.
    virtual void on_watch_failed(unsigned node, std::error_code why, boot_clock::time_point now) = 0;

    /// The watched lock was released on the node.
    virtual void on_released(unsigned node, boot_clock::time_point now) = 0;

protected:
    virtual ~listener() = default;

private:
    friend class listener_link;
    std::array<void*, max_nodes> links_{};
};

/// Gives a transport a place in each listener to note what is under way to it on a node: it is found there, however much else is under way.
class listener_link {
public:
    static void set(listener& l, unsigned node, void* link) noexcept { l.links_[node] = link; }
    [[nodiscard]] static void* get(listener const& l, unsigned node) noexcept { return l.links_[node]; }
};

/// An operation as its transport sees it.
class running_operation : public listener, public awaited {
protected:
    ~running_operation() override = default;
};

/// The seam between the protocol and the way to the servers: sockets, or a simulated network.
///
/// - Calls come with the transport's lock held (`lock()`/`unlock()` make it a *BasicLockable*), and so do those to a listener.
/// - `send(node, c, l)` sends `c` behind everything that was sent to this node before. Its answer comes to `l`, later, never from inside
///   `send`; null: nobody wants it. At most one answer for a listener is under way on a node. Where nothing can be sent, the code
///   says why and no answer follows.
/// - `forget(node, l)`: the answer under way to `l` is not wanted any more. An acquire that has not left yet is not sent.
/// - `give_up(node, l)`: the answer under way to `l` is overdue, and forgotten. Where the node has answered nothing at all since it was asked,
///   the connection is not used again, and every answer under way on it is an error. Otherwise it lives, and that answer is late: what is sent
///   behind it is answered behind it.
/// - `may_vote(node, now)`: no error, or why the node's grants do not count now.
/// - `undecided(node, now)`: whether its vote waits for what other nodes say.
/// - `proposal(now)`: the fence that missing counters are to begin with: ahead of every server's clock, in µs since 1970; 0 for none.
/// - `watch(node, keys, l)` has `l` told of releases on the node until `unwatch(keys, l)`. Where the node cannot report any now, the code says
///   why; `l` is told when it can.
/// - `updated(operation)`: its `done()` or `wake_at()` may have changed. From `start` to `done()` the transport, or whoever waits, calls
///   `on_time` when `wake_at()` has come.
/// - `wait(operation, t)` returns whether the operation is done, by `t` at the latest; called without the lock.
/// - `describe(node, why)` names the node for messages, without secrets, and what more there is to say about `why`; no error: the name alone. Called
///   without the lock.
template <class T>
concept Transport = requires(T& transport, unsigned node, command const& c, listener* l, running_operation& operation, shared_keys const& keys,
                             boot_clock::time_point now, std::error_code why) {
    { transport.size() } -> std::convertible_to<unsigned>;
    { transport.now() } -> std::same_as<boot_clock::time_point>;
    { transport.send(node, c, l) } -> std::same_as<std::error_code>;
    transport.forget(node, l);
    transport.give_up(node, l);
    { transport.may_vote(node, now) } -> std::same_as<std::error_code>;
    { transport.undecided(node, now) } -> std::convertible_to<bool>;
    { transport.proposal(now) } -> std::same_as<std::uint64_t>;
    { transport.max_lead() } -> std::same_as<std::chrono::microseconds>;
    { transport.node_timeout() } -> std::same_as<std::chrono::milliseconds>;
    { transport.fencing() } -> std::same_as<fence_source>;
    { transport.watch(node, keys, l) } -> std::same_as<std::error_code>;
    transport.unwatch(keys, l);
    { transport.fresh_token() } -> std::same_as<owner_token>;
    { transport.random() } -> std::same_as<std::uint64_t>;
    transport.updated(operation);
    { transport.wait(operation, now) } -> std::same_as<bool>;
    { transport.describe(node, why) } -> std::convertible_to<std::string>;
    transport.lock();
    transport.unlock();
};

}  // namespace holdfast::redis
