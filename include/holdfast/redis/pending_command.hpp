// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/protocol.hpp>
#include <holdfast/redis/transport.hpp>

#include <algorithm>
#include <chrono>
#include <list>
#include <utility>

namespace holdfast::redis {

/// A command that one node has not answered yet.
struct pending_command {
    command what;
    listener* whom = nullptr;          ///< null: nobody waits for the answer
    boot_clock::time_point since{};    ///< when it was asked for; of a release that is kept, from when on
    boot_clock::time_point written{};  ///< when it was put on the wire, the last time
    script_form form = script_form::by_text;

    [[nodiscard]] bool asks_for_vote() const noexcept { return redis::asks_for_vote(what); }
    [[nodiscard]] bool acquires() const noexcept { return asks_for_vote() && !extends(); }
    [[nodiscard]] bool releases() const noexcept { return what.what == command::verb::release; }
    [[nodiscard]] bool extends() const noexcept { return redis::extends(what); }

    /// Returns: what `l` waits for at `node`; null: nothing.
    [[nodiscard]] static pending_command* of(listener const& l, unsigned node) noexcept
    {
        return static_cast<pending_command*>(listener_link::get(l, node));
    }

    /// Effects: nobody waits for it any more. Returns: who did; null: nobody.
    listener* let_go(unsigned node) noexcept
    {
        if (whom) listener_link::set(*whom, node, nullptr);
        return std::exchange(whom, nullptr);
    }

    /// Returns: whether it is still to be sent: somebody wants the answer, or it frees what may be there, which is gone by itself after its ttl.
    [[nodiscard]] bool wanted(boot_clock::time_point now) const noexcept
    {
        auto const there = what.ttl.count() == 0 ? longest_ttl : std::max<std::chrono::milliseconds>(what.ttl, shortest_keeping);
        return whom || (releases() && now - since < there);
    }

private:
    /// A server that stood still has the key for longer.
    static constexpr std::chrono::seconds shortest_keeping{30};
};

/// Elements go from one to another without memory.
using pending_commands = std::list<pending_command>;

/// Returns: whether somebody waits for the answer to an acquire or an extend for `token` among `some`, and will release it himself.
[[nodiscard]] inline bool asked_again(pending_commands const& some, owner_token const& token) noexcept
{
    return std::any_of(some.begin(), some.end(), [&](pending_command const& e) { return e.whom && !e.releases() && e.what.token == token; });
}

}  // namespace holdfast::redis
