// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/io/stream.hpp>

#include <new>
#include <string>

namespace holdfast::redis {

/// Returns: what is waited for while a stream in state `now` connects and a greeting is said over it.
[[nodiscard]] inline std::string connect_phase(io::stream::state now)
{
    switch (now) {
    case io::stream::state::resolving: return "its name was not resolved";
    case io::stream::state::securing: return "the TLS handshake did not end, does the server speak TLS?";
    case io::stream::state::open: return "the greeting was not answered";
    default: return "the connection was not accepted";
    }
}

/// Returns: what `f` has to say; nothing if there is no memory for that.
template <class F>
[[nodiscard]] std::string words_of(F&& f) noexcept
try {
    return f();
} catch (std::bad_alloc const&) {
    return {};
}

}  // namespace holdfast::redis
