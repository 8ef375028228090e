// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/token.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

/// Whose names the nodes of a lock have. Locks of either kind see the nodes of both.
enum class naming {
    curator,  ///< `_c_<guid>-lock-<sequence>`: shared with Curator's InterProcessMutex, and with a kazoo that has `extra_lock_patterns=["-lock-"]`
    kazoo,    ///< `<guid>__lock__<sequence>`: shared with kazoo's Lock; Curator does not order these by their sequence
};

/// A node that stands for somebody who has a lock or waits for it.
struct contender {
    std::string name;
    std::uint32_t sequence;
};

namespace detail {

/// What stands between the GUID and the sequence: Curator looks for the last `lock-`; kazoo's readers exclude writers, too.
inline constexpr std::array<std::string_view, 3> markers{"lock-", "__lock__", "__rlock__"};

/// Returns: the GUID of `token`, as `naming` writes it.
[[nodiscard]] inline std::string guid(naming as, owner_token const& token)
{
    std::string text{token.view()};
    if (as == naming::curator)
        for (std::size_t const at : {8U, 13U, 18U, 23U}) text.insert(at, 1, '-');
    return text;
}

}  // namespace detail

/// Returns: the name that the node of `token` begins with; the server adds the sequence.
[[nodiscard]] inline std::string node_prefix(naming as, owner_token const& token)
{
    return as == naming::curator ? "_c_" + detail::guid(as, token) + "-lock-" : detail::guid(as, token) + "__lock__";
}

/// The last number of a sequence. The server's counter is a signed 32-bit number: it sticks here, or, while several creates are under way,
/// passes to negative ones and comes back. Which of such nodes was made first is told by their czxid alone.
inline constexpr std::uint32_t exhausted_sequence = 0x7FFFFFFFU;

/// Returns: the sequence at the end of `node`, `exhausted_sequence` for a negative one; nothing where it is no node of a lock.
[[nodiscard]] inline std::optional<std::uint32_t> sequence_of(std::string_view node) noexcept
{
    for (auto const marker : detail::markers) {
        auto const at = node.rfind(marker);
        if (at == std::string_view::npos) continue;
        auto digits = node.substr(at + marker.size());
        bool const negative = digits.starts_with('-');
        if (negative) digits.remove_prefix(1);
        if (digits.size() != 10 || digits.find_first_not_of("0123456789") != std::string_view::npos) continue;
        std::uint64_t value = 0;
        for (char const c : digits) value = 10 * value + static_cast<std::uint64_t>(c - '0');
        if (value > exhausted_sequence + (negative ? 1U : 0U)) continue;
        return negative ? exhausted_sequence : static_cast<std::uint32_t>(value);
    }
    return std::nullopt;
}

/// Returns: those of `children` that are nodes of a lock, in the order of their sequence. What fits no known pattern is left alone.
[[nodiscard]] inline std::vector<contender> contenders_among(std::vector<std::string> const& children)
{
    std::vector<std::pair<std::uint32_t, std::size_t>> places;
    for (std::size_t i = 0; i < children.size(); ++i)
        if (auto const sequence = sequence_of(children[i])) places.emplace_back(*sequence, i);
    std::sort(places.begin(), places.end());
    std::vector<contender> all;
    all.reserve(places.size());
    for (auto const& [sequence, i] : places) all.push_back({children[i], sequence});
    return all;
}

}  // namespace holdfast::zookeeper
