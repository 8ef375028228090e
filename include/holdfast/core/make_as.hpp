// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Returns: a new `Derived`, as the `Base` that it is to its owner. `std::make_unique` would make a file that includes
/// this compile an owner of each derived class, too: a dozen functions and tuples, used once.
template <class Base, class Derived, class... Args>
[[nodiscard]] std::unique_ptr<Base> make_as(Args&&... args)
{
    return std::unique_ptr<Base>{new Derived(std::forward<Args>(args)...)};
}

}  // namespace holdfast::detail
