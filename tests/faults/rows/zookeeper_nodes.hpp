// SPDX-License-Identifier: MIT
#pragma once

#include "../check/leftovers.hpp"

#include <support/eventually.hpp>
#include <support/zookeeper_tree.hpp>

#include <chrono>
#include <stdexcept>
#include <string>

namespace holdfast::faults {

/// Returns: the nodes below `path`, after `limit` at most for them to go.
[[nodiscard]] inline remains remains_below(std::string const& path, std::string const& servers, std::chrono::milliseconds limit)
{
    test::zookeeper_tree tree{servers};
    remains left{.keys = {"nobody could look below " + path}};
    static_cast<void>(test::eventually(
        [&] {
            try {
                left.keys = tree.children(path);
            } catch (std::runtime_error const&) {  // an ensemble that is electing once more: it is asked again
                return false;
            }
            return left.keys.empty();
        },
        limit));
    return left;
}

}  // namespace holdfast::faults
