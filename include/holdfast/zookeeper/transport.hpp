// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// What a transport tells: one call at a time, never from within a call of its own members.
class transport_events {
public:
    /// `unopened`: it cannot be opened; destroy it, and try again later.
    enum class state : std::uint8_t { connected, suspended, expired, refused, unopened };

    /// A request in flight. Its sender keeps it until it is answered, or the transport is gone.
    struct call {
        transport_events* to = nullptr;
        request::kind what{};
    };

    /// `session` and `timeout` are those that the server agreed to, once it is connected.
    virtual void on_state(state s, std::int64_t session, std::chrono::milliseconds timeout) noexcept = 0;
    /// The node at `path`, which is watched, has changed.
    virtual void on_notice(std::string_view path) noexcept = 0;
    virtual void on_reply(call& of, reply&& r) noexcept = 0;

protected:
    ~transport_events() = default;
};

/// A connection to the servers, for one session, as ZooKeeper's C client has it. It connects by itself, and again to
/// another server when a connection breaks. Then it answers what was in flight as `lost`, and keeps the watches.
/// Several watches of one node count as one.
class transport {
public:
    transport() = default;
    transport(transport const&) = delete;
    transport& operator=(transport const&) = delete;

    /// Effects: ends the session, if a server can be told, and tells nothing any more. Calls may be left without an
    /// answer.
    virtual ~transport() = default;

    /// Effects: the session identifies itself with every server. Returns: whether it does from now on.
    virtual bool authenticate(std::string const& scheme, std::string const& credential) = 0;

    /// Effects: sends `r`. `as` is answered with `on_reply`. `creator_only`: others may not use what it makes.
    /// Returns: whether it was sent; otherwise no answer comes.
    virtual bool send(request const& r, transport_events::call& as, bool creator_only) = 0;
};

}  // namespace holdfast::zookeeper
