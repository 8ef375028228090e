// SPDX-License-Identifier: MIT
#include "table.hpp"

#include <support/text.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace quickstart {
namespace {

using holdfast::test::counted;
using holdfast::test::grouped;
using holdfast::test::spoken;

void row(char const* name, std::string const& value)
{
    std::printf("  %-19s %s\n", name, value.c_str());
}

void gap(char const* name, findings::duration d, std::string const& when)
{
    std::printf("  %-19s %8s  %s\n", name, spoken(d).c_str(), when.c_str());
}

void rule()
{
    std::string line = "  ";
    for (int i = 0; i < 88; ++i) line += "─";
    std::puts(line.c_str());
}

findings::duration percentile(std::vector<findings::duration> const& sorted, double share)
{
    if (sorted.empty()) return {};
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

void print_gaps(findings const& f, history const& h)
{
    gap("longest gap", f.quiet_gap, "before any fault");
    for (std::size_t i = 0; i < h.faults.size(); ++i) {
        auto const& one = h.faults[i];
        bool const stopped = one.at == h.stopped && f.lease_left.count() > 0;
        gap("", f.longest_gaps[i],
            one.label + (stopped ? ", whose lease ran for another " + spoken(f.lease_left) : ""));
    }
}

void print_stopped_worker(findings const& f)
{
    if (f.late == 0) return row("stopped worker", "its lease had not ended when it went on");
    row("stopped worker", "found its lease lost; wrote all the same, to show what that does:");
    row("", f.lost_to_late != 0
                ? "the counter, which has no fence, lost " + counted(f.lost_to_late, "update") + " to it"
                : "the counter has no fence; this time the next holder wrote over the late write");
}

}  // namespace

void print_table(findings const& f, history const& h)
{
    auto const length = std::chrono::duration<double>{h.end - h.begin};
    auto const count = f.in_order.size();
    rule();
    row("workers",
        std::to_string(workers) + " processes, one lock on " + counted(h.masters, h.kind) + ", ttl " + spoken(h.ttl));
    row("sections", grouped(count) + " in " + spoken(length) + ": " +
                        grouped(static_cast<std::uint64_t>(static_cast<double>(count) / length.count())) +
                        " per second");
    row("hand-over",
        "median " + spoken(percentile(f.hand_overs, 0.5)) + ", p99 " + spoken(percentile(f.hand_overs, 0.99)));
    print_gaps(f, h);
    row("overlapping holds", grouped(f.overlapping));
    row("lost updates", grouped(f.lost) + " of " + grouped(count - f.late));
    row("stale writes",
        grouped(f.stale_refused) + " refused by the register, " + grouped(f.stale_accepted) + " accepted");
    if (f.good_refused != 0) row("good writes", grouped(f.good_refused) + " refused by the register");
    print_stopped_worker(f);
    rule();
}

}  // namespace quickstart
