// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/quorum/node_set.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Finds nodes that are the same server, by the `run_id` that a server draws when it starts. A server has one vote,
/// that of the node which reported the `run_id` first. That node keeps it while it is not connected, too. So a server
/// never votes twice in one round: it would recognize the owner token, and say yes again.
class identities {
public:
    /// Effects: notes that `node` reported `run_id`; empty: it did not say.
    /// Returns: the node that is the same server, if there is one; then `node` has no vote.
    [[nodiscard]] std::optional<unsigned> greeted(unsigned node, std::string_view run_id)
    {
        same_as_[node].reset();
        for (unsigned other = 0; other < quorum::max_nodes && !run_id.empty(); ++other)
            if (other != node && run_ids_[other] == run_id) same_as_[node] = other;
        run_ids_[node] = same_as_[node] ? std::string_view{} : run_id;
        return same_as_[node];
    }

    /// Returns: what `greeted` returned last for `node`.
    [[nodiscard]] std::optional<unsigned> same_as(unsigned node) const noexcept { return same_as_[node]; }

private:
    std::array<std::string, quorum::max_nodes> run_ids_;
    std::array<std::optional<unsigned>, quorum::max_nodes> same_as_{};
};

}  // namespace holdfast::redis
