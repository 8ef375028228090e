// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/lock/tenure.hpp>

namespace holdfast::detail {

/// A renewal under way: the tenure that it is for may end, and another begin, before its result comes.
template <Backend B>
struct renewal {
    renewal(B& backend, typename B::key const& key, tenure& t) : operation{backend, key, t.token(), t.ttl()}, request{t.ask(t.ttl())} {}

    typename B::extend_operation operation;
    lease_request request;
};

}  // namespace holdfast::detail
