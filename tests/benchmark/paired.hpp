// SPDX-License-Identifier: MIT
//
// Comparison on a machine that is shared and noisy: the contenders take turns, call by call, in one process and one
// run, and what is reported is the ratio of their medians. Whatever slows the machine down slows all of them.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

namespace holdfast::benchmark {

/// How often the contenders take turns. A repetition gives one median for each of them.
struct schedule {
    int repetitions = 5;
    int turns = 1000;
    int warm_up = 0;  ///< turns that are not counted, before the first repetition
};

/// A figure for each repetition.
using series = std::vector<double>;

/// Requires: `values` is not empty.
[[nodiscard]] inline double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    auto const middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Returns: how many seconds `f()` takes.
template <std::invocable F>
[[nodiscard]] double seconds_of(F&& f)
{
    auto const before = std::chrono::steady_clock::now();
    std::forward<F>(f)();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

/// Effects: calls each contender once, then each once more, and so on. A contender returns the figure of one call:
/// seconds, or calls per second.
/// Returns: the medians of each contender.
template <class... Contenders>
    requires(std::same_as<std::invoke_result_t<Contenders&>, double> && ...)
[[nodiscard]] std::array<series, sizeof...(Contenders)> take_turns(schedule const& s, Contenders&&... contenders)
{
    std::array<series, sizeof...(Contenders)> medians;
    for (int i = 0; i < s.warm_up; ++i) (static_cast<void>(contenders()), ...);
    for (int repetition = 0; repetition < s.repetitions; ++repetition) {
        std::array<std::vector<double>, sizeof...(Contenders)> figures;
        for (int turn = 0; turn < s.turns; ++turn) {
            std::size_t next = 0;
            (figures[next++].push_back(contenders()), ...);
        }
        for (std::size_t i = 0; i < figures.size(); ++i) medians[i].push_back(median(std::move(figures[i])));
    }
    return medians;
}

/// Returns: the ratio of two contenders in each repetition.
[[nodiscard]] inline series ratio(series const& ours, series const& rival)
{
    series quotients;
    for (std::size_t i = 0; i < ours.size(); ++i) quotients.push_back(ours[i] / rival[i]);
    return quotients;
}

}  // namespace holdfast::benchmark
