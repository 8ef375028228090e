// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::benchmark {

/// Threads that repeat one thing for a while, then another. They are made once, so that both contenders run on the same
/// ones.
class crew {
public:
    explicit crew(unsigned size) : gate_{static_cast<std::ptrdiff_t>(size) + 1}
    {
        for (unsigned i = 0; i < size; ++i) threads_.emplace_back([this, i] { serve(i); });
    }

    crew(crew const&) = delete;
    crew& operator=(crew const&) = delete;

    ~crew()
    {
        once_ = nullptr;
        gate_.arrive_and_wait();
    }

    /// Effects: every thread calls `once(i)`, where `i` is its number, again and again for as long as `slice`.
    /// Returns: calls per second, of all threads together.
    /// Throws: what a call threw.
    double rate(std::function<void(unsigned)> once, std::chrono::milliseconds slice)
    {
        once_ = std::move(once);
        calls_ = 0;
        stop_ = false;
        gate_.arrive_and_wait();
        auto const before = std::chrono::steady_clock::now();
        std::this_thread::sleep_for(slice);
        stop_ = true;
        gate_.arrive_and_wait();
        std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - before;
        if (auto const e = std::exchange(thrown_, nullptr)) std::rethrow_exception(e);
        return static_cast<double>(calls_.load()) / taken.count();
    }

    /// Returns: whether the slice is over.
    [[nodiscard]] bool stopping() const noexcept { return stop_.load(std::memory_order_relaxed); }

    /// Returns: how many calls the last slice had.
    [[nodiscard]] long long calls() const noexcept { return calls_; }

private:
    void serve(unsigned number)
    {
        for (;;) {
            gate_.arrive_and_wait();
            if (!once_) return;
            long long calls = 0;
            try {
                for (; !stopping(); ++calls) once_(number);
            } catch (...) {
                std::scoped_lock guard{mutex_};
                thrown_ = std::current_exception();
            }
            calls_ += calls;
            gate_.arrive_and_wait();
        }
    }

    std::function<void(unsigned)> once_;
    std::atomic<bool> stop_{false};
    std::atomic<long long> calls_{0};
    std::mutex mutex_;
    std::exception_ptr thrown_;
    std::barrier<> gate_;
    std::vector<std::jthread> threads_;
};

}  // namespace holdfast::benchmark
