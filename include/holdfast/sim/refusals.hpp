// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/script.hpp>
#include <holdfast/redis/script_forms.hpp>
#include <holdfast/redis/script_table.hpp>
#include <holdfast/sim/world.hpp>

#include <algorithm>
#include <optional>
#include <set>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// Which client sent a command, and how it came.
struct sender {
    unsigned client = event::nobody;
    redis::script_form form = redis::script_form::by_text;
};

/// Why a simulated server does not do what it is asked for, though it runs.
class refusals {
public:
    /// Effects: until `t` it answers with `why`, as a server does that reads its data (`loading`), runs a long script
    /// (`busy`), is a replica for a while (`read_only`), or has no memory for more keys (`out_of_memory`).
    void refuse_until(boot_clock::time_point t, redis::errc why) noexcept
    {
        until_ = std::max(until_, t);
        why_ = why;
    }

    /// Effects: it knows no script any more.
    void forget_scripts() noexcept { scripts_.clear(); }

    /// Effects: from now on the client has the right to the queues of waiters; the client has it no more.
    void permit_queues(unsigned client) { without_queues_.erase(client); }
    void refuse_queues(unsigned client) { without_queues_.insert(client); }

    /// Effects: it was started anew.
    void restart() noexcept
    {
        until_ = {};
        forget_scripts();
    }

    /// Effects: it knows the script of `c` from now on, if that came as a text. Returns: what it answers at `now`
    /// instead of doing `c`; nothing if it does it.
    [[nodiscard]] std::optional<redis::answer> refuses(redis::command const& c, sender const& from,
                                                       boot_clock::time_point now)
    {
        if (now < until_ && concerns(c)) return redis::answer::failed(why_);
        auto const* const script = &redis::script_of(c);
        if (from.form == redis::script_form::by_text) scripts_.insert(script);
        if (!scripts_.contains(script)) return redis::answer::failed(redis::errc::no_script);
        if (c.use_queue && redis::may_queue(c) && without_queues_.contains(from.client))
            return redis::answer::failed(redis::errc::not_permitted);
        return std::nullopt;
    }

private:
    /// Returns: whether that is refused, too. A server without memory does what needs none.
    [[nodiscard]] bool concerns(redis::command const& c) const noexcept
    {
        return why_ != redis::errc::out_of_memory || redis::asks_for_vote(c) || c.what == redis::command::verb::confirm;
    }

    boot_clock::time_point until_{};
    redis::errc why_ = redis::errc::loading;
    std::set<redis::script const*> scripts_;
    std::set<unsigned> without_queues_;
};

}  // namespace holdfast::sim
