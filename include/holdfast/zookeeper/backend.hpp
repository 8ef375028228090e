// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/acquire_operation.hpp>
#include <holdfast/zookeeper/extend_operation.hpp>
#include <holdfast/zookeeper/lock_place.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/release_operation.hpp>
#include <holdfast/zookeeper/session_thread.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::zookeeper {

/// The locks of one kind in a session as a `Backend`.
class backend : public lock_place {
public:
    using key = std::shared_ptr<std::string const>;
    using acquire_operation = zookeeper::acquire_operation;
    using extend_operation = zookeeper::extend_operation;
    using release_operation = zookeeper::release_operation;

    using lock_place::lock_place;

    [[nodiscard]] key make_key(std::string_view name) const { return std::make_shared<std::string const>(lock_path(name, core().chroot())); }

    void on_loss(std::function<void()> alarm) const
    {
        std::scoped_lock guard{core().mutex()};
        core().add_alarm(std::move(alarm));
    }

    /// Returns: whether the session, as far as it knows, has a node for the lease of `token`.
    [[nodiscard]] bool still_leased(owner_token const& token) const
    {
        std::scoped_lock guard{core().mutex()};
        return core().held().find(token) != nullptr;
    }

    static void check(std::string_view name, lock_options const& options) { check_options(name, options, std::chrono::milliseconds{0}); }
};

static_assert(Backend<backend>);

}  // namespace holdfast::zookeeper
