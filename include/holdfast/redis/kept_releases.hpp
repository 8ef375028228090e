// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/pending_command.hpp>
#include <holdfast/redis/protocol.hpp>

#include <algorithm>
#include <chrono>
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

    /// Effects: keeps the release of what `c` acquires or releases; a release that was `written` may still arrive. Where there is no memory for
    /// it, what is there dies with its ttl.
    void keep(command c, boot_clock::time_point now, boot_clock::time_point written = {}) noexcept
    try {
        c.what = command::verb::release;
        pending_commands one;
        one.push_back({.what = std::move(c), .since = now, .written = written});
        keep_first(one);
    } catch (std::bad_alloc const&) {
    }

    /// Effects: keeps the first of `some`, which leaves them. Requires: it is a release that nobody waits for.
    void keep_first(pending_commands& some) noexcept
    {
        pending_commands one;
        one.splice(one.end(), some, some.begin());
        one.front().form = script_form::by_text;
        if (auto const same = find(one.front().what.token); same != kept_.end()) {
            auto const& again = one.front();
            same->written = std::max(same->written, again.written);
            same->since = std::max(same->since, again.since);
            bool const endless = same->what.ttl.count() == 0 || again.what.ttl.count() == 0;
            same->what.ttl = endless ? std::chrono::milliseconds{0} : std::max(same->what.ttl, again.what.ttl);
        } else {
            kept_.splice(kept_.end(), one);
        }
        if (kept_.size() > most) kept_.pop_front();  // its key dies before those of the others
    }

    /// Effects: keeps none for `token`: it is sent now.
    void drop(owner_token const& token) noexcept
    {
        kept_.remove_if([&](pending_command const& e) { return e.what.token == token; });
    }

    /// Effects: keeps none for `token`, which is extended: who does that has the lock, and will release it himself. One that may still arrive is
    /// kept all the same, and sent ahead of the extension: otherwise it would free what that has counted.
    void drop_extended(owner_token const& token) noexcept
    {
        kept_.remove_if([&](pending_command const& e) { return e.what.token == token && e.written == boot_clock::time_point{}; });
    }

    [[nodiscard]] bool has(owner_token const& token) noexcept { return find(token) != kept_.end(); }

    /// Returns: those that are still to be sent, to be taken from there.
    [[nodiscard]] pending_commands& wanted(boot_clock::time_point now) noexcept
    {
        kept_.remove_if([&](pending_command const& e) { return !e.wanted(now); });
        return kept_;
    }

private:
    [[nodiscard]] pending_commands::iterator find(owner_token const& token) noexcept
    {
        return std::find_if(kept_.begin(), kept_.end(), [&](pending_command const& e) { return e.what.token == token; });
    }

    pending_commands kept_;
};

}  // namespace holdfast::redis
