// SPDX-License-Identifier: MIT
//
// Soaks of one Redis and of five masters.
#include "rows.hpp"

#include "soak.hpp"

#include "../network.hpp"

#include <support/proxy.hpp>
#include <support/redis_server.hpp>

#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

namespace holdfast::faults {

using namespace std::chrono_literals;

void soak_redis(run_options const& run, findings& to)
{
    test::redis_server server;
    test::proxy way{server.port()};
    place const where{.servers = {way.url()}, .ttl = 600ms, .operation_timeout = 150ms};
    soak all{run, to, {.ways_there = {where}, .freed_within = where.ttl + 100ms, .faults = {
        {"connections cut", [&](auto) { way.cut_all(); }},
        {"no answers", [&](auto length) {
            way.blackhole();
            std::this_thread::sleep_for(length / 2);
            way.pass();
            way.cut_all();
        }},
        {"slow network", [&](auto length) {
            way.delay(20ms, 20ms);
            std::this_thread::sleep_for(length);
            way.delay(0ms, 0ms);
        }},
        {"server stopped", [&](auto length) {
            server.pause();
            std::this_thread::sleep_for(length);
            server.resume();
        }},
    }}};
    all.go();
    all.judge();
    to.check("K7", check_remains(remains_on(server, 2 * where.ttl + 10s, waiters::killed)));
}

void soak_redlock(run_options const& run, findings& to)
{
    test::redis_fleet servers{5};
    std::vector<std::uint16_t> ports;
    for (auto const& one : servers) ports.push_back(one.port());
    ways network{ports, run.own_network};
    place const where{.what = place::store::redlock,
                      .servers = network.urls(),
                      .ttl = 1000ms,
                      .operation_timeout = 150ms,
                      .restart_guard = 1000ms};
    std::mt19937_64 random{run.seed};
    soak all{run,
             to,
             {.ways_there = {where},
              .freed_within = where.ttl + 100ms,
              .whom = refused_by::holder_or_contender,
              .faults = {
                  {"a master killed",
                   [&](auto length) {
                       auto const i = random() % 5;
                       servers.kill(i);
                       std::this_thread::sleep_for(length / 2);
                       servers.restart(i);
                   }},
                  {"a master stopped",
                   [&](auto length) {
                       auto const i = random() % 5;
                       servers.pause(i);
                       std::this_thread::sleep_for(length);
                       servers.resume(i);
                   }},
                  {"two masters cut off",
                   [&](auto length) {
                       auto const i = random() % 5;
                       network.cut(i);
                       network.cut((i + 1) % 5);
                       std::this_thread::sleep_for(length);
                       network.mend(i);
                       network.mend((i + 1) % 5);
                   }},
              }}};
    all.go();
    all.judge();
    for (auto& one : servers) to.check("K7", check_remains(remains_on(one, 2 * where.ttl + 10s, waiters::killed)));
}

}  // namespace holdfast::faults
