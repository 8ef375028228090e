// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/random.hpp>
#include <holdfast/sim/agenda.hpp>
#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/decision.hpp>
#include <holdfast/sim/world.hpp>

#include <algorithm>
#include <concepts>
#include <coroutine>
#include <deque>
#include <cstdint>
#include <utility>

namespace holdfast::sim {

/// A process of a user on a computer of its own, which may stand still at any time: stopped, swapped out, collecting garbage, its machine
/// asleep. Its clock runs on, what it has sent goes on, and what is for it waits.
///
/// It has the clocks of a computer: one that counts since it was started, one that does not count while the machine is suspended, and one for
/// the time of day, which people set. Whoever gives `read_time_with` a function has `now()` read by it, and lets it ask `acting()` for
/// whichever clock it wants: so the code that chooses a clock runs in the simulation, too.
class host {
public:
    host(sim::world& w, unsigned index, sim::clock c) : world_{w}, index_{index}, clock_{c}, chance_{w.seed() ^ (std::uint64_t{index + 1} << 32U)} {}

    host(host const&) = delete;
    host& operator=(host const&) = delete;

    [[nodiscard]] sim::world& world() const noexcept { return world_; }
    [[nodiscard]] unsigned index() const noexcept { return index_; }
    [[nodiscard]] sim::clock const& clock() const noexcept { return clock_; }

    /// Returns: the time of the world in which this process does what it does now. It is later than the world's when the process was
    /// paused in the middle of a step.
    [[nodiscard]] boot_clock::time_point present() const noexcept { return std::max(world_.now(), awake_); }

    /// Returns: until when it stood still last, in the time of the world; that may be to come.
    [[nodiscard]] boot_clock::time_point awake_since() const noexcept { return awake_; }

    /// Returns: what this process takes the time to be.
    [[nodiscard]] boot_clock::time_point now() const
    {
        if (!read_time_) return since_boot();
        turn const mine{*this};
        return read_time_();
    }

    /// Returns: the time of the world at which `now()` shows `t`, as far as its clock goes on as it does now.
    [[nodiscard]] boot_clock::time_point when(boot_clock::time_point t) const
    {
        if (t == boot_clock::time_point::max() || t == boot_clock::time_point::min()) return t;
        return clock_.when(since_boot() + (t - now()));
    }

    /// Effects: has `now()` ask `f`; null: the clock that counts since the start.
    void read_time_with(boot_clock::time_point (*f)()) noexcept { read_time_ = f; }

    /// Returns: the process that does something now, on this thread; null where none does.
    [[nodiscard]] static host const* acting() noexcept { return acting_; }

    /// Returns: what its clocks show.
    [[nodiscard]] boot_clock::time_point since_boot() const noexcept { return clock_.at(present()); }
    [[nodiscard]] boot_clock::time_point monotonic() const noexcept { return since_boot() - slept_; }
    [[nodiscard]] boot_clock::time_point time_of_day() const noexcept { return since_boot() + wall_; }

    /// Effects: somebody sets the wall clock.
    void set_wall_clock(boot_clock::duration by) noexcept { wall_ += by; }

    /// Effects: its clocks leap; backwards: they stood still for as long. Requires: nothing is under way that has read a later time.
    void shift_clocks(boot_clock::duration by) noexcept { clock_.ahead += by; }

    /// Effects: the process stands still from its present on.
    void pause(boot_clock::duration d)
    {
        awake_ = present() + d;
        world_.note("stands still, us", index_, event::nobody, static_cast<std::uint64_t>(d.count() / 1000));
    }

    /// Effects: the machine is suspended.
    void sleep(boot_clock::duration d)
    {
        slept_ += d;
        pause(d);
    }

    /// Effects: pauses where the faults of the world say so.
    void stumble()
    {
        if (world_.strikes(decision::kind::pause, index_, decision::nobody, world_.wrong().pause)) pause(world_.severity(world_.wrong().longest_pause));
    }

    /// Returns: a number, of a chance of its own, in [0, bound); 0 where `bound` is 0.
    [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept { return chance_.below(bound); }
    [[nodiscard]] std::uint64_t random() noexcept { return chance_.next(); }
    [[nodiscard]] boot_clock::duration up_to(boot_clock::duration most) noexcept
    {
        return boot_clock::duration{static_cast<boot_clock::rep>(below(static_cast<std::uint64_t>(most.count())))};
    }

    /// Effects: has `f` called in this process at `t`, a time of the world, or when it is awake after that; in the order of the times.
    template <std::invocable F>
    void at(boot_clock::time_point t, F f)
    {
        world_.at(t, [this, f = std::move(f)]() mutable {
            if (!may_step()) return waiting_.push_back(std::move(f));
            turn const mine{*this};
            f();
        });
    }

    /// Returns: what a coroutine awaits to go on at `t`, a time of the world.
    [[nodiscard]] auto sleep_until(boot_clock::time_point t) noexcept
    {
        struct sleep {
            host& process;
            boot_clock::time_point until;
            [[nodiscard]] static bool await_ready() noexcept { return false; }
            void await_suspend(std::coroutine_handle<> sleeper) { process.at(until, [sleeper] { sleeper.resume(); }); }
            static void await_resume() noexcept {}
        };
        return sleep{*this, t};
    }

private:
    /// It is this process that does something.
    class turn {
    public:
        explicit turn(host const& h) noexcept : before_{std::exchange(acting_, &h)} {}
        turn(turn const&) = delete;
        turn& operator=(turn const&) = delete;
        ~turn() { acting_ = before_; }

    private:
        host const* before_;
    };

    [[nodiscard]] bool may_step()
    {
        if (!waiting_.empty()) return false;
        if (world_.now() >= awake_) stumble();
        if (world_.now() >= awake_) return true;
        world_.at(awake_, [this] { wake(); });
        return false;
    }

    void wake()
    {
        while (!waiting_.empty()) {
            if (world_.now() >= awake_) stumble();
            if (world_.now() < awake_) {
                world_.at(awake_, [this] { wake(); });
                return;
            }
            auto next = std::move(waiting_.front());
            waiting_.pop_front();
            turn const mine{*this};
            next();
        }
    }

    sim::world& world_;
    unsigned index_;
    sim::clock clock_;
    holdfast::detail::random_sequence chance_;
    boot_clock::time_point awake_{};
    boot_clock::duration slept_{};
    boot_clock::duration wall_{};
    std::deque<task> waiting_;
    boot_clock::time_point (*read_time_)() = nullptr;
    static inline thread_local host const* acting_ = nullptr;
};

}  // namespace holdfast::sim
