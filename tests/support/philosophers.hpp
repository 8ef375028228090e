// SPDX-License-Identifier: MIT
//
// Source: Dijkstra, "Hierarchical ordering of sequential processes", Acta Informatica 1971.
#pragma once

#include <holdfast/adapters/multi_mutex.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace holdfast::test {

/// Effects: for each of `seats`, a thread takes two or three of five locks, in any order, `meals` times. The locks of a
/// seat are its own objects; their names begin with `prefix`. If a seat has several stores, the locks are in one after
/// the other of them, and those of the same round have the same name. Returns: whether no lock was held by two.
inline bool dine(std::vector<std::vector<store>> const& seats, int meals = 200, std::string_view prefix = "fork-")
{
    constexpr std::size_t forks = 5;
    std::array<std::atomic<int>, forks> inside{};
    std::atomic<bool> alone{true};
    std::vector<std::jthread> philosophers;
    for (std::size_t seat = 0; seat < seats.size(); ++seat)
        philosophers.emplace_back([&, seat] {
            std::mt19937 chance{static_cast<unsigned>(seat)};
            std::deque<mutex> own;
            auto const& stores = seats[seat];
            for (std::size_t i = 0; i < forks; ++i)
                own.emplace_back(
                    stores[i % stores.size()], std::string{prefix} + std::to_string(i / stores.size()),
                    lock_options{.ttl = std::chrono::hours{1}, .unavailable_after = std::chrono::minutes{5}});
            for (int meal = 0; meal < meals; ++meal) {
                std::array<std::size_t, forks> order{0, 1, 2, 3, 4};
                std::shuffle(order.begin(), order.end(), chance);
                auto const needed = 2 + chance() % 2;
                std::vector<mutex*> some;
                for (std::size_t i = 0; i < needed; ++i) some.push_back(&own[order.at(i)]);
                multi_mutex m{some};
                std::scoped_lock hold{m};
                for (std::size_t i = 0; i < some.size(); ++i)
                    if (++inside.at(order.at(i)) != 1) alone = false;
                for (std::size_t i = 0; i < some.size(); ++i) --inside.at(order.at(i));
            }
        });
    philosophers.clear();
    return alone;
}

/// The same, with one store for each seat.
inline bool dine(std::vector<store> const& seats, int meals = 200, std::string_view prefix = "fork-")
{
    std::vector<std::vector<store>> each;
    for (auto const& one : seats) each.push_back({one});
    return dine(each, meals, prefix);
}

}  // namespace holdfast::test
