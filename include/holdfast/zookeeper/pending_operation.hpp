// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/ended_operations.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_operation.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The common part of operations that wait for answers of a session: each ends once, with an outcome, and can be
/// canceled.
template <class Operation>
class pending_operation : public Operation, protected session_operation {
public:
    using outcome_type = decltype(std::declval<Operation const&>().outcome());

    /// Effects: abandons the operation if it has not ended. One that was started has, except in a simulation.
    ~pending_operation() override
    {
        if (outcome_ || session_->in_child()) return;
        std::scoped_lock guard{session_->mutex()};
        session_->detach(*this);
    }

    void cancel() noexcept override
    {
        if (session_->in_child()) return;
        std::scoped_lock guard{session_->mutex()};
        if (outcome_) return;
        canceled_ = true;
        // the session's thread does it: the caller may hold locks that a completion wants
        session_->look_at(*this, {});
    }

    [[nodiscard]] outcome_type outcome() const override { return *outcome_; }

protected:
    explicit pending_operation(std::shared_ptr<session_core> in) : session_{std::move(in)} {}

    void begin(completion& done) noexcept { holdfast::detail::ended_operations::bind(*this, done); }

    void end(outcome_type outcome) noexcept
    {
        if (outcome_) return;
        outcome_.emplace(std::move(outcome));
        session_->detach(*this);
        session_->mutex().end(*this);
    }

    [[nodiscard]] session_core& session() const noexcept { return *session_; }

    /// Returns: the end of the operation timeout that begins at `t`.
    [[nodiscard]] boot_clock::time_point timeout_after(boot_clock::time_point t) const noexcept
    {
        return saturating_add(t, session_->options().operation_timeout);
    }

    [[nodiscard]] bool ended() const noexcept { return outcome_.has_value(); }
    [[nodiscard]] bool canceled() const noexcept { return canceled_; }

private:
    std::shared_ptr<session_core> const session_;
    bool canceled_ = false;
    std::optional<outcome_type> outcome_;
};

}  // namespace holdfast::zookeeper
