// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Returns: the number that `text` is, as a whole, in digits to `base`; nothing if it is none, or too large.
template <std::integral I>
[[nodiscard]] std::optional<I> number_in(std::string_view text, int base = 10) noexcept
{
    I n{};
    auto const* const end = text.data() + text.size();
    auto const [at, why] = std::from_chars(text.data(), end, n, base);
    return why == std::errc{} && at == end ? std::optional{n} : std::nullopt;
}

}  // namespace holdfast::detail
