// SPDX-License-Identifier: MIT
//
// Processes that want one lock, each again and again, for some seconds.
#pragma once

#include "support/connection.hpp"
#include "support/process.hpp"
#include "support/shared.hpp"

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <semaphore.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::benchmark {

inline constexpr std::size_t most_processes = 128;

/// What a lock is to a process of a crowd.
struct contender {
    std::function<void()> lock;
    std::function<void()> unlock;
    std::function<void()> keep;  ///< keeps alive what the others use
};

struct crowd_options {
    unsigned processes = 2;
    std::chrono::microseconds section{0};
    std::chrono::milliseconds time{3000};
    bool in_turn = false;  ///< one process after the other: nobody waits at the servers
    std::vector<std::uint16_t> servers{};
};

struct crowd_result {
    double sections = 0;      ///< a second
    double jain = 0;          ///< 1: all had as many; 1/n: one had all
    double longest_wait = 0;  ///< seconds
    double mean_wait = 0;     ///< seconds
    double requests = 0;      ///< a section and server: scripts and commands
    unsigned without = 0;     ///< processes that had none
};

/// Effects: forks the processes; each calls `make(i)` first, and has the lock once before the time begins.
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
                if (!all->stop) seat.sections += 1;
                if (waited > seat.longest) seat.longest = waited;
                if (o.in_turn) ::sem_post(&all->seats[(i + 1) % o.processes].turn);
            }
            return 0;
        }));
    auto const limit = clock::now() + std::chrono::seconds{60};
    while (all->ready < o.processes) {
        if (clock::now() > limit) throw std::runtime_error{"the crowd does not come together"};
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    auto const requests = [&] {
        long n = 0;
        for (auto const port : o.servers) {
            test::connection server{port};
            auto const info = server({"INFO", "commandstats"}).text;
            for (auto const* const command : {"evalsha", "eval", "set", "blpop"}) {
                // Those of scripts are counted, too: only rivals without scripts send `set`.
                if (std::string{command} == "set" || std::string{command} == "blpop") continue;
                auto const field = "cmdstat_" + std::string{command} + ":calls=";
                auto const at = info.find(field);
                long one = 0;
                if (at != std::string::npos)
                    std::from_chars(info.data() + at + field.size(), info.data() + info.size(), one);
                n += one;
            }
        }
        return n;
    };
    auto const before = requests();
    auto const begun = clock::now();
    all->go = true;
    if (o.in_turn) ::sem_post(&all->seats[0].turn);
    std::this_thread::sleep_for(o.time);
    all->stop = true;
    double const seconds = std::chrono::duration<double>(clock::now() - begun).count();
    auto const asked = requests() - before;
    for (auto& one : all->seats) ::sem_post(&one.turn);
    for (auto& one : processes)
        if (one.wait_for(std::chrono::seconds{60}) != 0) throw std::runtime_error{"a process of the crowd failed"};

    crowd_result r;
    double sum = 0;
    double squares = 0;
    for (unsigned i = 0; i < o.processes; ++i) {
        auto const n = static_cast<double>(all->seats[i].sections.load());
        sum += n;
        squares += n * n;
        r.without += n == 0 ? 1 : 0;
        r.longest_wait = std::max(r.longest_wait, static_cast<double>(all->seats[i].longest.load()) * 1e-9);
    }
    r.sections = sum / seconds;
    r.jain = squares > 0 ? sum * sum / (o.processes * squares) : 0;
    r.mean_wait = sum > 0 ? o.processes * seconds / sum : seconds;
    r.requests = sum > 0 ? static_cast<double>(asked) / sum / static_cast<double>(o.servers.size()) : 0;
    return r;
}

}  // namespace holdfast::benchmark
