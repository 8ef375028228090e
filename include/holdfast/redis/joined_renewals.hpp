// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/many_scripts.hpp>
#include <holdfast/redis/pending_command.hpp>
#include <holdfast/redis/script_forms.hpp>
#include <holdfast/redis/script_table.hpp>

#include <iterator>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Returns: whether `one`, which is not written yet, may be asked for together with others.
[[nodiscard]] inline bool may_join(pending_command const& one, script_forms const& forms) noexcept
{
    if (one.what.what != command::verb::extend || one.alone || !forms.joins()) return false;
    return scripts::many_of(script_of(one.what)).most > 1;
}

/// Effects: decides how many of `ready` are written next, as one request: if the first is a renewal, the renewals that
/// follow it and have the same script. They are equipped. Requires: `ready` is not empty.
///
/// The answer has what the server says to each. An error is the answer to all. If it may be about one of them (for want
/// of a right to one key, the server refuses all), each is asked for alone: a renewal that is done twice is harmless.
inline void join_renewals(pending_commands& ready, script_forms const& forms, std::string_view holder) noexcept
{
    auto const unjoin = [&](pending_command& one) {
        one.what.together = 1;
        one.what.also = nullptr;
        one.in_company = false;
        forms.equip(one.what, holder);
    };
    auto& first = ready.front();
    unjoin(first);
    if (!may_join(first, forms)) return;
    auto const& script = script_of(first.what);
    auto const most = scripts::many_of(script).most;
    unsigned count = 1;
    for (auto last = ready.begin(), one = std::next(last); one != ready.end() && count < most; last = one++) {
        unjoin(*one);
        if (!may_join(*one, forms) || &script_of(one->what) != &script) break;
        last->what.also = &one->what;
        last->in_company = one->in_company = true;
        ++count;
    }
    first.what.together = count;
}

}  // namespace holdfast::redis
