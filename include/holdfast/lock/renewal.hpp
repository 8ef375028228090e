// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/lock/tenure.hpp>

#include <chrono>
#include <cstdint>

namespace holdfast::detail {

/// A renewal under way: the tenure that it is for may end, and another begin, before its result comes.
template <Backend B>
struct renewal {
    renewal(B& backend, typename B::key const& key, tenure const& t) : operation{backend, key, t.token(), t.ttl()}, ttl{t.ttl()}, number{t.number()} {}

    typename B::extend_operation operation;
    std::chrono::milliseconds ttl;
    std::uint64_t number;  ///< of the tenure
};

}  // namespace holdfast::detail
