// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <string>
#include <string_view>
#include <system_error>

namespace holdfast::zookeeper {

/// Returns: what belongs to `why` in a message about the lock at `path`: the servers that were asked, the last reason that the C client had; or
/// what the node has to allow. To be called with the mutex of `core` held.
[[nodiscard]] inline std::string explanation(session_core const& core, std::error_code why, std::string_view path)
{
    if (why == errc::may_not_read || why == errc::may_not_create || why == errc::may_not_delete)
        return "it needs the permissions READ, CREATE and DELETE at " + holdfast::quoted(path) + ", or at the node above it";
    if (why != holdfast::errc::unavailable) return {};
    auto text = "servers " + core.servers();
    if (core.connected()) return text;
    if (auto const problem = core.problem(); !problem.empty()) text += ": " + problem;
    return text;
}

}  // namespace holdfast::zookeeper
