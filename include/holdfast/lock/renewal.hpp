// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/lease_state.hpp>
#include <holdfast/lock/renewer.hpp>
#include <holdfast/lock/scheduled.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Returns: the outcome of an extension; an exception becomes an error code.
[[nodiscard]] inline result<boot_clock::time_point> outcome_of(pending_extend const& extension) noexcept
try {
    return extension.outcome();
} catch (...) {
    return current_exception_code();
}

/// A renewal under way. Before its answer comes, its lease may end and another one begin. When it is answered, the
/// client's thread is woken.
class renewal final : public completion {
public:
    /// `of` is kept alive until the answer.
    renewal(std::unique_ptr<pending_extend> operation, std::shared_ptr<scheduled> of, std::shared_ptr<renewer> renews,
            renewer::timer& timer)
        : operation_{std::move(operation)}, of_{std::move(of)}, renewer_{std::move(renews)}, timer_{timer}
    {
    }
    renewal(renewal const&) = delete;
    renewal& operator=(renewal const&) = delete;
    ~renewal() = default;

    void asks(lease_request const& request) noexcept { request_ = request; }
    void start() { operation_->start(*this); }
    void cancel() noexcept { operation_->cancel(); }

    [[nodiscard]] bool answered() const noexcept { return answered_.load(std::memory_order_acquire); }
    [[nodiscard]] lease_request const& request() const noexcept { return request_; }
    [[nodiscard]] result<boot_clock::time_point> outcome() const noexcept { return outcome_of(*operation_); }

private:
    void complete() noexcept override
    {
        auto const renews = renewer_;  // this may be gone as soon as it is answered
        auto const of = of_;
        auto& timer = timer_;
        answered_.store(true, std::memory_order_release);
        renews->poke(timer);
    }

    std::unique_ptr<pending_extend> operation_;
    std::shared_ptr<scheduled> of_;
    std::shared_ptr<renewer> renewer_;
    renewer::timer& timer_;
    lease_request request_{};
    std::atomic<bool> answered_{false};
};

}  // namespace holdfast::detail
