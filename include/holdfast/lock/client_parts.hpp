// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/lock/failure_reports.hpp>
#include <holdfast/lock/renewer.hpp>

#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// What the queues of one client share; a queue may outlive its client.
struct client_parts {
    explicit client_parts(std::shared_ptr<lock_store> of)
        : store{std::move(of)}, renews{std::make_shared<renewer>(store)}
    {
    }

    fork_guard const origin;
    std::shared_ptr<lock_store> const store;
    std::shared_ptr<renewer> const renews;  ///< its thread has it, too
    failure_reports reports;
};

}  // namespace holdfast::detail
