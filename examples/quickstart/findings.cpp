// SPDX-License-Identifier: MIT
#include "findings.hpp"

#include <algorithm>
#include <chrono>
#include <span>

namespace quickstart {
namespace {

using duration = findings::duration;

/// A gap that is due to a fault begins within this time.
constexpr std::chrono::milliseconds consequences{400};

/// Returns: when nobody can rely on this hold any more.
time_point end_of(section const& s)
{
    return s.late ? std::min(s.lease_end, s.released) : s.released;
}

void judge_holds(findings& f)
{
    time_point last_end{};
    section const* last = nullptr;
    for (auto const& s : f.in_order) {
        if (last && s.acquired < last_end) ++f.overlapping;
        if (last && s.worker != last->worker && !last->late) f.hand_overs.push_back(s.acquired - last->released);
        last_end = std::max(last_end, end_of(s));
        last = &s;
    }
    std::sort(f.hand_overs.begin(), f.hand_overs.end());
}

/// The longest time in which no work was done that counts: a late holder's does not.
duration longest_gap(std::span<section const> in_order, time_point from, time_point until)
{
    duration longest{};
    auto worked_until = time_point::max();
    for (auto const& s : in_order) {
        if (s.late) continue;
        bool const concerns = s.acquired > from && worked_until < until;
        if (concerns) longest = std::max(longest, s.acquired - worked_until);
        worked_until = worked_until == time_point::max() ? s.released : std::max(worked_until, s.released);
    }
    return longest;
}

/// Each section finds what the one before it wrote, or what a late one wrote in between; otherwise it overwrites what
/// is between.
void judge_counter(findings& f, std::uint64_t at_the_end)
{
    std::vector<std::uint64_t> late;
    std::uint64_t written = 0;
    auto const find = [&](std::uint64_t seen) {
        if (seen >= written) return;
        auto const by_late = std::find(late.begin(), late.end(), seen);
        (by_late == late.end() ? f.lost : f.lost_to_late) += written - seen;
        if (by_late != late.end()) late.erase(by_late);
    };
    for (auto const& s : f.in_order)
        if (s.late) late.push_back(s.seen + 1);
    for (auto const& s : f.in_order) {
        if (s.late) continue;
        find(s.seen);
        written = s.seen + 1;
    }
    find(at_the_end);
}

void judge_register(findings& f)
{
    std::vector<section const*> taken;
    for (auto const& s : f.in_order) {
        if (s.late) ++f.late;
        if (s.register_turn != 0)
            taken.push_back(&s);
        else
            ++(s.late ? f.stale_refused : f.good_refused);
    }
    std::sort(taken.begin(), taken.end(),
              [](auto const* a, auto const* b) { return a->register_turn < b->register_turn; });
    time_point newest{};
    for (auto const* s : taken) {
        if (s->acquired < newest) ++f.stale_accepted;
        newest = std::max(newest, s->acquired);
    }
}

}  // namespace

findings judge(board const& shared, history const& h)
{
    findings f;
    for (auto const& one : shared.journals)
        f.in_order.insert(f.in_order.end(), one.entries().begin(), one.entries().end());
    std::sort(f.in_order.begin(), f.in_order.end(),
              [](auto const& a, auto const& b) { return a.acquired < b.acquired; });
    judge_holds(f);
    judge_counter(f, shared.counter);
    judge_register(f);
    for (auto const& s : f.in_order)
        if (s.late && s.worker == h.stopped_worker) f.lease_left = s.lease_end - h.stopped;
    for (auto const& one : h.faults) f.longest_gaps.push_back(longest_gap(f.in_order, one.at, one.at + consequences));
    auto const first_fault = h.faults.front().at;
    auto const before =
        std::find_if(f.in_order.begin(), f.in_order.end(), [&](section const& s) { return s.acquired >= first_fault; });
    f.quiet_gap = longest_gap({f.in_order.begin(), before}, h.begin, first_fault);
    return f;
}

}  // namespace quickstart
