// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/insertion_sort.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/session_lease.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The state of a session, as in kazoo and Curator.
enum class session_state : std::uint8_t {
    connected,  ///< requests can be sent
    suspended,  ///< no server can be reached; the session, and the locks that it holds, may live on
    lost,       ///< the session is over, or cannot be confirmed to live; also before the first one is made
};

/// How to talk to an ensemble. An aggregate: `session zk{"10.0.0.1:2181,10.0.0.2:2181/app", {.session_timeout = 10s}};`
struct session_options {
    /// How long the servers keep a session that they do not hear from; they may grant less or more (2 to 20 of their
    /// ticks). It replaces a lock's `ttl`: a lock is confirmed for half of it at a time. Short: a pause of the process
    /// or the network loses its locks. Long: a crashed holder blocks the others for that long.
    std::chrono::milliseconds session_timeout{10'000};

    /// How long a member that does not wait for the lock waits for a server: `unlock()` at most that long for its
    /// confirmation, and `try_lock()` for a connection. A renewal, too, but no longer than for half of its lease.
    std::chrono::milliseconds operation_timeout{3'000};

    /// How the session identifies itself, for example "digest" and "user:password"; not at all if the scheme is empty.
    std::string auth_scheme{};
    std::string auth_credential{};  ///< what the scheme asks for

    /// Let every client use the nodes that are made, although the session identifies itself. Without it, only clients
    /// with the same identity can. If there is no identity, every client can anyway.
    bool world_writable = false;

    /// What the nodes say about their owner, in addition to host and process; 4,096 bytes at most. It does not end with
    /// ` __REVOKE__`, which asks for a release.
    std::string label{};

    /// Called with every change of state, in order and one at a time, from a thread begun for it; what it throws is
    /// dropped. A slow one delays what is told after it, of which some may be left out, and the end of the session.
    std::function<void(session_state)> on_state{};
};

/// The servers of a session, and the node that is the root of all its paths.
struct ensemble {
    std::string hosts;    ///< as the C client reads them
    std::string chroot;   ///< empty for none
    std::string text;     ///< the hosts as they were given
    std::string address;  ///< the same text for all that name these hosts, in whatever order
};

/// The longest `auth_scheme` and `auth_credential`, in bytes each. A server closes a connection that sends a request of
/// more than about 1 MB (`jute.maxbuffer`), and the C client sends it again and again.
inline constexpr std::size_t max_auth_size = 65'536;

namespace detail {

/// Returns: whether `text` is an IPv6 address, perhaps with a zone, in which no colon and no bracket is.
[[nodiscard]] inline bool is_address_of_version_6(std::string_view text)
{
    auto const zone = text.find('%');
    if (zone != std::string_view::npos && text.find_first_of(":[]", zone) != std::string_view::npos) return false;
    ::in6_addr parsed{};
    return zone + 1 != text.size() && ::inet_pton(AF_INET6, std::string{text.substr(0, zone)}.c_str(), &parsed) == 1;
}

/// Returns: `host`, a name or an address and its port, in small letters: names that differ in the case are one. A zone
/// is kept: it names an interface.
[[nodiscard]] inline std::string in_small_letters(std::string host)
{
    for (auto& c : std::span{host}.first(std::min(host.find('%'), host.size()))) c = holdfast::detail::in_small(c);
    return host;
}

/// Returns: `hosts` in order, each once, with commas between.
[[nodiscard]] inline std::string joined_in_order(std::vector<std::string> hosts)
{
    holdfast::detail::insertion_sort(hosts.begin(), hosts.end());
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    std::string all;
    for (auto const& one : hosts) all.append(all.empty() ? "" : ",").append(one);
    return all;
}

}  // namespace detail

/// Returns: the servers that the connection string `text` names: `host:port[,host:port]...[/path]`, an IPv6 address as
/// `[::1]:2181`. The path stands once, after the last server; it has no comma and no question mark in it, and there are
/// no options.
/// Throws: `error` (`misconfigured`) naming what is wrong with it. No text of it is repeated: a password may be in it.
[[nodiscard]] inline ensemble parse_servers(std::string_view text)
{
    auto const refuse = [](std::string const& what) { throw error{holdfast::errc::misconfigured, "servers: " + what}; };
    if (text.find("://") != std::string_view::npos) refuse("write host:port, without zookeeper:// or another scheme");
    auto const slash = text.find('/');
    auto const hosts = text.substr(0, slash);
    if (hosts.find('@') != std::string_view::npos)
        refuse("an @ is in them; who the session is goes into auth_scheme and auth_credential");
    if (text.find('?') != std::string_view::npos) refuse("a question mark is in them; there are no options");
    std::string read;
    std::vector<std::string> each;
    for (std::size_t at = 0; at <= hosts.size();) {
        auto const end = std::min(hosts.find(',', at), hosts.size());
        auto const host = hosts.substr(at, end - at);
        auto const colon = host.rfind(':');
        if (host.empty() || colon == 0) refuse("a host is empty; write host:port, and commas between several");
        if (colon == std::string_view::npos) refuse("a host has no port; write host:port");
        auto const port = host.substr(colon + 1);
        bool const digits =
            !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string_view::npos;
        if (!digits || std::stoul(std::string{port}) == 0 || std::stoul(std::string{port}) > 65535)
            refuse("a port is not a number from 1 to 65535");
        if (std::any_of(host.begin(), host.end(),
                        [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F; }))
            refuse("a host has a blank or a control character in it");
        auto name = host.substr(0, colon);
        if (name.starts_with('[') && name.ends_with(']')) {
            name = name.substr(1, name.size() - 2);  // the C client takes what is before the last colon as it is
            if (!detail::is_address_of_version_6(name)) refuse("what is in brackets is not an IPv6 address");
        } else if (name.find_first_of(":[]") != std::string_view::npos) {
            refuse("a host has a colon or a bracket in it; write an IPv6 address in brackets, and the port after it: "
                   "[::1]:2181");
        }
        // The number without zeros before it: the C client reads one that begins with a zero as octal.
        auto const one = std::string{name} + ':' + std::to_string(std::stoul(std::string{port}));
        read.append(read.empty() ? "" : ",").append(one);
        each.push_back(detail::in_small_letters(one));
        at = end + 1;
    }
    auto chroot = slash == std::string_view::npos ? std::string{} : std::string{text.substr(slash)};
    if (chroot.find(',') != std::string::npos)
        refuse("the path has a comma in it; it stands once, after the last server");
    if (chroot == "/") chroot.clear();
    if (!chroot.empty())
        if (auto const fault = detail::fault_of(chroot); !fault.empty()) refuse("the path behind the hosts " + fault);
    return {std::move(read), std::move(chroot), std::string{hosts}, detail::joined_in_order(std::move(each))};
}

/// Throws: `error` (`misconfigured`) naming the field that cannot be used.
inline void check_session(session_options const& options)
{
    auto const require = [](bool good, std::string const& what) {
        if (!good) throw error{holdfast::errc::misconfigured, what};
    };
    auto const in_range = [](std::chrono::milliseconds d) { return d.count() > 0 && d <= longest_ttl; };
    require(in_range(options.session_timeout), "session_timeout must be positive, and a day at most");
    require(can_be_held(session_lease::duration(options.session_timeout)),
            "session_timeout is " + std::to_string(options.session_timeout.count()) +
                " ms; the allowance for the clocks takes all of the time that a lock is confirmed for");
    require(in_range(options.operation_timeout), "operation_timeout must be positive, and a day at most");
    check_label(options.label);
    require(!asks_for_release(options.label),
            "label ends with " + std::string{revoke_message} + ", by which a node asks its owner to release the lock");
    require(options.auth_scheme.size() <= max_auth_size && options.auth_credential.size() <= max_auth_size,
            "auth_scheme and auth_credential have at most " + std::to_string(max_auth_size) + " bytes each");
    require(options.auth_credential.empty() || !options.auth_scheme.empty(),
            "auth_credential needs an auth_scheme, for example \"digest\"");
    require(options.auth_scheme != "digest" || options.auth_credential.find(':') != std::string::npos,
            "auth_credential of digest is user:password");
}

}  // namespace holdfast::zookeeper
