// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

namespace holdfast::zookeeper {

/// Returns: what the node of a lock tells people about its owner: `host=… pid=… label=…`.
[[nodiscard]] inline std::string node_content(std::string_view label)
{
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host.front() = '?';
    auto text = "host=" + std::string{host.data()} + " pid=" + std::to_string(::getpid());
    if (!label.empty()) text.append(" label=").append(label);
    return text;
}

}  // namespace holdfast::zookeeper
