// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis/node_set.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::redis {

/// Which of the nodes are one server, by the `run_id` that it draws when it starts. It has one vote: that of the node which said so first keeps it,
/// also while it is not connected, so that the server never votes twice in one round: it would know the owner token again, and say yes.
class identities {
public:
    /// Effects: notes that `node` said that it is `run_id`; empty: it did not say.
    /// Returns: the node that is the same server, where there is one; then `node` has no vote.
    [[nodiscard]] std::optional<unsigned> greeted(unsigned node, std::string_view run_id)
    {
        same_as_[node].reset();
        for (unsigned other = 0; other < max_nodes && !run_id.empty(); ++other)
            if (other != node && run_ids_[other] == run_id) same_as_[node] = other;
        run_ids_[node] = same_as_[node] ? std::string_view{} : run_id;
        return same_as_[node];
    }

    /// Returns: what `greeted` returned last for `node`.
    [[nodiscard]] std::optional<unsigned> same_as(unsigned node) const noexcept { return same_as_[node]; }

private:
    std::array<std::string, max_nodes> run_ids_;
    std::array<std::optional<unsigned>, max_nodes> same_as_{};
};

}  // namespace holdfast::redis
