// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace holdfast::sim {

/// A coroutine that runs in a world by itself: from where it is called to its first `co_await`, then whenever what it awaits has come.
/// Destroying it ends it where it stands; the world must not go on after that.
class process {
public:
    struct promise_type {
        process get_return_object() noexcept { return process{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        static std::suspend_never initial_suspend() noexcept { return {}; }
        static std::suspend_always final_suspend() noexcept { return {}; }
        static void return_void() noexcept {}
        [[noreturn]] static void unhandled_exception() noexcept { std::terminate(); }
    };

    process(process&& other) noexcept : handle_{std::exchange(other.handle_, {})} {}
    process& operator=(process&&) = delete;

    ~process()
    {
        if (handle_) handle_.destroy();
    }

    /// Returns: whether it has come to its end.
    [[nodiscard]] bool done() const noexcept { return handle_.done(); }

private:
    explicit process(std::coroutine_handle<promise_type> handle) noexcept : handle_{handle} {}

    std::coroutine_handle<promise_type> handle_;
};

}  // namespace holdfast::sim
