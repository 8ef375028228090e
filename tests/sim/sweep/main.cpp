// SPDX-License-Identifier: MIT
//
// Runs the shipped Redis protocol through many schedules of faults in virtual time. Exit status 1: a guarantee was broken; the seed that
// is printed shows how, again and again: sweep --seed N.
#include "scenario.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

using namespace holdfast;

namespace {

struct totals {
    std::uint64_t schedules = 0;
    std::uint64_t acquired = 0;
    std::uint64_t renewed = 0;
    std::uint64_t lost = 0;
    std::uint64_t refused = 0;
    std::uint64_t idle = 0;
    std::uint64_t hash = 0;
    sim::fault_count happened;

    void add(test::verdict const& v)
    {
        ++schedules;
        acquired += v.acquired;
        renewed += v.renewed;
        lost += v.lost;
        refused += v.refused;
        if (v.acquired < 5) ++idle;
        hash = hash * 0x9fb21c651e98df25U + v.hash;
        happened += v.happened;
    }

    void print(double seconds) const
    {
        std::printf("%lu schedules in %.1f s: %.0f a second\n", schedules, seconds, static_cast<double>(schedules) / seconds);
        std::printf("%lu acquired, %lu renewed, %lu lost, %lu not acquired; %lu schedules with fewer than 5 acquired\n", acquired, renewed, lost,
                    refused, idle);
        std::printf("faults: %lu late, %lu requests and %lu replies lost, %lu repeated, %lu cuts, %lu reports lost, %lu pauses, %lu crashes, "
                    "%lu memories lost, %lu hangs, %lu votes refused\n",
                    happened.late, happened.lost_requests, happened.lost_replies, happened.repeated_requests, happened.cuts,
                    happened.lost_reports, happened.pauses, happened.crashes, happened.memories_lost, happened.hangs, happened.votes_refused);
        std::printf("hash %016lx\n", hash);
    }

    /// Returns: whether so much happened that a breach would have shown.
    [[nodiscard]] bool tells_something() const
    {
        auto const& h = happened;
        auto const often = [this](std::uint64_t n) { return n >= schedules / 20; };
        return acquired >= 5 * schedules && renewed >= schedules && idle <= schedules / 5 && often(h.late) && often(h.lost_requests) &&
               often(h.lost_replies) && often(h.repeated_requests) && often(h.cuts) && often(h.lost_reports) && often(h.pauses) &&
               often(h.crashes) && often(h.memories_lost) && often(h.hangs) && often(h.votes_refused);
    }
};

void print_event(sim::event const& e)
{
    static auto const begin = e.when;
    auto const name = [](unsigned index) { return index == sim::event::nobody ? std::string{"-"} : std::to_string(index); };
    std::printf("%12.6f ms  client %s  node %s  %-14.*s %lu\n", std::chrono::duration<double, std::milli>{e.when - begin}.count(),
                name(e.client).c_str(), name(e.node).c_str(), static_cast<int>(e.what.size()), e.what.data(), e.value);
}

}  // namespace

int main(int argc, char** argv)
{
    std::uint64_t seeds = 20'000;
    std::uint64_t first = 1;
    std::uint64_t one = 0;
    unsigned nodes = 0;
    CLI::App app{"Simulates clients of a lock on one or several Redis servers while things go wrong"};
    app.add_option("--seeds", seeds, "How many schedules to run");
    app.add_option("--first", first, "The seed of the first");
    app.add_option("--seed", one, "Run this one, and print what happens");
    app.add_option("--nodes", nodes, "How many servers; 0: each seed decides")->check(CLI::Range(0U, 7U));
    CLI11_PARSE(app, argc, argv);

    if (one != 0) {
        auto const v = test::run_schedule(one, nodes, print_event);
        std::printf("%s", v.plan.c_str());
        for (auto const& b : v.breaches) std::printf("seed %lu: %s\n", one, b.c_str());
        std::printf("%lu acquired, hash %016lx\n", v.acquired, v.hash);
        return v.breaches.empty() ? 0 : 1;
    }
    totals sum;
    auto const begin = std::chrono::steady_clock::now();
    for (auto seed = first; seed < first + seeds; ++seed) {
        auto const v = test::run_schedule(seed, nodes);
        sum.add(v);
        for (auto const& b : v.breaches) std::printf("seed %lu: %s\n", seed, b.c_str());
        if (!v.breaches.empty()) return 1;
    }
    sum.print(std::chrono::duration<double>{std::chrono::steady_clock::now() - begin}.count());
    if (seeds >= 1000 && nodes == 0 && !sum.tells_something()) {
        std::puts("too little happened for this to mean anything");
        return 1;
    }
    return 0;
}
