// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/result.hpp>
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
    std::string lock;  ///< `SET key token NX PX`

    /// `name` is what the user calls the lock; empty: the same as its key. Throws: `error` (`misconfigured`) if the key
    /// is reserved.
    explicit lock_keys(std::string key, std::string_view name = {}, access mode = access::sole)
        : lock_keys{std::move(key), name, {}, mode, 0}
    {
    }

    /// Returns: the keys of a slot of a semaphore of `permits`; that number is a kind: in one process, too, the slots
    /// of semaphores of one name and different numbers are asked for separately.
    [[nodiscard]] static std::shared_ptr<lock_keys const> of_slot(std::string key, std::string_view name,
                                                                  std::size_t permits)
    {
        return std::make_shared<lock_keys const>(std::move(key), name, std::to_string(permits), access::sole,
                                                 static_cast<std::uint16_t>(permits));
    }

    lock_keys(std::string key, std::string_view name, std::string kind, access mode, std::uint16_t permits)
        : lock_key{name.empty() ? key : std::string{name}, std::move(kind), mode},
          lock{std::move(key)},
          tagged_{has_tag(lock)},
          permits_{permits}
    {
        if (lock.starts_with(reserved_prefix))
            throw holdfast::detail::error_of(
                this->name(), {make_error_code(holdfast::errc::misconfigured),
                               "its key, key_prefix and the name, begins with \"holdfast:\", which is reserved for "
                               "what is kept beside a lock"});
    }

    /// The counter of fencing tokens; kept for at least an hour after its last use.
    [[nodiscard]] word fence() const noexcept { return beside("holdfast:fence:{"); }

    /// The channel on which a release is published.
    [[nodiscard]] word channel() const noexcept { return beside("holdfast:free:{"); }

    /// The waiters, in the order in which they are called; see `scripts`.
    [[nodiscard]] word queue() const noexcept { return apart("holdfast:queue:{"); }

    /// Who was called last, until he has asked: the reservation.
    [[nodiscard]] word next() const noexcept { return apart("holdfast:next:{"); }

    /// The leases of the readers of a `shared_mutex`; see `shared_scripts`.
    [[nodiscard]] word readers() const noexcept { return apart("holdfast:readers:{"); }

    /// Who waits for a `shared_mutex`, and whose turn it is.
    [[nodiscard]] word phase() const noexcept { return apart("holdfast:phase:{"); }

    /// Who has the lock, for people, if its client keeps that; see `scripts`.
    [[nodiscard]] word holder() const noexcept { return apart("holdfast:holder:{"); }

    /// Returns: of how many permits it is a slot; 0: of none.
    [[nodiscard]] unsigned permits() const noexcept { return permits_; }

    /// Names that begin with this are refused: they could be another lock's counter.
    static constexpr std::string_view reserved_prefix = "holdfast:";

private:
    /// Source: "Hash tags" in the Redis cluster specification: what is between the first `{` and the next `}` is
    /// hashed, if it is not empty. A name with such a tag is used as it is; any other name is wrapped to become the
    /// tag.
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

    bool tagged_;
    std::uint16_t permits_;
};

using shared_keys = std::shared_ptr<lock_keys const>;

}  // namespace holdfast::redis
