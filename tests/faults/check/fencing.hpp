// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

namespace holdfast::faults {

/// K2. Returns: where a fencing token of one lock is missing, is there twice, or is not greater than that of a hold
/// which was granted before this one was asked for. The tokens of two shared holds are not compared.
[[nodiscard]] inline breaches check_fencing(std::vector<record> const& records)
{
    breaches found;
    for (auto const& [lock, holds] : holds_of(records)) {
        auto const say = [&, n = lock](hold const& h, std::string const& what) {
            found.push_back("lock " + std::to_string(n) + ": " + h.name() + " has token " + std::to_string(h.token) +
                            ", " + what);
        };
        std::set<std::uint64_t> seen;
        std::set<std::uint64_t> seen_alone;
        std::vector<hold const*> by_begin;
        for (auto const& h : holds) {
            if (h.token == 0) say(h, "which is none");
            if ((h.shared ? seen_alone : seen).contains(h.token)) say(h, "as another hold has");
            seen.insert(h.token);
            if (!h.shared) seen_alone.insert(h.token);
            by_begin.push_back(&h);
        }
        std::stable_sort(by_begin.begin(), by_begin.end(),
                         [](auto const* a, auto const* b) { return a->begun < b->begun; });
        hold const* greatest_of_all = nullptr;
        hold const* greatest_alone = nullptr;
        auto granted = holds.begin();
        for (auto const* h : by_begin) {
            for (; granted != holds.end() && granted->granted < h->begun; ++granted) {
                if (!greatest_of_all || granted->token > greatest_of_all->token) greatest_of_all = &*granted;
                if (!granted->shared && (!greatest_alone || granted->token > greatest_alone->token))
                    greatest_alone = &*granted;
            }
            auto const* const greatest = h->shared ? greatest_alone : greatest_of_all;
            if (greatest && h->token < greatest->token)
                say(*h, "after " + greatest->name() + " had " + std::to_string(greatest->token));
        }
    }
    return found;
}

}  // namespace holdfast::faults
