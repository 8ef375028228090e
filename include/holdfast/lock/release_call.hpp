// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/lock/awaited.hpp>

#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The release of one lease. It is made before the lease is asked for: giving the lease back then needs no memory.
class release_call final : public awaited {
public:
    /// Receives the answer to a release that no thread waits for.
    class receiver {
    public:
        virtual void released(std::unique_ptr<release_call> call) noexcept = 0;

    protected:
        ~receiver() = default;
    };

    explicit release_call(std::unique_ptr<pending_release> operation) : operation_{std::move(operation)} {}
    ~release_call() override = default;

    /// Effects: it is the release of the lease of `token`, which was granted.
    void bind(owner_token const& token) noexcept { operation_->bind(token); }

    /// Effects: gives back the lease. Requires: `bind` was called.
    void start(boot_clock::time_point now) noexcept
    {
        begun_ = now;
        operation_->start(*this);
    }

    /// Effects: the same, but no thread waits for the answer. The thread that brings the answer passes `mine` to `of`.
    static void start(std::unique_ptr<release_call> mine, boot_clock::time_point now,
                      std::shared_ptr<receiver> of) noexcept
    {
        mine->receiver_ = std::move(of);
        mine.release()->start(now);
    }

    [[nodiscard]] boot_clock::time_point begun() const noexcept { return begun_; }
    [[nodiscard]] bool others_wait() const noexcept { return operation_->others_wait(); }
    [[nodiscard]] failure outcome() const { return operation_->outcome(); }

    bool was_valid = true;              ///< whether the lease was valid when it was given back
    bool ended_in_store = false;        ///< if it was not, or turns out not to have been: by the store's word
    bool keeps_others_waiting = false;  ///< no waiter of this process may ask before the answer

private:
    void complete() noexcept override
    {
        if (auto const of = std::move(receiver_)) return of->released(std::unique_ptr<release_call>{this});
        awaited::complete();
    }

    std::unique_ptr<pending_release> operation_;
    std::shared_ptr<receiver> receiver_;
    boot_clock::time_point begun_{};
};

}  // namespace holdfast::detail
