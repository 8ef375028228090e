// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lasting.hpp>

#include <array>
#include <string>
#include <string_view>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Errors from a Redis server, or from the connection to it. A category of its own; each code equals one condition of
/// `holdfast::errc`.
enum class errc {
    // unavailable: may pass
    cannot_connect = 1,  ///< no connection could be made
    connection_lost,     ///< the connection broke before the answer came
    no_answer,           ///< no answer within the operation timeout
    protocol_error,      ///< the reply is not in the protocol of Redis
    loading,             ///< LOADING: the server reads its data set
    busy,                ///< BUSY: a script is running
    read_only,           ///< READONLY, or the server says that it is a replica
    too_many_clients,    ///< the server has as many clients as it allows
    out_of_memory,       ///< OOM
    write_refused,       ///< MISCONF: the server cannot write its snapshots
    no_replicas,         ///< NOREPLICAS: fewer replicas than it demands
    master_down,         ///< MASTERDOWN
    cluster_down,        ///< CLUSTERDOWN
    restarted_recently,  ///< no vote yet: it may have forgotten what it granted before it was restarted
    clock_out_of_line,   ///< no vote: its clock and the other masters' differ by more than half the restart guard
    clock_not_compared,  ///< no vote yet: too few of the other masters' clocks are known to compare its own
    foreign_fence,       ///< no vote: the lock's fence counter was not written by holdfast
    server_error,        ///< an error that holdfast does not know
    // misconfigured: will not pass
    authentication_failed,  ///< NOAUTH, WRONGPASS, DENIED, or an AUTH that is refused
    not_permitted,          ///< NOPERM: the user may not run a command or use a key or channel
    wrong_type,             ///< WRONGTYPE: one of holdfast's keys holds something else
    moved,         ///< MOVED, ASK, CROSSSLOT, or it says that it is a node of a cluster, which is not supported here
    no_script,     ///< NOSCRIPT, also for the script's text
    bad_database,  ///< the database of the URL does not exist
    same_server,   ///< no vote: another of the masters is the same server
    other_number,  ///< the semaphore is in use with another number of permits than this client says
    may_evict,     ///< only reported: the server evicts keys when its memory is full
};

namespace detail {

struct error_word {
    errc code;
    std::string_view word;
    std::string_view message;
};

inline constexpr std::array error_words{
    error_word{errc::cannot_connect, "", "cannot connect"},
    error_word{errc::connection_lost, "", "the connection was lost before the answer came"},
    error_word{errc::no_answer, "", "no answer within the operation timeout"},
    error_word{errc::protocol_error, "", "the answer is not the Redis protocol; is this a Redis server?"},
    error_word{errc::loading, "LOADING", "the server is loading its data set"},
    error_word{errc::busy, "BUSY", "the server is busy running a script"},
    error_word{errc::read_only, "READONLY", "the server is a replica; connect to its master"},
    error_word{errc::too_many_clients, "", "the server has as many clients as it allows; raise its maxclients"},
    error_word{errc::out_of_memory, "OOM", "the server is out of memory"},
    error_word{errc::write_refused, "MISCONF", "the server refuses writes because it cannot save snapshots"},
    error_word{errc::no_replicas, "NOREPLICAS", "the server refuses writes because too few replicas are connected"},
    error_word{errc::master_down, "MASTERDOWN", "the server is a replica without its master"},
    error_word{errc::cluster_down, "CLUSTERDOWN", "the cluster is down"},
    error_word{
        errc::restarted_recently, "",
        "the server was started a short while ago and may have forgotten a lock; it has no vote until the restart "
        "guard has passed"},
    error_word{errc::clock_out_of_line, "", "the server's clock is out of line with the other masters; set it right"},
    error_word{errc::clock_not_compared, "",
               "too few of the other masters can be reached to compare the server's clock; it has no vote until then"},
    error_word{
        errc::foreign_fence, "",
        "the lock's counter of fencing tokens is not one that holdfast writes: another client wrote it, with another "
        "restart_guard perhaps, or the server's clock was set back; it is replaced, "
        "and a master has no vote for the lock until the restart guard has passed"},
    error_word{errc::server_error, "", "the server answered with an error"},
    error_word{errc::authentication_failed, "NOAUTH", "authentication failed; check user and password"},
    error_word{errc::authentication_failed, "WRONGPASS", "authentication failed; check user and password"},
    error_word{errc::authentication_failed, "DENIED", "authentication failed; check user and password"},
    error_word{errc::not_permitted, "NOPERM", "the user lacks a right; see the rights in docs/redis.md"},
    error_word{errc::wrong_type, "WRONGTYPE",
               "a key that holdfast keeps beside the lock holds a value of another type; delete it"},
    error_word{errc::moved, "MOVED",
               "the server is part of a cluster, which is not supported; use a stand-alone server"},
    error_word{errc::moved, "ASK", "the server is part of a cluster, which is not supported; use a stand-alone server"},
    error_word{errc::moved, "CROSSSLOT",
               "the server is part of a cluster, which is not supported; use a stand-alone server"},
    error_word{errc::no_script, "NOSCRIPT", "the server does not run scripts"},
    error_word{errc::bad_database, "", "the database number does not exist on the server"},
    error_word{errc::same_server, "",
               "two of the masters are one server, which has one vote; each master must be a server of its own"},
    error_word{errc::other_number, "OTHERNUMBER", "the semaphore is in use with another number of permits"},
    error_word{
        errc::may_evict, "",
        "the server may evict a lock while it is held, and grant it again; set its maxmemory-policy to noeviction"},
};

class [[gnu::visibility("default")]] category final : public std::error_category {
public:
    [[nodiscard]] char const* name() const noexcept override { return "holdfast.redis"; }

    [[nodiscard]] std::string message(int value) const override
    {
        for (auto const& one : error_words)
            if (static_cast<int>(one.code) == value) return std::string{one.message};
        return "unknown Redis error";
    }

    [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override
    {
        bool const permanent = value >= static_cast<int>(errc::authentication_failed);
        return make_error_condition(permanent ? holdfast::errc::misconfigured : holdfast::errc::unavailable);
    }
};

}  // namespace detail

/// Returns: the category of `redis::errc`, named "holdfast.redis".
[[nodiscard]] inline std::error_category const& error_category() noexcept
{
    return holdfast::detail::lasting<detail::category>();
}

/// Returns: the code of `e`, in `error_category()`.
[[nodiscard]] inline std::error_code make_error_code(errc e) noexcept
{
    return {static_cast<int>(e), error_category()};
}

}  // namespace holdfast::redis

template <>
struct std::is_error_code_enum<holdfast::redis::errc> : std::true_type {};
