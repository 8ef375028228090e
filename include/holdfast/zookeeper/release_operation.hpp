// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/node_cleanup.hpp>
#include <holdfast/zookeeper/pending_operation.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Removes the node of a lease. If that is not confirmed within the operation timeout, or there is no memory for it, it
/// goes on in the background.
class release_operation final : public pending_operation<pending_release> {
public:
    explicit release_operation(std::shared_ptr<session_core> in) : pending_operation{std::move(in)} {}

    ~release_operation() override
    {
        if (!cleanup_ || session().in_child()) return;
        std::scoped_lock guard{session().mutex()};
        cleanup_->leave();
    }

    void bind(owner_token const& token) noexcept override { token_ = token; }

    void start(completion& done) noexcept override
    {
        if (session().in_child()) {  // the session is the parent's, and its mutex may be locked for ever
            end(make_error_code(holdfast::errc::misconfigured));
            return done.complete();
        }
        auto const now = boot_clock::now();
        limit_ = timeout_after(now);
        std::scoped_lock guard{session().mutex()};
        begin(done);
        if (!session().held().find(token_)) return end(make_error_code(holdfast::errc::not_owner));
        cleanup_ = give_back(session(), token_);
        if (!cleanup_) return end(std::make_error_code(std::errc::not_enough_memory));
        cleanup_->tell(*this, limit_);
        on_time(now);
    }

    void cancel() noexcept override {}

private:
    void on_time(boot_clock::time_point now) noexcept override
    {
        if (cleanup_->settled()) return end(cleanup_->outcome());
        if (now < limit_) return;
        end(cleanup_->asked() ? make_error_code(holdfast::errc::outcome_unknown)
                              : make_error_code(errc::not_connected));
    }

    void end(std::error_code outcome) noexcept
    {
        if (cleanup_) std::exchange(cleanup_, nullptr)->leave();
        pending_operation::end({outcome, {}});
    }

    owner_token token_;
    boot_clock::time_point limit_{};
    std::shared_ptr<node_cleanup> cleanup_;
};

}  // namespace holdfast::zookeeper
