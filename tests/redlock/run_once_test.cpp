// SPDX-License-Identifier: MIT
//
// Jobs of several hosts, which ask in the same moment, as cron has them do.
#include "masters.hpp"
#include "support/catch.hpp"

#include <holdfast/adapters/run_once.hpp>
#include <holdfast/redlock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::run_once;
using holdfast::redlock::masters;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::five_masters;

TEST_CASE("of hosts that ask in the same moment one runs the job, also while a master is down")
{
    constexpr std::size_t jobs = 200;
    constexpr std::size_t hosts = 2;
    five_masters fleet;
    fleet.servers[4].kill();
    std::array<std::atomic<int>, jobs> runs{};
    std::array<std::atomic<int>, jobs> undecided{};
    std::atomic<int> other_errors{0};
    std::deque<masters> clients;
    auto urls = fleet.servers.urls();
    for (std::size_t host = 0; host < hosts; ++host) {
        clients.emplace_back(urls, five_masters::options());
        std::reverse(urls.begin(), urls.end());  // each asks its half of the masters first
        CHECK(run_once(clients.back(), "of host " + std::to_string(host), 1h, [] {}, {.ttl = 1h}));  // it connects
    }
    {
        std::barrier together{static_cast<std::ptrdiff_t>(hosts)};
        std::vector<std::jthread> all;
        for (auto& client : clients)
            all.emplace_back([&] {
                for (std::size_t job = 0; job < jobs; ++job) {
                    together.arrive_and_wait();
                    try {
                        static_cast<void>(
                            run_once(client, "job " + std::to_string(job), 1h, [&] { ++runs.at(job); }, {.ttl = 1h}));
                    } catch (holdfast::error const& e) {
                        ++(e.code() == errc::unavailable ? undecided.at(job) : other_errors);
                    }
                }
            });
    }
    int once = 0;
    for (std::size_t job = 0; job < jobs; ++job) {
        CHECK(runs.at(job) <= 1);
        CHECK(runs.at(job) + undecided.at(job) > 0);  // no job is missed without a word
        once += runs.at(job);
    }
    CHECK(once > 0);
    CHECK(other_errors == 0);
}

TEST_CASE("votes that stay split are an error and not a job that another host runs")
{
    five_masters fleet;
    fleet.servers[4].kill();
    masters const client{fleet.servers.urls(), five_masters::options()};
    auto const call = [&](std::string const& job) { return run_once(client, job, 1h, [] {}, {.ttl = 1h}); };
    CHECK(call("another"));  // it connects
    for (std::size_t i = 0; i < 2; ++i) fleet.servers[i].command({"SET", "report", "another host", "PX", "3600000"});
    CHECK(code_of([&] { static_cast<void>(call("report")); }) == errc::unavailable);
    CHECK(eventually([&] { return fleet.copies("report") == 2; }));
    fleet.servers[2].command({"SET", "report", "another host", "PX", "3600000"});
    CHECK_FALSE(call("report"));  // that is a majority
    CHECK(eventually([&] { return fleet.copies("report") == 3; }));
    fleet.servers[3].command({"SET", "report", "another host", "PX", "3600000"});
    CHECK_FALSE(call("report"));
    fleet.servers.command({"DEL", "report"});
    CHECK(call("report"));
}
