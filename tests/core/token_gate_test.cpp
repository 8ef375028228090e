// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/token_gate.hpp>

#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

using holdfast::token_gate;

TEST_CASE("a gate lets through what has the greatest token so far, and nothing smaller")
{
    token_gate gate;
    int writes = 0;
    auto const write = [&] { ++writes; };
    CHECK(gate.pass(33, write));
    CHECK(gate.pass(33, write));
    CHECK(gate.pass(34, write));
    CHECK_FALSE(gate.pass(33, write));
    CHECK(writes == 3);
    CHECK(gate.seen() == 34);
}

TEST_CASE("a gate lets no write through that has no token")
{
    token_gate gate;
    CHECK_FALSE(gate.pass(0, [] { FAIL(); }));
}

TEST_CASE("a gate goes on from the token that was kept over a restart")
{
    token_gate gate{100};
    CHECK_FALSE(gate.pass(99, [] { FAIL(); }));
    CHECK(gate.pass(100, [] {}));
}

TEST_CASE("a gate remembers the token of a write that failed: it may have been made")
{
    token_gate gate;
    CHECK_THROWS_AS(gate.pass(5, [] { throw std::runtime_error{"lost"}; }), std::runtime_error);
    CHECK_FALSE(gate.pass(4, [] { FAIL(); }));
}

TEST_CASE("writes of several threads go through a gate one at a time, with tokens that never decrease")
{
    token_gate gate;
    std::uint64_t last = 0;  // guarded by the gate
    bool rose = true;
    std::vector<std::jthread> threads;
    for (std::uint64_t first = 1; first <= 4; ++first)
        threads.emplace_back([&, first] {
            for (auto token = first; token < 4000; token += 4)
                static_cast<void>(gate.pass(token, [&] {
                    rose = rose && token > last;
                    last = token;
                }));
        });
    threads.clear();
    CHECK(rose);
    CHECK(last == gate.seen());
}
