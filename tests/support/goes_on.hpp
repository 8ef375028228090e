// SPDX-License-Identifier: MIT
#pragma once

#include "eventually.hpp"

#include <holdfast/core/lease.hpp>

namespace holdfast::test {

/// Returns: whether `l` is renewed: the next renewal comes, and it is held after that.
[[nodiscard]] inline bool goes_on(lease const& l)
{
    auto const until = l.expires_at();
    return eventually([&] { return l.expires_at() != until; }) && l.still_held();
}

}  // namespace holdfast::test
