// SPDX-License-Identifier: MIT
#include <holdfast/redis/key_cache.hpp>

#include "support/catch.hpp"

using holdfast::redis::key_cache;

TEST_CASE("a lock that was used lately has the keys that it had")
{
    key_cache cache{1};
    auto const first = cache.get("orders/1");
    auto const second = cache.get("orders/2");
    CHECK(cache.get("orders/1") == first);
    CHECK(cache.get("orders/2") == second);
    CHECK(first != second);
}
