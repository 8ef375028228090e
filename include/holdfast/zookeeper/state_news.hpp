// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/zookeeper/session_options.hpp>

#include <cstddef>
#include <new>
#include <vector>

namespace holdfast::zookeeper {

/// Changes of a session's state that the user is still to be told. Where there is no memory for another one, it takes the place of the one
/// before it: how the session is comes out in the end.
class state_news {
public:
    state_news() { untold_.reserve(ample); }

    void add(session_state s) noexcept
    try {
        untold_.push_back(s);
    } catch (std::bad_alloc const&) {
        untold_.back() = s;  // there is one: as many as were reserved
    }

    [[nodiscard]] bool empty() const noexcept { return untold_.empty(); }

    /// Requires: it is not empty.
    [[nodiscard]] session_state take() noexcept
    {
        auto const first = untold_.front();
        untold_.erase(untold_.begin());
        return first;
    }

private:
    static constexpr std::size_t ample = 64;
    std::vector<session_state> untold_;
};

}  // namespace holdfast::zookeeper
