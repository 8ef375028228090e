// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <utility>

namespace holdfast::benchmark {
namespace {

std::string fixed(double value, int digits)
{
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*f", digits, value);
    return text.data();
}

std::string with_commas(double value)
{
    auto text = fixed(value, 0);
    for (auto at = static_cast<int>(text.size()) - 3; at > 0; at -= 3)
        text.insert(static_cast<std::size_t>(at), 1, ',');
    return text;
}

/// Returns: about three digits.
std::string figure(double value)
{
    return std::abs(value) >= 1000 ? with_commas(value)
                                   : fixed(value, std::abs(value) >= 100  ? 0
                                                  : std::abs(value) >= 10 ? 1
                                                                          : 2);
}

/// Returns: how many places `text`, in UTF-8, takes on a terminal.
std::size_t width(std::string const& text)
{
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; }));
}

std::string join(std::vector<std::string> const& cells)
{
    std::string line = "|";
    for (auto const& cell : cells) line.append(" ").append(cell).append(" |");
    return line + "\n";
}

row compared(std::string workload, std::string what, std::string rival, series const& ours, series const& theirs,
             std::optional<target> goal, std::string (*text)(double))
{
    return {.workload = std::move(workload),
            .what = std::move(what),
            .rival = std::move(rival),
            .values = ratio(ours, theirs),
            .unit = "×",
            .goal = goal,
            .ours = text(median(ours)),
            .theirs = text(median(theirs))};
}

}  // namespace

std::string duration_text(double seconds)
{
    if (seconds < 1e-3) return fixed(seconds * 1e6, seconds < 1e-4 ? 1 : 0) + " µs";
    return seconds < 1 ? figure(seconds * 1e3) + " ms" : figure(seconds) + " s";
}

std::string rate_text(double per_second) { return with_commas(per_second) + "/s"; }

row compare_times(std::string workload, std::string what, std::string rival, series const& ours, series const& theirs,
                  std::optional<target> goal)
{
    return compared(std::move(workload), std::move(what), std::move(rival), ours, theirs, goal, &duration_text);
}

row compare_rates(std::string workload, std::string what, std::string rival, series const& ours, series const& theirs,
                  std::optional<target> goal)
{
    return compared(std::move(workload), std::move(what), std::move(rival), ours, theirs, goal, &rate_text);
}

void report::add(row r) { rows_.push_back(std::move(r)); }

void report::skip(std::string workload, std::string why) { skipped_.push_back({std::move(workload), std::move(why)}); }

void report::note(std::string workload, std::string text) { notes_.push_back({std::move(workload), std::move(text)}); }

void report::machine(std::string name, std::string value) { machine_.push_back({std::move(name), std::move(value)}); }

bool report::all_met() const
{
    return std::all_of(rows_.begin(), rows_.end(), [](row const& r) { return r.met(); });
}

std::vector<std::vector<std::string>> report::cells() const
{
    std::vector<std::vector<std::string>> table{
        {"", "what", "against", "holdfast", "rival", "result", "spread", "target", ""}};
    for (auto const& r : rows_) {
        auto const [low, high] = std::minmax_element(r.values.begin(), r.values.end());
        auto const unit = std::string{r.unit == "×" || r.unit == "/s" ? "" : " "}.append(r.unit);
        std::string goal = "–";
        if (r.goal) goal = (r.goal->is == target::relation::at_most ? "≤ " : "≥ ") + figure(r.goal->value);
        table.push_back({r.workload, r.what, r.rival.empty() ? "–" : r.rival, r.ours.empty() ? "–" : r.ours,
                         r.theirs.empty() ? "–" : r.theirs, figure(r.value()) + unit,
                         figure(*low) + " … " + figure(*high), goal,
                         !r.goal   ? ""
                         : r.met() ? "met"
                                   : "missed"});
    }
    return table;
}

void report::print(std::ostream& out) const
{
    auto const table = cells();
    std::vector<std::size_t> widths(table.front().size());
    for (auto const& line : table)
        for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width(line[i]));
    out << '\n';
    for (auto const& line : table) {
        for (std::size_t i = 0; i < line.size(); ++i)
            out << line[i] << std::string(widths[i] - width(line[i]) + 2, ' ');
        out << '\n';
    }
    for (auto const* const all : {&notes_, &skipped_})
        for (auto const& r : *all) out << r.workload << ": " << r.text << '\n';
    out << '\n';
    for (auto const& f : machine_) out << f.name << ": " << f.value << '\n';
}

std::string report::markdown() const
{
    auto const table = cells();
    std::string text = "# Benchmark\n\n";
    text +=
        "Written by `tests/benchmark/run.sh" + std::string{quick_ ? " --quick" : ""} +
        "`. A result is the median over the repetitions of the ratio of medians; the spread is the least and the greatest ratio of a "
        "repetition. ×: times the rival, measured in turn with it.\n\n![Results](benchmark.svg)\n\n";
    text += join(table.front()) + join(std::vector<std::string>(table.front().size(), "---"));
    for (std::size_t i = 1; i < table.size(); ++i) text += join(table[i]);
    text += '\n';
    for (auto const* const all : {&notes_, &skipped_}) {
        for (auto const& r : *all) text += "- " + r.workload + ": " + r.text + '\n';
        if (!all->empty()) text += '\n';
    }
    for (auto const& f : machine_) text += "- " + f.name + ": " + f.value + '\n';
    return text;
}

nlohmann::json report::json() const
{
    auto rows = nlohmann::json::array();
    for (auto const& r : rows_) {
        nlohmann::json one{{"workload", r.workload}, {"what", r.what},     {"rival", r.rival},
                           {"unit", r.unit},         {"value", r.value()}, {"values", r.values},
                           {"ours", r.ours},         {"theirs", r.theirs}, {"met", r.met()}};
        if (r.goal) one["target"] = {{"at_most", r.goal->is == target::relation::at_most}, {"value", r.goal->value}};
        rows.push_back(std::move(one));
    }
    auto const remarks = [](std::vector<remark> const& all, char const* as) {
        auto list = nlohmann::json::array();
        for (auto const& r : all) list.push_back({{"workload", r.workload}, {as, r.text}});
        return list;
    };
    auto machine = nlohmann::json::object();
    for (auto const& f : machine_) machine[f.name] = f.value;
    return {{"quick", quick_},
            {"rows", std::move(rows)},
            {"notes", remarks(notes_, "text")},
            {"skipped", remarks(skipped_, "why")},
            {"machine", std::move(machine)}};
}

}  // namespace holdfast::benchmark
