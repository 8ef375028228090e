// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace holdfast::sim {

/// A coroutine that runs in a world by itself: from where it is called to its first `co_await`, then whenever what it awaits has come.
/// Another one may await its end. Destroying it ends it where it stands; the world must not go on after that.
class process {
public:
    struct promise_type {
        process get_return_object() noexcept { return process{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        static std::suspend_never initial_suspend() noexcept { return {}; }
        static void return_void() noexcept {}
        [[noreturn]] static void unhandled_exception() noexcept { std::terminate(); }

        auto final_suspend() noexcept
        {
            struct hand_over {
                std::coroutine_handle<> next;
                [[nodiscard]] static bool await_ready() noexcept { return false; }
                [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept { return next; }
                static void await_resume() noexcept {}
            };
            return hand_over{awaiting};
        }

        std::coroutine_handle<> awaiting = std::noop_coroutine();
    };

    process(process&& other) noexcept : handle_{std::exchange(other.handle_, {})} {}
    process& operator=(process&&) = delete;

    ~process()
    {
        if (handle_) handle_.destroy();
    }

    /// Returns: whether it has come to its end.
    [[nodiscard]] bool done() const noexcept { return handle_.done(); }

    [[nodiscard]] bool await_ready() const noexcept { return done(); }
    void await_suspend(std::coroutine_handle<> waiter) noexcept { handle_.promise().awaiting = waiter; }
    static void await_resume() noexcept {}

private:
    explicit process(std::coroutine_handle<promise_type> handle) noexcept : handle_{handle} {}

    std::coroutine_handle<promise_type> handle_;
};

}  // namespace holdfast::sim
