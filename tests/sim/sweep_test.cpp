// SPDX-License-Identifier: MIT
#include "sweep/scenario.hpp"

#include "support/catch.hpp"

#include <cstdint>
#include <set>

using namespace holdfast;

TEST_CASE("a seed replays to the same trace hash, and another one does not")
{
    std::set<std::uint64_t> hashes;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        auto const first = test::run_schedule(seed);
        auto const second = test::run_schedule(seed);
        CHECK(first.hash == second.hash);
        CHECK(first.acquired == second.acquired);
        hashes.insert(first.hash);
    }
    CHECK(hashes.size() == 50);
}

TEST_CASE("being watched does not change what happens")
{
    std::uint64_t events = 0;
    auto const watched = test::run_schedule(7, 5, [&](sim::event const&) { ++events; });
    CHECK(watched.hash == test::run_schedule(7, 5).hash);
    CHECK(events > 100);
}
