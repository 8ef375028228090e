// SPDX-License-Identifier: MIT
#include "stores.hpp"
#include "support/catch.hpp"

#include <holdfast/adapters/recursive_mutex.hpp>

#include <type_traits>
#include <utility>

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

TEMPLATE_TEST_CASE("the read-write lock and the semaphore of every store are what the concepts say", "",
                   HOLDFAST_STORES)
{
    using shared_mutex = typename TestType::shared_mutex;
    using semaphore = typename TestType::semaphore;
    STATIC_REQUIRE(holdfast::SharedLock<shared_mutex>);
    STATIC_REQUIRE(holdfast::Lock<shared_mutex>);
    STATIC_REQUIRE(holdfast::Semaphore<semaphore>);
    STATIC_REQUIRE_FALSE(holdfast::SharedLock<typename TestType::mutex>);
    STATIC_REQUIRE_FALSE(holdfast::Semaphore<shared_mutex>);
    STATIC_REQUIRE_FALSE(holdfast::Lock<semaphore>);
    STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<shared_mutex> || std::is_move_constructible_v<shared_mutex>);
    STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<semaphore> || std::is_move_constructible_v<semaphore>);
    STATIC_REQUIRE(noexcept(std::declval<shared_mutex&>().unlock_shared()));
    STATIC_REQUIRE(noexcept(std::declval<semaphore&>().release()));
}
