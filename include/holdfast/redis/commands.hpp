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
    clock,    ///< one master: the greater of the counter and the server's clock, so that lost memory is not felt
    counter,  ///< several masters: counting alone, so that healthy masters answer alike; the clock seeds a missing counter
};

/// How long a fence counter outlives its last use at the least.
inline constexpr std::chrono::milliseconds shortest_fence_lifetime{60 * 60 * 1000};

/// How far ahead of the server's clock a fence may be if no restart guard says so: on one master, and if the guard is off. A clock that is set back
/// by less leaves the fence as it was.
inline constexpr std::chrono::microseconds unguarded_fence_bound = std::chrono::hours{24};

/// A request to one server. What each does to the server's state, in one atomic step, with `now` on the server's clock:
///
/// | verb    | yes if                                    | then                                                        |
/// |---------|-------------------------------------------|-------------------------------------------------------------|
/// | acquire | no key, or the key holds `token` already  | no key: key := token, expires at now + ttl. The fence moves up by `batch`, see `fence_source`; yes carries its new value. No carries the time the key has left |
/// | confirm | the key holds `token`                     | the fence := max(fence, `value`)                            |
/// | extend  | the key holds `token`                     | the key expires at now + ttl, or later where it would have  |
/// | regain  | no key, or the key holds `token` already  | no key: key := token, expires at now + ttl; otherwise as extend. No fence moves |
/// | release | the key holds `token`                     | the key is deleted; the release is published; yes carries to how many |
///
/// For `counter`, a fence that is missing, or below `floor`, is first set to the greatest of the clock (in µs), `floor` and the proposal
/// `value`, the last where it is ahead of the clock by no more than `max_lead`. A fence expires `fence_lifetime` after it was last written;
/// for `clock`, after the clock has come to it.
///
/// A fence that is further ahead of the clock than `fence_bound`, or no number, is foreign: nobody here wrote it. What it replaced was no further
/// ahead than that. For `clock` the acquire counts on from there instead. For `counter` an acquire notes that the fence is lost, and what it was at
/// the most, and is an error; so are all until the clock is no more than half a guard behind that, which takes a guard. Then it counts on from
/// there; as a server does that has forgotten its fences. Without a guard it is as good as missing. A foreign fence confirms nothing, and none is
/// written by a confirm.
struct command {
    enum class verb : std::uint8_t { acquire, confirm, extend, regain, release };

    verb what = verb::acquire;
    fence_source fence = fence_source::none;
    shared_keys keys;
    owner_token token;
    std::chrono::milliseconds ttl{};
    unsigned batch = 0;
    std::uint64_t value = 0;
    std::chrono::microseconds max_lead{};
    std::chrono::milliseconds fence_lifetime = shortest_fence_lifetime;
    bool granted = false;     ///< of a release: the server is known to have said yes to an acquire of this token
    std::uint64_t floor = 1;  ///< what a fence is at the least that the server has not brought back from an old snapshot
};

/// Returns: how far ahead of the server's clock a fence may be that holdfast has written. The guard is twice `max_lead`.
[[nodiscard]] inline std::chrono::microseconds fence_bound(command const& c) noexcept
{
    return c.fence == fence_source::counter && c.max_lead.count() != 0 ? 3 * c.max_lead : unguarded_fence_bound;
}

/// Returns: whether `c` may make the server's vote its token's: it is sent to servers that have a vote only.
[[nodiscard]] inline bool asks_for_vote(command const& c) noexcept
{
    return c.what == command::verb::acquire || c.what == command::verb::regain;
}

/// Returns: whether `c` is for who has the lock, and will release it himself.
[[nodiscard]] inline bool extends(command const& c) noexcept { return c.what == command::verb::extend || c.what == command::verb::regain; }

/// The time left of a key that does not say, or does not expire.
inline constexpr std::chrono::milliseconds unknown_time_left{-1};

/// By so much what a script says is less if the key is of another type.
inline constexpr std::int64_t other_type_mark = std::int64_t{1} << 52;

/// What came back for a command.
struct answer {
    enum class kind : std::uint8_t { yes, no, error };

    kind what = kind::error;
    std::uint64_t fence = 0;                 ///< yes to acquire: the fence after it moved up; 0 without fencing
    std::uint64_t told = 0;                  ///< yes to release: how many connections were told of it, of those this server knows
    std::chrono::milliseconds time_left{0};  ///< no to acquire: how long the key has left; negative: not known, or it does not expire
    bool other_type = false;                 ///< no to acquire: the key is no string
    bool fence_replaced = false;             ///< to acquire: the fence was foreign, and is not there any more
    std::error_code error{};                 ///< error: what the server, or the way to it, said

    [[nodiscard]] static answer yes(std::uint64_t fence = 0) { return {.what = kind::yes, .fence = fence}; }
    [[nodiscard]] static answer no(std::chrono::milliseconds left = {}) { return {.what = kind::no, .time_left = left}; }
    [[nodiscard]] static answer failed(std::error_code why) { return {.what = kind::error, .error = why}; }
};

}  // namespace holdfast::redis
