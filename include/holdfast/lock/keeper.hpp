// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/signals_blocked.hpp>
#include <holdfast/lock/announcer.hpp>
#include <holdfast/lock/kept.hpp>
#include <holdfast/lock/schedule.hpp>

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::detail {

/// Renews leases in time and announces those that are lost: one thread for all leases of a client. It exists from the first lease on
/// and sleeps, on a timer that runs while the machine is suspended, until something is due. Renewals that are due together are sent
/// together, and then waited for; so many of them at a time that the answers can be read before they are overdue. Where more are due,
/// after a pause for example, the lease that ends first comes first. What the user is told comes from further threads, begun when there is
/// something to tell: a slow callback delays nothing else.
class keeper {
public:
    using ticket = schedule::ticket;

    /// So many renewals are under way at a time. (Measured with 10,000 leases on five masters: with all of them at once, the first answers
    /// are read when the time of a master to answer has long passed.)
    static constexpr std::size_t window = 256;

    keeper() = default;
    keeper(keeper const&) = delete;
    keeper& operator=(keeper const&) = delete;

    /// Effects: ends the threads; where one of them is this thread (the last lock was destroyed by a callback), lets it end by itself. In a
    /// forked child, where they do not exist, forgets them.
    ~keeper()
    {
        if (!thread_.joinable()) return;
        if (origin_.in_child()) {
            bury(thread_);
        } else {
            state_->stop();
            if (thread_.get_id() == std::this_thread::get_id())
                thread_.detach();
            else
                thread_.join();
        }
        state_->calls.end();
    }

    /// Effects: prepares `t` as the ticket of `whom`.
    void prepare(ticket& t, std::weak_ptr<kept> whom)
    {
        schedule::prepare(t, std::move(whom));
        cancel(t);  // alarms before do not concern it
    }

    /// Effects: starts the thread where it does not run yet.
    /// Throws: `error` (`unavailable`) where the system has no thread or descriptor left.
    void ensure_running()
    {
        std::scoped_lock guard{start_};
        if (thread_.joinable()) return;
        try {
            if (!state_->open()) throw std::system_error{errno, std::system_category()};
            signals_blocked const while_starting;
            thread_ = std::thread{[state = state_] { state->run(); }};
        } catch (std::system_error const& e) {
            throw error{errc::unavailable, std::string{"the thread that renews leases could not be started: "} + e.what()};
        }
    }

    /// Effects: has `whom` called at `due`, or as soon as a renewal may begin then, and at `end` in any case, in place of the times it was
    /// scheduled for before; at once where there was an alarm of which it has not been told since it was canceled: what it is kept for now may
    /// have been granted before that.
    void put(ticket& t, boot_clock::time_point due, boot_clock::time_point end) noexcept { state_->put(t, due, end); }

    /// Effects: takes `t` out of the schedule. A call of `on_due` that has begun already goes on.
    void cancel(ticket& t) noexcept
    {
        if (!origin_.in_child()) state_->cancel(t);  // in a child, where there is no thread, its lock may be held for ever
    }

    /// Returns: a function that has everything looked at at once, as if it were due: leases may be lost. It may outlive the keeper.
    [[nodiscard]] std::function<void()> alarm() const
    {
        return [state = state_] { state->alarm(); };
    }

    /// Returns: who calls the user's functions: none is called in the keeper's thread, as others would wait for it.
    [[nodiscard]] announcer& calls() noexcept { return state_->calls; }

private:
    class state {
    public:
        state() = default;
        state(state const&) = delete;
        state& operator=(state const&) = delete;
        ~state()
        {
            if (timer_ >= 0) ::close(timer_);
        }

        announcer calls;

        bool open() noexcept
        {
            std::scoped_lock guard{mutex_};
            return timer_ >= 0 || (timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC)) >= 0;
        }

        void stop() noexcept
        {
            std::scoped_lock guard{mutex_};
            stopping_ = true;
            arm(boot_clock::time_point{});
        }

        void put(ticket& t, boot_clock::time_point due, boot_clock::time_point end) noexcept
        {
            std::scoped_lock guard{mutex_};
            schedule_.put(t, due, end);
            if (schedule_.next() < armed_) arm(schedule_.next());
        }

        void cancel(ticket& t) noexcept
        {
            std::scoped_lock guard{mutex_};
            schedule_.cancel(t);
        }

        void alarm() noexcept
        {
            std::scoped_lock guard{mutex_};
            schedule_.alarm();
            arm(schedule::at_once);
        }

        void run() noexcept
        {
            std::vector<std::shared_ptr<kept>> renewing;
            for (;;) {
                auto const next = run_due(renewing);
                if (next == stopped) return;
                if (renewing.empty())
                    sleep();
                else
                    finish(renewing, std::min(next, boot_clock::now() + longest_inattention));
            }
        }

    private:
        static constexpr auto stopped = boot_clock::time_point::min();
        static constexpr std::size_t batch = 64;

        /// While it waits for answers, it looks at the schedule this often: somebody may have added something that is due earlier.
        static constexpr std::chrono::milliseconds longest_inattention{5};

        /// Effects: calls those whose turn it is. Returns: when that of the next one comes.
        boot_clock::time_point run_due(std::vector<std::shared_ptr<kept>>& renewing) noexcept
        {
            for (;;) {
                std::array<schedule::turn, batch> due;
                auto const now = boot_clock::now();
                auto const tend_at = calls.tend(now);
                std::size_t count = 0;
                {
                    std::scoped_lock guard{mutex_};
                    if (stopping_) return stopped;
                    while (count < batch && (due[count] = schedule_.take(now, renewing.size() + count < window)).whom) ++count;
                    if (count == 0) {
                        arm(std::min(schedule_.next(), tend_at));
                        return armed_;
                    }
                }
                for (std::size_t i = 0; i < count; ++i) {
                    auto const& one = due[i].whom;
                    if (!one->on_due(due[i].alarmed ? boot_clock::time_point::max() : now)) continue;
                    try {
                        renewing.push_back(one);
                    } catch (std::bad_alloc const&) {
                        while (!one->finish_renewal(boot_clock::time_point::max())) {
                        }
                    }
                }
            }
        }

        static void finish(std::vector<std::shared_ptr<kept>>& renewing, boot_clock::time_point until) noexcept
        {
            std::erase_if(renewing, [until](auto const& one) { return one->finish_renewal(until); });
        }

        void sleep() const noexcept
        {
            std::uint64_t expirations = 0;
            while (::read(timer_, &expirations, sizeof expirations) < 0 && errno == EINTR) {
            }
        }

        void arm(boot_clock::time_point due) noexcept
        {
            armed_ = due;
            if (timer_ < 0) return;
            auto const at = std::max(due.time_since_epoch(), boot_clock::duration{1});
            auto const whole = std::chrono::duration_cast<std::chrono::seconds>(at);
            itimerspec spec{};
            if (due != boot_clock::time_point::max()) spec.it_value = {.tv_sec = whole.count(), .tv_nsec = (at - whole).count()};
            ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr);
        }

        std::mutex mutex_;
        schedule schedule_;
        boot_clock::time_point armed_ = boot_clock::time_point::max();
        int timer_ = -1;
        bool stopping_ = false;
    };

    std::shared_ptr<state> state_ = std::make_shared<state>();
    std::mutex start_;
    std::thread thread_;
    fork_guard origin_;
};

}  // namespace holdfast::detail
