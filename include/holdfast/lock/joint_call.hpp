// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/activity.hpp>
#include <holdfast/lock/joint_request.hpp>
#include <holdfast/lock/mutex_state.hpp>
#include <holdfast/lock/wait_queue.hpp>
#include <holdfast/lock/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <stop_token>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// A thread that tries once to take several locks of one client by one request. In each queue it is a waiter that does
/// not wait: if it is not its turn in one of them, nothing is asked.
class joint_call final {
public:
    explicit joint_call(lock_store& store) : request_{store} {}

    joint_call(joint_call const&) = delete;
    joint_call& operator=(joint_call const&) = delete;

    /// Effects: the lock of `queue` is one of them, for `of`.
    void add(wait_queue& queue, mutex_state& of)
    {
        all_.emplace_back(queue, of, patience{.once = true, .joint = &request_, .told_later = true});
    }

    /// Effects: makes the attempt. Returns: what became of it; `why` is set if the request failed, or was refused.
    [[nodiscard]] joint_outcome run(std::stop_token const& stop, failure& why)
    {
        activity::wait const counted{all_.front().queue.reports().seen};
        std::size_t begun = 0;
        while (begun < all_.size() && all_[begun].begin()) ++begun;
        bool const all_begun = begun == all_.size();
        ask(all_begun, stop);
        for (auto& one : all_) one.settle();
        if (!all_begun) {
            auto& one = all_[begun];
            if (!one.refused()) return {};  // no memory
            if (one.why_not->code != errc::unavailable) return {joint_outcome::kind::refused, begun};
            why = *one.why_not;
            return {joint_outcome::kind::not_asked, begun};
        }
        why = request_.why_not();
        if (!why.code) {
            for (auto& one : all_) one.tell_end();
            return {joint_outcome::kind::held, 0};
        }
        if (!request_.asked() || why.code != errc::timed_out) return {};
        return {joint_outcome::kind::refused, request_.blocker()};
    }

    /// Effects: counts, and tells the observer, that the attempt has failed with the lock at `place`.
    void tell_failed(std::size_t place) noexcept { all_[place].tell_end(); }

private:
    class part final : public waiter {
    public:
        part(wait_queue& in, mutex_state& of, patience const& p) : waiter{of, p}, queue{in} {}

        /// Effects: takes the turn in its queue, if it is free. Returns: whether it was, and there was memory.
        [[nodiscard]] bool begin() noexcept
        try {
            queue.enter(*this);
            entered_ = true;
            static_cast<void>(queue.step(*this, 0));
            return !ended();
        } catch (...) {  // it is in no queue
            return false;
        }

        /// Returns: whether it is not its turn.
        [[nodiscard]] bool refused() const noexcept { return ended() && !thrown; }

        /// Effects: takes in what became of its part. Requires: the request has ended.
        void settle() noexcept
        {
            while (entered_ && !ended()) static_cast<void>(queue.step(*this, parker_.take()));
        }

        /// Effects: counts its end, and tells the observer. Its beginning is told only now: a request that comes to
        /// nothing is followed by a call for each lock, which is told.
        void tell_end() noexcept
        {
            queue.tell_attempt(*this, nullptr);
            queue.tell_end(*this, nullptr);
        }

        void signal(std::uint32_t what) noexcept override { parker_.unpark(what); }

        wait_queue& queue;

    private:
        parker parker_;
        bool entered_ = false;
    };

    void ask(bool all_begun, std::stop_token const& stop) noexcept
    try {
        if (!all_begun) return request_.drop();
        std::stop_callback const cancel_on_stop{stop, [this]() noexcept { all_.front().queue.cancel(all_.front()); }};
        request_.send_and_wait();
    } catch (...) {  // no memory: nothing was asked
        request_.drop();
    }

    joint_request request_;
    std::deque<part> all_;  // destroyed before the request, which they have parts of
};

}  // namespace holdfast::detail
