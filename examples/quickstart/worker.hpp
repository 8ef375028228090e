// SPDX-License-Identifier: MIT
#pragma once

#include "board.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace quickstart {

struct worker_settings {
    std::vector<std::string> masters;
    std::string zookeeper{};  ///< where it is not empty, the lock is there and not on the masters
    std::string lock;
    std::chrono::milliseconds ttl{2000};
    std::chrono::milliseconds restart_guard{60'000};  ///< of the masters, the same for all workers
    std::chrono::milliseconds unavailable_after{
        10'000};          ///< a worker gives up when no server could be asked for that long
    bool guarded = true;  ///< false: each worker has a lock of its own, which guards nothing
};

/// Throws: `holdfast::error` where a worker could not even begin; no I/O.
void check(worker_settings const& settings);

/// Effects: one section after the other until it is told to stop.
/// Returns: the exit status of the process. What went wrong is in the worker's journal.
int work(unsigned me, worker_settings const& settings, board& shared);

}  // namespace quickstart
