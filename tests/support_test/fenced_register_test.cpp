// SPDX-License-Identifier: MIT
#include "../support/catch.hpp"
#include "../support/fenced_register.hpp"
#include "../support/process.hpp"
#include "../support/shared.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using namespace holdfast::test;
using namespace std::chrono_literals;

TEST_CASE("the register takes no token below the greatest, and counts what it takes")
{
    fenced_register<8> r;
    CHECK(r.write(5) == 1);
    CHECK(r.write(5) == 2);
    CHECK(r.write(4) == 0);
    CHECK(r.write(7) == 3);
    CHECK(r.write(6) == 0);
    CHECK(r.write_unchecked(6) == 4);
}

TEST_CASE("the register takes reads in any order, none below a write, and no write below a read")
{
    fenced_register<8> r;
    CHECK(r.read(3) == 1);
    CHECK(r.read(2) == 2);
    CHECK(r.write(2) == 0);
    CHECK(r.write(5) == 3);
    CHECK(r.read(4) == 0);
    CHECK(r.read(9) == 4);
    CHECK(r.read(6) == 5);
    CHECK(r.write(8) == 0);
    CHECK(r.write(10) == 6);
    CHECK(r.read(9) == 0);
}

TEST_CASE("a register that is full says so")
{
    fenced_register<2> r;
    CHECK(r.write(1) == 1);
    CHECK(r.write(1) == 2);
    CHECK_THROWS_AS(r.write(1), std::length_error);
}

TEST_CASE("turns are given once each, in the order of tokens, by threads and a process that is killed amidst them")
{
    struct area {
        fenced_register<std::size_t{1} << 20U> fenced;
        std::atomic<std::uint64_t> next{1};
    };
    shared<area> all;
    auto const write = [&] {
        auto const token = all->next++;
        return std::pair{all->fenced.write(token), token};
    };
    for (int i = 0; i < 5; ++i) {
        auto killed = child::fork([&] {
            for (int n = 0; n < 100'000; ++n) write();  // there is room for so many each time
            for (;;) ::pause();
            return 0;
        });
        std::vector<std::pair<std::uint64_t, std::uint64_t>> taken[2];
        {
            std::vector<std::jthread> threads;
            for (auto& mine : taken)
                threads.emplace_back([&] {
                    for (int n = 0; n < 3000; ++n)
                        if (auto const one = write(); one.first != 0) mine.push_back(one);
                });
            std::this_thread::sleep_for(1ms);
            killed.kill();
        }
        auto both = taken[0];
        both.insert(both.end(), taken[1].begin(), taken[1].end());
        std::sort(both.begin(), both.end());
        CHECK(both.size() > 1000);
        for (std::size_t n = 1; n < both.size(); ++n) {
            REQUIRE(both[n - 1].first < both[n].first);
            REQUIRE(both[n - 1].second < both[n].second);
        }
    }
}
