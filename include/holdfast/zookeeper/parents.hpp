// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace holdfast::zookeeper {

/// Makes a node and those above it as containers, where they are missing: tries the node itself first, then goes up until one can be
/// made, and down again. (From the top it would need rights at nodes that are there already.)
class parents {
public:
    enum class step { ask, done, failed };

    /// Effects: begins with `path`.
    void begin(std::string path) { target_ = at_ = std::move(path); }

    [[nodiscard]] request next() const { return {request::kind::create_container, at_}; }

    /// Effects: takes the answer to `next()`. Returns: what to do.
    [[nodiscard]] step take(answer what)
    {
        if (what == answer::no_node) {
            at_ = parent_of(at_);
            return at_.empty() ? step::failed : step::ask;
        }
        if (what != answer::ok && what != answer::node_exists) return step::failed;
        if (at_ == target_) return step::done;
        at_ = target_.substr(0, target_.find('/', at_.size() + 1));
        return step::ask;
    }

private:
    std::string target_;
    std::string at_;
};

}  // namespace holdfast::zookeeper
