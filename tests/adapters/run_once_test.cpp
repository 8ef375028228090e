// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/adapters/run_once.hpp>
#include <holdfast/memory.hpp>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::run_once;
using holdfast::memory::store;

TEST_CASE("a job runs once in a period, whichever client asks, and again after it")
{
    store here;
    store there = here.another_client();
    int runs = 0;
    CHECK(run_once(here, "report", 1h, [&] { ++runs; }));
    CHECK_FALSE(run_once(here, "report", 1h, [&] { ++runs; }));
    CHECK_FALSE(run_once(there, "report", 1h, [&] { ++runs; }));
    CHECK(run_once(there, "another report", 1h, [] {}));
    CHECK(runs == 1);
    auto const begun = boot_clock::now();
    CHECK(run_once(here, "brief report", 1s, [&] { ++runs; }));
    while (!run_once(there, "brief report", 1s, [&] { ++runs; })) std::this_thread::sleep_for(10ms);
    CHECK(boot_clock::now() - begun >= 1s);
    CHECK(runs == 3);
}

TEST_CASE("a job that fails may run again at once")
{
    store here;
    store there = here.another_client();
    CHECK_THROWS_AS(run_once(here, "report", 1h, [] { throw std::runtime_error{"no paper"}; }), std::runtime_error);
    CHECK(run_once(there, "report", 1h, [] {}));
    CHECK_FALSE(run_once(here, "report", 1h, [] {}));
}

TEST_CASE("a job knows its lease")
{
    store here;
    CHECK(run_once(here, "report", 1ms, [](holdfast::lease const& l) {
        CHECK(l.still_held());
        CHECK(l.fencing_token() != 0);
    }));
}

TEST_CASE("of many that want to run a job at the same time one does")
{
    store here;
    std::atomic<int> runs{0};
    std::vector<std::jthread> all;
    for (int i = 0; i < 8; ++i)
        all.emplace_back([&] {
            auto const mine = here.another_client();
            static_cast<void>(run_once(mine, "report", 1h, [&] { ++runs; }));
        });
    all.clear();
    CHECK(runs == 1);
}

TEST_CASE("a period for which no lease can be had is refused")
{
    store here;
    CHECK_THROWS_AS(run_once(here, "report", 48h, [] {}), holdfast::error);
}
