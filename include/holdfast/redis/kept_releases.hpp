// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/pending_command.hpp>
#include <holdfast/redis/protocol.hpp>

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

namespace holdfast::redis {

/// Releases for whose answers nobody waits, of what may be there: the answer to an acquire was lost, or that to a release; or the server
/// refused the release for now. One for each owner token, and not more than `most`.
///
/// | sent                                                          | how many |
/// |---------------------------------------------------------------|----------|
/// | over the next connection to the node, before all else         | all |
/// | over one that stands, ahead of a command that asks for a vote | one: it may be refused again |
/// | behind a yes or no to such a command                          | one |
/// | behind a yes or no to a release                               | all |
class kept_releases {
public:
    static constexpr std::size_t most = 1024;

    /// Effects: keeps the release of what `c` acquires or releases. Where there is no memory for it, what is there dies with its ttl.
    void keep(command c, boot_clock::time_point now) noexcept
    try {
        c.what = command::verb::release;
        pending_commands one;
        one.push_back({.what = std::move(c), .since = now});
        keep_first(one);
    } catch (std::bad_alloc const&) {
    }

    /// Effects: keeps the first of `some`, which leaves them. Requires: it is a release that nobody waits for.
    void keep_first(pending_commands& some) noexcept
    {
        bool const room = kept_.size() < most && !has(some.front().what.token);
        pending_commands one;
        one.splice(one.end(), some, some.begin());
        one.front().form = script_form::by_text;
        if (room) kept_.splice(kept_.end(), one);
    }

    /// Effects: keeps none for `token`.
    void drop(owner_token const& token) noexcept
    {
        kept_.remove_if([&](pending_command const& e) { return e.what.token == token; });
    }

    [[nodiscard]] bool has(owner_token const& token) const noexcept
    {
        return std::any_of(kept_.begin(), kept_.end(), [&](pending_command const& e) { return e.what.token == token; });
    }

    /// Returns: those that are still to be sent, to be taken from there.
    [[nodiscard]] pending_commands& wanted(boot_clock::time_point now) noexcept
    {
        kept_.remove_if([&](pending_command const& e) { return !e.wanted(now); });
        return kept_;
    }

private:
    pending_commands kept_;
};

}  // namespace holdfast::redis
