// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <coroutine>
#include <exception>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// A coroutine that runs in a world by itself: from its call to its first `co_await`, then whenever what it awaits has
/// come. Another process may await its end, and gets the exception that ended it. An exception that no process awaited
/// ends the program when this one is destroyed. Destroying it ends it where it stands; the world must not go on after
/// that.
class process {
public:
    struct promise_type {
        process get_return_object() noexcept
        {
            return process{std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() noexcept { thrown = std::current_exception(); }

        auto final_suspend() noexcept
        {
            struct hand_over {
                std::coroutine_handle<> next;
                [[nodiscard]] bool await_ready() const noexcept { return false; }
                [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept
                {
                    return next;
                }
                void await_resume() const noexcept {}
            };
            return hand_over{awaiting};
        }

        std::coroutine_handle<> awaiting = std::noop_coroutine();
        std::exception_ptr thrown;
    };

    /// Effects: takes over the coroutine of `other`, which has none afterwards.
    process(process&& other) noexcept : handle_{std::exchange(other.handle_, {})} {}
    process& operator=(process&&) = delete;

    /// Effects: ends the coroutine where it stands.
    ~process()
    {
        if (!handle_) return;
        if (handle_.promise().thrown) std::terminate();
        handle_.destroy();
    }

    /// Returns: whether it has ended.
    [[nodiscard]] bool done() const noexcept { return handle_.done(); }

    [[nodiscard]] bool await_ready() const noexcept { return done(); }
    void await_suspend(std::coroutine_handle<> waiter) noexcept { handle_.promise().awaiting = waiter; }
    void await_resume() const
    {
        if (auto const e = std::exchange(handle_.promise().thrown, nullptr)) std::rethrow_exception(e);
    }

private:
    explicit process(std::coroutine_handle<promise_type> handle) noexcept : handle_{handle} {}

    std::coroutine_handle<promise_type> handle_;
};

}  // namespace holdfast::sim
