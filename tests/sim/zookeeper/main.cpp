// SPDX-License-Identifier: MIT
//
// Runs the shipped machines of a lock on ZooKeeper through many schedules. Exit status 1: a guarantee was broken; the
// seed that is printed shows how, again and again. 3: so little happened that it means nothing.
#include "schedule.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

int main(int argc, char** argv)
{
    std::uint64_t seeds = 20'000;
    if (argc == 3 && std::string_view{argv[1]} == "--seeds") seeds = std::strtoull(argv[2], nullptr, 10);
    holdfast::test::zookeeper_verdict sum;
    auto const begin = std::chrono::steady_clock::now();
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        auto const v = holdfast::test::run_zookeeper_schedule(seed);
        for (auto const& b : v.breaches) std::printf("seed %lu: %s\n", seed, b.c_str());
        if (!v.breaches.empty()) return 1;
        sum.acquired += v.acquired;
        sum.given_up += v.given_up;
        sum.lost_answers += v.lost_answers;
        sum.expired += v.expired;
        sum.abandoned += v.abandoned;
        sum.collected += v.collected;
        sum.exhausted += v.exhausted;
        sum.refused += v.refused;
        sum.beside += v.beside;
        sum.converted += v.converted;
        sum.not_converted += v.not_converted;
        sum.hash = sum.hash * 0x9fb21c651e98df25U + v.hash;
    }
    auto const seconds = std::chrono::duration<double>{std::chrono::steady_clock::now() - begin}.count();
    std::printf("%lu schedules in %.1f s: %.0f a second\n", seeds, seconds, static_cast<double>(seeds) / seconds);
    std::printf(
        "%lu acquired, %lu given up, %lu answers lost, %lu sessions ended, %lu given up, %lu collections, %lu nodes of an exhausted sequence, %lu without a right\n%lu readers beside others, %lu converted, %lu not\nhash %016lx\n",
        sum.acquired, sum.given_up, sum.lost_answers, sum.expired, sum.abandoned, sum.collected, sum.exhausted,
        sum.refused, sum.beside, sum.converted, sum.not_converted, sum.hash);
    bool const enough = sum.acquired > 5 * seeds && sum.given_up > seeds / 2 && sum.lost_answers > seeds &&
                        sum.expired > seeds / 2 && sum.abandoned > seeds / 2 && sum.collected > seeds / 2 &&
                        sum.exhausted > seeds / 2 && sum.refused > seeds / 2 && sum.beside > seeds / 2 &&
                        sum.converted > seeds / 2 && sum.not_converted > seeds / 2;
    if (!enough) std::puts("too little happened for this to mean anything");
    return enough ? 0 : 3;
}
