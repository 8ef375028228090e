// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/orders.hpp"

#include <holdfast/memory.hpp>
#include <holdfast/shared_mutex.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

using namespace std::chrono_literals;
using holdfast::lease;
using holdfast::with_lock;
using holdfast::with_shared_lock;
using fixture = holdfast::test::orders<>;

TEST_CASE("with_lock runs the function while the lock is held and frees it behind")
{
    fixture f;
    bool free_inside = true;
    with_lock(f.m, [&] { free_inside = f.free(); });
    CHECK_FALSE(free_inside);
    CHECK(f.free());
}

TEST_CASE("with_lock gives the function the lease, where it takes one")
{
    fixture f;
    CHECK(with_lock(f.m, [](lease const& l) { return l.still_held() && l.fencing_token() > 0; }));
    CHECK(with_lock(f.m, 1h, [](lease const& l) { return l.still_held() && l.fencing_token() > 0; }) == true);
    auto const kept = with_lock(f.m, [](lease const& l) { return l; });
    CHECK_FALSE(kept.still_held());
}

TEST_CASE("with_lock returns what the function returns, references too")
{
    fixture f;
    std::string text = "before";
    STATIC_REQUIRE(std::is_void_v<decltype(with_lock(f.m, [] {}))>);
    STATIC_REQUIRE(std::is_same_v<decltype(with_lock(f.m, [&]() -> std::string& { return text; })), std::string&>);
    with_lock(f.m, [&]() -> std::string& { return text; }) = "after";
    CHECK(text == "after");
    CHECK(*with_lock(f.m, [] { return std::make_unique<int>(7); }) == 7);
}

TEST_CASE("with_lock for a time says whether it ran the function")
{
    fixture f;
    STATIC_REQUIRE(std::is_same_v<decltype(with_lock(f.m, 1h, [] {})), bool>);
    STATIC_REQUIRE(std::is_same_v<decltype(with_lock(f.m, 1h, [] { return 7; })), std::optional<int>>);
    bool ran = false;
    CHECK(with_lock(f.m, 1h, [&] { ran = true; }));
    CHECK(ran);
    CHECK(with_lock(f.m, 1h, [] { return 7; }) == 7);
    CHECK(**with_lock(f.m, 1h, [] { return std::make_unique<int>(7); }) == 7);
}

TEST_CASE("with_lock for a time does not run the function where others keep the lock")
{
    fixture f;
    f.rival.lock();
    bool ran = false;
    CHECK_FALSE(with_lock(f.m, 0ms, [&] { ran = true; }));
    CHECK_FALSE(with_lock(f.m, 1ms, [&] { return ran = true; }).has_value());
    CHECK_FALSE(ran);
}

TEST_CASE("with_lock frees the lock when the function throws, and throws what it threw")
{
    fixture f;
    CHECK_THROWS_AS(with_lock(f.m, [] { throw std::runtime_error{"inside"}; }), std::runtime_error);
    CHECK(f.free());
    CHECK_THROWS_AS(with_lock(f.m, 1h, [](lease const&) -> int { throw std::runtime_error{"inside"}; }),
                    std::runtime_error);
    CHECK(f.free());
}

TEST_CASE("with_lock takes functions that can be called once, and members")
{
    struct once {
        int operator()() && { return 7; }
    };
    fixture f;
    CHECK(with_lock(f.m, once{}) == 7);
    CHECK(with_lock(f.m, 1h, once{}) == 7);
    CHECK(with_lock(f.m, &lease::fencing_token) > 0);
}

TEST_CASE("with_shared_lock runs the function together with other readers, and gives back the hold that it took")
{
    holdfast::memory::store store;
    holdfast::memory::shared_mutex prices{store, "prices"};
    holdfast::memory::shared_mutex rival{store, "prices"};
    bool const beside = with_shared_lock(prices, [&](lease const& l) {
        bool const others = with_shared_lock(rival, [] { return true; });
        return others && l.still_held() && l.fencing_token() > 0 && !rival.try_lock();
    });
    CHECK(beside);
    CHECK(rival.try_lock());
    bool ran = false;
    CHECK_FALSE(with_shared_lock(prices, 1ms, [&] { ran = true; }));
    CHECK(with_shared_lock(prices, 1ms, [] { return 7; }) == std::nullopt);
    CHECK_FALSE(ran);
    rival.unlock();
    CHECK(with_shared_lock(prices, 1h, [] { return 7; }) == 7);
    CHECK(with_shared_lock(prices, 1h, [&] { ran = true; }));
    CHECK(ran);
    STATIC_REQUIRE(std::is_void_v<decltype(with_shared_lock(prices, [] {}))>);
    CHECK_THROWS_AS(with_shared_lock(prices, []() -> int { throw std::runtime_error{"the user's"}; }),
                    std::runtime_error);
    CHECK(rival.try_lock());
}
