// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/sim/agenda.hpp>
#include <holdfast/sim/world.hpp>

#include <concepts>
#include <deque>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// What has come over one connection to a receiver that cannot always take it. It is taken in the order in which it
/// came.
class inbox {
public:
    /// Effects: calls `message` after all that came before it: now, or as soon as possible. `ready` says from when on
    /// something can be taken, in the time of the world. It is asked again then, as that may have been put off.
    /// Requires: this inbox lives as long as `ready`, which may keep it alive. `message` must not: an inbox that its
    /// own contents keep alive would never end.
    template <std::invocable Message, std::invocable Ready>
    void put(world& w, Message message, Ready ready)
    {
        if (waiting_.empty() && ready() <= w.now()) return static_cast<void>(message());
        waiting_.emplace_back(std::move(message));
        take(w, std::move(ready));
    }

private:
    template <class Ready>
    void take(world& w, Ready ready)
    {
        if (waiting_.empty()) return;
        if (auto const t = ready(); t > w.now())
            return w.at(t, [this, &w, ready = std::move(ready)]() mutable { take(w, std::move(ready)); });
        while (!waiting_.empty()) {
            auto next = std::move(waiting_.front());
            waiting_.pop_front();
            next();
        }
    }

    std::deque<task> waiting_;
};

}  // namespace holdfast::sim
