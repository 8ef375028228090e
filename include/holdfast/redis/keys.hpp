// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>

#include <cstdint>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::redis {

/// What the servers call the parts of one lock. The lock's key is its name, so that other clients share it; the others lie in the same
/// hash slot, but for a name that has a `}` and no hash tag.
struct lock_keys {
    std::string lock;     ///< `SET key token NX PX`
    std::string fence;    ///< the counter of fencing tokens; lives for an hour at least after its last use
    std::string channel;  ///< where a release is published

    /// What a node's answers have shown, see `votes`.
    struct experience {
        owner_token voter{};          ///< for whom it said yes last, or may have
        owner_token intact{};         ///< what was drawn for the last attempt, where no release of it has been sent that may still arrive
    };
    mutable std::atomic<std::uint32_t> fences_replaced{0};  ///< on which nodes, a bit each; to be told, also if nobody waited for that answer
    mutable std::vector<experience> known;  ///< of each node; empty: nobody notes it. Guarded by the transport's lock

    explicit lock_keys(std::string key, unsigned nodes = 0) : lock{std::move(key)}, known(nodes)
    {
        auto const tagged = in_slot_of(lock);
        fence = std::string{reserved_prefix} + "fence:" + tagged;
        channel = std::string{reserved_prefix} + "free:" + tagged;
    }

    /// Names that begin with it are refused: they could be another lock's counter.
    static constexpr std::string_view reserved_prefix = "holdfast:";

private:
    /// Source: "Hash tags" in the Redis cluster specification: what is between the first `{` and the next `}` is hashed, where it is not
    /// empty. A name that has such a tag lends it to its companions as it is; another one is wrapped to be the tag.
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
