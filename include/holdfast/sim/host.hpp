// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/world.hpp>

#include <algorithm>
#include <concepts>
#include <coroutine>
#include <deque>
#include <functional>
#include <utility>

namespace holdfast::sim {

/// A process of a user on a computer of its own, which may stand still at any time: stopped, swapped out, collecting garbage, its machine
/// asleep. Its clock runs on, what it has sent goes on, and what is for it waits.
class host {
public:
    host(sim::world& w, unsigned index, sim::clock c) : world_{w}, index_{index}, clock_{c} {}

    host(host const&) = delete;
    host& operator=(host const&) = delete;

    [[nodiscard]] sim::world& world() const noexcept { return world_; }
    [[nodiscard]] unsigned index() const noexcept { return index_; }
    [[nodiscard]] sim::clock const& clock() const noexcept { return clock_; }

    /// Returns: the time of the world in which this process does what it does now. It is later than the world's when the process was
    /// paused in the middle of a step.
    [[nodiscard]] boot_clock::time_point present() const noexcept { return std::max(world_.now(), awake_); }

    /// Returns: what the clock of this process shows.
    [[nodiscard]] boot_clock::time_point now() const noexcept { return clock_.at(present()); }

    /// Effects: the process stands still from its present on.
    void pause(boot_clock::duration d)
    {
        awake_ = present() + d;
        ++world_.happened().pauses;
        world_.note("pause", index_, event::nobody, static_cast<std::uint64_t>(d.count()));
    }

    /// Effects: pauses where the faults of the world say so.
    void stumble()
    {
        if (world_.happens(world_.wrong().pause)) pause(world_.between({}, world_.wrong().longest_pause));
    }

    /// Effects: has `f` called in this process at `t`, a time of the world, or when it is awake after that; in the order of the times.
    template <std::invocable F>
    void at(boot_clock::time_point t, F f)
    {
        world_.at(t, [this, f = std::move(f)]() mutable {
            if (may_step())
                f();
            else
                waiting_.push_back(std::move(f));
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
            auto const next = std::move(waiting_.front());
            waiting_.pop_front();
            next();
        }
    }

    sim::world& world_;
    unsigned index_;
    sim::clock clock_;
    boot_clock::time_point awake_{};
    std::deque<std::function<void()>> waiting_;
};

}  // namespace holdfast::sim
