// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <functional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Effects: sorts a few elements; equal ones keep their order. Each type that `std::sort` sorts, or `std::nth_element`
/// looks through, makes a file that includes this a hundredth slower to compile.
template <class Iterator, class Less = std::less<>>
void insertion_sort(Iterator first, Iterator last, Less less = {})
{
    for (auto end = first; end != last; ++end)
        for (auto at = end; at != first && less(*at, *(at - 1)); --at) std::swap(*at, *(at - 1));
}

}  // namespace holdfast::detail
