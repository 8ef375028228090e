// SPDX-License-Identifier: MIT
#pragma once

#include "machine.hpp"
#include "shrink.hpp"
#include "verdict.hpp"

#include <holdfast/sim/decision.hpp>
#include <holdfast/sim/world.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {

/// Effects: prints what happened, a line for each event: when, who, what.
inline void print_event(sim::event const& e)
{
    auto const name = [](char const* what, unsigned index) {
        return index == sim::event::nobody ? std::string{} : what + std::to_string(index);
    };
    auto const what = std::string{e.what} + (e.value == 0 ? "" : ' ' + std::to_string(e.value));
    std::printf("%12.3f ms  %-9s %-9s %s\n",
                std::chrono::duration<double, std::milli>{e.when.time_since_epoch()}.count(),
                name("client ", e.client).c_str(), name("server ", e.node).c_str(), what.c_str());
}

/// Returns: the decisions as the option `--keep` takes them.
[[nodiscard]] inline std::string text(std::vector<sim::decision> const& some)
{
    std::string all;
    for (auto const& one : some) (all += all.empty() ? "" : ",") += one.text();
    return all.empty() ? "none" : all;
}

/// Returns: the decisions that `t` names; nothing where it names something else.
[[nodiscard]] inline std::optional<std::vector<sim::decision>> decisions_from(std::string_view t)
{
    std::vector<sim::decision> all;
    if (t == "none") return all;
    for (;;) {
        auto const comma = t.find(',');
        auto const one = sim::decision::from(t.substr(0, comma));
        if (!one) return {};
        all.push_back(*one);
        if (comma == std::string_view::npos) return all;
        t.remove_prefix(comma + 1);
    }
}

/// Effects: runs one seed, prints what happens and what is wrong with it.
/// Returns: whether all was well.
inline bool replay(machine const& m, std::uint64_t seed, std::optional<std::vector<sim::decision>> keep)
{
    auto const v = m.run(seed, {.observer = print_event, .keep = std::move(keep)});
    std::printf("%s", v.plan.c_str());
    for (auto const& b : v.breaches)
        std::printf("%.*s: %s\n", static_cast<int>(b.which.size()), b.which.data(), b.what.c_str());
    std::printf("%llu holds granted, %s\ntrace hash %016llx\n", static_cast<unsigned long long>(v.acquired),
                v.breaches.empty() ? "nothing is wrong" : "something is wrong",
                static_cast<unsigned long long>(v.hash));
    return v.breaches.empty();
}

/// Returns: the fewest decisions with which the seed still fails in the same way; nothing where it does not fail.
[[nodiscard]] inline std::optional<std::vector<sim::decision>> shortest_failure(machine const& m, std::uint64_t seed)
{
    auto const whole = m.run(seed, {.remember = true});
    if (whole.breaches.empty()) return {};
    auto const which = whole.breaches.front().which;
    return shrinking::shortest(whole.decisions, [&](shrinking::list const& keep) -> std::optional<shrinking::list> {
        auto const v = m.run(seed, {.keep = keep, .remember = true});
        bool const same =
            std::any_of(v.breaches.begin(), v.breaches.end(), [&](auto const& b) { return b.which == which; });
        return same ? std::optional{v.decisions} : std::nullopt;
    });
}

}  // namespace holdfast::test
