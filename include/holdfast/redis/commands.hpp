// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/quorum/answer.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/keys.hpp>
#include <holdfast/redis/layout.hpp>
#include <holdfast/redis/waiter_id.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Where the fencing tokens of a lock come from.
enum class fence_source : std::uint8_t {
    none,   ///< no tokens
    clock,  ///< one master: the greater of the counter and the server's clock; increases even if the server forgets it
    counter,  ///< several masters: only counts, so that healthy masters answer alike; the clock seeds a missing counter
};

/// The shortest time that a fence counter is kept after its last use.
inline constexpr std::chrono::milliseconds shortest_fence_lifetime{60 * 60 * 1000};

/// How far ahead of the server's clock a fence may be on one master, or if the restart guard is off. Setting the clock
/// back by less leaves the fence as it was.
inline constexpr std::chrono::microseconds unguarded_fence_bound = std::chrono::hours{24};

/// How much faster than the clock fences by the clock may have been counted.
inline constexpr std::chrono::microseconds fence_burst = std::chrono::seconds{1};

/// One of the locks that an acquire_all asks for.
struct joint_member {
    shared_keys keys;
    owner_token token;
    std::chrono::milliseconds ttl{};
    unsigned batch = 0;                       ///< 0: without a fence
    std::chrono::milliseconds stop_margin{};  ///< see `acquire_request::stop_margin`
};

/// A request to one server. In one atomic step it does the following, with `now` on the server's clock:
///
/// | verb | yes if | then |
/// |---|---|---|
/// | acquire | no key, or the key holds `token` already | no key: key := token, expires at now + ttl. The fence moves up by `batch`, see `fence_source`; yes carries its new value. No carries the time the key has left |
/// | confirm | the key holds `token` | the fence := max(fence, `value`) |
/// | extend | the key holds `token` | the key expires at now + ttl, or later if it would anyway |
/// | reacquire | no key, or the key holds `token` already | no key: key := token, expires at now + ttl; otherwise as extend. No fence moves |
/// | release | the key holds `token` | the key is deleted; the next waiter is called; yes says whether others were told of it |
/// | leave | the lock is free | the next waiter is called |
/// | inspect | there is a key | the answer says what is known of the lock, and of its holder |
/// | force_release | there is a key, a string | the key is deleted, whatever it holds; the next waiter is called |
/// | request_release | there is a key | the record of the holder is marked: its renewals are told so |
/// | list | always | the answer names the locks among some of the keys |
/// | acquire_all | each of `members`: no key, no queue, no reservation; its fence is not foreign | as acquire, for each; yes carries their fences. No names one that is not so, and carries the time its key or its reservation has left; nothing is written |
/// | count | always | the answer says which slots of a semaphore are held |
/// | resize | always | the number of permits kept beside the slots is that of the keys; it lasts for `ttl` at least |
///
/// With `use_holder` a record of the holder is kept beside the key: `holder` says who it is. It is written with the
/// grant, expires with the key, and goes with it; see `scripts`. Each reader has its own, as long as its lease. An
/// operator sees one of them, and marks all, 1,000 at most.
///
/// The waiters are in a queue, by `score`: the servers' clock in µs when the wait began, or, if it is negative, the
/// time waited so far. With `use_queue`:
///
/// | what | is done |
/// |---|---|
/// | the next waiter is called | unless one is waited for: the first one leaves the queue, and is told over its inbox. The lock is reserved for it for a while. If nobody listens to that inbox, the waiter is gone, and the next one is called |
/// | acquire, no key, others are in the queue | `waiter` gets in line. If another is the first then, the next waiter is called |
/// | acquire, reserved for another | no, with the time that the reservation has left |
/// | no to an acquire of `waiter` | it is in the queue now, unless `score` is 0; a reservation for it is over. The time left is longer by 4 ms for each that is ahead |
/// | yes to it | it is not in the queue any more; a reservation for it is over |
/// | release or leave of `waiter` | it joins the queue if `score` is not 0, and leaves it otherwise; a reservation for it is over |
///
/// Queue and reservation only ever refuse. Losing them costs time: who waits looks by the clock, too. The layout for
/// other clients: docs/queue-of-waiters.md.
///
/// With the keys of a slot of a semaphore, the number of permits is kept beside the slots, until the last lease of one
/// of them can have ended: acquire and extend write it if there is none. If it is another than that of the keys, an
/// acquire is an error (`other_number`), and so is a reacquire that would create the key answered with no; an extend
/// of the lease goes on, and the other number lasts as long. See `permit_scripts`.
///
/// What the keys of a `shared_mutex` mean by these verbs, for one of its modes:
///
/// | verb | exclusive | shared |
/// |---|---|---|
/// | acquire | as above, for one more owner: no, if readers are there or have their turn. Beside the only reader: yes | yes, if no writer is there or waits. Beside its writer: yes. The token is one of the readers |
/// | no to it | it is remembered for `waits_for` that a writer waits, if it is in the queue or readers were the reason | that a reader waits, and that it is `waiter` |
/// | confirm, extend, reacquire | as above | the same, if the token is one of the readers; reacquire: or if no writer is there |
/// | release | as above; the readers that it stands beside stay; readers that wait have their turn, unless it `rolls_back`, and all are told | the token is no reader any more; the last one deletes the key. If no writer can be called, all are told |
/// | leave | as above; with the last writer in the queue, none is known to wait | `waiter` is no reader any more that is known to wait |
///
/// The key does not expire before the last reader; see `shared_scripts`. A writer beside readers has it until its own
/// lease is over: then the key is one of readers, for what they ask. When the last reader becomes a writer, it lasts
/// for `ttl`, or for the time that it has left if that is longer. Writers stand in the queue of a mutex of the same
/// name. Readers are in no queue. The turn of those that are known to wait lasts until each of them has asked and the
/// last one has left, or for as long as the lock would be reserved for the farthest of them.
///
/// With `counter`, a fence that is missing or below `floor` is first set to the greatest of the clock (in µs), `floor`
/// and the proposal `value`. A proposal that is more than `max_lead` ahead of the clock is ignored. A fence expires
/// `fence_lifetime` after it was last written; with `clock`, that long after the clock has reached it.
///
/// A fence is foreign if it is no number, or further ahead of the clock than `fence_bound`: holdfast did not write it.
/// What it replaced was no further ahead. With `clock` it may be `fence_burst` further, counted on from a replaced one.
///
/// | fence | an acquire that finds a foreign fence |
/// |---|---|
/// | `clock` | counts on from the clock + `fence_bound` |
/// | `counter`, guard | notes that the fence is lost, and the most that it can have been; is an error |
/// | the same, later | is an error until the clock is within half a guard of the note, which takes 1.5 guards; then counts on from the note, like a server that forgot its fences |
/// | `counter`, without guard | treats the fence as missing |
///
/// The answer to a confirm is no if the fence or `value` is foreign.
struct command {
    enum class verb : std::uint8_t {
        acquire,
        confirm,
        extend,
        reacquire,
        release,
        leave,
        inspect,
        force_release,
        request_release,
        list,         ///< `keys->lock` is a pattern, and `value` the cursor
        count,        ///< `keys` are those of slot 0, and `value` is how many slots there are
        resize,       ///< `keys` are those of slot 0
        acquire_all,  ///< `keys` are those of the first of `members`
    };

    verb what = verb::acquire;
    fence_source fence = fence_source::none;
    shared_keys keys;
    owner_token token;
    std::chrono::milliseconds ttl{};
    unsigned batch = 0;
    std::uint64_t value = 0;
    std::chrono::microseconds max_lead{};
    std::chrono::milliseconds fence_lifetime = shortest_fence_lifetime;
    /// The least fence that the server can have written since its start: a lower one comes from an old snapshot.
    std::uint64_t floor = 1;
    bool use_queue = true;
    bool queue_refused = false;  ///< it is sent again without the queue: the user may not use that
    waiter_id waiter{};
    std::int64_t score = 0;
    owner_token beside{};  ///< acquire: see `acquire_request::beside`; `has_beside` says whether it is one
    bool has_beside = false;
    std::chrono::milliseconds waits_for{};  ///< acquire: see `quorum::waiting_mark`
    bool rolls_back = false;                ///< release: of a round that was lost; it begins no turn of readers
    std::string_view holder{};              ///< the sender, for people; the sender keeps the text
    bool use_holder = false;
    std::shared_ptr<std::vector<joint_member> const> members{};
    bool holder_refused = false;    ///< it is sent again without the record: the user may not use that
    unsigned together = 1;          ///< how many are asked for together, of which it is the first: see `join_renewals`
    command const* also = nullptr;  ///< the next of them

    /// Effects: it is sent again after the server said that a right is missing: without the record of the holder, or,
    /// if it was without that, without the queue and with the record, or without both.
    void refuse_next() noexcept
    {
        holder_refused = use_holder;
        if (use_holder) return;
        leave_queue_out();
        queue_refused = true;
    }

    /// Effects: it does without the queue.
    void leave_queue_out() noexcept
    {
        use_queue = false;
        waiter = {};
        score = 0;
    }
};

/// Returns: the access that `c` is about: its recipe.
[[nodiscard]] inline access mode_of(command const& c) noexcept { return c.keys ? c.keys->mode() : access::sole; }

/// Returns: whether `c` is about a lock in Redisson's layout, which has no queue, no record of the holder and no number
/// of permits; see `redisson_scripts`.
[[nodiscard]] inline bool in_redisson(command const& c) noexcept
{
    return c.keys && c.keys->layout() == layout::redisson;
}

/// Returns: how far ahead of the server's clock a fence that holdfast wrote can be. The guard is twice `max_lead`.
[[nodiscard]] inline std::chrono::microseconds fence_bound(command const& c) noexcept
{
    return c.fence == fence_source::counter && c.max_lead.count() != 0 ? 3 * c.max_lead : unguarded_fence_bound;
}

/// Returns: whether `c` asks for the server's vote. It is sent only to servers that have one.
[[nodiscard]] inline bool asks_for_vote(command const& c) noexcept
{
    using enum command::verb;
    return c.what == acquire || c.what == acquire_all || c.what == reacquire;
}

/// Returns: whether `c` comes from the holder of the lock, who will release it.
[[nodiscard]] inline bool extends(command const& c) noexcept
{
    return c.what == command::verb::extend || c.what == command::verb::reacquire;
}

/// Returns: whether `c` has to do with the readers and the phase of a `shared_mutex`.
[[nodiscard]] inline bool knows_phase(command const& c) noexcept
{
    using enum command::verb;
    bool const both = c.what == acquire || c.what == release || c.what == leave || (extends(c) && !in_redisson(c));
    return mode_of(c) == access::shared || (mode_of(c) == access::exclusive && both);
}

/// Returns: whether `c` can have to do with the queue.
[[nodiscard]] inline bool may_queue(command const& c) noexcept
{
    using enum command::verb;
    if (in_redisson(c)) return false;
    return c.what == acquire || c.what == release || c.what == leave || c.what == inspect || c.what == force_release;
}

/// Returns: whether `c` is what an operator asks, and not a client for its own lock.
[[nodiscard]] inline bool of_operator(command const& c) noexcept
{
    return c.what >= command::verb::inspect && c.what <= command::verb::resize;
}

/// Returns: whether `c` compares the number of permits of a semaphore.
[[nodiscard]] inline bool knows_number(command const& c) noexcept
{
    using enum command::verb;
    bool const lasts = c.what == acquire || c.what == extend || c.what == reacquire;
    return lasts && c.keys && c.keys->permits() > 0 && !in_redisson(c);
}

/// Returns: whether `c` can have to do with the record of the holder.
[[nodiscard]] inline bool may_use_holder(command const& c) noexcept
{
    using enum command::verb;
    if (in_redisson(c)) return false;
    if (of_operator(c)) return c.what != list && c.what != count && c.what != resize;
    return !c.holder.empty() && c.what != confirm && c.what != leave;
}

/// Returns: whether the node knows whom to call, if it refuses `c`, or when that is rolled back.
[[nodiscard]] inline bool gets_in_line(command const& c) noexcept
{
    bool const stands = mode_of(c) != access::shared;  // readers are called together
    return c.what == command::verb::acquire && stands && c.use_queue && c.waiter && c.score != 0;
}

using quorum::unknown_time_left;

/// The answer of a script is less by this if the key is of another type.
inline constexpr std::int64_t other_type_mark = std::int64_t{1} << 52;

/// What a node says of a lock, or which locks it has.
struct node_report {
    std::string digest{};                 ///< of the value of the key: the same on two nodes for the same owner
    std::chrono::milliseconds left{};     ///< until the key expires; negative: it does not
    std::chrono::microseconds clock{};    ///< the server's, since 1970
    std::string record{};                 ///< of the holder, without its owner token; empty if there is none
    std::int64_t waiting = -1;            ///< how many; negative: not known
    std::uint64_t cursor = 0;             ///< where a list goes on; 0: it is complete
    std::vector<std::string> names{};     ///< of locks; for a count, a digest for each slot, empty if it is free
    std::vector<std::uint64_t> fences{};  ///< of an acquire_all; 0 where none was asked for
    std::size_t blocker = 0;              ///< the place of one that refused it
};

/// The answer to a command: `applied` is yes, `refused` without an error no. After a lost connection, or a reply that
/// breaks the protocol, the command may have been done: that is `unknown`.
struct answer : quorum::answer {
    bool other_type = false;                      ///< no to acquire: the key is no string
    bool fence_replaced = false;                  ///< to acquire: the fence was foreign, and was replaced
    bool release_requested = false;               ///< to extend and reacquire: the holder is asked to release the lock
    bool no_record = false;                       ///< no to request_release: there is no record of the holder
    std::int64_t last_score = 0;                  ///< no to acquire: that of the last in the queue, if it is later
    std::shared_ptr<node_report const> report{};  ///< to inspect, list and acquire_all

    [[nodiscard]] static answer yes(std::uint64_t last = 0) { return {applied(last)}; }
    [[nodiscard]] static answer no(std::chrono::milliseconds left = {}) { return {refused(left)}; }
    [[nodiscard]] static answer failed(std::error_code why)
    {
        bool const may_be_done = why == errc::connection_lost || why == errc::protocol_error;
        return {may_be_done ? unknown(why) : refused(why)};
    }
};

}  // namespace holdfast::redis
