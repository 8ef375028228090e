// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

namespace holdfast::zookeeper {

/// What is asked of a ZooKeeper server.
struct request {
    enum class kind : std::uint8_t {
        create_sequential,  ///< an ephemeral node whose name the server ends with a sequence
        create_plain,       ///< an ephemeral node
        create_container,   ///< a node that the server collects when its last child is gone
        children,           ///< the names below a node
        data,               ///< a node's data and stat
        watch,              ///< the same, and a notice when the node changes or goes
        erase,              ///< delete the node
        touch,              ///< tells the server that the session lives
        confirm,  ///< a write without effect: a quorum answers, and what is sent behind it is answered by what was known then, or later
        unwatch,  ///< remove the watch of the node
    };

    kind what;
    std::string path = {};
    std::string content = {};  ///< of a node to be made
};

/// Returns: whether a quorum has to agree to it.
[[nodiscard]] constexpr bool is_write(request::kind k) noexcept
{
    using kind = request::kind;
    return k == kind::create_sequential || k == kind::create_plain || k == kind::create_container || k == kind::erase || k == kind::confirm;
}

/// What came of a request.
enum class answer : std::uint8_t {
    ok,
    no_node,      ///< the node, or the one above it, is not there
    node_exists,  ///< it is there already
    lost,         ///< no answer came: it may or may not have taken effect
    refused,      ///< it took no effect, and will not as things stand: see `reply::code`
    postponed,    ///< it took no effect and may when it is sent again
};

/// The owner of a container, by its stat.
inline constexpr std::int64_t container_owner = std::numeric_limits<std::int64_t>::min();

struct node_stat {
    std::int64_t czxid = 0;  ///< the transaction that made the node
    std::int64_t owner = 0;  ///< the session whose end is the node's end
};

/// The answer to a request.
struct reply {
    answer what = answer::lost;
    std::error_code code{};  ///< why, where `what` is lost, refused or postponed
    std::string text = {};   ///< the path that was made; a node's data
    node_stat stat = {};     ///< of what was made or asked for
    std::vector<std::string> children = {};
};

}  // namespace holdfast::zookeeper
