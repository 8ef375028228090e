// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/lock/kept.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace holdfast::detail {

/// What a keeper looks after, and when. No clock, thread or lock of its own: guarded by the keeper's mutex. Each entry has the time at which
/// its renewal is due, and that of its end, at which it is lost.
///
/// | an entry | in the order of | left by |
/// |----------|-----------------|---------|
/// | none     |                 | put → later |
/// | later    | when it is due  | then → due |
/// | due      | its end: the first to end is taken first, as in "earliest deadline first" | there is room, or its end has come: taken → none |
/// | any      |                 | cancel → none; an alarm → due, and its end has come |
///
/// Nobody waits for ever while there is room now and then: an end comes nearer by itself, and in the end nobody's is earlier.
/// Source: Liu and Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment", JACM 1973.
class schedule {
public:
    struct ticket;

private:
    struct entry {
        std::weak_ptr<kept> whom;
        ticket* of;
        boot_clock::time_point end;
    };
    using line = std::multimap<boot_clock::time_point, entry>;

public:
    /// A place in the schedule; its memory is allocated beforehand, so that scheduling cannot fail.
    struct ticket {
        line::node_type spare;
        line::iterator place{};
        line* in = nullptr;
        std::uint64_t alarms = 0;  ///< how many there had been when it was looked after last, canceled or prepared

        /// Returns: whether `schedule::prepare` was called.
        [[nodiscard]] bool prepared() const noexcept { return in || spare; }
    };

    /// Whose turn it is.
    struct turn {
        std::shared_ptr<kept> whom;  ///< null: nobody's
        bool alarmed = false;        ///< because there was an alarm
    };

    schedule() = default;
    schedule(schedule const&) = delete;
    schedule& operator=(schedule const&) = delete;

    /// Effects: allocates what `t` needs as the ticket of `whom`. May be called without the mutex.
    static void prepare(ticket& t, std::weak_ptr<kept> whom)
    {
        line one;
        one.emplace(boot_clock::time_point{}, entry{std::move(whom), &t, {}});
        t.spare = one.extract(one.begin());
    }

    /// Effects: the renewal of `t` is due at `due`, and its end is at `end`, in place of what was said before; both at once where there was an
    /// alarm since it was looked after last.
    void put(ticket& t, boot_clock::time_point due, boot_clock::time_point end) noexcept
    {
        if (t.alarms != alarms_) due = end = at_once;
        auto node = t.in ? out(*t.in, t.place) : std::move(t.spare);
        if (!node) __builtin_unreachable();  // it was prepared
        node.key() = std::min(due, end);
        node.mapped().end = end;
        add(later_, std::move(node));
    }

    void cancel(ticket& t) noexcept
    {
        t.alarms = alarms_;
        if (t.in) release(out(*t.in, t.place));
    }

    /// Effects: the end of all has come.
    void alarm() noexcept
    {
        ++alarms_;
        line all;
        all.swap(due_);
        while (!all.empty()) add_with_end(out(all, all.begin()), at_once);
        while (!later_.empty()) add_with_end(out(later_, later_.begin()), at_once);
    }

    /// Effects: takes out whose turn it is at `now`: whose end has come; where there is `room` for a renewal, also whose renewal is due.
    [[nodiscard]] turn take(boot_clock::time_point now, bool room) noexcept
    {
        while (!later_.empty() && later_.begin()->first <= now) {
            auto node = out(later_, later_.begin());
            auto const end = node.mapped().end;
            add_with_end(std::move(node), end);
        }
        while (!due_.empty() && (room || due_.begin()->first <= now)) {
            auto node = out(due_, due_.begin());
            turn one{node.mapped().whom.lock(), std::exchange(node.mapped().of->alarms, alarms_) != alarms_};
            release(std::move(node));
            if (one.whom) return one;  // otherwise its destructor waits for the mutex to cancel the ticket
        }
        return {};
    }

    /// Returns: when somebody's turn may come without room being made.
    [[nodiscard]] boot_clock::time_point next() const noexcept
    {
        auto const first = [](line const& l) { return l.empty() ? boot_clock::time_point::max() : l.begin()->first; };
        return std::min(first(later_), first(due_));
    }

    static constexpr auto at_once = boot_clock::time_point{};

private:
    /// Returns: what is at `place`. GCC's optimiser knows so that it is something, and does not warn of null in users' files.
    static line::node_type out(line& of, line::iterator place) noexcept
    {
        auto node = of.extract(place);
        if (!node) __builtin_unreachable();
        return node;
    }

    static void add(line& to, line::node_type node) noexcept
    {
        auto& of = *node.mapped().of;
        of.place = to.insert(std::move(node));
        of.in = &to;
    }

    void add_with_end(line::node_type node, boot_clock::time_point end) noexcept
    {
        node.key() = node.mapped().end = end;
        add(due_, std::move(node));
    }

    static void release(line::node_type node) noexcept
    {
        auto& of = *node.mapped().of;
        of.in = nullptr;
        of.spare = std::move(node);
    }

    line later_;  // by when they are due
    line due_;    // by their end
    std::uint64_t alarms_ = 0;
};

}  // namespace holdfast::detail
