// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/zookeeper/acquirer.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/node_options.hpp>
#include <holdfast/zookeeper/plain_machine.hpp>
#include <holdfast/zookeeper/queue_machine.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_thread.hpp>

#include <memory>
#include <utility>

namespace holdfast::zookeeper {

/// A session, and what the nodes of its locks are like.
class lock_place {
public:
    lock_place(std::shared_ptr<session_thread> thread, node_options nodes) : thread_{std::move(thread)}, nodes_{nodes} {}

    [[nodiscard]] session_core& core() const noexcept { return thread_->core(); }
    [[nodiscard]] session_thread& thread() const noexcept { return *thread_; }

    /// Returns: the machine that takes such a lock.
    [[nodiscard]] std::unique_ptr<acquirer> machine(acquire_plan plan) const
    {
        if (nodes_.queueing == queueing::none) return std::make_unique<plain_machine>(std::move(plan));
        return std::make_unique<queue_machine>(std::move(plan), nodes_.naming);
    }

    /// Returns: whether those who wait have nodes.
    [[nodiscard]] bool queued() const noexcept { return nodes_.queueing != queueing::none; }

private:
    std::shared_ptr<session_thread> thread_;
    node_options nodes_;
};

}  // namespace holdfast::zookeeper
