// SPDX-License-Identifier: MIT
#include <holdfast/redis/key_cache.hpp>

#include "support/catch.hpp"

#include <array>
#include <string>
#include <vector>

using holdfast::redis::key_cache;
using holdfast::redis::shared_keys;

TEST_CASE("a lock that was used lately has the keys that it had, and takes its way")
{
    key_cache cache{1, 4};
    auto const first = cache.get("orders/1");
    auto const second = cache.get("orders/2");
    CHECK(cache.get("orders/1") == first);
    CHECK(cache.get("orders/2") == second);
    CHECK(first->way != second->way);
}

TEST_CASE("names are dealt out to the ways in turn")
{
    constexpr unsigned ways = 4;
    key_cache cache{1, ways};
    std::array<int, ways> taken{};
    std::vector<shared_keys> used;
    for (int i = 0; i < 8; ++i) ++taken.at(used.emplace_back(cache.get("orders/" + std::to_string(i)))->way);
    CHECK(taken == std::array<int, ways>{2, 2, 2, 2});
}

TEST_CASE("with one way all names take it")
{
    key_cache cache{5, 1};
    for (int i = 0; i < 8; ++i) CHECK(cache.get("orders/" + std::to_string(i))->way == 0);
}
