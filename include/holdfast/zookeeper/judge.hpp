// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/zookeeper/node_name.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// What a client in a queue may do, or has to do.
struct verdict {
    enum class kind : std::uint8_t {
        granted,  ///< it has the lock
        waits,    ///< for the node `watch`
        tied,     ///< that cannot be told before the czxid of the nodes `tied` is known
        gone,     ///< it has no node
    };

    kind what = kind::gone;
    std::string watch = {};
    std::vector<std::size_t> tied = {};  ///< places in the line
};

namespace detail {

/// Returns: whether `a` and `b` cannot have the lock together.
[[nodiscard]] constexpr bool conflict(access a, access b) noexcept
{
    // mutant: a writer that looks at writers only
    return a != access::shared || b != access::shared;
}

/// Returns: whether `a` comes before `b`. Those of one sequence are told apart by what made them; see
/// `exhausted_sequence`.
[[nodiscard]] inline bool comes_before(contender const& a, contender const& b) noexcept
{
    if (a.sequence != b.sequence) return a.sequence < b.sequence;
    return a.czxid < b.czxid;  // mutant: those of one sequence ordered by name
}

}  // namespace detail

/// Returns: what the client with the node `mine`, one of `line` with a known czxid, has to do. `line` has all nodes of
/// the lock, in the order of their sequences.
///
/// | `mine` | waits for |
/// |--------|-----------|
/// | sole, exclusive | the node immediately before it, of any kind |
/// | shared | the nearest node before it that is not shared |
///
/// Of two nodes that conflict the later one waits, and a verdict `granted` stands: docs/proofs.md, "A queue on
/// ZooKeeper".
[[nodiscard]] inline verdict judge(std::vector<contender> const& line, std::string_view mine)
{
    using kind = verdict::kind;
    auto const self = std::find_if(line.begin(), line.end(), [&](contender const& one) { return one.name == mine; });
    if (self == line.end()) return {kind::gone};
    verdict open{kind::tied};
    contender const* nearest = nullptr;
    for (std::size_t i = 0; i < line.size(); ++i) {
        auto const& one = line[i];
        if (one.sequence > self->sequence) break;
        // mutant: a reader that passes a waiting writer
        if (&one == &*self || !detail::conflict(one.mode, self->mode)) continue;
        if (one.sequence == self->sequence && one.czxid == 0)
            open.tied.push_back(i);
        else if (detail::comes_before(one, *self) && (!nearest || !detail::comes_before(one, *nearest)))
            nearest = &one;
    }
    if (!open.tied.empty()) return open;
    if (!nearest) return {kind::granted};
    return {kind::waits, nearest->name};
}

}  // namespace holdfast::zookeeper
