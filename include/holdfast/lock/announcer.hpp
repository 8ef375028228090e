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

/// Calls the user's functions for a keeper, one after the other, in a thread that is begun when there is something to call and ends when there is
/// nothing more. Where a call takes its time, the others do not wait for it: a further thread is begun for them, of up to `most_threads`.
class announcer {
public:
    static constexpr std::size_t most_threads = 16;

    /// So long a call may take before a further thread goes on with the others: less than the margin of the shortest lease.
    static constexpr std::chrono::milliseconds patience{1};

    announcer() = default;
    announcer(announcer const&) = delete;
    announcer& operator=(announcer const&) = delete;
    ~announcer() { end(); }

    /// Effects: has `call` called; before it returns, where there is no memory or no thread for that.
    void post(std::function<void()> call) noexcept
    {
        std::unique_lock guard{shared_->mutex};
        std::list<std::function<void()>> one;
        try {
            one.push_back(std::move(call));
        } catch (std::bad_alloc const&) {
            guard.unlock();
            return call();
        }
        auto& calls = shared_->calls;
        if (calls.empty()) shared_->moved = boot_clock::now();
        calls.splice(calls.end(), one);
        if (shared_->running.any() || begin()) return;
        one.splice(one.end(), calls);
        guard.unlock();
        for (auto& each : one) each();
    }

    /// Effects: begins a further thread where the others have been busy with one call each for too long, while more wait.
    /// Returns: when to call it again.
    boot_clock::time_point tend(boot_clock::time_point now) noexcept
    {
        std::scoped_lock guard{shared_->mutex};
        if (shared_->calls.empty() || shared_->running.all()) return boot_clock::time_point::max();
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
    /// What the threads have; it may outlive the announcer.
    struct shared {
        std::mutex mutex;
        std::list<std::function<void()>> calls;
        std::bitset<most_threads> running;  // cleared by each as the last that it does with the mutex
        boot_clock::time_point moved{};     // when the last call was begun, or the first came
    };

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
        for (;;) {
            std::list<std::function<void()>> one;
            {
                std::scoped_lock guard{s.mutex};
                if (s.calls.empty()) {
                    s.running.reset(me);
                    return;
                }
                one.splice(one.end(), s.calls, s.calls.begin());
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
