// SPDX-License-Identifier: MIT
#pragma once

#include "paired.hpp"

#include <nlohmann/json_fwd.hpp>

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::benchmark {

struct target {
    enum class relation { at_most, at_least };
    relation is;
    double value;

    [[nodiscard]] static target at_most(double value) { return {relation::at_most, value}; }
    [[nodiscard]] static target at_least(double value) { return {relation::at_least, value}; }
    [[nodiscard]] bool met_by(double x) const noexcept { return is == relation::at_most ? x <= value : x >= value; }
};

/// One measured claim.
struct row {
    std::string workload{};        ///< "P1"
    std::string what{};            ///< what was measured
    std::string rival{};           ///< against what; empty for an absolute figure
    series values{};               ///< a figure for each repetition
    std::string unit{};            ///< of the figures: "×" for a ratio
    std::optional<target> goal{};  ///< none: only to be seen
    std::string ours{};            ///< the absolute figures behind a ratio, for people
    std::string theirs{};

    [[nodiscard]] double value() const { return median(values); }
    [[nodiscard]] bool met() const { return !goal || goal->met_by(value()); }
};

/// What one run has measured, on which machine.
class report {
public:
    explicit report(bool quick) : quick_{quick} {}

    void add(row r);
    /// A claim that could not be looked at, and why.
    void skip(std::string workload, std::string why);
    /// What has to be known of a workload to read its rows.
    void note(std::string workload, std::string text);
    void machine(std::string name, std::string value);

    [[nodiscard]] bool all_met() const;

    void print(std::ostream& out) const;
    [[nodiscard]] std::string markdown() const;
    [[nodiscard]] nlohmann::json json() const;

private:
    struct remark {
        std::string workload;
        std::string text;
    };
    struct fact {
        std::string name;
        std::string value;
    };

    [[nodiscard]] std::vector<std::vector<std::string>> cells() const;

    bool quick_;
    std::vector<row> rows_;
    std::vector<remark> skipped_;
    std::vector<remark> notes_;
    std::vector<fact> machine_;
};

/// Returns: "195 µs", "5.61 ms", "1.7 s".
[[nodiscard]] std::string duration_text(double seconds);

/// Returns: "81,400/s".
[[nodiscard]] std::string rate_text(double per_second);

/// Returns: the ratio of two times as a row.
[[nodiscard]] row compare_times(std::string workload, std::string what, std::string rival, series const& ours,
                                series const& theirs, std::optional<target> goal);

/// Returns: the ratio of two rates as a row.
[[nodiscard]] row compare_rates(std::string workload, std::string what, std::string rival, series const& ours,
                                series const& theirs, std::optional<target> goal);

}  // namespace holdfast::benchmark
