// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The missing nodes above the node of an owner. They are made as containers, right before the node, so that they have
/// a child in the next moment: the servers collect a container only after it had one. They are found from the bottom
/// up: from the top, rights at existing nodes would be needed.
class parents {
public:
    /// Returns: their paths, in the order in which they are made. Each may exist by now, made by us or by another
    /// client.
    [[nodiscard]] std::vector<std::string> const& missing() const noexcept { return missing_; }

    /// Effects: none is missing: there is a node below them.
    void forget() noexcept { missing_.clear(); }

    /// Effects: their creates are sent now.
    void ask() noexcept
    {
        refused_ = {};
        rootless_ = false;
    }

    /// Effects: takes the answer to the create of the `i`th.
    void answered(std::size_t i, reply const& r) noexcept
    {
        if (r.what == answer::refused) refused_ = r.code;
        if (i == 0 && r.what == answer::no_node) rootless_ = parent_of(missing_.front()).empty();
    }

    /// Effects: the node above ours was missing. One more is missing, if there are more: `lowest` if none was known.
    /// Returns: why they cannot be made; no error if they can.
    [[nodiscard]] std::error_code go_up(std::string_view lowest)
    {
        if (refused_) return refused_;
        if (rootless_) return make_error_code(holdfast::errc::misconfigured);
        std::string above{missing_.empty() ? lowest : parent_of(missing_.front())};
        if (!above.empty()) missing_.insert(missing_.begin(), std::move(above));
        return {};
    }

private:
    std::vector<std::string> missing_;
    std::error_code refused_;  ///< why one of them was not made
    bool rootless_ = false;    ///< not even the first of a path could be made
};

}  // namespace holdfast::zookeeper
