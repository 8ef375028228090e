// SPDX-License-Identifier: MIT
//
// Processes that want one lock, each again and again, for some seconds.
#pragma once

#include "support/connection.hpp"
#include "support/process.hpp"
#include "support/shared.hpp"

#include <semaphore.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::benchmark {

inline constexpr std::size_t most_processes = 64;

struct crowd_options {
    unsigned processes = 2;
    std::chrono::microseconds section{0};
    std::chrono::milliseconds time{3000};
    bool in_turn = false;  ///< one process after the other: none waits at the servers
    std::vector<std::uint16_t> servers{};
};

/// What a lock is to a process of a crowd.
struct contender {
    std::function<void()> lock;
    std::function<void()> unlock;
};

struct crowd_result {
    double sections = 0;  ///< a second
    double jain = 0;      ///< 1: all had as many; 1/n: one had all
    double longest = 0;   ///< the longest wait, in seconds
    double mean = 0;      ///< the mean time from one section of a process to its next, in seconds
    double requests = 0;  ///< scripts that a server ran for a section
};

/// Returns: what it comes to that processes had so many sections, and waited so long.
inline crowd_result sum_up(std::vector<double> const& sections, double longest, double seconds)
{
    crowd_result r{.longest = longest};
    double sum = 0;
    double squares = 0;
    for (auto const n : sections) {
        sum += n;
        squares += n * n;
    }
    auto const count = static_cast<double>(sections.size());
    r.sections = sum / seconds;
    r.jain = squares > 0 ? sum * sum / (count * squares) : 0;
    r.mean = sum > 0 ? count * seconds / sum : seconds;
    return r;
}

/// Returns: how many scripts the servers have run.
inline double scripts_of(std::vector<std::uint16_t> const& servers)
{
    long all = 0;
    for (auto const port : servers) {
        test::connection server{port};
        auto const info = server({"INFO", "commandstats"}).text;
        for (std::string const field : {"cmdstat_evalsha:calls=", "cmdstat_eval:calls="}) {
            auto const at = info.find(field);
            long one = 0;
            if (at != std::string::npos)
                std::from_chars(info.data() + at + field.size(), info.data() + info.size(), one);
            all += one;
        }
    }
    return static_cast<double>(all);
}

/// Effects: forks the processes; each calls `make(i)`, and has the lock once before the time begins.
inline crowd_result run_crowd(crowd_options const& o, std::function<contender(unsigned)> const& make)
{
    using clock = std::chrono::steady_clock;
    struct seat {
        std::atomic<std::uint64_t> sections{0};
        std::atomic<std::int64_t> longest{0};
        ::sem_t turn{};
    };
    struct board {
        std::atomic<unsigned> ready{0};
        std::atomic<bool> go{false};
        std::atomic<bool> stop{false};
        std::array<seat, most_processes> seats{};
    };
    test::shared<board> all;
    for (auto& one : all->seats) ::sem_init(&one.turn, 1, 0);
    std::vector<test::child> processes;
    for (unsigned i = 0; i < o.processes; ++i)
        processes.push_back(test::child::fork([&, i]() -> int {
            auto const mine = make(i);
            auto& seat = all->seats[i];
            mine.lock();
            mine.unlock();
            ++all->ready;
            while (!all->go) std::this_thread::sleep_for(std::chrono::milliseconds{1});
            while (!all->stop) {
                if (o.in_turn) ::sem_wait(&seat.turn);
                auto const begun = clock::now();
                mine.lock();
                auto const waited = (clock::now() - begun).count();
                if (o.section.count() > 0) std::this_thread::sleep_for(o.section);
                mine.unlock();
                if (!all->stop) ++seat.sections;
                seat.longest = std::max<std::int64_t>(seat.longest, waited);
                if (o.in_turn) ::sem_post(&all->seats[(i + 1) % o.processes].turn);
            }
            return 0;
        }));
    for (auto const limit = clock::now() + std::chrono::minutes{1}; all->ready < o.processes;) {
        if (clock::now() > limit) throw std::runtime_error{"the crowd does not come together"};
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    auto const before = scripts_of(o.servers);
    auto const begun = clock::now();
    all->go = true;
    if (o.in_turn) ::sem_post(&all->seats[0].turn);
    std::this_thread::sleep_for(o.time);
    all->stop = true;
    std::chrono::duration<double> const seconds = clock::now() - begun;
    auto const scripts = scripts_of(o.servers) - before;
    for (auto& one : all->seats) ::sem_post(&one.turn);
    for (auto& one : processes)
        if (one.wait_for(std::chrono::minutes{1}) != 0) throw std::runtime_error{"a process of the crowd failed"};

    std::vector<double> sections;
    std::int64_t longest = 0;
    for (unsigned i = 0; i < o.processes; ++i) {
        sections.push_back(static_cast<double>(all->seats[i].sections.load()));
        longest = std::max(longest, all->seats[i].longest.load());
    }
    auto r = sum_up(sections, static_cast<double>(longest) * 1e-9, seconds.count());
    r.requests = scripts / std::max(1.0, r.sections * seconds.count()) / static_cast<double>(o.servers.size());
    return r;
}

}  // namespace holdfast::benchmark
