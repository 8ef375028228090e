// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/io/stream.hpp>

#include <chrono>
#include <new>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Returns: the step that is not over, for a stream in state `now` that connects or waits for the greeting. `within`
/// says in which time.
[[nodiscard]] inline std::string connect_phase(io::stream::state now, std::string const& within = {})
{
    switch (now) {
    case io::stream::state::resolving: return "its name was not resolved" + within;
    case io::stream::state::securing: return "the TLS handshake did not end" + within + "; does the server speak TLS?";
    case io::stream::state::open: return "the greeting was not answered" + within;
    default: return "the connection was not accepted" + within;
    }
}

/// Returns: the same, of one that took longer than it may.
[[nodiscard]] inline std::string late_phase(io::stream::state now, std::chrono::milliseconds connect_timeout)
{
    return connect_phase(now, " within connect_timeout, " + std::to_string(connect_timeout.count()) + " ms");
}

/// Returns: `f()`; empty if there is no memory for it.
template <class F>
[[nodiscard]] std::string words_of(F&& f) noexcept
try {
    return f();
} catch (std::bad_alloc const&) {
    return {};
}

}  // namespace holdfast::redis
