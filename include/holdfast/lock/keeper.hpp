// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/signals_blocked.hpp>

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::detail {

/// Something that a keeper looks after: a held lease.
class kept {
public:
    virtual ~kept() = default;

    /// Effects: does what is due at `now`, and schedules the next time; `time_point::max()` after an alarm. Called in the keeper's thread
    /// only, with no lock held.
    /// Returns: whether it began a renewal, for which the keeper then calls `finish_renewal`.
    virtual bool on_due(boot_clock::time_point now) noexcept = 0;

    /// Effects: waits for the renewal that `on_due` began, until `t`, and acts on its result.
    /// Returns: whether it has ended.
    virtual bool finish_renewal(boot_clock::time_point t) noexcept = 0;
};

/// Renews leases in time and announces those that are lost: one thread for all leases of a client. It exists from the first lease on
/// and sleeps, on a timer that runs while the machine is suspended, until something is due. Renewals that are due together are sent
/// together, and then waited for.
class keeper {
public:
    struct ticket;

private:
    struct entry {
        std::weak_ptr<kept> whom;
        ticket* of;
    };
    using schedule_type = std::multimap<boot_clock::time_point, entry>;

public:
    /// A place in the schedule; its memory is allocated beforehand, so that scheduling cannot fail.
    struct ticket {
        schedule_type::node_type spare;
        schedule_type::iterator place{};
        bool scheduled = false;
        std::uint64_t alarms = 0;  ///< how many there had been when it was looked after last, canceled or prepared
    };

    keeper() = default;
    keeper(keeper const&) = delete;
    keeper& operator=(keeper const&) = delete;

    /// Effects: ends the thread; where it is this thread (the last lock was destroyed by a callback), lets it end by itself. In a forked
    /// child, where the thread does not exist, forgets it.
    ~keeper()
    {
        if (!thread_.joinable()) return;
        if (origin_.in_child()) {
            bury();
            return;
        }
        state_->stop();
        if (thread_.get_id() == std::this_thread::get_id())
            thread_.detach();
        else
            thread_.join();
    }

    /// Effects: prepares `t` as the ticket of `whom`.
    void prepare(ticket& t, std::weak_ptr<kept> whom)
    {
        schedule_type one;
        one.emplace(boot_clock::time_point{}, entry{std::move(whom), &t});
        t.spare = one.extract(one.begin());
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

    /// Effects: has `whom` called at `due`, in place of the time it was scheduled for before; at once where there was an alarm of which it has not
    /// been told since it was canceled: what it is kept for now may have been granted before that.
    void schedule(ticket& t, boot_clock::time_point due) noexcept { state_->schedule(t, due); }

    /// Effects: takes `t` out of the schedule. A call of `on_due` that has begun already goes on.
    void cancel(ticket& t) noexcept
    {
        if (!origin_.in_child()) state_->cancel(t);  // in a child, where there is no thread, its lock may be held for ever
    }

    /// Returns: a function that has everything looked at at once, as if it were due: leases may be lost. It may outlive the keeper.
    [[nodiscard]] std::function<void()> alarm() const
    {
        return [state = state_] { state->hurry(); };
    }

private:
    /// Effects: lets go of a thread that does not exist here: it can be neither joined nor detached, and its handle must not be destroyed.
    void bury() noexcept
    {
        alignas(std::thread) static std::array<std::byte, sizeof(std::thread)> grave;
        new (grave.data()) std::thread{std::move(thread_)};
    }

    class state {
    public:
        state() = default;
        state(state const&) = delete;
        state& operator=(state const&) = delete;
        ~state()
        {
            if (timer_ >= 0) ::close(timer_);
        }

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

        void schedule(ticket& t, boot_clock::time_point due) noexcept
        {
            std::scoped_lock guard{mutex_};
            if (t.alarms != alarms_) due = at_once;
            auto node = t.scheduled ? schedule_.extract(t.place) : std::move(t.spare);
            node.key() = due;
            t.place = schedule_.insert(std::move(node));
            t.scheduled = true;
            if (due < armed_) arm(due);
        }

        void cancel(ticket& t) noexcept
        {
            std::scoped_lock guard{mutex_};
            t.alarms = alarms_;
            if (!t.scheduled) return;
            t.spare = schedule_.extract(t.place);
            t.scheduled = false;
        }

        void hurry() noexcept
        {
            std::scoped_lock guard{mutex_};
            ++alarms_;
            schedule_type all;
            while (!schedule_.empty()) {
                auto node = schedule_.extract(schedule_.begin());
                node.key() = at_once;
                auto& of = *node.mapped().of;
                of.place = all.insert(std::move(node));
            }
            schedule_.swap(all);
            arm(at_once);
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
        static constexpr auto at_once = boot_clock::time_point{};
        static constexpr std::size_t batch = 64;

        /// While it waits for answers, it looks at the schedule this often: somebody may have added something that is due earlier.
        static constexpr std::chrono::milliseconds longest_inattention{5};

        /// Returns: when the next one is due.
        boot_clock::time_point run_due(std::vector<std::shared_ptr<kept>>& renewing) noexcept
        {
            for (;;) {
                std::array<std::shared_ptr<kept>, batch> due;
                std::bitset<batch> hurried;
                auto const now = boot_clock::now();
                auto next = boot_clock::time_point::max();
                std::size_t count = 0;
                {
                    std::scoped_lock guard{mutex_};
                    if (stopping_) return stopped;
                    while (count < batch && !schedule_.empty() && schedule_.begin()->first <= now) {
                        auto node = schedule_.extract(schedule_.begin());
                        auto* const of = node.mapped().of;
                        hurried[count] = std::exchange(of->alarms, alarms_) != alarms_;
                        due[count] = node.mapped().whom.lock();  // none: its destructor waits for mutex_ to cancel the ticket
                        if (due[count]) ++count;
                        of->spare = std::move(node);
                        of->scheduled = false;
                    }
                    if (!schedule_.empty()) next = schedule_.begin()->first;
                    if (count == 0) {
                        arm(next);
                        return next;
                    }
                }
                for (std::size_t i = 0; i < count; ++i) {
                    if (!due[i]->on_due(hurried[i] ? boot_clock::time_point::max() : now)) continue;
                    try {
                        renewing.push_back(due[i]);
                    } catch (std::bad_alloc const&) {
                        while (!due[i]->finish_renewal(boot_clock::time_point::max())) {
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
        schedule_type schedule_;
        boot_clock::time_point armed_ = boot_clock::time_point::max();
        std::uint64_t alarms_ = 0;
        int timer_ = -1;
        bool stopping_ = false;
    };

    std::shared_ptr<state> state_ = std::make_shared<state>();
    std::mutex start_;
    std::thread thread_;
    fork_guard origin_;
};

}  // namespace holdfast::detail
