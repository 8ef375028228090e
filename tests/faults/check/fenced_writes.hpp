// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace holdfast::faults {

/// What the register that checks tokens did with the writes of one run.
struct fenced_writes {
    std::size_t taken = 0;
    std::size_t stale_taken = 0;  ///< after one of a holder that asked for the lock later than this one was granted it;
                                  ///< two shared holds are not compared
    std::size_t stale_refused = 0;  ///< of a holder whose hold was over
    std::size_t good_refused = 0;   ///< of one whose hold was not
    breaches found;
};

/// K3. Returns: what the register did, and as breaches the stale writes that it took, the good ones that it refused,
/// and whether it refused fewer stale ones than `least_refused`: where holders were paused, it must have refused some.
[[nodiscard]] inline fenced_writes check_fenced_writes(std::vector<record> const& records,
                                                       std::size_t least_refused = 0)
{
    fenced_writes result;
    for (auto const& [lock, holds] : holds_of(records)) {
        std::map<std::pair<std::uint32_t, std::uint32_t>, hold const*> of;
        for (auto const& h : holds) of[{h.client, h.number}] = &h;
        std::vector<std::pair<std::uint64_t, hold const*>> taken;
        for (auto const& r : records) {
            auto const whose = of.find({r.client, r.hold});
            if (r.lock != lock || whose == of.end()) continue;
            if (r.what == event::write_taken) taken.emplace_back(r.value, whose->second);
            if (r.what == event::write_refused && r.at < whose->second->over()) {
                ++result.good_refused;
                result.found.push_back("the register refused a write of " + whose->second->name() +
                                       ", which held the lock");
            } else if (r.what == event::write_refused) {
                ++result.stale_refused;
            }
        }
        std::sort(taken.begin(), taken.end());
        std::int64_t newest_of_all = 0;
        std::int64_t newest_alone = 0;
        for (auto const& [turn, h] : taken) {
            ++result.taken;
            if (h->granted < (h->shared ? newest_alone : newest_of_all)) {
                ++result.stale_taken;
                result.found.push_back("the register took a stale write of " + h->name());
            }
            newest_of_all = std::max(newest_of_all, h->begun);
            if (!h->shared) newest_alone = std::max(newest_alone, h->begun);
        }
    }
    if (result.stale_refused < least_refused)
        result.found.push_back("the register refused " + std::to_string(result.stale_refused) +
                               " stale writes, of which there should have been " + std::to_string(least_refused) +
                               " at least");
    return result;
}

}  // namespace holdfast::faults
