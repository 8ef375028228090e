// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/result.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// The keys of one lock on the servers. The lock's own key is its name, so that other clients share it. The others are
/// in the same hash slot, unless the name has a `}` and no hash tag.
struct lock_keys : lock_key {
    std::string lock;     ///< `SET key token NX PX`
    std::string fence;    ///< the counter of fencing tokens; kept for at least an hour after its last use
    std::string channel;  ///< the channel on which a release is published
    std::string queue;    ///< the waiters, in the order in which they are called; see `scripts`
    std::string next;     ///< who was called last, until he has asked: the reservation

    /// `name` is what the user calls the lock; empty: the same as its key. Throws: `error` (`misconfigured`) if the key
    /// is reserved.
    explicit lock_keys(std::string key, std::string_view name = {})
        : lock_key{name.empty() ? key : std::string{name}}, lock{std::move(key)}
    {
        if (lock.starts_with(reserved_prefix))
            throw holdfast::detail::error_of(
                this->name(), {make_error_code(holdfast::errc::misconfigured),
                               "its key, key_prefix and the name, begins with \"holdfast:\", which is reserved for "
                               "what is kept beside a lock"});
        auto const tagged = in_slot_of(lock);
        fence = std::string{reserved_prefix} + "fence:" + tagged;
        channel = std::string{reserved_prefix} + "free:" + tagged;
        queue = std::string{reserved_prefix} + "queue:" + tagged;
        next = std::string{reserved_prefix} + "next:" + tagged;
    }

    /// Names that begin with this are refused: they could be another lock's counter.
    static constexpr std::string_view reserved_prefix = "holdfast:";

private:
    /// Source: "Hash tags" in the Redis cluster specification: what is between the first `{` and the next `}` is
    /// hashed, if it is not empty. A name with such a tag is used as it is; any other name is wrapped to become the
    /// tag.
    static std::string in_slot_of(std::string const& name)
    {
        auto const open = name.find('{');
        auto const close = open == std::string::npos ? open : name.find('}', open + 1);
        bool const has_tag = close != std::string::npos && close > open + 1;
        return has_tag ? name : "{" + name + "}";
    }
};

using shared_keys = std::shared_ptr<lock_keys const>;

}  // namespace holdfast::redis
