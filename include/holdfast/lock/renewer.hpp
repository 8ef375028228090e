// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/announcer.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/finish_pause.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/owned_thread.hpp>
#include <holdfast/lock/poll_timer.hpp>
#include <holdfast/lock/schedule.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The client's own thread: renews leases in time, announces those that are lost, and serves asynchronous calls. It
/// starts at the first use, and sleeps until something is due; its timer also runs while the machine is suspended. The
/// number of renewals under way is limited, so that their answers can be read in time. If more are due, after a pause
/// for example, the lease that ends first comes first. While operations run that no thread waits for, it serves the
/// store. User functions are called in other threads, started on demand: a slow callback delays nothing else. A forked
/// child has no such thread, and the mutex may be locked for ever there: it schedules nothing.
class renewer : public std::enable_shared_from_this<renewer> {
public:
    using timer = schedule::timer;

    explicit renewer(std::shared_ptr<lock_store> store) : store_{std::move(store)} {}
    renewer(renewer const&) = delete;
    renewer& operator=(renewer const&) = delete;

    /// Calls the user's functions. This thread calls none: all else would wait for it.
    announcer calls{[this] {
        if (origin_.in_child()) return;
        std::scoped_lock guard{mutex_};
        wake();
    }};

    /// Effects: starts the thread if it does not run yet.
    /// Throws: `error` (`unavailable`) if the system has no thread or descriptor left.
    void ensure_running()
    {
        std::scoped_lock guard{start_};
        if (thread_.started()) return;
        try {
            if (!open()) throw std::system_error{errno, std::system_category()};
            thread_.start([self = shared_from_this()] { self->run(); });
        } catch (std::system_error const& e) {
            throw error{errc::unavailable,
                        std::string{"the thread that renews leases could not be started: "} + e.what()};
        }
    }

    /// Effects: waits until the operations under way have ended and the user's functions have returned, and ends the
    /// threads. One of them that calls this is not waited for: it ends when it has done its work. In a forked child,
    /// where the threads do not exist, their handles are leaked.
    /// Requires: no lock is held, and every asynchronous call was cancelled.
    void end() noexcept
    {
        if (!origin_.in_child()) {
            std::scoped_lock guard{mutex_};
            stopping_ = true;
            wake();
        }
        thread_.end();
        calls.end();
    }

    /// Effects: prepares `t` as the timer of `whom`.
    void prepare(timer& t, std::weak_ptr<scheduled> whom) noexcept
    {
        t.whom = std::move(whom);
        cancel(t);  // earlier alarms do not concern it
    }

    /// Effects: schedules `t`, in place of its earlier times. `whom` of `t` is called at `due`, or as soon after that
    /// as a renewal may begin, and at `end` in any case. It is called at once if an alarm was raised since `t` was last
    /// called or cancelled: the lease may have been granted before the alarm.
    void put(timer& t, boot_clock::time_point due, boot_clock::time_point end) noexcept
    {
        if (origin_.in_child()) return;
        std::scoped_lock guard{mutex_};
        schedule_.put(t, due, end);
        if (busy_) return;
        if (auto const next = schedule_.next(renewals_); next < timer_.at()) timer_.set(next);
    }

    /// Effects: takes `t` out of the schedule, unless it was poked. A call of `on_due` that has begun goes on.
    void cancel(timer& t) noexcept
    {
        if (origin_.in_child()) return;
        std::scoped_lock guard{mutex_};
        schedule_.cancel(t);
    }

    /// Effects: `whom` of `t` is called at once.
    void poke(timer& t) noexcept
    {
        if (origin_.in_child()) return;
        std::scoped_lock guard{mutex_};
        schedule_.poke(t);
        wake();
    }

    /// Effects: takes `t` out for good, before it is destroyed.
    void remove(timer& t) noexcept
    {
        if (origin_.in_child()) return;
        std::scoped_lock guard{mutex_};
        schedule_.remove(t);
    }

    /// Effects: leases may be lost: every lease is checked at once, as if it were due.
    void alarm() noexcept
    {
        if (origin_.in_child()) return;
        std::scoped_lock guard{mutex_};
        schedule_.alarm();
        wake();
    }

    /// Effects: counts the operations under way that no thread waits for: while there are any, the thread serves the
    /// store.
    void begin_service() noexcept
    {
        std::scoped_lock guard{mutex_};
        if (served_++ == 0) wake();
    }
    void end_service() noexcept
    {
        std::scoped_lock guard{mutex_};
        --served_;
        if (stopping_) wake();
    }

    /// Effects: the same for one that may wait a moment: the next caller will most likely serve it, and an `unlock`
    /// that waits for no answer wakes no thread.
    void begin_late_service() noexcept
    {
        std::scoped_lock guard{mutex_};
        if (late_served_++ != 0) return;
        serve_at_ = boot_clock::now() + late;
        if (serve_at_ < timer_.at()) timer_.set(serve_at_);
    }
    void end_late_service() noexcept
    {
        std::scoped_lock guard{mutex_};
        --late_served_;
        if (stopping_) wake();
    }

    /// Effects: the store has something to finish. The thread sees to that after a pause, and then, with longer and
    /// longer ones, until nothing is left. The end of the client does not wait for it.
    void finish_later() noexcept
    {
        if (origin_.in_child()) return;
        std::scoped_lock guard{mutex_};
        finish_.begin(boot_clock::now());
        if (finish_.at() < timer_.at()) timer_.set(finish_.at());
    }

    /// Effects: counts the renewals under way.
    void begin_renewal() noexcept
    {
        std::scoped_lock guard{mutex_};
        ++renewals_;
        ++begun_;
        if (served_++ == 0) wake();
    }
    /// Effects: one of them has ended: pokes `t`, whose renewal it was. In one step, as the thread may end when none is
    /// under way, and before it looks for what else may be sent.
    void end_renewal(timer& t) noexcept
    {
        std::scoped_lock guard{mutex_};
        --renewals_;
        --served_;
        schedule_.poke(t);
        wake();
    }

private:
    enum class what : std::uint8_t { sleep, serve, stop };

    static constexpr std::chrono::milliseconds late{50};
    static constexpr auto never = poll_timer::never;

    [[nodiscard]] bool open() noexcept
    {
        std::scoped_lock guard{mutex_};
        return timer_.open();
    }

    void run() noexcept
    {
        {
            std::scoped_lock guard{mutex_};
            runs_in_ = std::this_thread::get_id();
        }
        for (;;) {
            auto const next = run_due();
            if (next == what::serve && store_->serve(timer_.descriptor())) {
                serves_ = true;
                continue;
            }
            if (std::exchange(serves_, false)) store_->rest();
            if (next == what::stop) return;
            if (!timer_.wait()) continue;
            std::scoped_lock guard{mutex_};
            timer_.fired();
        }
    }

    /// Effects: calls what is due. After the first that begins an operation, and then after each batch of renewals, the
    /// thread serves: what they send goes out together. Returns: what to do next.
    what run_due() noexcept
    {
        std::uint64_t before = 0;
        for (bool first = true;; first = false) {
            std::array<schedule::turn, schedule::window> due;
            bool finish_due = false;
            auto const now = boot_clock::now();
            {
                std::scoped_lock guard{mutex_};
                busy_ = true;
                again_ = false;
                if (first) before = begun_;
                finish_due = finish_.take(now);
            }
            auto const tend_at = calls.tend(now);
            if (finish_due) finishes_ = store_->finish();
            std::size_t count = 0;
            {
                std::scoped_lock guard{mutex_};
                if (finish_due && finishes_) finish_.go_on(now);
                bool const begun = begun_ != before;
                std::size_t const most = serves_ ? (begun ? 0 : due.size()) : first || served_ == 0 ? 1 : 0;
                while (count < most && (due[count] = schedule_.take(now, renewals_ + count)).whom) ++count;
                if (count == 0 && again_) continue;
                if (count == 0) {
                    auto const due_at = schedule_.next(renewals_);
                    if (stopping_ && served_ + late_served_ == 0 && due_at > now && tend_at == never) return what::stop;
                    bool const serves_late = late_served_ != 0 && (stopping_ || serve_at_ <= now);
                    auto const serve_at = late_served_ != 0 && !serves_late ? serve_at_ : never;
                    busy_ = false;
                    auto const next = std::min({due_at, tend_at, serve_at, finish_.at()});
                    bool const serves = served_ != 0 || serves_late || finishes_;
                    // While the thread serves, it checks often what is due: the timer need not be moved later.
                    if (!serves || next < timer_.at() || timer_.at() <= now) timer_.set(next);
                    return serves ? what::serve : what::sleep;
                }
            }
            for (std::size_t i = 0; i < count; ++i) std::exchange(due[i].whom, nullptr)->on_due(now, due[i].alarmed);
        }
    }

    /// Effects: makes the thread check at once what is due. Requires: the mutex is locked.
    void wake() noexcept
    {
        if (busy_)
            again_ = true;
        else if (std::this_thread::get_id() != runs_in_)
            timer_.set(schedule::at_once);
    }

    std::shared_ptr<lock_store> const store_;
    fork_guard const origin_;
    std::mutex start_;
    owned_thread<> thread_;
    std::mutex mutex_;
    schedule schedule_;
    poll_timer timer_;
    boot_clock::time_point serve_at_{};
    finish_pause finish_;
    std::size_t renewals_ = 0;     // under way
    std::uint64_t begun_ = 0;      // so many have been begun
    std::size_t served_ = 0;       // operations that no thread waits for
    std::size_t late_served_ = 0;  // those that may wait a moment
    bool stopping_ = false;        // the thread ends when nothing is under way
    std::thread::id runs_in_;
    bool serves_ = false;    // of the thread
    bool finishes_ = false;  // the store has something left to finish; of the thread
    bool busy_ = false;      // the thread will check the schedule before it sleeps
    bool again_ = false;     // something came while it was busy: it checks everything once more
};

}  // namespace holdfast::detail
