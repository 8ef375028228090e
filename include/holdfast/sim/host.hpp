// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
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

namespace holdfast::inline HOLDFAST_ABI::sim {

/// A process of a user on a computer of its own. It may stand still at any time: stopped, swapped out, collecting
/// garbage, its machine asleep. Its clock then runs on, what it has sent goes on, and what is for it waits.
///
/// It has the clocks of a computer: one counts since the computer was started, one does not count while the machine is
/// suspended, and one shows the time of day, which people set. With `read_time_with(f)`, `now()` calls `f`, which may
/// ask `acting()` for any of these clocks: so the code that chooses a clock runs in the simulation, too.
class host {
public:
    host(sim::world& w, unsigned index, sim::clock c)
        : world_{w}, index_{index}, clock_{c}, chance_{w.seed() ^ (std::uint64_t{index + 1} << 32U)}
    {
    }

    host(host const&) = delete;
    host& operator=(host const&) = delete;

    [[nodiscard]] sim::world& world() const noexcept { return world_; }
    [[nodiscard]] unsigned index() const noexcept { return index_; }
    [[nodiscard]] sim::clock const& clock() const noexcept { return clock_; }

    /// Returns: the time of the world at which this process acts now. It is later than the world's if the process was
    /// paused in the middle of a step.
    [[nodiscard]] boot_clock::time_point present() const noexcept { return std::max(world_.now(), awake_); }

    /// Returns: until when it last stood still, in the time of the world; that may be in the future.
    [[nodiscard]] boot_clock::time_point awake_since() const noexcept { return awake_; }

    /// Returns: what time it is for this process.
    [[nodiscard]] boot_clock::time_point now() const
    {
        if (!read_time_) return since_boot();
        turn const mine{*this};
        return read_time_();
    }

    /// Returns: the time of the world at which `now()` shows `t`, if its clock goes on as it does now.
    [[nodiscard]] boot_clock::time_point when(boot_clock::time_point t) const
    {
        if (t == boot_clock::time_point::max() || t == boot_clock::time_point::min()) return t;
        return clock_.when(since_boot() + (t - now()));
    }

    /// Effects: `now()` calls `f` from now on; null: the clock that counts since the start.
    void read_time_with(boot_clock::time_point (*f)()) noexcept { read_time_ = f; }

    /// Returns: the process that acts now on this thread; null if none does.
    [[nodiscard]] static host const* acting() noexcept { return acting_; }

    /// Returns: what its clocks show.
    [[nodiscard]] boot_clock::time_point since_boot() const noexcept { return clock_.at(present()); }
    [[nodiscard]] boot_clock::time_point monotonic() const noexcept { return since_boot() - slept_; }
    [[nodiscard]] boot_clock::time_point time_of_day() const noexcept { return since_boot() + wall_; }

    /// Effects: sets the wall clock.
    void set_wall_clock(boot_clock::duration by) noexcept { wall_ += by; }

    /// Effects: its clocks leap; backwards: as if they had stood still for as long. Requires: nothing pending has read
    /// a later time.
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

    /// Effects: pauses if the faults of the world say so.
    void stumble()
    {
        if (world_.strikes(decision::kind::pause, index_, decision::nobody, world_.wrong().pause))
            pause(world_.severity(world_.wrong().longest_pause));
    }

    /// Returns: a number in [0, bound), from randomness of its own; 0 if `bound` is 0.
    [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept { return chance_.below(bound); }
    [[nodiscard]] std::uint64_t random() noexcept { return chance_.next(); }
    [[nodiscard]] boot_clock::duration up_to(boot_clock::duration most) noexcept
    {
        return boot_clock::duration{static_cast<boot_clock::rep>(below(static_cast<std::uint64_t>(most.count())))};
    }

    /// Effects: calls `f` in this process at `t`, a time of the world, or when it is awake after that; in the order of
    /// the times.
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
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<> sleeper) { process.at(until, [sleeper] { sleeper.resume(); }); }
            void await_resume() const noexcept {}
        };
        return sleep{*this, t};
    }

private:
    /// Makes a process the one that acts.
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
