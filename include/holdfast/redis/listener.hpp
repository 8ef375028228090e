// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/quorum/node_set.hpp>
#include <holdfast/quorum/per_node.hpp>
#include <holdfast/redis/commands.hpp>

#include <string_view>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::redis {

using quorum::max_nodes;
using quorum::node_set;

/// What a transport tells an operation: answers, and news of the lock it watches. One call at a time.
class listener {
public:
    explicit listener(unsigned nodes = max_nodes, void** lent = nullptr) : links_(nodes, lent) {}
    listener(listener const&) = delete;
    listener& operator=(listener const&) = delete;

    virtual void on_answer(unsigned node, answer const& a, boot_clock::time_point now) = 0;

    /// The node now reports releases of the watched lock; earlier releases were not reported.
    virtual void on_watching(unsigned /*node*/, boot_clock::time_point /*now*/) {}

    /// The node cannot report releases; `why` is `misconfigured` if it never will.
    virtual void on_watch_failed(unsigned /*node*/, std::error_code /*why*/, boot_clock::time_point /*now*/) {}

    /// The watched lock was released on the node, or it is this waiter's turn there.
    virtual void on_released(unsigned /*node*/, boot_clock::time_point /*now*/) {}

    /// The node says `text` on a channel that this listener watches.
    virtual void on_message(unsigned node, std::string_view /*text*/, boot_clock::time_point now)
    {
        on_released(node, now);
    }

protected:
    virtual ~listener() = default;

private:
    friend class listener_link;
    quorum::per_node<void*> links_;
};

/// Gives a transport a place in each listener to note what is in flight for it on a node. It is found there, however
/// much else is in flight.
class listener_link {
public:
    static void set(listener& l, unsigned node, void* link) noexcept { l.links_[node] = link; }
    [[nodiscard]] static void* get(listener const& l, unsigned node) noexcept { return l.links_[node]; }
};

}  // namespace holdfast::redis
