// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lasting.hpp>

#include <string>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Errors from a ZooKeeper server, or from the connection to it. A category of its own; each code equals one condition
/// of `holdfast::errc`.
enum class errc {
    // unavailable: may pass
    not_connected = 1,  ///< no server of the ensemble could be reached
    connection_lost,    ///< the connection broke before the answer came
    no_answer,          ///< no answer within the operation timeout
    session_expired,    ///< the servers ended the session; a new one is made
    not_confirmed,      ///< the session could not be confirmed for long enough to hold a lock
    throttled,          ///< the server refuses requests for now
    server_error,       ///< an error that holdfast does not know
    too_many_watches,   ///< the session watches as many nodes as fit in one request, and the lock would need one more
    no_threads,         ///< the system has no threads for the C client
    // misconfigured: will not pass
    authentication_failed,  ///< the server does not accept the session's identity
    may_not_read,           ///< the ACL does not allow reading the lock's node, or the list of its children
    may_not_create,         ///< the ACL of the node above does not allow creating a node below it
    may_not_delete,         ///< the ACL of the node above does not allow deleting a node below it
    bad_acl,                ///< the server does not accept the ACL
    parent_is_ephemeral,    ///< a node above the lock is ephemeral and can have no children
    bad_request,            ///< the server does not know the request, or considers it invalid
    may_not_write,          ///< the ACL of a lock's node does not allow another session to write to it
    other_number,           ///< the semaphore is in use with another number of permits than this client says
    not_ephemeral,          ///< the node of a lock without a queue does not end with a session
    // unavailable, too: it may pass
    too_many_nodes,  ///< the nodes of the session have as many bytes as servers can remove at once
};

namespace detail {

class [[gnu::visibility("default")]] category final : public std::error_category {
public:
    [[nodiscard]] char const* name() const noexcept override { return "holdfast.zookeeper"; }

    [[nodiscard]] std::string message(int value) const override
    {
        switch (static_cast<errc>(value)) {
        case errc::not_connected: return "no server of the ensemble could be reached";
        case errc::connection_lost: return "the connection was lost before the answer came";
        case errc::no_answer: return "no answer within the operation timeout";
        case errc::session_expired: return "the session expired";
        case errc::not_confirmed: return "the session could not be confirmed in time";
        case errc::throttled: return "the server refuses requests for now";
        case errc::too_many_watches:
            return "the session waits for too many locks; use several ZooKeeper sessions, or shorter names";
        case errc::too_many_nodes:
            return "the session has too many locks; use several ZooKeeper sessions, or shorter names";
        case errc::no_threads: return "the system has no threads for ZooKeeper's C client";
        case errc::server_error: return "the server answered with an error";
        case errc::authentication_failed: return "authentication failed; check the session's auth";
        case errc::may_not_read: return missing("READ");
        case errc::may_not_create: return missing("CREATE");
        case errc::may_not_delete: return missing("DELETE");
        case errc::may_not_write: return missing("WRITE");
        case errc::other_number: return "the semaphore is in use with another number of permits";
        case errc::not_ephemeral:
            return "the node at the lock's path does not end with a session, as that of a lock without a queue does; "
                   "say the same queueing in all clients, or choose another path";
        case errc::bad_acl: return "the server does not accept the ACL; creator-only needs auth";
        case errc::parent_is_ephemeral:
            return "a node above the lock is ephemeral and can have no children; choose another path";
        case errc::bad_request:
            return "the server does not know the request, or takes it for invalid; ZooKeeper 3.5 or later is needed";
        }
        return "unknown ZooKeeper error";
    }

    [[nodiscard]] static std::string missing(char const* right)
    {
        return std::string{"the ACL of a node does not give the right "} + right +
               "; check the session's auth, and who made the node";
    }

    [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override
    {
        bool const permanent =
            value >= static_cast<int>(errc::authentication_failed) && value <= static_cast<int>(errc::not_ephemeral);
        return make_error_condition(permanent ? holdfast::errc::misconfigured : holdfast::errc::unavailable);
    }
};

}  // namespace detail

/// Returns: the category of `zookeeper::errc`, named "holdfast.zookeeper".
[[nodiscard]] inline std::error_category const& error_category() noexcept
{
    return holdfast::detail::lasting<detail::category>();
}

/// Returns: the code of `e`, in `error_category()`.
[[nodiscard]] inline std::error_code make_error_code(errc e) noexcept
{
    return {static_cast<int>(e), error_category()};
}

}  // namespace holdfast::zookeeper

template <>
struct std::is_error_code_enum<holdfast::zookeeper::errc> : std::true_type {};
