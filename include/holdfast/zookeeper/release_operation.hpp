// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/eraser.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/lock_place.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>

namespace holdfast::zookeeper {

/// Removes the node of a lease. What is not confirmed within the operation timeout, or has no memory, goes on in the background.
class release_operation {
public:
    release_operation(lock_place& place, std::shared_ptr<std::string const> const& /*lock*/, owner_token const& token) : core_{place.core()}, token_{token} {}

    release_operation(release_operation const&) = delete;
    release_operation& operator=(release_operation const&) = delete;

    ~release_operation()
    {
        std::scoped_lock guard{core_.mutex()};
        if (erasing_) erasing_->forget();
    }

    void start()
    {
        limit_ = boot_clock::now() + core_.options().operation_timeout;
        std::scoped_lock guard{core_.mutex()};
        if (auto* const node = core_.held().find(token_)) {
            try {
                erasing_ = core_.erase(node->what, &bed_);  // before it is forgotten: there may be no memory for it
                static_cast<void>(core_.held().take(token_));
            } catch (std::bad_alloc const&) {
                outcome_ = std::make_error_code(std::errc::not_enough_memory);
                node->ends = {};  // the session's thread removes it
                core_.wake_thread();
            }
        } else {
            outcome_ = make_error_code(holdfast::errc::not_owner);
        }
    }

    bool wait_until(boot_clock::time_point t)
    {
        while (erasing_) {
            auto const now = boot_clock::now();
            {
                std::scoped_lock guard{core_.mutex()};
                bool const done = erasing_->settled();
                if (done || now >= limit_) {
                    outcome_ = done ? erasing_->outcome() : erasing_->asked() ? make_error_code(holdfast::errc::outcome_unknown) : make_error_code(errc::not_connected);
                    erasing_->forget();
                    erasing_.reset();
                    return true;
                }
            }
            if (now >= t) return false;
            bed_.park_until(std::min(t, limit_));
        }
        return true;
    }

    [[nodiscard]] std::error_code outcome() const noexcept { return outcome_; }

private:
    session_core& core_;
    owner_token token_;
    boot_clock::time_point limit_{};
    std::shared_ptr<eraser> erasing_;
    std::error_code outcome_;
    holdfast::detail::parker bed_;
};

}  // namespace holdfast::zookeeper
