// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/signals_blocked.hpp>

#include <array>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Effects: leaks the handle of a thread that does not exist in this process, a child of fork(). It can be neither
/// joined nor detached, and its handle must not be destroyed.
template <class Thread>
void leak_after_fork(Thread& one) noexcept
{
    alignas(Thread) static std::array<std::byte, sizeof(Thread)> grave;
    new (grave.data()) Thread{std::move(one)};
}

/// Calls the user's functions in threads that start when there is something to call and end when nothing is left.
/// Stops, which end what depends on a lease, come before all reports. Reports are called one at a time, so that a slow
/// one delays no stop. If a call takes long while another one could be made, one more thread starts, up to
/// `most_threads`.
class announcer {
public:
    using call = std::function<void()>;

    static constexpr std::size_t most_threads = 16;

    /// How long a call may take before one more thread continues with the others. Less than the margin of the shortest
    /// lease.
    static constexpr std::chrono::milliseconds patience{1};

    /// `attend` is called, from any thread, when `tend` should be called.
    explicit announcer(std::function<void()> attend = [] {}) : attend_{std::move(attend)} {}
    announcer(announcer const&) = delete;
    announcer& operator=(announcer const&) = delete;
    ~announcer() { end(); }

    /// Effects: calls `c` in one of the threads; in this one, before it returns, if memory or threads are short.
    void stop(call c) noexcept
    {
        if (!post(shared_->stops, c)) c();
    }
    void report(call c) noexcept
    {
        if (!try_report(c)) c();
    }

    /// Effects: as `report`, but does nothing if memory or threads are short. Returns: whether `c` will be called.
    [[nodiscard]] bool try_report(call& c) noexcept { return post(shared_->reports, c); }

    /// Returns: whether this thread is one of an announcer, of this or another one.
    [[nodiscard]] static bool here() noexcept { return here_ && !here_->in_child(); }

    /// Effects: starts one more thread if the others have been busy for too long and another call could be made.
    /// Returns: when to call it again.
    boot_clock::time_point tend(boot_clock::time_point now) noexcept
    {
        std::scoped_lock guard{shared_->mutex};
        if (!shared_->next() || shared_->running.all()) return boot_clock::time_point::max();
        if (now - shared_->moved >= patience) {
            shared_->moved = now;
            begin();
        }
        return shared_->moved + patience;
    }

    /// Effects: waits until all calls have been made; not if it is called by such a call, of whichever announcer, as
    /// two would wait for each other. In a child of fork(), where there are no threads, leaks their handles. The
    /// destructor does the same for what is posted after this.
    void end() noexcept
    {
        for (auto& one : threads_) {
            if (!one.joinable()) continue;
            if (origin_.in_child())
                leak_after_fork(one);
            else if (here())
                one.detach();
            else
                one.join();
        }
    }

private:
    using calls = std::list<call>;

    /// What the threads share; it may outlive the announcer.
    struct shared {
        std::mutex mutex;
        calls stops;
        calls reports;
        bool reporting = false;
        std::bitset<most_threads> running;  // each thread clears its bit as its last action under the mutex
        boot_clock::time_point moved{};     // when the last call began, or the first was posted

        /// Returns: the list with the next call that may be made now; null if there is none.
        [[nodiscard]] calls* next() noexcept
        {
            if (!stops.empty()) return &stops;
            return reports.empty() || reporting ? nullptr : &reports;
        }
    };

    [[nodiscard]] bool post(calls& to, call& c) noexcept
    {
        std::unique_lock guard{shared_->mutex};
        calls one;
        try {
            one.push_back(std::move(c));
        } catch (std::bad_alloc const&) {
            return false;
        }
        if (!shared_->next()) shared_->moved = boot_clock::now();
        to.splice(to.end(), one);
        if (!shared_->running.any() && !begin()) {
            c = std::move(to.front());  // the only one: all earlier calls have been made
            to.clear();
            return false;
        }
        guard.unlock();
        attend_();
        return true;
    }

    /// Effects: starts one more thread. Returns: whether it started.
    bool begin() noexcept
    try {
        std::size_t i = 0;
        while (i < most_threads && shared_->running[i]) ++i;
        if (i == most_threads) return false;
        if (threads_[i].joinable()) threads_[i].join();  // it has ended, or is about to
        signals_blocked const while_starting;
        threads_[i] = std::thread{[s = shared_, i] { run(*s, i); }};
        shared_->running.set(i);
        return true;
    } catch (std::system_error const&) {
        return false;
    } catch (std::bad_alloc const&) {
        return false;
    }

    static void run(shared& s, std::size_t me) noexcept
    {
        here_.emplace();
        bool reporting = false;
        for (;;) {
            calls one;
            {
                std::scoped_lock guard{s.mutex};
                if (reporting) s.reporting = false;
                auto* const from = s.next();
                if (!from) {
                    s.running.reset(me);
                    return;
                }
                reporting = from == &s.reports;
                if (reporting) s.reporting = true;
                one.splice(one.end(), *from, from->begin());
                s.moved = boot_clock::now();
            }
            one.front()();
        }
    }

    static inline thread_local std::optional<fork_guard> here_;  // in the threads that call

    std::function<void()> const attend_;
    std::shared_ptr<shared> shared_ = std::make_shared<shared>();
    std::array<std::thread, most_threads> threads_;
    fork_guard origin_;
};

}  // namespace holdfast::detail
