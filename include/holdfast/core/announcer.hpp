// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/owned_thread.hpp>
#include <holdfast/core/signals_blocked.hpp>

#include <algorithm>
#include <array>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
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

/// Calls the user's functions in threads that start when there is something to call and end when nothing is left.
/// If a call takes long while another one could be made, one more thread starts, up to `most_threads`. Each kind comes
/// before the kinds below it, and has a bound of its own:
///
/// | kind | at once | what |
/// |------|---------|------|
/// | stop | `most_threads` | ends what depends on a lease that is lost |
/// | tell | `most_telling` | a warning, a request of another client, the result of an asynchronous call |
/// | report | one | what is for a log |
/// | event | one | what an observer is told; the only one that may be dropped |
///
/// So a loss finds a thread, however many of the others are slow.
class announcer {
public:
    using call = std::function<void()>;

    static constexpr std::size_t most_threads = 16;
    static constexpr std::size_t most_telling = 12;

    /// So many events wait at most.
    static constexpr std::size_t most_events = 10'000;

    /// How long a call may take before one more thread continues with the others. Less than the margin of the shortest
    /// lease.
    static constexpr std::chrono::milliseconds patience{1};

    /// `attend` is called, from any thread, when `tend` should be called.
    explicit announcer(std::function<void()> attend = [] {}) : attend_{std::move(attend)} {}
    announcer(announcer const&) = delete;
    announcer& operator=(announcer const&) = delete;
    ~announcer() { end(); }

    enum class kind : std::uint8_t { stop, tell, report, event };

    /// Effects: calls `c` in one of the threads; in this one, before it returns, if memory or threads are short.
    void make(kind what, call c) noexcept
    {
        if (!post(what, c)) c();
    }
    void tell(call c) noexcept { make(kind::tell, std::move(c)); }
    void report(call c) noexcept { make(kind::report, std::move(c)); }

    /// Effects: as `report`, but does nothing if memory or threads are short. Returns: whether `c` will be called.
    [[nodiscard]] bool try_report(call& c) noexcept { return post(kind::report, c); }
    /// Effects: as `tell`, but does nothing if memory or threads are short. Returns: whether `c` will be called.
    [[nodiscard]] bool try_tell(call& c) noexcept { return post(kind::tell, c); }

    /// Effects: calls `c` in one of the threads, one event at a time. Does nothing if memory or threads are short, or
    /// `most_events` wait; one that still waits is dropped by `end`.
    void tell_event(call c) noexcept { static_cast<void>(post(kind::event, c)); }

    /// Returns: whether this thread is one of an announcer, of this or another one.
    [[nodiscard]] static bool here() noexcept { return here_ && !here_->in_child(); }

    /// Returns: whether this thread is one that calls `tend`: the own thread of a client, which brings the results of
    /// asynchronous calls, and so must not wait for one. It makes a call itself if memory or threads are short.
    [[nodiscard]] static bool tended_here() noexcept { return tended_here_; }

    /// Effects: starts one more thread if the others have been busy for too long and another call could be made.
    /// Returns: when to call it again.
    boot_clock::time_point tend(boot_clock::time_point now) noexcept
    {
        tended_here_ = true;
        std::scoped_lock guard{shared_->mutex};
        if (!shared_->next() || shared_->running.all()) return boot_clock::time_point::max();
        if (now - shared_->moved >= patience) {
            shared_->moved = now;
            begin();
        }
        return shared_->moved + patience;
    }

    /// Effects: drops the events that wait, and waits until all other calls have been made; not if it is called by such
    /// a call, of whichever announcer, as two would wait for each other. In a child of fork(), where there are no
    /// threads, leaks their handles. The destructor does the same for what is posted after this.
    void end() noexcept
    {
        if (origin_.in_child()) {
            for (auto& one : threads_)
                if (one.joinable()) leak_after_fork(one);
            return;
        }
        drop_events();
        for (auto& one : take_threads()) {
            if (!one.joinable()) continue;
            if (here())
                one.detach();
            else
                one.join();
        }
    }

private:
    using calls = std::list<call>;
    using threads = std::array<std::thread, most_threads>;

    struct kind_state {
        std::size_t most;  ///< how many are made at once
        std::size_t under_way = 0;
        calls waiting{};
    };

    /// What the threads share; it may outlive the announcer.
    struct shared {
        std::mutex mutex;
        std::array<kind_state, 4> kinds{{{.most = most_threads}, {.most = most_telling}, {.most = 1}, {.most = 1}}};
        std::bitset<most_threads> running;  // each thread clears its bit as its last action under the mutex
        boot_clock::time_point moved{};     // when the last call began, or the first was posted

        /// Returns: the kind of the next call that may be made now; null if there is none.
        [[nodiscard]] kind_state* next() noexcept
        {
            auto const found = std::find_if(kinds.begin(), kinds.end(), [](kind_state const& one) {
                return !one.waiting.empty() && one.under_way < one.most;
            });
            return found == kinds.end() ? nullptr : &*found;
        }
    };

    /// Effects: those that are begun for later calls are others. Returns: the threads that were begun.
    [[nodiscard]] threads take_threads() noexcept
    {
        std::scoped_lock guard{shared_->mutex};
        return std::exchange(threads_, {});
    }

    [[nodiscard]] calls& waiting(kind what) const noexcept
    {
        return shared_->kinds[static_cast<std::size_t>(what)].waiting;
    }

    void drop_events() noexcept
    {
        calls dropped;  // destroyed without the mutex: they are the user's
        std::scoped_lock guard{shared_->mutex};
        dropped.swap(waiting(kind::event));
    }

    [[nodiscard]] bool post(kind what, call& c) noexcept
    {
        auto& to = waiting(what);
        std::unique_lock guard{shared_->mutex};
        if (what == kind::event && to.size() >= most_events) return false;
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

    /// Effects: starts one more thread. Returns: whether it started. Requires: the mutex is locked.
    bool begin() noexcept
    try {
        std::size_t i = 0;
        while (i < most_threads && shared_->running[i]) ++i;
        if (i == most_threads) return false;
        // The one before it is about to end. The new one waits for that, not the caller, who has the mutex: what the
        // user's functions made for their thread may take long to be destroyed.
        auto const before = std::make_shared<std::thread>();
        signals_blocked const while_starting;
        std::thread next{[s = shared_, i, before] {
            static_cast<void>(std::scoped_lock{s->mutex});  // from here on it is known
            if (before->joinable()) before->join();
            run(*s, i);
        }};
        *before = std::exchange(threads_[i], std::move(next));
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
        kind_state* from = nullptr;
        for (;;) {
            calls one;
            {
                std::scoped_lock guard{s.mutex};
                if (from) --from->under_way;
                from = s.next();
                if (!from) {
                    s.running.reset(me);
                    return;
                }
                ++from->under_way;
                one.splice(one.end(), from->waiting, from->waiting.begin());
                s.moved = boot_clock::now();
            }
            one.front()();
        }
    }

    // In the threads that call; one for all shared libraries, also of those that hide their names.
    [[gnu::visibility("default")]] static inline thread_local std::optional<fork_guard> here_;
    [[gnu::visibility("default")]] static inline thread_local bool tended_here_ = false;

    std::function<void()> const attend_;
    std::shared_ptr<shared> shared_ = std::make_shared<shared>();
    threads threads_;
    fork_guard origin_;
};

}  // namespace holdfast::detail
