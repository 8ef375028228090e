// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <sched.h>

#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

namespace holdfast::benchmark {

/// Keeps the processors from sleeping: a loop for each, which runs only where nothing else wants to. A processor that
/// sleeps adds tens of µs to each wake-up, the more so in a virtual machine, and hides what a library costs itself.
class awake {
public:
    /// Throws: `std::runtime_error` where the loops would take time from others.
    awake()
    {
        for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
            loops_.emplace_back([](std::stop_token const& stop) {
                while (!stop.stop_requested()) {}
            });
            sched_param const none{};
            if (::pthread_setschedparam(loops_.back().native_handle(), SCHED_IDLE, &none) != 0)
                throw std::runtime_error{"the system has no SCHED_IDLE"};
        }
    }

private:
    std::vector<std::jthread> loops_;
};

}  // namespace holdfast::benchmark
