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

}  // namespace holdfast::redis
