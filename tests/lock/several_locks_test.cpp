// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/lock/several_locks.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::detail::several_locks;

namespace {

/// The locks that a thread takes, and their objects.
int const a = 0;
int const b = 0;
int const a_object = 0;
int const a_twin = 0;
int const b_object = 0;

several_locks& fresh()
{
    auto& thread = several_locks::of_this_thread();
    static_cast<void>(thread.rest());
    return thread;
}

}  // namespace

TEST_CASE("a thread rests before it waits again, when it gave back what it had as another lock was not free")
{
    auto& thread = fresh();
    boot_clock::duration longest{};
    for (int i = 0; i < 1000; ++i) {
        thread.granted(&a, &a_object);
        CHECK_FALSE(thread.refused(&b, &b_object));
        thread.gave_back(&a);
        auto const rest = thread.rest();
        CHECK(rest < several_locks::longest_rest);
        CHECK(thread.rest() == 0ns);  // once
        longest = std::max(longest, rest);
    }
    CHECK(longest > several_locks::longest_rest / 2);
}

TEST_CASE("a thread that gave nothing back, or was not refused, does not rest")
{
    auto& thread = fresh();
    CHECK_FALSE(thread.refused(&b, &b_object));
    CHECK(thread.rest() == 0ns);
    thread.granted(&a, &a_object);
    thread.gave_back(&a);
    CHECK(thread.rest() == 0ns);
}

TEST_CASE("two objects of one lock that are taken together are told of once, after some rounds")
{
    auto& thread = fresh();
    int told = 0;
    int rounds_before = 0;
    auto const round = [&](int const& waited_for, int const& tried) {
        thread.granted(&a, &waited_for);
        if (thread.refused(&a, &tried)) ++told;
        thread.gave_back(&a);
        static_cast<void>(thread.rest());
        if (told == 0) ++rounds_before;
    };
    for (int i = 0; i < 50; ++i) {
        round(a_object, a_twin);
        round(a_twin, a_object);
    }
    CHECK(told == 1);
    CHECK(rounds_before >= 2);
}

TEST_CASE("a thread that tries whether a lock is held that it has, again and again, is not told anything")
{
    auto& thread = fresh();
    for (int i = 0; i < 50; ++i) {
        thread.granted(&a, &a_object);
        CHECK_FALSE(thread.refused(&a, &a_twin));
        CHECK_FALSE(thread.refused(&a, &a_twin));
        thread.gave_back(&a);
    }
}

TEST_CASE("a thread that takes a lock for another one, which gives it back, is not told anything")
{
    auto& thread = fresh();
    for (int i = 0; i < 50; ++i) {
        thread.granted(&a, &a_object);
        CHECK_FALSE(thread.refused(&a, &a_object));
    }
}

TEST_CASE("each thread has its own")
{
    auto const* const mine = &several_locks::of_this_thread();
    several_locks const* theirs = nullptr;
    std::jthread{[&] { theirs = &several_locks::of_this_thread(); }}.join();
    CHECK(mine != theirs);
}
