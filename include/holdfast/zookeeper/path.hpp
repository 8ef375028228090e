// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/zookeeper/node_name.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The longest path of a lock, in bytes, with the root of its session. When a session reconnects, the C client names
/// all watched nodes in one request. The servers refuse that from about 1 MB on (`jute.maxbuffer`): see `watch_list`.
inline constexpr std::size_t max_path_size = 1'024;

namespace detail {

/// Returns: whether `text` is UTF-8 of characters that ZooKeeper allows in a path: no control characters, none of
/// U+D800 to U+F8FF or U+FFF0 to U+FFFF, and none above, as Java writes these as two of U+D800 to U+DFFF.
[[nodiscard]] inline bool allowed_characters(std::string_view text) noexcept
{
    for (std::size_t i = 0; i < text.size();) {
        auto const lead = static_cast<unsigned char>(text[i]);
        std::size_t const size = lead < 0x80                   ? 1
                                 : lead >= 0xC2 && lead < 0xE0 ? 2
                                 : lead >= 0xE0 && lead < 0xF0 ? 3
                                                               : 0;
        if (size == 0 || i + size > text.size()) return false;
        std::uint32_t code = size == 1 ? lead : lead & (0xFFU >> (size + 1));
        for (std::size_t k = 1; k < size; ++k) {
            auto const next = static_cast<unsigned char>(text[i + k]);
            if ((next & 0xC0U) != 0x80) return false;
            code = (code << 6U) | (next & 0x3FU);
        }
        bool const overlong = size == 3 && code < 0x800;
        bool const control = code < 0x20 || (code >= 0x7F && code < 0xA0);
        bool const reserved = (code >= 0xD800 && code < 0xF900) || code >= 0xFFF0;
        if (overlong || control || reserved) return false;
        i += size;
    }
    return true;
}

/// Returns: what is wrong with `path`, which begins with a slash and is `below` another or the root; empty if it can be
/// the path of a node.
[[nodiscard]] inline std::string fault_of(std::string_view path, std::string_view below = {})
{
    if (path.size() < 2) return "is empty";
    if (below.size() + path.size() > max_path_size)
        return "has " + std::to_string(below.size() + path.size()) + " bytes; at most " +
               std::to_string(max_path_size) + " are allowed";
    if (path.back() == '/') return "ends with a slash";
    for (std::size_t at = 1; at <= path.size();) {
        auto const end = std::min(path.find('/', at), path.size());
        auto const part = path.substr(at, end - at);
        if (part.empty()) return "has an empty part";
        if (part == "." || part == "..") return "has a part that is \".\" or \"..\"";
        if ((at > 1 || !below.empty()) && sequence_of(part))
            return "has a part that is named as those are who wait for the lock above it";
        if (at == 1 && below.empty() && part == "zookeeper") return "is below /zookeeper, which belongs to the server";
        at = end + 1;
    }
    if (!allowed_characters(path)) return "has control characters, or is not the UTF-8 that ZooKeeper allows";
    return {};
}

}  // namespace detail

/// Returns: the path of the lock `name` below `chroot`: the name itself, with a slash before it if it does not begin
/// with one.
/// Throws: `error` (`misconfigured`) if that cannot be the path of a node.
[[nodiscard]] inline std::string lock_path(std::string_view name, std::string const& chroot = {})
{
    auto const path = name.starts_with('/') ? std::string{name} : '/' + std::string{name};
    if (auto const fault = detail::fault_of(path, chroot); !fault.empty())
        throw holdfast::detail::error_of(name, {make_error_code(holdfast::errc::misconfigured),
                                                "its name is the path of a ZooKeeper node and " + fault});
    return chroot + path;
}

/// Returns: the path of the node above `path`; empty for one below the root.
[[nodiscard]] inline std::string_view parent_of(std::string_view path) noexcept
{
    return path.substr(0, path.rfind('/'));
}

/// Returns: the last part of `path`.
[[nodiscard]] inline std::string_view leaf_of(std::string_view path) noexcept
{
    return path.substr(path.rfind('/') + 1);
}

}  // namespace holdfast::zookeeper
