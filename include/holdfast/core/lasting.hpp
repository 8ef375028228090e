// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <new>

namespace holdfast::detail {

/// Returns: the one `T` of the program, also where shared libraries of it hide their names. It is made when it is first asked for, and never
/// destroyed: threads that go on while the program ends, and destructors of static objects, may use it.
template <class T>
[[nodiscard, gnu::visibility("default")]] T& lasting() noexcept(noexcept(T{}))
{
    alignas(T) static std::byte place[sizeof(T)];
    static T* const one = new (static_cast<void*>(place)) T{};
    return *one;
}

}  // namespace holdfast::detail
