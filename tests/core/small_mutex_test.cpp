// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/small_mutex.hpp>

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::detail::small_mutex;

TEST_CASE("one thread at a time has a small mutex, and none sleeps for ever")
{
    small_mutex mutex;
    int count = 0;
    std::vector<std::thread> threads;
    for (int n = 0; n < 4; ++n)
        threads.emplace_back([&] {
            for (int i = 0; i < 20'000; ++i) {
                std::scoped_lock guard{mutex};
                auto const before = count;
                if (i % 1'000 == 0) std::this_thread::sleep_for(10us);  // the others sleep
                count = before + 1;
            }
        });
    for (auto& one : threads) one.join();
    CHECK(count == 80'000);
}

TEST_CASE("a small mutex has four bytes") { STATIC_REQUIRE(sizeof(small_mutex) == 4); }
