// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/quorum/node_set.hpp>
#include <holdfast/quorum/per_node.hpp>
#include <holdfast/redis/transport.hpp>

#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Why each node did not do what an operation last asked of it; no error if it did, or said no.
class node_errors {
public:
    explicit node_errors(unsigned nodes, std::error_code* lent = nullptr) : all_(nodes, lent) {}

    void note(unsigned node, std::error_code why) noexcept { all_[node] = why; }
    [[nodiscard]] std::error_code of(unsigned node) const noexcept { return all_[node]; }

    /// Returns: `code`, which came from `node`, with the reasons of all nodes that failed. Those with other reasons
    /// come first, because the message of `code` follows them all. Called without the transport's lock.
    [[nodiscard]] failure explain(transport& to, std::error_code code, unsigned node, std::string_view what = {}) const
    {
        failure why{code, std::string{what}, node == max_nodes ? std::string{} : to.describe(node, {})};
        auto add = [&, first = true](std::string const& text, char const* between) mutable {
            if (!std::exchange(first, false))
                why.detail += between;
            else if (!why.detail.empty())
                why.detail += ": ";
            why.detail += text;
        };
        if (to.size() > 1) add("no quorum of " + std::to_string(to.size()) + " masters", "");
        for (unsigned n = 0; n < to.size(); ++n)
            if (all_[n] && all_[n] != code) add(to.describe(n, all_[n]) + ": " + all_[n].message(), "; ");
        char const* between = "; ";
        for (unsigned n = 0; n < to.size(); ++n)
            if (all_[n] && all_[n] == code) add(to.describe(n, all_[n]), std::exchange(between, ", "));
        return why;
    }

private:
    quorum::per_node<std::error_code> all_;
};

}  // namespace holdfast::redis
