// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/validity.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

/// How a waiter spaces its attempts.
struct backoff_options {
    /// The first pause after a round in which contenders split the votes of several masters; it doubles with every further such
    /// round. Each pause is drawn at random between nothing and this bound. Far below a round trip: contenders collide again and
    /// again. Far above: the lock lies idle after a collision.
    std::chrono::microseconds first{500};

    /// The longest time between two looks at a lock that is held. It bounds what a lost wake-up message, or a peer that releases
    /// without publishing, can cost. Small: every waiter polls. Large: such a waiter sleeps until the holder's lease ends.
    std::chrono::milliseconds most{1000};
};

/// What a lock is like. An aggregate: `holdfast::redis::mutex orders{redis, "orders/42", {.ttl = 10s}};`
struct lock_options {
    /// How long the servers keep the lock for a holder that they no longer hear from. Short: a paused process loses its lock early,
    /// and renewal has little time to ride out a failure. Long: a crashed holder blocks the others for that long. At least twice
    /// the time that a node is given to answer. ZooKeeper: no effect, but that it is checked; a lock lives as long as its session, see
    /// `zookeeper::session_options::session_timeout`.
    std::chrono::milliseconds ttl{30'000};

    /// Renew the lease every third of `ttl` while it is held. Without it a section that takes longer than `ttl` loses its lock.
    /// ZooKeeper: of half of the session's timeout, in place of `ttl`; a lease that is not renewed ends although its session lives.
    bool renew = true;

    /// Renewal ends when a holder has had the lock for this long; the lease then runs out and its loss is announced. Without it a
    /// thread that hangs in its section keeps the lock for as long as its process lives.
    std::optional<std::chrono::milliseconds> max_hold{};

    /// Give every holder a fencing token. Without it acquiring is a little cheaper, `fencing_token()` is 0, and a resource cannot
    /// tell a paused holder's late write from a good one. ZooKeeper: no cheaper without.
    bool fencing = true;

    /// How many times in a row a lease may pass from one thread of this process to the next without asking a server; at most 63.
    /// 0: every section asks. Large: threads of this process run ahead of the waiters of others for that many sections. Then the
    /// lock is given back, and free for others to take, before a thread of this process asks for it again.
    unsigned max_local_handoffs = 63;

    /// Let `unlock()` return when the lock has been given back to the store, without waiting for its answer: half of the time of a
    /// short section. It waits all the same where a thread of this process waits for the lock, and others are to be let in first.
    /// Nobody is told then that a release failed, or found the lock taken away; one that is lost with its connection may leave the
    /// lock as it is until its ttl is over.
    bool deferred_release = false;

    /// How waiters space their attempts. ZooKeeper: whoever waits in a queue is woken and never looks by itself; in the plain form `first` is
    /// the longest pause between a release and the attempt at the lock.
    backoff_options retry{};

    /// `lock()` without a deadline throws `unavailable` when no quorum of servers could be asked for this long. Short: a restart of
    /// the servers fails the callers. Long: callers hang in an outage. ZooKeeper: without an answer from any server.
    std::chrono::milliseconds unavailable_after{10'000};

    /// Told of what a `noexcept` member or the background could not throw. Of each lock, always: that its lease was lost, with the reason; that
    /// `unlock()` found it lost, or not locked. Once for all locks of a client, whichever meets it first, for each code and server:
    /// a renewal or an `unlock()` that failed otherwise; and once more, `error::over()`, when a lock of the client is granted or
    /// renewed, no lease is left whose last renewal failed, and nothing failed for a second. Once for each lock of a client, `contended`: what it
    /// waits for, or was refused by, is a key without an expiry, or of another type, which no lock has made. The error has the lock's name and
    /// the server as data.
    /// Of a master of a Redlock that gives no vote, and a Redis server that may evict keys: once for each server and code, and once when that is
    /// over, without a lock's name. Called from the thread concerned, or from one that is begun for it, with no lock
    /// of the library held; what it throws is dropped. What that thread has not told yet when the lock is destroyed is not told; a call that has
    /// begun goes on, and what it refers to must outlast the client, whose end waits for it. One such call is made at a time for each client, and
    /// none keeps the callbacks of a `lost_token()` waiting: these are called first, and where one takes longer than a millisecond the next ones
    /// run beside it, up to 16 at a time.
    std::function<void(error const&)> on_error{};
};

/// The greatest `max_local_handoffs`: a batch of 64 fencing tokens keeps a server's counter behind its clock.
inline constexpr unsigned most_local_handoffs = 63;

/// The most that a ttl may be: a day.
inline constexpr std::chrono::milliseconds longest_ttl{24 * 60 * 60 * 1000};

/// Effects: none where `options` can be used for the lock `name` with servers that are given `node_timeout` to answer, which is the client's
/// option `timeout_option`.
/// Throws: `error` (`misconfigured`) otherwise, naming the field and what is wrong with it.
inline void check_options(std::string_view name, lock_options const& options, std::chrono::milliseconds node_timeout,
                          std::string_view timeout_option = "operation_timeout")
{
    auto const require = [&](bool good, std::string const& what) {
        if (good) return;
        throw error{make_error_code(errc::misconfigured), "lock " + holdfast::quoted(name) + ": " + what, {.lock_name = std::string{name}}};
    };
    auto const ms = [](auto d) { return std::to_string(d.count()) + " ms"; };
    require(options.ttl.count() > 0, "ttl is " + ms(options.ttl) + "; it must be positive");
    require(options.ttl <= longest_ttl, "ttl is " + ms(options.ttl) + "; at most a day is allowed");
    require(can_be_held(options.ttl), "ttl is " + ms(options.ttl) + "; the allowance for the clocks takes 2 % and 4 ms of it");
    require(options.ttl >= 2 * node_timeout, "ttl is " + ms(options.ttl) + ", less than twice the client's " + std::string{timeout_option} +
                                                 ", " + ms(node_timeout) + "; make ttl longer or that time shorter");
    require(!options.max_hold || options.max_hold->count() > 0, "max_hold must be positive; leave it out for no limit");
    require(options.max_local_handoffs <= most_local_handoffs,
            "max_local_handoffs is " + std::to_string(options.max_local_handoffs) + "; at most 63 are allowed");
    require(options.retry.first.count() > 0, "retry.first must be positive");
    require(options.retry.most <= longest_ttl, "retry.most is " + ms(options.retry.most) + "; at most a day is allowed");
    require(options.retry.most >= options.retry.first, "retry.most must be at least retry.first");
    require(options.unavailable_after.count() >= 0, "unavailable_after must not be negative");
}

}  // namespace holdfast
