// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/lock/tenure.hpp>

#include <optional>
#include <system_error>

namespace holdfast::detail {

/// Effects: waits until an operation has its result.
inline void finish(auto& operation)
{
    while (!operation.wait_until(boot_clock::time_point::max())) {
    }
}

/// Effects: waits for an extension. Returns: what came of it, whatever was thrown.
template <Operation<result<boot_clock::time_point>> O>
[[nodiscard]] result<boot_clock::time_point> outcome_of(O& extension) noexcept
try {
    finish(extension);
    return extension.outcome();
} catch (std::system_error const& e) {
    return e.code();
} catch (...) {
    return std::make_error_code(std::errc::not_enough_memory);
}

/// Returns: whether the lease of `token` may go on, as far as the store knows by itself.
template <Backend B>
[[nodiscard]] bool still_leased(B& backend, owner_token const& token)
{
    if constexpr (requires { backend.still_leased(token); })
        return backend.still_leased(token);
    else
        return true;
}

/// A renewal under way: the tenure that it is for may end, and another begin, before its result comes.
template <Backend B>
struct renewal {
    renewal(B& backend, typename B::key const& key, tenure& t) : operation{backend, key, t.token(), t.ttl()}, request{t.ask(t.ttl())} {}

    typename B::extend_operation operation;
    lease_request request;
};

/// Effects: has nothing more sent for a renewal, where one is under way and the store can do that.
template <Backend B>
void withdraw(std::optional<renewal<B>>& one) noexcept
{
    if constexpr (requires { one->operation.withdraw(); })
        if (one) one->operation.withdraw();
}

}  // namespace holdfast::detail
