// SPDX-License-Identifier: MIT
#include "report.hpp"

#include "timeline.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

namespace holdfast::faults {
namespace {

constexpr std::size_t most_breaches = 12;

std::string seconds(std::chrono::duration<double> d)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", d.count());
    return text;
}

std::string joined(std::vector<std::string> const& words)
{
    std::string all;
    for (auto const& one : words) all += (all.empty() ? "" : ", ") + one;
    return all;
}

}  // namespace

void print(row const& of, run_options const& run, findings const& found, std::chrono::duration<double> took)
{
    std::printf("%s%s: must show: %s\n", std::string{of.name}.c_str(), run.control ? ", control" : "",
                std::string{of.must_show}.c_str());
    if (run.control)
        std::printf("  control: %s; breaches have to be found that begin with: %s\n",
                    std::string{of.control.without}.c_str(), std::string{of.control.finds}.c_str());
    for (auto const& [name, value] : found.figures()) std::printf("  %-46s %s\n", name.c_str(), value.c_str());
    std::printf("  %-46s %s\n", "checked", joined(found.checked()).c_str());
    auto const& wrong = found.wrong();
    for (std::size_t i = 0; i < std::min(wrong.size(), most_breaches); ++i)
        std::printf("  breach: %s\n", wrong[i].c_str());
    std::printf("  %zu breaches, %s\n", wrong.size(), seconds(took).c_str());
}

void write_results(row const& of, run_options const& run, findings const& found, std::chrono::duration<double> took,
                   std::filesystem::path const& folder)
{
    std::filesystem::create_directories(folder);
    auto const name = std::string{of.name} + (run.control ? "_control" : "");
    bool const picture = !found.shown().empty();
    if (picture) draw(name, found.shown(), folder / (name + ".svg"));
    std::ofstream out{folder / (name + ".md")};
    out << "| " << (picture ? "[" + name + "](" + name + ".svg)" : name) << " | "
        << (run.control ? of.control.without : of.must_show) << " | ";
    for (auto const& [figure, value] : found.figures()) out << figure << ": " << value << "<br>";
    out << "checked: " << joined(found.checked()) << " | " << found.wrong().size();
    if (run.control)
        out << (breaches_to_find(of, found) != 0 ? ", as there must be" : ", **none of those that must be**");
    out << " | " << seconds(took) << " |\n";
    if (!out.flush()) throw std::runtime_error{"cannot write to " + folder.string()};
}

}  // namespace holdfast::faults
