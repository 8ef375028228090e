// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/sim/host.hpp>

#include <coroutine>
#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// Starts an operation in a simulated process, and waits for it: `operation.start(call); auto const at = co_await
/// call.ended_by(until);`
class call final : public completion {
public:
    explicit call(host& process) : state_{std::make_shared<state>(state{process})} {}
    call(call const&) = delete;
    call& operator=(call const&) = delete;
    ~call() { state_->waiter = {}; }

    void complete() noexcept override
    {
        state_->ended = true;
        state_->ended_at = state_->process.present();
        if (state_->waiter) state_->process.at(state_->ended_at, [s = state_] { s->resume(); });
    }

    [[nodiscard]] bool ended() const noexcept { return state_->ended; }

    /// Effects: runs the world until the operation has ended, or this process's clock has come to `t`. Must not be
    /// called from inside the world.
    /// Returns: whether the operation has ended.
    bool run_until(boot_clock::time_point t)
    {
        auto const end = state_->process.when(t);
        while (!ended() && state_->process.world().step(end)) {
        }
        return ended();
    }

    /// Returns: what a coroutine awaits to go on when the operation has ended, or at `until`, a time of the world. It
    /// yields when the operation ended, in the time of the world.
    [[nodiscard]] auto ended_by(boot_clock::time_point until = boot_clock::time_point::max())
    {
        struct awaiter {
            std::shared_ptr<state> of;
            boot_clock::time_point until;

            [[nodiscard]] bool await_ready() const noexcept { return of->ended; }
            void await_suspend(std::coroutine_handle<> handle)
            {
                of->waiter = handle;
                if (until != boot_clock::time_point::max()) of->process.at(until, [s = of] { s->resume(); });
            }
            boot_clock::time_point await_resume() const noexcept
            {
                return of->ended ? of->ended_at : of->process.present();
            }
        };
        return awaiter{state_, until};
    }

private:
    struct state {
        host& process;
        bool ended = false;
        boot_clock::time_point ended_at{};
        std::coroutine_handle<> waiter{};

        void resume()
        {
            if (auto const one = std::exchange(waiter, {})) one.resume();
        }
    };

    std::shared_ptr<state> state_;
};

}  // namespace holdfast::sim
