// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/lock_holder.hpp>

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Returns: what stands beside a lock about its holder, for people: `host=… pid=… label=…`.
[[nodiscard]] inline std::string holder_text(std::string_view label)
{
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host.front() = '?';
    auto text = "host=" + std::string{host.data()} + " pid=" + std::to_string(::getpid());
    if (!label.empty()) text.append(" label=").append(label);
    return text;
}

/// Effects: reads what `holder_text` made. A text of another library becomes the label.
inline void read_holder_text(std::string_view text, lock_contender& into)
{
    constexpr std::string_view host = "host=", pid = " pid=", label = " label=";
    auto const end_of_host = text.find(pid);
    if (!text.starts_with(host) || end_of_host == std::string_view::npos) {
        into.label = text;
        return;
    }
    into.host = text.substr(host.size(), end_of_host - host.size());
    text.remove_prefix(end_of_host + pid.size());
    auto const* const end = text.data() + text.size();
    text.remove_prefix(static_cast<std::size_t>(std::from_chars(text.data(), end, into.pid).ptr - text.data()));
    if (text.starts_with(label)) into.label = text.substr(label.size());
}

}  // namespace holdfast::detail
