// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/permit_steps.hpp>
#include <holdfast/lock/several_locks.hpp>
#include <holdfast/lock/slot_sizes.hpp>
#include <holdfast/lock/slot_wait.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <stop_token>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// A thread that wants permits of a semaphore. It does what `permit_steps` says: it tries slots and takes the turn as
/// any thread takes a lock. While it waits for all slots at once, the client's thread serves the store.
class permit_wait {
public:
    permit_wait(slot_sizes& of, std::size_t n, patience const& p, std::stop_token const& stop)
        : of_{of}, steps_{of, n, p, stop, permit_steps::giving_back::waits}
    {
    }

    /// Effects: waits until all are held or the attempt has failed. Returns: which are held; none if the time passed
    /// while others held them, or after a stop. Throws: what `semaphore::acquire(n)` throws.
    [[nodiscard]] held_slots run()
    {
        for (auto next = steps_.begin(); next != step::ended; next = follow(next)) {
        }
        auto const why = steps_.code();
        bool const canceled = why == std::errc::operation_canceled;
        if (!why || why == errc::timed_out || (canceled && steps_.stop().stop_requested())) return taken();
        if (thrown_ && why == thrown_code_) std::rethrow_exception(thrown_);  // it has the words of the server
        throw error_of(of_.name(), {why, canceled ? "the semaphore was destroyed" : ""});
    }

private:
    using step = permit_steps::step;

    /// Returns: what was taken, of which the user is told.
    [[nodiscard]] held_slots taken() noexcept
    {
        auto all = steps_.take();
        for (auto const& one : all) one.lock->begin_use();
        return all;
    }

    /// What a thread does with slots is not what `std::lock` does with several locks: it is forgotten at the end.
    class unnoticed {
    public:
        unnoticed() = default;
        unnoticed(unnoticed const&) = delete;
        unnoticed& operator=(unnoticed const&) = delete;
        ~unnoticed() { thread_ = before_; }

    private:
        several_locks& thread_ = several_locks::of_this_thread();
        several_locks const before_ = thread_;
    };

    [[nodiscard]] step follow(step next)
    {
        switch (next) {
        case step::try_slot: return steps_.tried(lock(*steps_.slots()->at(steps_.slot()), {.once = true}));
        case step::wait_for_slot: return steps_.waited(wait_for_slot());
        case step::wait_for_turn: return steps_.in_turn(lock(steps_.turn(), steps_.limit()));
        case step::wait_for_change: return steps_.changed(wait_for_change());
        case step::ended: break;
        }
        return step::ended;
    }

    /// Returns: why `one` is not held; no error if it is.
    [[nodiscard]] std::error_code lock(lock_object& one, patience p)
    try {
        p.told_later = true;
        unnoticed const by_several_locks;
        return one.lock(p, steps_.over()) ? std::error_code{} : make_error_code(errc::timed_out);
    } catch (error const&) {
        return thrown();
    }

    [[nodiscard]] slot_wait::outcome wait_for_slot()
    {
        auto const here = std::make_shared<parker>();
        auto const all = std::make_shared<slot_wait>(steps_.limit());
        all->tell([here] { here->unpark(); });
        std::stop_callback const cancel_on_stop{steps_.over(), [&]() noexcept { all->cancel(); }};
        try {
            steps_.slots()->wait_for_each(*all);
        } catch (...) {
            all->fail(thrown());
        }
        all->begun();
        for (;;) {
            if (auto const said = all->settled()) return *said;
            here->park_until(boot_clock::time_point::max());
        }
    }

    /// Returns: why no other number of permits is in use; no error if one is.
    [[nodiscard]] std::error_code wait_for_change()
    {
        auto const here = std::make_shared<parker>();
        auto const ended = std::make_shared<std::atomic<bool>>(false);
        if (!of_.after_change(steps_.slots(), [here, ended] {
                *ended = true;
                here->unpark();
            }))
            return steps_.code();
        auto const& p = steps_.limit();
        auto const& stop = steps_.stop();
        std::stop_callback const on_stop{stop, [&]() noexcept { here->unpark(); }};
        while (!*ended && !p.once && !stop.stop_requested() && boot_clock::now() < p.deadline)
            static_cast<void>(here->park_until(p.deadline));
        return *ended ? std::error_code{} : make_error_code(errc::timed_out);
    }

    /// Returns: the code of the exception that is being handled, which is kept.
    [[nodiscard]] std::error_code thrown() noexcept
    {
        thrown_ = std::current_exception();
        return thrown_code_ = current_exception_code();
    }

    slot_sizes& of_;
    permit_steps steps_;
    std::exception_ptr thrown_;
    std::error_code thrown_code_;
};

}  // namespace holdfast::detail
