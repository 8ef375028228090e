// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace holdfast::benchmark {

/// Keeps the processors from sleeping: a loop for each, which runs only where nothing else wants to. A processor that sleeps adds tens of µs to
/// each wake-up, the more so in a virtual machine, and hides what a library costs itself.
class awake {
public:
    /// Throws: `std::runtime_error` where the loops would take time from others.
    awake()
    {
        for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
            loops_.emplace_back([this] {
                while (!end_.load(std::memory_order_relaxed)) {}
            });
            sched_param const none{};
            if (::pthread_setschedparam(loops_.back().native_handle(), SCHED_IDLE, &none) != 0) {
                end_ = true;
                throw std::runtime_error{"the system has no SCHED_IDLE"};
            }
        }
    }

    awake(awake const&) = delete;
    awake& operator=(awake const&) = delete;
    ~awake() { end_ = true; }

private:
    std::atomic<bool> end_{false};
    std::vector<std::jthread> loops_;
};

}  // namespace holdfast::benchmark
