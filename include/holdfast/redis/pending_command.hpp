// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/listener.hpp>
#include <holdfast/redis/script_forms.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <list>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// A command that one node has not answered yet.
struct pending_command {
    command what;
    listener* whom = nullptr;          ///< null: no listener waits for the answer
    boot_clock::time_point since{};    ///< when it was asked for
    boot_clock::time_point written{};  ///< when it was put on the wire; the epoch: not yet
    script_form form = script_form::by_text;
    std::error_code failed{};  ///< why there is no answer; `whom` must still be told
    bool leaves = false;       ///< its waiter waits no longer: a leave follows if it is refused
    bool in_company = false;   ///< it is asked for together with others: see `join_renewals`
    bool alone = false;        ///< it was refused with others, and is asked for alone

    [[nodiscard]] bool asks_for_vote() const noexcept { return redis::asks_for_vote(what); }
    [[nodiscard]] bool acquires() const noexcept
    {
        return what.what == command::verb::acquire || what.what == command::verb::acquire_all;
    }
    [[nodiscard]] bool releases() const noexcept { return what.what == command::verb::release; }
    [[nodiscard]] bool extends() const noexcept { return redis::extends(what); }
    [[nodiscard]] bool on_the_wire() const noexcept { return written != boot_clock::time_point{}; }

    /// Returns: the command whose answer `l` waits for at `node`, or null.
    [[nodiscard]] static pending_command* of(listener const& l, unsigned node) noexcept
    {
        return static_cast<pending_command*>(listener_link::get(l, node));
    }

    /// Effects: a leave follows if the node refuses the command of `l`, an acquire: its waiter waits no longer.
    static void leave_if_refused(listener const& l, unsigned node) noexcept
    {
        if (auto* const e = of(l, node)) e->leaves = true;
    }

    /// Effects: no listener waits for it any more. Returns: the one that did, or null.
    listener* let_go(unsigned node) noexcept
    {
        if (whom) listener_link::set(*whom, node, nullptr);
        return std::exchange(whom, nullptr);
    }

    /// Effects: if this is an acquire that a leave follows, and `a` is its refusal, this is that leave from now on: the
    /// node would call the waiter, or wait for it. Returns: whether it is.
    [[nodiscard]] bool follows_with_leave(answer const& a) noexcept
    {
        if (!leaves || what.what != command::verb::acquire || !what.waiter || a.what != answer::kind::refused)
            return false;
        what.what = command::verb::leave;
        what.use_queue = !what.queue_refused;  // the node then calls the next one in line
        what.token = {};                       // it may arrive late, and is not to end a lease
        what.score = 0;
        written = {};
        return true;
    }

    /// Effects: prepares it to be asked again after `why`: alone, or with less in it.
    void ask_in_another_form(std::error_code why) noexcept
    {
        written = {};
        what.together = 1;
        what.also = nullptr;
        if (in_company && script_forms::about_one(why))
            alone = true;
        else if (script_forms::refuses_more(what, why))
            what.refuse_next();
    }

    /// Returns: whether it was asked for together with others, and is not the first of them.
    [[nodiscard]] bool follows() const noexcept { return in_company && what.together == 1; }

    /// Returns: whether it must still be sent: an operation waits for the answer, or it is a release of a key that may
    /// still be there. The key expires after its ttl.
    [[nodiscard]] bool wanted(boot_clock::time_point now) const noexcept
    {
        bool const endless = what.ttl.count() == 0;
        auto const there = endless ? longest_ttl : std::max<std::chrono::milliseconds>(what.ttl, shortest_keeping);
        return whom || (releases() && now - since < there);
    }

private:
    /// A server that stood still keeps a key for longer.
    static constexpr std::chrono::seconds shortest_keeping{30};
};

/// Elements move from one list to another without allocation.
using pending_commands = std::list<pending_command>;

/// The commands that fail, until their listeners are told.
class failed_commands {
public:
    struct failure {
        listener* whom = nullptr;  ///< null: no more
        std::error_code why{};
    };

    /// Effects: adds the only element of `one`.
    void add(pending_commands& one, std::error_code why) noexcept
    {
        one.front().failed = why;
        all_.splice(all_.end(), one);
    }

    /// Returns: a listener that gets no answer from `node`, and why.
    [[nodiscard]] failure next(unsigned node) noexcept
    {
        while (!all_.empty()) {
            failure const one{all_.front().let_go(node), all_.front().failed};
            all_.pop_front();
            if (one.whom) return one;
        }
        return {};
    }

private:
    pending_commands all_;
};

/// Returns: the first of `some`, which it is taken out of, alone.
[[nodiscard]] inline pending_commands take_first(pending_commands& some) noexcept
{
    pending_commands one;
    one.splice(one.end(), some, some.begin());
    return one;
}

/// The memory of commands that were answered, which is used again: as many as there are renewals under way are more
/// than malloc keeps for a quick start.
class spare_commands {
public:
    /// Returns: `c` alone. Throws: `std::bad_alloc`.
    [[nodiscard]] pending_commands make(pending_command c)
    {
        pending_commands one;
        if (free_.empty())
            one.emplace_back();
        else
            one.splice(one.end(), free_, free_.begin());
        one.front() = std::move(c);
        return one;
    }

    /// Effects: takes the memory of the only element of `one`, if it has one.
    void keep(pending_commands& one) noexcept
    {
        if (one.empty() || free_.size() == most) return;
        one.front().what.keys = nullptr;
        one.front().what.members = nullptr;
        free_.splice(free_.begin(), one);
    }

private:
    static constexpr std::size_t most = 96;

    pending_commands free_;
};

/// What was not answered in this time is late, also if it comes from another continent.
inline constexpr std::chrono::milliseconds usual_answer{100};

/// Returns: whether one of the lists has a release of `by` or before whose answer no listener waits for.
template <class... Lists>
[[nodiscard]] bool any_unheard(boot_clock::time_point by, Lists const&... lists) noexcept
{
    auto const unheard = [&](pending_command const& e) { return e.releases() && !e.whom && e.since <= by; };
    return (std::any_of(lists.begin(), lists.end(), unheard) || ...);
}

/// Returns: whether one of the lists has a command for `token` whose sender will release the token itself: an
/// extension, which comes from the holder, or another command, not a release, whose answer an operation waits for.
template <class... Lists>
[[nodiscard]] bool asked_again(owner_token const& token, Lists const&... lists) noexcept
{
    auto const asks = [&](pending_command const& e) {
        return (e.extends() || (e.whom && !e.releases())) && e.what.token == token;
    };
    return (std::any_of(lists.begin(), lists.end(), asks) || ...);
}

}  // namespace holdfast::redis
