// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <cstddef>
#include <new>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Returns: the one `T` of the program, even if its shared libraries hide their names. It is made by the first call,
/// and never destroyed: threads that still run while the program ends, and destructors of static objects, may use it.
template <class T>
[[nodiscard, gnu::visibility("default")]] T& lasting() noexcept(noexcept(T{}))
{
    alignas(T) static std::byte place[sizeof(T)];
    static T* const one = new (static_cast<void*>(place)) T{};
    return *one;
}

}  // namespace holdfast::detail
