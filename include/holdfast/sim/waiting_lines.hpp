// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/waiter_id.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// Those who wait for the locks of a simulated server, and for whom each lock is reserved; see `redis::command`. It is
/// told the time in whole milliseconds, and for scores in microseconds.
class waiting_lines {
public:
    using milliseconds = std::chrono::milliseconds;
    using microseconds = std::chrono::microseconds;

    /// Tells a waiter, over its inbox, that it is its turn. Returns: how many listen to that inbox.
    using caller = std::function<unsigned(redis::waiter_id const&, redis::shared_keys const&)>;

    void forget_expired(milliseconds now)
    {
        std::erase_if(next_, [&](auto const& one) { return one.second.expires <= now; });
        std::erase_if(lines_, [&](auto const& one) { return one.second.expires <= now || one.second.who.empty(); });
    }

    /// Returns: until when the lock is reserved for a waiter that is not `w`; nothing if it is not.
    [[nodiscard]] std::optional<milliseconds> reserved_for_another(std::string const& lock,
                                                                   redis::waiter_id const& w) const
    {
        auto const found = next_.find(lock);
        if (found == next_.end() || found->second.who == w) return std::nullopt;
        return found->second.expires;
    }

    /// Returns: for how long one that does not wait is refused; 0 if it is not known: there are others in the queue, or
    /// none is called.
    [[nodiscard]] milliseconds reservation_left(std::string const& lock, milliseconds now) const
    {
        auto const found = next_.find(lock);
        return found == next_.end() || waited_for(lock) ? milliseconds{0} : found->second.expires - now;
    }

    /// Returns: whether others wait for the lock, or it is reserved.
    [[nodiscard]] bool wanted(std::string const& lock) const { return reserved(lock) || waited_for(lock); }

    /// Returns: whether some are in the queue; whether the lock is reserved for one that was.
    [[nodiscard]] bool waited_for(std::string const& lock) const
    {
        auto const found = lines_.find(lock);
        return found != lines_.end() && !found->second.who.empty();
    }
    [[nodiscard]] bool reserved(std::string const& lock) const { return next_.contains(lock); }

    /// Returns: how many are in the queue.
    [[nodiscard]] std::size_t length(std::string const& lock) const
    {
        auto const found = lines_.find(lock);
        return found == lines_.end() ? 0 : found->second.who.size();
    }

    /// Returns: the score of the last in the queue, if it is greater than that of `c`, and both positive; otherwise 0.
    [[nodiscard]] std::int64_t last_after(redis::command const& c) const
    {
        auto const found = lines_.find(c.keys->lock);
        if (c.score <= 0 || found == lines_.end() || found->second.who.empty()) return 0;
        auto const last = found->second.who.rbegin()->first.first;
        return last > c.score ? last : 0;
    }

    /// Returns: whether the lock is reserved for `w`.
    [[nodiscard]] bool reserved_for(std::string const& lock, redis::waiter_id const& w) const
    {
        auto const found = next_.find(lock);
        return found != next_.end() && w && found->second.who == w;
    }

    /// Effects: a reservation for `w` is over.
    void end_reservation(std::string const& lock, redis::waiter_id const& w)
    {
        if (auto const found = next_.find(lock); found != next_.end() && found->second.who == w) next_.erase(found);
    }

    /// Effects: the waiter of `c` is in line; a reservation for it is over. Returns: how many are ahead of it.
    std::size_t enter(redis::command const& c, microseconds now)
    {
        end_reservation(c.keys->lock, c.waiter);
        auto const clock = std::int64_t{now.count()};
        auto const came = c.score < 0 ? clock + c.score : c.score;
        // mutant: one that missed its turn put behind all others, one that missed its turn has lost its place
        auto const score = std::clamp(came, clock - longest_ago, clock + farthest_ahead);
        auto& mine = lines_[c.keys->lock];
        remove(mine, c.waiter);
        auto const [place, fresh] =
            mine.who.emplace(std::pair{score, std::string{redis::waiter_text{c.waiter}.view()}}, c.waiter);
        mine.expires = std::chrono::floor<milliseconds>(now) + lifetime;
        return static_cast<std::size_t>(std::distance(mine.who.begin(), place));
    }

    /// Effects: `w` is not in line any more; a reservation for it is over.
    void leave(std::string const& lock, redis::waiter_id const& w)
    {
        if (!w) return;
        end_reservation(lock, w);
        if (auto const found = lines_.find(lock); found != lines_.end()) remove(found->second, w);
    }

    /// Effects: the waiter of `c` gets in line if there is one, and others than it are called if they are the first.
    void call_next_before(redis::command const& c, microseconds now, caller const& call)
    {
        auto const found = lines_.find(c.keys->lock);
        if (found == lines_.end() || found->second.who.empty()) return;
        if (redis::gets_in_line(c) && !reserved_for(c.keys->lock, c.waiter)) enter(c, now);
        auto const& first = found->second.who.begin()->second;
        if (!c.waiter || first != c.waiter) call_next(c.keys, std::chrono::floor<milliseconds>(now), call);
    }

    /// Effects: calls the first waiter that hears it, and reserves the lock for it; unless it is reserved.
    void call_next(redis::shared_keys const& of, milliseconds now, caller const& call)
    {
        if (next_.contains(of->lock)) return;
        auto const found = lines_.find(of->lock);
        while (found != lines_.end() && !found->second.who.empty()) {
            auto const first = found->second.who.extract(found->second.who.begin()).mapped();
            auto const told = call ? call(first, of) : 0;
            // mutant: a waiter that is gone ends the search
            if (told == 0) continue;
            // mutant: a release that calls everybody
            auto const reserve = std::clamp(first.reserve, redis::waiter_id::shortest_reservation,
                                            redis::waiter_id::longest_reservation);
            next_.insert_or_assign(of->lock, reservation{first, now + reserve});
            return;
        }
    }

private:
    struct line {
        std::map<std::pair<std::int64_t, std::string>, redis::waiter_id> who;
        milliseconds expires{};
    };
    struct reservation {
        redis::waiter_id who;
        milliseconds expires{};
    };

    static constexpr milliseconds lifetime{3'600'000};
    static constexpr std::int64_t longest_ago = 3'600'000'000;
    static constexpr std::int64_t farthest_ahead = 60'000'000;

    static void remove(line& of, redis::waiter_id const& w)
    {
        std::erase_if(of.who, [&](auto const& one) { return one.second == w; });
    }

    std::map<std::string, line, std::less<>> lines_;
    std::map<std::string, reservation, std::less<>> next_;
};

}  // namespace holdfast::sim
