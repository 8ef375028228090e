// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/options.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// A request to a ZooKeeper server.
struct request {
    enum class kind : std::uint8_t {
        create_sequential,  ///< an ephemeral node whose name the server ends with a sequence
        create_plain,       ///< an ephemeral node
        create_container,   ///< a node that the server collects when its last child is gone
        create_persistent,  ///< a node that stays
        children,           ///< the names below a node
        data,               ///< a node's data and stat
        watch,              ///< the same, and a notice when the node changes or goes away
        watch_children,     ///< the names below a node, and a notice when there are others
        erase,              ///< delete the node
        write,              ///< replace the node's data
        touch,              ///< shows the server that the session lives
        /// a write without effect, answered by a quorum; what is sent after it is answered with what was known then, or
        /// later
        confirm,
        unwatch,  ///< remove the watches of the node
    };

    kind what;
    std::string path = {};
    std::string content = {};  ///< of a node to be made, or written
};

/// Returns: whether a quorum must agree to it.
[[nodiscard]] constexpr bool is_write(request::kind k) noexcept
{
    using kind = request::kind;
    return k == kind::create_sequential || k == kind::create_plain || k == kind::create_container ||
           k == kind::create_persistent || k == kind::erase || k == kind::write || k == kind::confirm;
}

/// Returns: whether it makes a node that ends with the session.
[[nodiscard]] constexpr bool makes_lock_node(request::kind k) noexcept
{
    return k == request::kind::create_sequential || k == request::kind::create_plain;
}

/// Returns: whether its answer is followed by a notice.
[[nodiscard]] constexpr bool sets_watch(request::kind k) noexcept
{
    return k == request::kind::watch || k == request::kind::watch_children;
}

/// The result of a request.
enum class answer : std::uint8_t {
    ok,
    no_node,      ///< the node, or the one above it, is not there
    node_exists,  ///< it is there already
    lost,         ///< no answer came: it may or may not have taken effect
    refused,      ///< it took no effect, and will not unless something changes: see `reply::code`
    postponed,    ///< it took no effect, but may if it is sent again
};

/// The owner of a container, by its stat.
inline constexpr std::int64_t container_owner = std::numeric_limits<std::int64_t>::min();

/// The first 24 bits of the owner of a node that lasts for a time, by its stat. Source: ZooKeeper's `EphemeralType`.
inline constexpr unsigned ttl_owner = 0xFF0000;

struct node_stat {
    std::int64_t czxid = 0;  ///< the transaction that made the node
    std::int64_t owner = 0;  ///< the session that the node ends with
    std::int64_t ctime = 0;  ///< when it was made, by the server's clock, in ms since 1970

    /// Returns: whether the node ends with a session.
    [[nodiscard]] bool ephemeral() const noexcept
    {
        bool const lasts_for_a_time = static_cast<std::uint64_t>(owner) >> 40U == ttl_owner;
        return owner != 0 && owner != container_owner && !lasts_for_a_time;
    }
};

/// How many fencing tokens each node has: as many as a lease can use.
inline constexpr unsigned tokens_of_a_node = most_local_handoffs + 1;

/// Returns: the first fencing token of the node that was made by the transaction `czxid`.
[[nodiscard]] constexpr std::uint64_t first_token_of(std::int64_t czxid) noexcept
{
    return static_cast<std::uint64_t>(czxid) * tokens_of_a_node;
}

/// The answer to a request.
struct reply {
    answer what = answer::lost;
    std::error_code code{};  ///< why, if `what` is lost, refused or postponed
    std::string text = {};   ///< the path that was made; a node's data
    node_stat stat = {};     ///< of what was made or asked for
    std::vector<std::string> children = {};

    /// Returns: whether the request has to be sent again.
    [[nodiscard]] bool undecided() const noexcept { return what == answer::lost || what == answer::postponed; }
};

}  // namespace holdfast::zookeeper
