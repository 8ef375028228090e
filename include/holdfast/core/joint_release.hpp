// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/announcer.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/make_as.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Gives several locks back at once. The outcome of all is the worst: no error; `lease_lost` if one was lost; otherwise
/// why the outcome of one is not known.
class joint_release : public std::enable_shared_from_this<joint_release> {
public:
    /// Is called, in the client's thread, with the outcome of all, and the lock that was the last to answer.
    using all_answered = std::function<void(std::error_code, lock_object&)>;

    joint_release() = default;
    explicit joint_release(all_answered f) : all_answered_{std::move(f)} {}

    /// Effects: `one`, whose hold is `of`, is to be given back. Throws: `std::bad_alloc`.
    void add(std::shared_ptr<lock_object> one, lease of) { all_.push_back({std::move(one), std::move(of), {}}); }

    /// Effects: gives all back, the last one first.
    void begin() noexcept
    {
        auto const self = shared_from_this();
        pending_ = all_.size();
        for (auto n = pending_; n-- > 0;) begin(n);
    }

    /// Effects: as `begin`, and waits. Returns: the outcome of all; `not_owner` if there is none.
    [[nodiscard]] std::error_code give_back() noexcept
    {
        if (all_.empty()) return make_error_code(errc::not_owner);
        begin();
        for (;;) {
            {
                std::scoped_lock guard{mutex_};
                if (pending_ == 0) return worst_;
            }
            static_cast<void>(here_.park_until(boot_clock::time_point::max()));
        }
    }

    /// Effects: reports, for each of them, that it was not given back, if so. To be called when all have answered.
    void tell_failures() const noexcept
    {
        for (auto const& one : all_)
            if (one.outcome.code) one.lock->tell_unlock_failed(one.outcome);
    }

private:
    struct part {
        std::shared_ptr<lock_object> lock;
        lease hold;
        failure outcome;
    };

    /// What is told that the nth of them was given back.
    class answer final : public async_result {
    public:
        answer(std::shared_ptr<joint_release> of, std::size_t n) : of_{std::move(of)}, n_{n} {}
        void explain(failure const& why) noexcept override
        try {
            of_->all_[n_].outcome = why;
        } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): the code is told without the words
        }
        void deliver(std::error_code ec, bool /*held*/) noexcept override { of_->answered(n_, ec); }

    private:
        std::shared_ptr<joint_release> of_;
        std::size_t n_;
    };

    void begin(std::size_t n) noexcept
    {
        auto& [lock, hold, outcome] = all_[n];
        std::error_code why;
        if (all_answered_ || !announcer::tended_here()) {  // otherwise it would wait for itself
            try {
                return lock->begin_unlock(hold, make_as<async_result, answer>(shared_from_this(), n));
            } catch (...) {  // without the means to do so in the background
                why = current_exception_code();
            }
        }
        all_answered_ ? lock->give_back(hold) : lock->unlock(why);
        answered(n, why);
    }

    void answered(std::size_t n, std::error_code ec) noexcept
    {
        {
            std::scoped_lock guard{mutex_};
            all_[n].outcome.code = ec;
            worst_ = worse(worst_, ec);
            if (--pending_ != 0) return;
        }
        here_.unpark();
        if (all_answered_) all_answered_(worst_, *all_[n].lock);
    }

    all_answered const all_answered_;
    std::vector<part> all_;
    std::mutex mutex_;
    parker here_;
    std::size_t pending_ = 0;
    std::error_code worst_;
};

}  // namespace holdfast::detail
