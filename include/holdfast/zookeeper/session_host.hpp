// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/transport.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

class session_engine;

/// What a session needs from its process: a transport, a thread that attends to it, randomness. It reads the time from
/// `boot_clock` itself.
class session_host {
public:
    session_host() = default;
    session_host(session_host const&) = delete;
    session_host& operator=(session_host const&) = delete;
    virtual ~session_host() = default;

    /// Effects: begins to open a transport, which tells `to`. Returns: it; null if the process lacks what that needs.
    [[nodiscard]] virtual std::unique_ptr<transport> open(transport_events& to) = 0;

    /// Returns: why no server could be reached; empty if it is not known.
    [[nodiscard]] virtual std::string problem() const = 0;

    /// Returns: a unique token.
    [[nodiscard]] virtual owner_token fresh_token() const = 0;

    /// Returns: whether this is a child of the process that made the session: it has no right to it.
    [[nodiscard]] virtual bool in_child() const noexcept = 0;

    /// Effects: calls `attend` of `session` from now on; `lock` wants it.
    /// Throws: `error` (`unavailable`) if the system lacks what that needs; (`misconfigured`) in a forked child.
    virtual void ensure_running(session_engine& session, std::string_view lock) = 0;

    /// Effects: calls it soon.
    virtual void wake() noexcept = 0;

    /// Effects: ends `session`, which is no longer in use.
    virtual void end(std::shared_ptr<session_engine> session) noexcept = 0;
};

}  // namespace holdfast::zookeeper
