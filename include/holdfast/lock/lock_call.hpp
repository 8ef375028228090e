// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/mutex_state.hpp>
#include <holdfast/lock/wait_queue.hpp>
#include <holdfast/lock/waiter.hpp>

#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// A thread that waits for a lock. It runs `wait_queue::step`, and serves the store while its request is under way.
class lock_call final : public waiter {
public:
    lock_call(wait_queue& queue, mutex_state& of, patience const& p) : waiter{of, p}, queue_{queue} {}

    /// Effects: waits until the lock is held or the attempt has failed. Returns: nothing if it is held; otherwise why
    /// not: `timed_out`, `operation_canceled`, or what the store said. Throws: what the store threw.
    std::optional<failure> run(std::stop_token const& stop)
    {
        queue_.tell_attempt(*this, nullptr);
        queue_.enter(*this);
        {
            activity::wait const counted{queue_.reports().seen};
            std::stop_callback const cancel_on_stop{stop, [this]() noexcept { queue_.cancel(*this); }};
            for (auto then = queue_.step(*this, 0); !ended();) {
                queue_.tell_wait(*this, nullptr);
                auto const signals =
                    then.asks ? queue_.store().drive(queue_.key(), parker_, then.at) : parker_.park_until(then.at);
                then = queue_.step(*this, signals);
            }
        }
        queue_.tell_end(*this, nullptr);
        if (thrown) std::rethrow_exception(thrown);
        return std::move(why_not);
    }

    void signal(std::uint32_t what) noexcept override { parker_.unpark(what); }

private:
    wait_queue& queue_;
    parker parker_;
};

}  // namespace holdfast::detail
