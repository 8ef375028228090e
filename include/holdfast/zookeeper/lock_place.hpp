// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/zookeeper/acquirer.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/queue_machine.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_thread.hpp>

#include <memory>
#include <utility>

namespace holdfast::zookeeper {

/// A session, and what the nodes of its locks are like.
class lock_place {
public:
    lock_place(std::shared_ptr<session_thread> thread, naming names) : thread_{std::move(thread)}, naming_{names} {}

    [[nodiscard]] session_core& core() const noexcept { return thread_->core(); }
    [[nodiscard]] session_thread& thread() const noexcept { return *thread_; }

    [[nodiscard]] std::unique_ptr<acquirer> machine(acquire_plan plan) const { return std::make_unique<queue_machine>(std::move(plan), naming_); }

private:
    std::shared_ptr<session_thread> thread_;
    naming naming_;
};

}  // namespace holdfast::zookeeper
