// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/keys.hpp>
#include <holdfast/redis/pending_command.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Releases to send once more, whose answers no operation waits for. The answer to an acquire or to a release was lost,
/// or the server refused the release for now. There is one for each owner token, and at most `most`.
///
/// | sent                                                  | how many |
/// |-------------------------------------------------------|----------|
/// | over the next connection to the node, before all else | all: others wait for these locks |
/// | ahead of an acquire or a renewal of the same lock     | those of that lock |
/// | after a pause, if no such release is under way        | one: it may be refused again. Connects if there is need |
/// | after a yes or no to a release                        | all |
class release_retries {
public:
    static constexpr std::size_t most = 1024;

    /// Effects: keeps the release of what `c` acquires or releases. Without memory for it, the key expires after its
    /// ttl.
    void keep(command c, boot_clock::time_point now) noexcept
    try {
        if (auto const all = std::exchange(c.members, nullptr)) {
            for (auto const& m : *all) keep({.keys = m.keys, .token = m.token, .ttl = m.ttl}, now);
            return;
        }
        c.rolls_back = c.rolls_back || asks_for_vote(c);
        c.what = command::verb::release;
        c.use_queue = !c.queue_refused;  // also of one that does not wait itself
        pending_commands one;
        one.push_back({.what = std::move(c), .since = now});
        keep_first(one);
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as said above
    }

    /// Effects: moves the first of `some` here. Requires: it is a release that no operation waits for.
    void keep_first(pending_commands& some) noexcept
    {
        auto one = take_first(some);
        auto& again = one.front();
        again.written = {};
        again.what.waiter = {};  // the wait may be over when it is sent, or have begun anew
        again.what.score = 0;
        if (auto const same = find(again.what.token); same != kept_.end()) {
            same->since = std::max(same->since, again.since);
            same->what.rolls_back = same->what.rolls_back && again.what.rolls_back;
            bool const endless = same->what.ttl.count() == 0 || again.what.ttl.count() == 0;
            same->what.ttl = endless ? std::chrono::milliseconds{0} : std::max(same->what.ttl, again.what.ttl);
        } else {
            kept_.splice(kept_.end(), one);
        }
        if (kept_.size() > most) kept_.pop_front();  // it is the oldest
    }

    /// Effects: drops the one for `token`: it is sent now, or the token's holder has the lock and will release it.
    void drop(owner_token const& token) noexcept
    {
        if (auto const found = find(token); found != kept_.end()) kept_.erase(found);
    }

    /// Effects: moves those of the lock of `c`, or of its locks, to the end of `to`.
    void take(command const& c, pending_commands& to) noexcept
    {
        for (auto next = kept_.begin(); next != kept_.end();)
            if (auto const one = next++; is_about(c, *one->what.keys)) to.splice(to.end(), kept_, one);
    }

    /// Effects: moves up to `count` of those that must still be sent to the end of `to`.
    void take(std::size_t count, pending_commands& to, boot_clock::time_point now) noexcept
    {
        kept_.remove_if([&](pending_command const& e) { return !e.wanted(now); });
        auto const end = std::next(kept_.begin(), static_cast<std::ptrdiff_t>(std::min(count, kept_.size())));
        to.splice(to.end(), kept_, kept_.begin(), end);
    }

    [[nodiscard]] bool empty() const noexcept { return kept_.empty(); }

private:
    [[nodiscard]] static bool is_about(command const& c, lock_keys const& keys) noexcept
    {
        auto const same = [&](auto const& one) { return one.keys && one.keys->lock == keys.lock; };
        return c.members ? std::any_of(c.members->begin(), c.members->end(), same) : same(c);
    }

    [[nodiscard]] pending_commands::iterator find(owner_token const& token) noexcept
    {
        return std::find_if(kept_.begin(), kept_.end(), [&](auto const& e) { return e.what.token == token; });
    }

    pending_commands kept_;
};

}  // namespace holdfast::redis
