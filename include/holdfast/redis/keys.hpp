// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/redis/layout.hpp>
#include <holdfast/redis/request.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// The keys of one lock on the servers. The lock's own key is its name, so that other clients share it. The others are
/// in the same hash slot, unless the name has a `}` and no hash tag; they are made when they are needed.
struct lock_keys : lock_key {
private:
    redis::layout layout_;
    bool tagged_;
    std::uint16_t permits_;
    std::unique_ptr<std::string const> key_;  // null: it is the name

public:
    std::string const& lock;  ///< see `redis::layout`

    /// `name` is what the user calls the lock; empty: the same as its key. Throws: `error` (`misconfigured`) if the key
    /// is reserved.
    /// With `permits`, they are those of a slot of a semaphore. That number is a kind: in one process, too, the slots
    /// of semaphores of one name and different numbers are asked for separately.
    explicit lock_keys(std::string key, std::string_view name = {}, access mode = access::sole,
                       redis::layout kind = redis::layout::string, std::size_t permits = 0)
        : lock_key{name.empty() ? key : std::string{name}, permits == 0 ? std::string{} : std::to_string(permits),
                   mode},
          layout_{kind},
          tagged_{kind == redis::layout::redisson ? key.find('{') != std::string::npos : has_tag(key)},
          permits_{static_cast<std::uint16_t>(permits)},
          key_{key == this->name() ? nullptr : std::make_unique<std::string const>(std::move(key))},
          lock{key_ ? *key_ : this->name()}
    {
        refuse(reserved_prefix);
        if (kind == redis::layout::redisson) refuse(redisson_counters);
    }

    [[nodiscard]] redis::layout layout() const noexcept { return layout_; }

    /// The counter of fencing tokens; kept for at least an hour after its last use, that of Redisson's for good.
    [[nodiscard]] word fence() const noexcept
    {
        return beside(redisson() ? "redisson_lock_token:{" : "holdfast:fence:{");
    }

    /// The channel on which a release is published.
    [[nodiscard]] word channel() const noexcept
    {
        if (!redisson()) return beside("holdfast:free:{");
        return beside(mode() == access::sole ? "redisson_lock__channel:{" : "redisson_rwlock:{");
    }

    /// The waiters, in the order in which they are called; see `scripts`.
    [[nodiscard]] word queue() const noexcept { return apart("holdfast:queue:{"); }

    /// Who was called last, until he has asked: the reservation.
    [[nodiscard]] word next() const noexcept { return apart("holdfast:next:{"); }

    /// The leases of the readers of a `shared_mutex`; see `shared_scripts`. In Redisson's layout each has a key, and
    /// this is what their names begin with.
    [[nodiscard]] word readers() const noexcept { return redisson() ? beside("{") : apart("holdfast:readers:{"); }

    /// Who waits for a `shared_mutex`, and whose turn it is.
    [[nodiscard]] word phase() const noexcept { return apart("holdfast:phase:{"); }

    /// Who has the lock, for people, if its client keeps that; see `scripts`. That of a reader goes on after it.
    [[nodiscard]] word holder() const noexcept { return apart("holdfast:holder:{"); }

    /// Returns: of how many permits it is a slot; 0: of none.
    [[nodiscard]] unsigned permits() const noexcept { return permits_; }

    /// Names that begin with this are refused: they could be another lock's counter.
    static constexpr std::string_view reserved_prefix = "holdfast:";

    /// The same of Redisson's layout.
    static constexpr std::string_view redisson_counters = "redisson_lock_token:";

private:
    [[nodiscard]] bool redisson() const noexcept { return layout_ == redis::layout::redisson; }

    void refuse(std::string_view prefix) const
    {
        if (lock.starts_with(prefix))
            throw holdfast::detail::error_of(name(), {make_error_code(holdfast::errc::misconfigured),
                                                      "its key, key_prefix and the name, begins with " +
                                                          holdfast::quoted(prefix) +
                                                          ", which is reserved for what is kept beside a lock"});
    }

    /// Source: "Hash tags" in the Redis cluster specification: what is between the first `{` and the next `}` is
    /// hashed, if it is not empty. A name with such a tag is used as it is; any other name is wrapped to become the
    /// tag. Redisson wraps no name that has a `{`.
    [[nodiscard]] word beside(std::string_view before) const noexcept
    {
        return tagged_ ? word{before.substr(0, before.size() - 1), lock, {}} : word{before, lock, "}"};
    }

    /// The same, and different for each name: `a` and `{a}` have one fence and one channel, which does no harm.
    [[nodiscard]] word apart(std::string_view before) const noexcept
    {
        return tagged_ ? word{before.substr(0, before.size() - 1), ":", lock} : word{before, lock, "}"};
    }

    [[nodiscard]] static bool has_tag(std::string_view name) noexcept
    {
        auto const open = name.find('{');
        auto const close = open == std::string_view::npos ? open : name.find('}', open + 1);
        return close != std::string_view::npos && close > open + 1;
    }
};

using shared_keys = std::shared_ptr<lock_keys const>;

}  // namespace holdfast::redis
