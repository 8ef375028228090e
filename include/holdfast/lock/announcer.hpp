// SPDX-License-Identifier: MIT
#pragma once

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
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::detail {

/// Effects: lets go of a thread that does not exist in this process, a child of fork(): it can be neither joined nor detached, and its handle must
/// not be destroyed.
inline void bury(std::thread& one) noexcept
{
    alignas(std::thread) static std::array<std::byte, sizeof(std::thread)> grave;
    new (grave.data()) std::thread{std::move(one)};
}

/// Calls the user's functions for a keeper, in threads that are begun when there is something to call and end when there is nothing more. A stop, which
/// ends what depends on a lease, comes before all reports, of which one at a time is called: a slow one keeps no stop waiting. Where a call takes
/// its time while there is something that need not wait for it, a further thread is begun, of up to `most_threads`.
class announcer {
public:
    using call = std::function<void()>;

    static constexpr std::size_t most_threads = 16;

    /// So long a call may take before a further thread goes on with the others: less than the margin of the shortest lease.
    static constexpr std::chrono::milliseconds patience{1};

    announcer() = default;
    announcer(announcer const&) = delete;
    announcer& operator=(announcer const&) = delete;
    ~announcer() { end(); }

    /// Effects: has a call made; before it returns, where there is no memory or no thread for that.
    void stop(call c) noexcept { post(shared_->stops, std::move(c)); }
    void report(call c) noexcept { post(shared_->reports, std::move(c)); }

    /// Effects: begins a further thread where the others have been busy for too long, while more may be called.
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

    /// Effects: waits until all has been called. In one of its threads, which is ended by what it calls, that one goes on by itself; in a child of
    /// fork(), where there are none, forgets them. Nothing may be posted any more.
    void end() noexcept
    {
        for (auto& one : threads_) {
            if (!one.joinable()) continue;
            if (origin_.in_child())
                bury(one);
            else if (one.get_id() == std::this_thread::get_id())
                one.detach();
            else
                one.join();
        }
    }

private:
    using calls = std::list<call>;

    /// What the threads have; it may outlive the announcer.
    struct shared {
        std::mutex mutex;
        calls stops;
        calls reports;
        bool reporting = false;
        std::bitset<most_threads> running;  // cleared by each as the last that it does with the mutex
        boot_clock::time_point moved{};     // when the last call was begun, or the first came

        /// Returns: from where the next call comes that may be made now; null: there is none.
        [[nodiscard]] calls* next() noexcept
        {
            if (!stops.empty()) return &stops;
            return reports.empty() || reporting ? nullptr : &reports;
        }
    };

    void post(calls& to, call c) noexcept
    {
        std::unique_lock guard{shared_->mutex};
        calls one;
        try {
            one.push_back(std::move(c));
        } catch (std::bad_alloc const&) {
            guard.unlock();
            return c();
        }
        if (!shared_->next()) shared_->moved = boot_clock::now();
        to.splice(to.end(), one);
        if (shared_->running.any() || begin()) return;
        one.splice(one.end(), to);  // its own, for whatever came before has been called
        guard.unlock();
        for (auto& each : one) each();
    }

    /// Effects: begins one more thread. Returns: whether the system has one.
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

    std::shared_ptr<shared> shared_ = std::make_shared<shared>();
    std::array<std::thread, most_threads> threads_;
    fork_guard origin_;
};

}  // namespace holdfast::detail
