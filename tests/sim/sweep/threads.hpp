// SPDX-License-Identifier: MIT
#pragma once

#include "fiber.hpp"

#include <holdfast/core/clock.hpp>
#include <holdfast/sim/host.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace holdfast::test {

/// The threads of the simulated processes of one schedule. What they run may block as shipped code does: in a parker,
/// or in a lock of `process_lock.hpp`. The world goes on meanwhile.
///
/// A schedule ends by `end`: what blocks then fails, and parks and sleeps return at once, until all threads have
/// returned. So a process that was killed leaves nothing behind in this one.
class threads {
public:
    /// One of them.
    class one {
    public:
        one(threads& of, sim::host& in, std::uint64_t number, std::function<void()> f)
            : of_{of}, process_{in}, number_{number}, runs_{std::move(f)}
        {
        }

        [[nodiscard]] sim::host& process() const noexcept { return process_; }
        [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
        [[nodiscard]] bool ended() const noexcept { return runs_.ended(); }

        /// Effects: if it waits, it goes on, as soon as its process does.
        void wake()
        {
            if (!waiting_ || of_.ending_) return;
            process_.at(process_.present(), [this, wait = waits_] { go_on(wait); });
        }

    private:
        friend class threads;

        void go_on(std::uint64_t wait)
        {
            if (!waiting_ || waits_ != wait || of_.ending_) return;
            of_.run(*this);
        }

        threads& of_;
        sim::host& process_;
        std::uint64_t number_;
        fiber runs_;
        bool waiting_ = true;
        std::uint64_t waits_ = 0;
        void const* parked_at_ = nullptr;
        std::vector<one*> joining_;
    };

    threads() { active_ = this; }
    threads(threads const&) = delete;
    threads& operator=(threads const&) = delete;
    ~threads()
    {
        end();
        active_ = nullptr;
    }

    /// Returns: those of the schedule that runs in this thread of the system; null if there are none.
    [[nodiscard]] static threads* active() noexcept { return active_; }

    /// Returns: the thread that runs; null if none does.
    [[nodiscard]] static one* here() noexcept { return active_ ? active_->here_ : nullptr; }

    /// Returns: whether the schedule is over.
    [[nodiscard]] static bool ending() noexcept { return active_ && active_->ending_; }

    /// Effects: begins a thread that runs `f` in that process.
    one& begin(sim::host& in, std::function<void()> f)
    {
        auto& made = all_.emplace_back(*this, in, ++begun_, std::move(f));
        made.wake();
        return made;
    }

    /// Effects: this thread waits until it is woken, or for no reason at all; until `t`, a time of the world, at most.
    static void wait_until(boot_clock::time_point t = boot_clock::time_point::max())
    {
        auto& me = *here();
        auto const wait = ++me.waits_;
        me.waiting_ = true;
        if (t != boot_clock::time_point::max() && !ending()) me.process_.at(t, [&me, wait] { me.go_on(wait); });
        fiber::suspend();
    }

    /// Effects: this thread sleeps until `t`, a time of the world.
    static void sleep_until(boot_clock::time_point t)
    {
        auto const& process = here()->process();
        while (!ending() && process.present() < t) wait_until(t);
    }

    /// Effects: as a `FUTEX_WAIT` of this thread on `word`, for `d` at most by its process's clock.
    static void park_at(void const* word, boot_clock::duration d)
    {
        auto& me = *here();
        me.parked_at_ = word;
        bool const for_ever = d == boot_clock::duration::max();
        wait_until(for_ever ? boot_clock::time_point::max() : me.process_.when(me.process_.now() + d));
        me.parked_at_ = nullptr;
    }

    /// Effects: as a `FUTEX_WAKE` of one. Returns: whether there was one.
    bool unpark_at(void const* word)
    {
        auto const found = std::find_if(all_.begin(), all_.end(), [&](one const& o) { return o.parked_at_ == word; });
        if (found == all_.end()) return false;
        found->parked_at_ = nullptr;
        found->wake();
        return true;
    }

    /// Effects: this thread waits until `other` has ended.
    static void join(one& other)
    {
        while (!other.ended()) {
            other.joining_.push_back(here());
            wait_until();
        }
    }

    /// Effects: `f` is called by `end`, before the threads return.
    void at_end(std::function<void()> f) { at_end_.push_back(std::move(f)); }

    /// Effects: the schedule is over; waits until all threads have returned.
    void end()
    {
        if (std::exchange(ending_, true)) return;
        for (auto const& f : at_end_) f();
        constexpr unsigned many = 100'000;
        for (unsigned rounds = 0;; ++rounds) {
            if (rounds == many) std::abort();  // one does not return
            bool all_ended = true;
            for (std::size_t i = 0; i < all_.size(); ++i)
                if (!all_[i].ended()) {
                    all_ended = false;
                    run(all_[i]);
                }
            if (all_ended) return;
        }
    }

private:
    void run(one& o)
    {
        o.waiting_ = false;
        here_ = &o;
        o.runs_.resume();
        here_ = nullptr;
        if (!o.ended()) return;
        for (auto* const other : std::exchange(o.joining_, {})) other->wake();
    }

    std::deque<one> all_;
    one* here_ = nullptr;
    std::uint64_t begun_ = 0;
    bool ending_ = false;
    std::vector<std::function<void()>> at_end_;
    static inline thread_local threads* active_ = nullptr;
};

/// A `std::thread` of a simulated process: that of the thread that begins it.
class process_thread {
public:
    using id = std::uint64_t;

    process_thread() noexcept = default;
    explicit process_thread(std::function<void()> f)
        : of_{&threads::active()->begin(threads::here()->process(), std::move(f))}
    {
    }

    process_thread(process_thread&& other) noexcept : of_{std::exchange(other.of_, nullptr)} {}
    process_thread& operator=(process_thread&& other) noexcept
    {
        if (joinable()) std::terminate();
        of_ = std::exchange(other.of_, nullptr);
        return *this;
    }
    ~process_thread()
    {
        if (joinable()) std::terminate();
    }

    [[nodiscard]] bool joinable() const noexcept { return of_ != nullptr; }
    [[nodiscard]] id get_id() const noexcept { return of_ ? of_->number() : 0; }
    void join() { threads::join(*std::exchange(of_, nullptr)); }
    void detach() noexcept { of_ = nullptr; }

private:
    threads::one* of_ = nullptr;
};

/// The threads that an election uses in a simulated process.
struct process_threads {
    using thread = process_thread;
    [[nodiscard]] static thread::id here() noexcept { return threads::here() ? threads::here()->number() : 0; }
};

}  // namespace holdfast::test
