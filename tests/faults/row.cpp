// SPDX-License-Identifier: MIT
#include "row.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::faults {

namespace {

/// Requires: `values` is sorted, and not empty.
std::int64_t percentile_99(std::vector<std::int64_t> const& values) { return values[(values.size() - 1) * 99 / 100]; }

}  // namespace

void findings::times(std::string name, std::vector<std::int64_t> values, std::int64_t aim)
{
    if (values.empty()) return figure(std::move(name), "none");
    std::sort(values.begin(), values.end());
    auto const above = static_cast<std::size_t>(values.end() - std::upper_bound(values.begin(), values.end(), aim));
    figure(std::move(name), "median " + milliseconds(values[values.size() / 2]) + ", p99 " +
                                milliseconds(percentile_99(values)) + ", most " + milliseconds(values.back()) +
                                "; above " + milliseconds(aim) + ": " + std::to_string(above) + " of " +
                                std::to_string(values.size()));
}

void findings::demanded_times(run_options const& run, std::string const& name, std::vector<std::int64_t> values,
                              std::int64_t aim)
{
    std::sort(values.begin(), values.end());
    if (run.full && !values.empty() && percentile_99(values) > aim)
        check("times", {name + ": more than one in a hundred is above " + milliseconds(aim) +
                        ", the 99th percentile is " + milliseconds(percentile_99(values))});
    else
        check("times", {});
    times(name, std::move(values), aim);
}

void findings::check(std::string const& what, breaches const& found)
{
    if (!what.empty() && std::find(checked_.begin(), checked_.end(), what) == checked_.end()) checked_.push_back(what);
    for (auto const& one : found) wrong_.push_back(what.empty() ? one : what + ": " + one);
}

std::size_t breaches_to_find(row const& of, findings const& found)
{
    return static_cast<std::size_t>(
        std::count_if(found.wrong().begin(), found.wrong().end(),
                      [&](std::string const& breach) { return breach.starts_with(of.control.finds); }));
}

}  // namespace holdfast::faults
