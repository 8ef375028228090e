// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace holdfast::test {

/// Returns: "4,670".
inline std::string grouped(std::uint64_t n)
{
    auto text = std::to_string(n);
    for (auto i = static_cast<int>(text.size()) - 3; i > 0; i -= 3) text.insert(static_cast<std::size_t>(i), ",");
    return text;
}

/// Returns: "1 stale write", "2 stale writes".
inline std::string counted(std::uint64_t n, std::string_view what)
{
    return grouped(n).append(" ").append(what).append(n == 1 ? "" : "s");
}

/// Returns: "0.8 ms", "2.14 s".
template <class Rep, class Period>
std::string spoken(std::chrono::duration<Rep, Period> d)
{
    auto const seconds = std::chrono::duration<double>{d}.count();
    std::array<char, 32> text{};
    if (seconds < 0.9995)
        std::snprintf(text.data(), text.size(), "%.1f ms", seconds * 1000);
    else
        std::snprintf(text.data(), text.size(), "%.2f s", seconds);
    return text.data();
}

}  // namespace holdfast::test
