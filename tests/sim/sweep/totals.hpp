// SPDX-License-Identifier: MIT
#pragma once

#include "verdict.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {

/// What came of many schedules of one machine.
struct totals {
    std::uint64_t schedules = 0;
    std::uint64_t acquired = 0;
    std::uint64_t renewed = 0;
    std::uint64_t lost = 0;
    std::uint64_t refused = 0;
    std::uint64_t judged = 0;
    std::uint64_t idle = 0;  ///< schedules with fewer than 3 acquired
    std::uint64_t hash = 0;  ///< does not depend on the order
    double seconds = 0;      ///< of one core
    sim::fault_count happened;

    void add(verdict const& v)
    {
        ++schedules;
        acquired += v.acquired;
        renewed += v.renewed;
        lost += v.lost;
        refused += v.refused;
        judged += v.judged;
        if (v.acquired < 3) ++idle;
        hash += v.hash * 0x9fb21c651e98df25U;
        happened += v.happened;
    }

    totals& operator+=(totals const& other)
    {
        schedules += other.schedules;
        acquired += other.acquired;
        renewed += other.renewed;
        lost += other.lost;
        refused += other.refused;
        judged += other.judged;
        idle += other.idle;
        hash += other.hash;
        seconds += other.seconds;
        happened += other.happened;
        return *this;
    }

    /// Returns: what too little happened of for a breach to have shown; empty where all did.
    [[nodiscard]] std::string missing(std::vector<sim::decision::kind> const& expected, bool long_holds) const
    {
        std::string all;
        auto const want = [&](std::string_view what, bool enough) {
            if (!enough) (all += ' ') += what;
        };
        want("acquired", acquired >= 3 * schedules);
        want("renewed", !long_holds || renewed >= schedules / 2);
        want("lost", !long_holds || lost >= schedules / 20);
        want("refused", refused >= schedules / 20);
        want("heirs", judged >= schedules / 2);
        want("idle", idle <= schedules / 4);
        for (auto const k : expected) want(sim::decision::name(k), happened[k] >= schedules / 20);
        // A server that crashes forgets, now and then; but those of ZooKeeper do not.
        bool const crashes = std::find(expected.begin(), expected.end(), sim::decision::kind::crash) != expected.end();
        want("memories lost", !crashes || happened.memories_lost >= schedules / 20);
        return all;
    }
};

/// Effects: prints a table with a column for each machine.
inline void print_table(std::vector<std::pair<std::string_view, totals>> const& all)
{
    auto const row = [&](std::string_view what, auto const& value) {
        std::printf("%-28.*s", static_cast<int>(what.size()), what.data());
        for (auto const& one : all) std::printf(" %18s", value(one.second).c_str());
        std::printf("\n");
    };
    auto const number = [](auto n) { return std::to_string(n); };
    std::printf("%-28s", "");
    for (auto const& one : all) std::printf(" %18.*s", static_cast<int>(one.first.size()), one.first.data());
    std::printf("\n");
    row("schedules", [&](totals const& t) { return number(t.schedules); });
    row("  a second on one core", [&](totals const& t) {
        return number(static_cast<std::uint64_t>(static_cast<double>(t.schedules) / (t.seconds > 0 ? t.seconds : 1)));
    });
    row("holds granted", [&](totals const& t) { return number(t.acquired); });
    row("holds renewed", [&](totals const& t) { return number(t.renewed); });
    row("holds lost", [&](totals const& t) { return number(t.lost); });
    row("acquires refused", [&](totals const& t) { return number(t.refused); });
    row("heirs looked at", [&](totals const& t) { return number(t.judged); });
    for (std::size_t k = 0; k < sim::decision::kinds; ++k) {
        auto const kind = static_cast<sim::decision::kind>(k);
        auto const name =
            std::string{kind < sim::decision::kind::clock ? "fault: " : ""} + std::string{sim::decision::name(kind)};
        row(name, [&](totals const& t) { return t.happened[kind] == 0 ? std::string{"-"} : number(t.happened[kind]); });
    }
    row("servers that lost memory", [&](totals const& t) { return number(t.happened.memories_lost); });
    row("votes refused", [&](totals const& t) { return number(t.happened.votes_refused); });
    row("trace hash", [](totals const& t) {
        char text[17];
        std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(t.hash));
        return std::string{text};
    });
}

}  // namespace holdfast::test
