// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/token.hpp>
#include <holdfast/redis/keys.hpp>

#include <chrono>
#include <cstdint>
#include <system_error>

namespace holdfast::redis {

/// Where the fencing tokens of a lock come from.
enum class fence_source : std::uint8_t {
    none,     ///< no tokens
    clock,    ///< one master: the greater of the counter and the server's clock, so that lost memory is not felt; but for `take`
    counter,  ///< several masters: counting alone, so that healthy masters answer alike; the clock seeds a missing counter
};

/// How long a fence counter outlives its last use at the least.
inline constexpr std::chrono::milliseconds shortest_fence_lifetime{60 * 60 * 1000};

/// A request to one server. What each does to the server's state, in one atomic step but for `take`, with `now` on the server's clock:
///
/// | verb    | yes if                                    | then                                                        |
/// |---------|-------------------------------------------|-------------------------------------------------------------|
/// | acquire | no key, or the key holds `token` already  | no key: key := token, expires at now + ttl. The fence moves up by `batch`, see `fence_source`; yes carries its new value. No carries the time the key has left |
/// | take    | no key                                    | as acquire, but that it does not recognise the token: only for the first time that it is sent. Plain commands: `SET NX PX`; with a fence, behind it, `INCRBY`, of which a missing fence becomes `batch`, and does not expire; it moves with a no, too. Where it `seeds`, between them, `SET NX PXAT`: a missing fence becomes `value`, where it is not `seed_until` yet; and behind them `PEXPIRE`: the fence, whatever it is, expires after `fence_lifetime`. No carries no time |
/// | confirm | the key holds `token`                     | the fence := max(fence, `value`)                            |
/// | extend  | the key holds `token`                     | the key expires at now + ttl, or later where it would have  |
/// | regain  | no key, or the key holds `token` already  | no key: key := token, expires at now + ttl; otherwise as extend. No fence moves |
/// | release | the key holds `token`                     | the key is deleted; the release is published; yes carries to how many |
///
/// For `counter`, a fence that is missing, or below `floor`, is first set to the greatest of the clock (in µs), `floor` and the proposal
/// `value`, the last where it is ahead of the clock by no more than `max_lead`. A fence expires `fence_lifetime` after it was last written, where
/// that was not with `keep_end`. In front of an acquire or take that `looks` goes `TIME`, whose answer comes with theirs.
struct command {
    enum class verb : std::uint8_t { acquire, take, confirm, extend, regain, release };

    verb what = verb::acquire;
    fence_source fence = fence_source::none;
    shared_keys keys;
    owner_token token;
    std::chrono::milliseconds ttl{};
    unsigned batch = 0;
    std::uint64_t value = 0;
    std::chrono::microseconds max_lead{};
    std::chrono::milliseconds fence_lifetime = shortest_fence_lifetime;
    std::chrono::milliseconds seed_until{};  ///< of a take: from when on it makes no fence, since 1970 on the server's clock; 0: it never does
    bool looks = false;       ///< the server's clock is asked for, too
    bool first = false;       ///< of an acquire: no server was sent this token before
    bool keep_end = false;    ///< of a fence that there is: it was put off lately
    bool granted = false;     ///< of a release: the server is known to have said yes to an acquire of this token
    std::uint64_t floor = 1;  ///< what a fence is at the least that the server has not brought back from an old snapshot
};

/// What a command is made of: requests, with a reply to each.
enum class command_part : std::uint8_t {
    clock,  ///< `TIME`
    lock,   ///< what the command is about; the only one of most
    seed,   ///< what a missing fence begins with
    count,  ///< the fence moves up
    keep,   ///< how long the fence is kept
};

/// Returns: whether the fence is counted on without a script.
[[nodiscard]] inline bool counts_plainly(command const& c) noexcept { return c.what == command::verb::take && c.fence != fence_source::none; }

/// Returns: whether a fence that is missing begins with `value`, without a script.
[[nodiscard]] inline bool seeds(command const& c) noexcept { return counts_plainly(c) && c.seed_until.count() != 0; }

/// Returns: how many parts `c` has.
[[nodiscard]] inline unsigned parts(command const& c) noexcept
{
    return 1U + (c.looks ? 1U : 0U) + (seeds(c) ? 2U : 0U) + (counts_plainly(c) ? 1U : 0U);
}

/// Returns: part `i` of `c`, from 0 on, in the order in which they are sent. Requires: `i < parts(c)`.
[[nodiscard]] inline command_part part(command const& c, unsigned i) noexcept
{
    if (c.looks && i == 0) return command_part::clock;
    if (c.looks) --i;
    if (i == 0) return command_part::lock;
    if (!seeds(c)) return command_part::count;
    return i == 1 ? command_part::seed : i == 2 ? command_part::count : command_part::keep;
}

/// Returns: whether `c` may make the server's vote its token's: it is sent to servers that have a vote only.
[[nodiscard]] inline bool asks_for_vote(command const& c) noexcept
{
    return c.what == command::verb::acquire || c.what == command::verb::take || c.what == command::verb::regain;
}

/// Returns: whether `c` is for who has the lock, and will release it himself.
[[nodiscard]] inline bool extends(command const& c) noexcept { return c.what == command::verb::extend || c.what == command::verb::regain; }

/// The time left of a key that does not say, or does not expire.
inline constexpr std::chrono::milliseconds unknown_time_left{-1};

/// What came back for a command.
struct answer {
    enum class kind : std::uint8_t { yes, no, error };

    kind what = kind::error;
    std::uint64_t fence = 0;                 ///< yes to acquire or take: the fence after it moved up; 0 without fencing
    std::uint64_t told = 0;                  ///< yes to release: how many connections were told of it, of those this server knows
    std::chrono::milliseconds time_left{0};  ///< no to acquire: how long the key has left; negative: not known, or it does not expire
    std::error_code error{};                 ///< error: what the server, or the way to it, said
    std::chrono::microseconds clock{0};      ///< the server's, since 1970, where the command looked; 0 where it did not, or was not told
    bool seed_refused = false;               ///< the server grants the lock, but does not do what seeds a fence
    bool kept = false;                       ///< the fence that was counted on is kept for `fence_lifetime`

    [[nodiscard]] static answer yes(std::uint64_t fence = 0) { return {.what = kind::yes, .fence = fence}; }
    [[nodiscard]] static answer no(std::chrono::milliseconds left = {}) { return {.what = kind::no, .time_left = left}; }
    [[nodiscard]] static answer failed(std::error_code why) { return {.what = kind::error, .error = why}; }
};

}  // namespace holdfast::redis
