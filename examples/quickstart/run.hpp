// SPDX-License-Identifier: MIT
#pragma once

#include "board.hpp"
#include "progress.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace quickstart {

struct run_settings {
    std::chrono::seconds length{10};
    std::vector<std::string> masters{};  ///< none: five are started, and two of them killed
    std::optional<std::string>
        zookeeper{};  ///< a lock on these servers instead; empty: three are started, and their leaders killed
    std::chrono::milliseconds restart_guard{60'000};  ///< of your own masters
    bool guarded = true;
};

struct fault {
    time_point at;
    std::string label{};  ///< "master 1 killed"
};

/// What was done to the workers, and when.
struct history {
    time_point begin;
    time_point end;
    std::size_t masters = 0;
    std::string kind = "Redis master";  ///< what a master is
    std::chrono::milliseconds ttl{};
    std::vector<fault> faults{};
    unsigned stopped_worker = nobody;
    time_point stopped{};
};

/// Effects: SIGINT, SIGTERM and the like are kept until `run` asks for them: nothing is left behind on the way out.
void defer_interrupts();

/// Effects: runs servers, workers and faults; when it returns or throws no process of them is left.
/// Returns: nothing where it was interrupted.
/// Throws: `std::runtime_error` where a server or a worker failed; `holdfast::error` where a setting cannot be used.
std::optional<history> run(run_settings const& settings, board& shared, progress& out);

}  // namespace quickstart
