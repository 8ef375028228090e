// SPDX-License-Identifier: MIT
#include "stores.hpp"
#include "support/catch.hpp"

#include <holdfast/adapters/recursive_mutex.hpp>

#include <type_traits>

TEMPLATE_TEST_CASE("every lock is a Lock that can be neither copied nor moved", "", HOLDFAST_STORES)
{
    using mutex = typename TestType::mutex;
    STATIC_REQUIRE(holdfast::Lock<mutex>);
    STATIC_REQUIRE(holdfast::Lock<holdfast::recursive_mutex<mutex>>);
    STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<mutex>);
    STATIC_REQUIRE_FALSE(std::is_move_constructible_v<mutex>);
    STATIC_REQUIRE_FALSE(std::is_copy_assignable_v<mutex>);
    STATIC_REQUIRE(noexcept(std::declval<mutex&>().unlock()));
    STATIC_REQUIRE(std::is_nothrow_destructible_v<mutex>);
}
