// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/awaited.hpp>
#include <holdfast/lock/renewer.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// A request for more time for the lease of a queue: a renewal, or an extension, which a thread waits for. Its lease
/// may end before it is answered.
class renewal final : public awaited, public std::enable_shared_from_this<renewal> {
public:
    /// If `of` is null, a thread waits. Otherwise this keeps itself alive until it is answered, and `of`, to which
    /// `renews` and `timer` belong; then `timer` is poked.
    renewal(std::unique_ptr<pending_extend> operation, std::shared_ptr<void const> of, renewer& renews,
            renewer::timer& timer)
        : of_{std::move(of)}, operation_{std::move(operation)}, renewer_{renews}, timer_{timer}
    {
    }

    void start()
    try {
        if (of_) self_ = shared_from_this();
        operation_->start(*this);
    } catch (...) {
        self_ = nullptr;
        throw;
    }
    void cancel() noexcept { operation_->cancel(); }

    [[nodiscard]] bool waited_for() const noexcept { return !of_; }

    /// Set, with the queue's mutex locked, before an extension is settled: one at a time is under way.
    std::atomic_flag settled;

    /// Returns: whether it is answered, and no thread waits for it.
    [[nodiscard]] bool answered() const noexcept { return answered_.load(std::memory_order_acquire); }

    /// Returns: the answer; an exception becomes an error code.
    [[nodiscard]] result<boot_clock::time_point> outcome() const noexcept
    try {
        return operation_->outcome();
    } catch (...) {
        return current_exception_code();
    }

    /// Returns: whether the holder is asked to release the lock, as the answer says.
    [[nodiscard]] bool release_requested() const noexcept { return operation_->release_requested(); }

private:
    void complete() noexcept override
    {
        if (waited_for()) return awaited::complete();
        auto const self = std::move(self_);
        answered_.store(true, std::memory_order_release);
        renewer_.end_renewal(timer_);
    }

    std::shared_ptr<void const> of_;  // destroyed last
    std::unique_ptr<pending_extend> operation_;
    renewer& renewer_;
    renewer::timer& timer_;
    std::shared_ptr<renewal> self_;
    std::atomic<bool> answered_{false};
};

}  // namespace holdfast::detail
