// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/validity.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI {

/// How a waiter spaces its attempts.
struct backoff_options {
    /// The first pause after a round in which contenders split the votes of several masters; it doubles with every
    /// further such round. Each pause is drawn at random between nothing and this bound. Far below a round trip:
    /// contenders collide again and again. Far above: the lock lies idle after a collision.
    std::chrono::microseconds first{500};

    /// The longest pause before a waiter asks again for a lock that is held. It bounds what a lost wake-up message, or
    /// a peer that releases without publishing, can cost. Small: every waiter polls. Large: such a waiter sleeps until
    /// the holder's lease ends. A waiter in the servers' queues, which the release will call, asks after 250 ms, then
    /// twice as seldom each time, up to 10 times `most`.
    std::chrono::milliseconds most{1000};
};

/// The options of a lock. An aggregate: `holdfast::redis::mutex orders{redis, "orders/42", {.ttl = 10s}};`
struct lock_options {
    /// How long the servers keep the lock for a holder that they no longer hear from. Short: a paused process loses its
    /// lock early, and renewal has little time to ride out a failure. Long: a crashed holder blocks the others for that
    /// long. At least twice the time that a node is given to answer. ZooKeeper: checked, but without effect; a lock
    /// lives as long as its session, see `zookeeper::session_options::session_timeout`.
    std::chrono::milliseconds ttl{30'000};

    /// Renew the lease every third of `ttl` while it is held. Without it a section that takes longer than `ttl` loses
    /// its lock. ZooKeeper: every third of half of the session's timeout; a lease that is not renewed ends although its
    /// session lives.
    bool renew = true;

    /// How much earlier than it has to be the loss of a lease is announced: at that time `still_held()` is false, the
    /// tokens of `lost_token()` are stopped, and renewal ends. What the holder still has to do then, such as to wait
    /// for a write that was sent, must fit into this time: the store grants the lock to no other client before it is
    /// over. It does not cover a lock that the store gives up by itself: a key that is deleted, a session that is
    /// ended. The lease is renewed every third of what is left of `ttl`. Small: a write that was begun at the end of
    /// the lease may arrive when another client has the lock. Large: the lease has less time to ride out a failure of
    /// the servers. At most half of `ttl`; the rest is at least twice the time that a node is given to answer.
    /// ZooKeeper: at most a sixth of the session's timeout.
    std::chrono::milliseconds stop_margin{0};

    /// Renewal ends when a holder has had the lock for this long; the lease then runs out and its loss is announced.
    /// Without it a thread that hangs in its section keeps the lock for as long as its process lives.
    std::optional<std::chrono::milliseconds> max_hold{};

    /// `unlock()` gives the lock back no earlier than this long after it was acquired, and returns at once; for the
    /// caller the hold is over. So a short job does not run twice in a fleet whose clocks differ. The client renews the
    /// lease meanwhile, and asks for a longer one if its process may end before: then the lock is free when that lease
    /// ends, after `ttl` or this time, whichever is longer. ZooKeeper: when the session ends. 0: no such time. A hold
    /// that is lost is not kept, and what happens to a lock that is kept is not reported. Needs `renew`. Not for locks
    /// that `std::lock` or `std::scoped_lock` take together, as an attempt keeps what it took in vain: use
    /// `multi_mutex`.
    std::chrono::milliseconds min_hold{0};

    /// Give every holder a fencing token. Without it acquiring is a little cheaper, `fencing_token()` is 0, and a
    /// resource cannot tell a paused holder's late write from a good one. ZooKeeper: no cheaper without.
    bool fencing = true;

    /// How many times in a row a lease may pass from one thread of this process to the next without asking a server; at
    /// most 63. 0: every section asks. Large: threads of this process run ahead of the waiters of others for that many
    /// sections. Then the lock is given back, and free for others to take, before a thread of this process asks for it
    /// again.
    unsigned max_local_handoffs = 63;

    /// The lock is granted in the order of arrival: to clients in the order in which they began to wait, and in each to
    /// the threads in that order. No lease passes from thread to thread (`max_local_handoffs` has no effect), and a
    /// `try_lock()` takes a lock that is free only if no client of the queue waits for it. Slower: every section asks
    /// the servers, twice. Locks of the name without this option, and clients that do not know of the queue, come in
    /// between; how much is that of each lock. Not for locks that `std::lock` or `std::scoped_lock` take together,
    /// whose single attempts come too late again and again: use `multi_mutex`. Not for Redlock, whose masters have an
    /// order each, nor for ZooKeeper's plain form, nor for a client that does not subscribe.
    bool fair = false;

    /// Let `unlock()` return without waiting for the answer to the release, which the client sends at once: this saves
    /// half of the time of a short section. It still waits if a thread of this process waits for the lock and other
    /// clients must be let in first. If it does not wait, a release that failed, or found the lock taken away, is not
    /// reported. A release that is lost with its connection may leave the lock as it is until its ttl is over.
    bool deferred_release = false;

    /// How waiters space their attempts. Not used on ZooKeeper, where a waiter is woken and never asks by itself: the
    /// next one in a queue, and all of them in the plain form.
    backoff_options retry{};

    /// `lock()` without a deadline throws `unavailable` when no quorum of servers could be asked for this long. Short:
    /// a restart of the servers fails the callers. Long: callers hang in an outage. ZooKeeper: without an answer from
    /// any server.
    std::chrono::milliseconds unavailable_after{10'000};

    /// Called with what a `noexcept` member or the background could not throw:
    /// - For each lock, always: its lease was lost, with the reason; `unlock()` found it lost, or not locked.
    /// - Once for each code and server, for all locks of a client: a renewal or an `unlock()` failed otherwise. And
    ///   once more, with `error::over()`, when a lock of the client is granted or renewed, no lease is left whose last
    ///   renewal failed, and nothing failed for a second.
    /// - Once for each lock of a client, `contended`: what it waits for, or was refused by, is a key that no lock has
    ///   made: it has no expiry, or another type.
    /// - Once for each server and code, without a lock's name: a master of a Redlock gives no vote, or a Redis server
    ///   may evict keys. And once more when that is over.
    ///
    /// The error has the lock's name and the server as data. The call comes from the thread concerned, or from one that
    /// is started for it, with no lock of the library held; what it throws is dropped. What that thread has not
    /// reported yet when the lock is destroyed is not reported. A call that has begun goes on: what it refers to must
    /// outlast the client, whose end waits for it, unless a user function ends it. In the background of each client one
    /// such call is made at a time; members that lock, `unlock` and `extend` make theirs in the caller's thread,
    /// perhaps at the same moment: it has to be thread-safe. A call in the background does not delay the callbacks of a
    /// `lost_token()`, which are called first. If one of those takes longer than a millisecond, the next ones run
    /// beside it, up to 16 at a time.
    std::function<void(error const&)> on_error{};
};

/// The greatest `max_local_handoffs`: a batch of 64 fencing tokens keeps a server's counter behind its clock.
inline constexpr unsigned most_local_handoffs = 63;

/// The longest ttl, and the longest time that a client may be told to wait for: a day.
inline constexpr std::chrono::milliseconds longest_ttl{24 * 60 * 60 * 1000};

/// Returns: why no lease can have `ttl` if the servers are given `node_timeout` to answer, which is the client's option
/// `timeout_option`; empty if one can. Follows the ttl and a comma.
[[nodiscard]] inline std::string refused_ttl(std::chrono::milliseconds ttl, std::chrono::milliseconds node_timeout,
                                             std::string_view timeout_option)
{
    if (ttl.count() <= 0) return "but it must be positive";
    if (ttl > longest_ttl) return "but at most a day is allowed";
    if (!can_be_held(ttl)) return "but at least 5 ms are needed: the allowance for the clocks takes 2 % and 4 ms of it";
    if (ttl >= 2 * node_timeout) return {};
    return "less than twice the client's " + std::string{timeout_option} + ", " + std::to_string(node_timeout.count()) +
           " ms; make ttl longer or that time shorter";
}

/// Effects: none if `refused` is empty; otherwise it says why the lock `name` cannot have the `time` that `option` asks
/// for. Throws: `error` (`misconfigured`) then.
inline void check_time(std::string_view name, std::string_view option, std::chrono::milliseconds time,
                       std::string const& refused)
{
    if (refused.empty()) return;
    throw detail::error_of(name, {make_error_code(errc::misconfigured),
                                  std::string{option} + " is " + std::to_string(time.count()) + " ms, " + refused});
}

/// Returns: why the loss of a lease of `ttl` cannot be announced `margin` earlier; empty if it can. `refused`: why no
/// lease can have what is left of `ttl` then. Follows the margin and a comma.
[[nodiscard]] inline std::string refused_margin(std::chrono::milliseconds ttl, std::chrono::milliseconds margin,
                                                std::string const& refused)
{
    auto const ms = [](auto d) { return std::to_string(d.count()) + " ms"; };
    if (margin > ttl / 2) return "but at most half of the ttl is allowed, " + ms(ttl / 2);
    return refused.empty() ? refused : "which leaves " + ms(ttl - margin) + " of the ttl, " + refused;
}

/// Effects: none if `options` can be used for the lock `name`. `refused`: why its store cannot lease for their ttl;
/// empty if it can.
/// Throws: `error` (`misconfigured`) otherwise, naming the field and what is wrong with it.
inline void check_options(std::string_view name, lock_options const& options, std::string const& refused)
{
    auto const require = [&](bool good, std::string const& what) {
        if (good) return;
        throw detail::error_of(name, {make_error_code(errc::misconfigured), what});
    };
    auto const ms = [](auto d) { return std::to_string(d.count()) + " ms"; };
    check_time(name, "ttl", options.ttl, refused);
    require(options.stop_margin.count() >= 0,
            "stop_margin is " + ms(options.stop_margin) + "; it must not be negative");
    require(!options.max_hold || options.max_hold->count() > 0, "max_hold must be positive; leave it out for no limit");
    require(options.min_hold.count() >= 0 && options.min_hold <= longest_ttl,
            "min_hold is " + ms(options.min_hold) + "; it must not be negative, and at most a day is allowed");
    require(options.renew || options.min_hold.count() == 0, "min_hold needs renew, which is off");
    require(options.max_local_handoffs <= most_local_handoffs,
            "max_local_handoffs is " + std::to_string(options.max_local_handoffs) + "; at most 63 are allowed");
    require(options.retry.first.count() > 0, "retry.first must be positive");
    require(options.retry.most.count() > 0, "retry.most must be positive");
    require(options.retry.most <= longest_ttl,
            "retry.most is " + ms(options.retry.most) + "; at most a day is allowed");
    require(options.retry.most >= options.retry.first, "retry.most must be at least retry.first");
    require(options.unavailable_after.count() >= 0, "unavailable_after must not be negative");
}

namespace detail {

/// Returns: `o` without its `on_error`, which is not copied meanwhile: what it does then could need a lock of ours.
[[nodiscard]] inline lock_options without_hook(lock_options const& o)
{
    auto const& [ttl, renew, stop_margin, max_hold, min_hold, fencing, handoffs, fair, deferred, retry, patience,
                 on_error] = o;
    static_cast<void>(on_error);
    return {ttl, renew, stop_margin, max_hold, min_hold, fencing, handoffs, fair, deferred, retry, patience, nullptr};
}

}  // namespace detail
}  // namespace holdfast
