// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

/// What the callers were told is what a mutex would have told them that knows its owner and whose leases end: there is
/// an order of all calls, each at one moment between its begin and its end, in which every answer is right.
///
/// | call              | right where                                                     | then |
/// |-------------------|-----------------------------------------------------------------|------|
/// | acquire, done     | nobody has it, or the lease of the one who has it is over       | it is the caller's |
/// | acquire, refused  | another has it, or asks for it at the same time                 | |
/// | renew, done       | it is the caller's                                              | the lease ends later |
/// | renew, refused    | it is not the caller's; or its lease is over, and may have ended | nobody who was refused has it |
/// | release, done     | it is the caller's; or its lease is over                        | nobody has it, if it was the caller's |
/// | release, refused  | as renew                                                        | as renew |
///
/// An unknown acquire may have taken the lock at any time since its call, for a lease that nobody counts on; an unknown
/// release may have freed it at any time since. A lease may end at any time after `until`, and not before.
/// Source: M. Herlihy and J. Wing, "Linearizability: a correctness condition for concurrent objects", 1990; the search
/// is theirs, with the memory of G. Lowe, "Testing for linearizability", 2017. The earliest moment that a call can have
/// is the best one: what is right then and what comes behind stays right, so only the order is searched for.
class linearizability {
public:
    struct rules {
        /// A request that was given up, or was repeated, may still take the lock, for nobody: whoever is refused is
        /// right.
        bool ghosts = false;
        /// Servers forget: a lease may be refused to its owner at any time, though nobody else can have it yet.
        bool forgetful = false;
        /// There are several servers: a release that finds too little to be the owner's frees what there is.
        bool partial = false;
    };

    /// Returns: what is wrong with a history; nothing where all is well.
    [[nodiscard]] static std::optional<std::string> breach(calls const& all, rules r)
    {
        linearizability search{all, r};
        if (search.go_on({}, nobody, {}, {})) return {};
        auto const& worst = *search.furthest_;
        return "no mutex would have told them so: at the latest, client " + std::to_string(worst.client) +
               " was told " + name(worst) + " at " + std::to_string(worst.returned.time_since_epoch().count()) + " ns";
    }

private:
    using time_point = boot_clock::time_point;
    using places = std::vector<std::size_t>;
    static constexpr std::size_t nobody = static_cast<std::size_t>(-1);

    linearizability(calls const& all, rules r) : rules_{r}
    {
        for (auto const& one : all) {
            if (one.told == call::answer::unknown) {
                if (one.what == call::kind::acquire) rules_.ghosts = true;
                if (one.what == call::kind::release) freed_.emplace(one.claim, one.called);
                continue;
            }
            if (one.told == call::answer::done && one.what != call::kind::release)
                over_[one.claim] = std::max(over_[one.claim], one.until);
            if (one.client >= lines_.size()) lines_.resize(one.client + 1);
            lines_[one.client].push_back(&one);
            if (one.what == call::kind::acquire) acquires_.push_back(&one);
        }
    }

    /// Returns: whether what is left can be put in order behind what was, the last at `now`.
    bool go_on(places at, std::size_t owner, time_point until, time_point now)
    {
        at.resize(lines_.size());
        auto const [seen, fresh] = seen_.try_emplace({at, owner}, std::pair{now, until});
        if (!fresh) {
            if (seen->second.first <= now && seen->second.second <= until) return false;
            seen->second = {now, until};
        }
        auto limit = time_point::max();
        bool left = false;
        for (std::size_t i = 0; i < lines_.size(); ++i)
            if (at[i] < lines_[i].size()) {
                left = true;
                limit = std::min(limit, lines_[i][at[i]]->returned);
            }
        if (!left) return true;
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            if (at[i] == lines_[i].size()) continue;
            auto const& one = *lines_[i][at[i]];
            if (one.called > limit) continue;
            auto next = at;
            ++next[i];
            auto const t = std::max(now, one.called);
            if (t <= one.returned && answers(one, std::move(next), owner, until, t)) return true;
            if (!furthest_ || one.returned > furthest_->returned) furthest_ = &one;
        }
        return false;
    }

    bool answers(call const& one, places next, std::size_t owner, time_point until, time_point t)
    {
        bool const mine = owner == one.claim;
        if (one.what == call::kind::acquire && one.told == call::answer::done) {
            auto const free = owner == nobody ? t : std::max(t, end_of(owner, until));
            return free <= one.returned && go_on(std::move(next), one.claim, one.until, free);
        }
        if (one.what == call::kind::acquire)
            return (rules_.ghosts || owner != nobody || contested(one)) && go_on(std::move(next), owner, until, t);
        if (one.told == call::answer::done && mine)
            return one.what == call::kind::renew ? go_on(std::move(next), owner, std::max(until, one.until), t)
                                                 : go_on(std::move(next), nobody, {}, t);
        if (one.told == call::answer::done) {
            auto const ended = std::max(t, over_[one.claim]);
            return one.what == call::kind::release && ended <= one.returned &&
                   go_on(std::move(next), owner, until, ended);
        }
        if (!mine) return go_on(std::move(next), owner, until, t);
        if ((rules_.forgetful || rules_.partial) && one.what == call::kind::release)
            return go_on(std::move(next), nobody, {}, t);  // where it was left, it is freed
        if (rules_.forgetful)
            return go_on(std::move(next), owner, until,
                         t);  // nobody else can have it before it would have ended otherwise
        auto const ended = std::max(t, until);
        return ended <= one.returned && go_on(std::move(next), nobody, {}, ended);
    }

    [[nodiscard]] time_point end_of(std::size_t owner, time_point until) const
    {
        auto const freed = freed_.find(owner);
        return freed == freed_.end() ? until : std::min(until, freed->second);
    }

    /// Returns: whether somebody else asked for it at the same time, or had just done so.
    [[nodiscard]] bool contested(call const& one) const
    {
        return std::any_of(acquires_.begin(), acquires_.end(), [&](call const* other) {
            return other->client != one.client && other->called <= one.returned &&
                   one.called <= other->returned + std::chrono::milliseconds{2};
        });
    }

    [[nodiscard]] static std::string name(call const& one)
    {
        auto const what = one.what == call::kind::acquire ? "acquire"
                          : one.what == call::kind::renew ? "renew"
                                                          : "release";
        return std::string{what} + (one.told == call::answer::done ? " done" : " refused");
    }

    rules rules_;
    std::vector<std::vector<call const*>> lines_;
    std::vector<call const*> acquires_;
    std::map<std::size_t, time_point> freed_;
    std::map<std::size_t, time_point> over_;
    std::map<std::pair<places, std::size_t>, std::pair<time_point, time_point>> seen_;
    call const* furthest_ = nullptr;
};

}  // namespace holdfast::test
