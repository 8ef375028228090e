// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/make_as.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/awaited.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <system_error>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// One request for several locks. Each waiter has a part of it, which looks like a request of its own. One thread makes
/// the parts, sends the request and waits for it; any thread may cancel a part, and by that all.
///
/// | state      | left by |
/// |------------|---------|
/// | collecting | `send_and_wait` → sent; `drop` → ended: not asked |
/// | sent       | the answer → ended |
class joint_request final : public awaited {
public:
    explicit joint_request(lock_store& store) noexcept : store_{store} {}

    /// Returns: one more part, for `key`.
    [[nodiscard]] std::unique_ptr<pending_acquire> part(shared_key const& key, acquire_request const& request)
    {
        parts_.push_back(nullptr);
        claims_.emplace_back(key, request);
        return make_as<pending_acquire, piece>(*this, parts_.size() - 1);
    }

    /// Effects: asks for all, and waits for the answer; then the parts have ended. Throws: if nothing was sent; then
    /// `drop` has to be called.
    void send_and_wait()
    {
        asking_ = store_.acquire_all(claims_);
        asking_->start(*this);
        sent_.store(true);
        if (canceled_.load()) asking_->cancel();
        wait(store_, claims_.front().first);
        read_outcome();
    }

    /// Effects: the parts have ended, and nothing was asked.
    void drop() noexcept
    {
        asking_ = nullptr;
        tell_parts();
    }

    /// Returns: why it has failed; no error if all is granted.
    [[nodiscard]] failure const& why_not() const noexcept { return why_not_; }

    /// Returns: whether the store was asked.
    [[nodiscard]] bool asked() const noexcept { return asking_ != nullptr; }

    /// Returns: see `pending_acquire_all::blocker`. Requires: it was asked, and failed with `timed_out`.
    [[nodiscard]] std::size_t blocker() const noexcept { return asking_->blocker(); }

private:
    class piece final : public pending_acquire {
    public:
        piece(joint_request& of, std::size_t place) noexcept : of_{of}, place_{place} {}
        void start(completion& done) override { of_.parts_[place_] = &done; }
        void cancel() noexcept override { of_.cancel(); }
        [[nodiscard]] result<grant> outcome() const override
        {
            if (of_.why_not_.code) return of_.why_not_;
            return of_.asking_->granted(place_);
        }

    private:
        joint_request& of_;
        std::size_t place_;
    };

    void cancel() noexcept
    {
        canceled_.store(true);
        if (sent_.load()) asking_->cancel();
    }

    void complete() noexcept override
    {
        tell_parts();
        awaited::complete();  // last: the waiting thread may destroy this then
    }

    void tell_parts() noexcept
    {
        for (auto* const one : parts_)
            if (one) one->complete();
    }

    void read_outcome() noexcept
    try {
        why_not_ = asking_->outcome();
    } catch (...) {  // only what has failed needs memory for its text
        why_not_ = {std::make_error_code(std::errc::not_enough_memory), {}};
    }

    lock_store& store_;
    std::vector<acquire_claim> claims_;
    std::vector<completion*> parts_;
    std::atomic<bool> sent_{false};
    std::atomic<bool> canceled_{false};
    std::unique_ptr<pending_acquire_all> asking_;
    failure why_not_{std::make_error_code(std::errc::operation_canceled), {}};  // until it was asked
};

}  // namespace holdfast::detail
