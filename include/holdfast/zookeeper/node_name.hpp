// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/holder_text.hpp>
#include <holdfast/core/lock_holder.hpp>
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

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The naming of a lock's nodes. Locks of either kind see the nodes of both.
enum class naming {
    /// `_c_<guid>-lock-<sequence>`: shared with Curator's InterProcessMutex, and with a kazoo that has
    /// `extra_lock_patterns=["-lock-"]`. Of a `shared_mutex` `_c_<guid>-__WRIT__<sequence>` and
    /// `_c_<guid>-__READ__<sequence>`: shared with Curator's InterProcessReadWriteLock
    curator,
    /// `<guid>__lock__<sequence>`: shared with kazoo's Lock; Curator does not order these by their sequence. Of a
    /// `shared_mutex` also `<guid>__rlock__<sequence>`: shared with kazoo's WriteLock and ReadLock
    kazoo,
};

/// The node of a client that has a lock or waits for it.
struct contender {
    std::string name;
    std::uint32_t sequence;
    access mode = access::sole;
    bool converted = false;  ///< it was made for a hold of the other mode, whose number it has
    std::int64_t czxid = 0;  ///< the transaction that made it; 0 if that is not known
};

namespace detail {

/// What is between the GUID and the sequence, and the access that such a node asks for.
struct marker {
    std::string_view text;
    access mode;
};

/// Curator looks for the last `lock-`. kazoo's `__lock__` is a mutex's or a writer's. No marker ends as another one
/// does: a name has one at most.
inline constexpr std::array<marker, 5> markers{{{"lock-", access::sole},
                                                {"__lock__", access::sole},
                                                {"__rlock__", access::shared},
                                                {"__WRIT__", access::exclusive},
                                                {"__READ__", access::shared}}};

/// What a converted node has before the marker.
inline constexpr std::string_view converted_mark = "converted";

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
[[nodiscard]] inline std::string node_prefix(naming as, owner_token const& token, access mode = access::sole)
{
    auto const id = detail::guid(as, token);
    if (as == naming::kazoo) return id + (mode == access::shared ? "__rlock__" : "__lock__");
    switch (mode) {
    case access::sole: return "_c_" + id + "-lock-";
    case access::exclusive: return "_c_" + id + "-__WRIT__";
    case access::shared: break;
    }
    return "_c_" + id + "-__READ__";
}

/// Returns: the name of the node of `token` that takes the place of one with the number `sequence`.
[[nodiscard]] inline std::string converted_node(naming as, owner_token const& token, access mode,
                                                std::uint32_t sequence)
{
    auto name = node_prefix(as, token, mode);
    auto const mark = std::string{detail::converted_mark} + (as == naming::curator ? "-" : "");
    name.insert(name.find("__"), mark);
    auto const digits = std::to_string(sequence);
    return name.append(10 - digits.size(), '0').append(digits);
}

/// What a node says whose owner is asked to release the lock.
/// Source: `Revoker` in Curator's recipes, which writes just this.
inline constexpr std::string_view revoke_message = "__REVOKE__";

/// Returns: whether the owner of a node that says `content` is asked to release the lock: it says just the message, or
/// ends with it.
[[nodiscard]] inline bool asks_for_release(std::string_view content) noexcept
{
    if (!content.ends_with(revoke_message)) return false;
    content.remove_suffix(revoke_message.size());
    return content.empty() || content.ends_with(' ');
}

/// Returns: where the `id=…` of the plain form begins in `content`; its size if there is none.
[[nodiscard]] inline std::size_t place_of_id(std::string_view content) noexcept
{
    constexpr std::string_view id = " id=";
    auto const at = content.rfind(id);
    bool const there = at != std::string_view::npos && content.size() - at == id.size() + owner_token{}.view().size();
    return there ? at : content.size();
}

/// Returns: what the node that says `content` is to say to ask its owner to release the lock. An owner of holdfast
/// keeps its own words.
[[nodiscard]] inline std::string asking_for_release(std::string_view content)
{
    if (asks_for_release(content)) return std::string{content};
    bool const ours = content.starts_with("host=") || place_of_id(content) != content.size();
    return (ours ? std::string{content} + ' ' : std::string{}) + std::string{revoke_message};
}

/// Returns: whether a node that says `text` was made with `content`; its owner may have been asked since to release the
/// lock.
[[nodiscard]] inline bool was_made_with(std::string_view content, std::string_view text)
{
    return text == content || text == asking_for_release(content);
}

/// Returns: what a node that says `content` says about its owner, with the `id=…` of the plain form.
[[nodiscard]] inline std::string_view words_of_owner(std::string_view content) noexcept
{
    if (asks_for_release(content)) {
        content.remove_suffix(revoke_message.size());
        if (!content.empty()) content.remove_suffix(1);
    }
    return content;
}

/// Effects: reads what a node says about its owner.
inline void read_content(std::string_view content, lock_contender& into)
{
    content = words_of_owner(content);
    holdfast::detail::read_holder_text(content.substr(0, place_of_id(content)), into);
}

/// The last number of a sequence. The server's counter is a signed 32-bit number. It sticks here, or, if several
/// creates are in flight, passes to negative numbers and comes back; that of ZooKeeper 3.5 goes on through them. Then
/// only their czxid tells which node was made first.
inline constexpr std::uint32_t exhausted_sequence = 0x7FFFFFFFU;

namespace detail {

/// What the end of a node's name says.
struct name_end {
    std::uint32_t sequence;
    access mode;
    bool converted;
};

/// Returns: what the end of `node` says; nothing if it is no node of a lock.
[[nodiscard]] inline std::optional<name_end> end_of(std::string_view node) noexcept
{
    for (auto const& [marker, mode] : markers) {
        auto const at = node.rfind(marker);
        if (at == std::string_view::npos) continue;
        auto digits = node.substr(at + marker.size());
        bool const negative = digits.starts_with('-');
        if (negative) digits.remove_prefix(1);
        if (digits.size() != 10 && !(negative && digits.size() == 9)) continue;  // ten characters, with a sign
        if (digits.find_first_not_of("0123456789") != std::string_view::npos) continue;
        std::uint64_t value = 0;
        for (char const c : digits) value = 10 * value + static_cast<std::uint64_t>(c - '0');
        if (value > exhausted_sequence + (negative ? 1U : 0U)) continue;
        // mutant: a negative sequence taken for a number
        auto const sequence = negative ? exhausted_sequence : static_cast<std::uint32_t>(value);
        auto before = node.substr(0, at);
        if (before.ends_with('-')) before.remove_suffix(1);
        return name_end{sequence, mode, before.ends_with(converted_mark)};
    }
    return std::nullopt;
}

}  // namespace detail

/// Returns: the sequence at the end of `node`, `exhausted_sequence` if it is negative; nothing if it is no node of a
/// lock.
[[nodiscard]] inline std::optional<std::uint32_t> sequence_of(std::string_view node) noexcept
{
    auto const end = detail::end_of(node);
    return end ? std::optional{end->sequence} : std::nullopt;
}

/// Returns: those of `children` that are nodes of a lock, in the order of their sequence. What matches no known pattern
/// is left out.
[[nodiscard]] inline std::vector<contender> contenders_among(std::vector<std::string> const& children)
{
    std::vector<std::pair<std::uint32_t, std::size_t>> places;
    std::vector<std::pair<access, bool>> kinds(children.size());
    for (std::size_t i = 0; i < children.size(); ++i)
        if (auto const end = detail::end_of(children[i])) {
            places.emplace_back(end->sequence, i);
            kinds[i] = {end->mode, end->converted};
        }
    std::sort(places.begin(), places.end());  // mutant: sequence compared as text
    std::vector<contender> all;
    all.reserve(places.size());
    for (auto const& [sequence, i] : places) all.push_back({children[i], sequence, kinds[i].first, kinds[i].second});
    return all;
}

}  // namespace holdfast::zookeeper
