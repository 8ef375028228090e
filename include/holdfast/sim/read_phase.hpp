// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/quorum/waiting_mark.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/waiter_id.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// Returns: what a record of a holder says, without its owner token.
[[nodiscard]] constexpr std::string_view record_text(bool marked) noexcept { return marked ? "!0 0 " : " 0 0 "; }

/// What a simulated server keeps beside the key of one `shared_mutex`; see `redis::command`. It is told the value of
/// the key, empty if there is none, and the time in whole milliseconds.
class read_phase {
public:
    using milliseconds = std::chrono::milliseconds;

    /// The value of the key while readers have it.
    static constexpr std::string_view reserved = "holdfast:readers";

    void forget_expired(milliseconds now)
    {
        std::erase_if(readers_, [now](auto const& one) { return one.second.ends <= now; });
        auto const bound = [now](milliseconds& mark, milliseconds most) { mark = mark <= now + most ? mark : now; };
        bound(writer_waits_until_, quorum::longest_mark);  // the clock was set back
        bound(reader_waits_until_, quorum::longest_mark);
        bound(readers_turn_until_, redis::waiter_id::longest_reservation);
        if (reader_waits_until_ <= now) waiting_.clear();
        if (readers_turn_until_ <= now) called_.clear();
    }

    /// Returns: whether the value vouches for the readers.
    [[nodiscard]] bool vouched(std::string_view value) const noexcept
    {
        return value == reserved || (!value.empty() && value == beside_);
    }

    /// Returns: whether the value is that of a writer beside readers whose own lease is over: they have the key then.
    [[nodiscard]] bool over(std::string_view value, milliseconds now) const noexcept
    {
        // mutant: a writer prolonged by its reader
        return !value.empty() && value == beside_ && beside_until_ <= now;
    }

    /// Returns: whether the token of `c` is one of the readers.
    [[nodiscard]] bool reads(redis::command const& c, std::string_view value) const
    {
        return vouched(value) && readers_.contains(std::string{c.token.view()});
    }

    /// Effects: the reader of `c` asks. When all that were called have come, the turn lasts no longer than any.
    void come(redis::command const& c, milliseconds now)
    {
        if (redis::mode_of(c) != access::shared || !c.waiter) return;
        std::string const who{redis::waiter_text{c.waiter}.view()};
        waiting_.erase(who);
        if (called_.erase(who) > 0 && called_.empty())
            readers_turn_until_ = std::min(readers_turn_until_, now + quorum::readers_turn);
    }

    /// Effects: the reader of `c` waits no more. Returns: whether it was the last that was called and had not come: of
    /// a lock that is `free` the turn is over then.
    bool leave_waiting(redis::command const& c, bool free, milliseconds now)
    {
        bool const expected = !called_.empty();
        come(c, now);
        if (!expected || !called_.empty() || !free) return false;
        readers_turn_until_ = {};
        return true;
    }

    /// Effects: the writer of `c` was refused.
    void refused_writer(redis::command const& c, std::string_view value, milliseconds now)
    {
        bool const in_queue = c.use_queue && c.waiter && c.score != 0;
        if (c.waits_for.count() == 0 || (value != reserved && !in_queue)) return;
        auto const mark = now + c.waits_for;
        if (!in_queue || mark >= writer_waits_until_) queued_until_ = in_queue ? mark : milliseconds{};
        // mutant: a mark shortened by a writer that waits for less, a writer's mark forgotten
        writer_waits_until_ = std::max(writer_waits_until_, mark);
    }

    /// Returns: whether a writer that waits is in the queue, as far as is known.
    [[nodiscard]] bool writer_queues(milliseconds now) const noexcept
    {
        return writer_waits_until_ > now && writer_waits_until_ == queued_until_;
    }

    /// Effects: no writer is known to wait.
    void no_writer_waits() noexcept { writer_waits_until_ = {}; }

    /// Returns: for how long an acquire is refused, of a lock whose key has `left`; nothing if it may be granted.
    [[nodiscard]] std::optional<milliseconds> refuses(redis::command const& c, std::string_view value,
                                                      milliseconds left, milliseconds now)
    {
        return redis::mode_of(c) == access::shared ? refuses_reader(c, value, left, now)
                                                   : refuses_writer(c, value, left, now);
    }

    /// Effects: the token of `c` is one of the readers; the key, if there is one, expires at `ends`. Returns: when the
    /// last of them ends.
    milliseconds join(redis::command const& c, std::string_view value, std::optional<milliseconds> ends,
                      milliseconds now)
    {
        bool const acquires = c.what == redis::command::verb::acquire;
        if (!vouched(value)) readers_.clear();
        if (over(value, now) || (acquires ? !vouched(value) : value == reserved)) beside_.clear();
        if (acquires && c.has_beside && beside_ != c.beside.view()) {
            beside_ = c.beside.view();
            beside_until_ = ends.value_or(milliseconds::max());
        }
        if (acquires && !c.has_beside && writer_waits_until_ <= now) {
            reader_waits_until_ = {};
            waiting_.clear();
        }
        auto const [at, is_new] = readers_.try_emplace(std::string{c.token.view()});
        auto& mine = at->second;
        mine.ends = std::max(mine.ends, now + c.ttl);
        if (c.use_holder && (is_new || c.what == redis::command::verb::acquire)) {
            mine.has_record = true;
            mine.asked = false;
        }
        return *last();
    }

    /// Returns: whether the reader of `c`, which has a record, is asked to release the lock.
    [[nodiscard]] bool asked(redis::command const& c) const
    {
        auto const found = readers_.find(std::string{c.token.view()});
        return c.use_holder && found != readers_.end() && found->second.asked;
    }

    /// Returns: what the first record of a reader says; empty if there is none.
    [[nodiscard]] std::string_view record() const
    {
        for (auto const& [token, one] : readers_)
            if (one.has_record) return record_text(one.asked);
        return {};
    }

    /// Effects: all readers that have a record are asked to release the lock. Returns: whether one has.
    bool ask_all() noexcept
    {
        bool any = false;
        for (auto& [token, one] : readers_)
            if (one.has_record) any = one.asked = true;
        return any;
    }

    /// Effects: the token of `c` has the lock exclusively, until `ends`; beside its reader, if there was a value.
    /// `others`: some are in the queue, as far as is known.
    void taken(redis::command const& c, std::string_view value, milliseconds ends, bool others)
    {
        if (!others && c.waits_for.count() > 0) writer_waits_until_ = {};
        beside_ = value.empty() ? std::string_view{} : c.token.view();
        beside_until_ = ends;
        if (value.empty()) readers_.clear();
    }

    /// Effects: the writer of `c` has renewed its lease, which ends at `ends`.
    void renewed(redis::command const& c, milliseconds ends)
    {
        // mutant: a writer beside a reader not prolonged by itself
        if (beside_ == c.token.view()) beside_until_ = std::max(beside_until_, ends);
    }

    /// Effects: the token of `c` is no reader any more. When the last one leaves, and none is to come, their turn is
    /// over.
    void leave(redis::command const& c, std::string_view value)
    {
        bool const was_there = readers_.erase(std::string{c.token.view()}) > 0;
        if (was_there && readers_.empty()) beside_.clear();
        if (readers_.empty() && value == reserved && called_.empty()) readers_turn_until_ = {};
    }

    /// Effects: the writer of `c` leaves. Returns: when the last of the readers beside it ends; nothing if none is.
    std::optional<milliseconds> end_write(redis::command const& c, milliseconds now)
    {
        bool const stay = beside_ == c.token.view();  // mutant: a writer that leaves with its own reader
        beside_.clear();
        if (c.rolls_back || (c.use_queue && c.waiter)) return stay ? last() : std::nullopt;
        // mutant: no turn for readers
        if (reader_waits_until_ > now && (reader_waits_until_ != known_until_ || !waiting_.empty())) {
            auto longest = quorum::readers_turn;
            for (auto const& one : waiting_) longest = std::max(longest, one.second);
            readers_turn_until_ = now + std::min(longest, redis::waiter_id::longest_reservation);
            called_ = std::exchange(waiting_, {});
        }
        reader_waits_until_ = {};
        return stay ? last() : std::nullopt;
    }

    /// Returns: when the last of the readers ends; nothing if there is none.
    [[nodiscard]] std::optional<milliseconds> last() const
    {
        std::optional<milliseconds> most;
        for (auto const& [token, one] : readers_) most = std::max(most.value_or(one.ends), one.ends);
        return most;
    }

private:
    [[nodiscard]] std::optional<milliseconds> refuses_reader(redis::command const& c, std::string_view value,
                                                             milliseconds left, milliseconds now)
    {
        std::optional<milliseconds> why;
        if (c.has_beside) {
            if (value != c.beside.view()) why = std::max(left, milliseconds{0});
        } else if (!value.empty() && value != reserved) {
            why = left;  // mutant: read granted beside a writer
        } else if (writer_waits_until_ > now && readers_turn_until_ <= now) {
            why = writer_waits_until_ - now;
        }
        if (why && c.waits_for.count() > 0) {
            auto const mark = now + c.waits_for;
            if (!c.waiter || mark >= reader_waits_until_) known_until_ = c.waiter ? mark : milliseconds{};
            reader_waits_until_ = std::max(reader_waits_until_, mark);
            if (c.waiter) waiting_.insert_or_assign(std::string{redis::waiter_text{c.waiter}.view()}, c.waiter.reserve);
        }
        return why;
    }

    [[nodiscard]] std::optional<milliseconds> refuses_writer(redis::command const& c, std::string_view value,
                                                             milliseconds left, milliseconds now)
    {
        bool const readers = value == reserved;
        bool const sole =
            readers && c.has_beside && readers_.size() == 1 && readers_.contains(std::string{c.beside.view()});
        // mutant: a reader that becomes a writer beside others
        if (sole) return std::nullopt;
        if (!value.empty()) return left;  // mutant: write that looks only at its own kind
        if (c.has_beside || readers_turn_until_ > now) return std::max(readers_turn_until_ - now, milliseconds{0});
        return std::nullopt;
    }

    struct reader {
        milliseconds ends{};      ///< its lease
        bool has_record = false;  ///< there is a record of it
        bool asked = false;       ///< that record is marked
    };

    std::map<std::string, reader> readers_;        // by their tokens
    std::string beside_;                           // the writer that stands beside its own reader
    milliseconds beside_until_{};                  // when its lease ends, as far as it has said it
    std::map<std::string, milliseconds> waiting_;  // the readers that are known to wait: what to reserve for them
    std::map<std::string, milliseconds> called_;   // those whose turn it is, and who have not come
    milliseconds writer_waits_until_{};
    milliseconds queued_until_{};  // the same, as far as one in the queue has said it
    milliseconds reader_waits_until_{};
    milliseconds known_until_{};  // the same, as far as one of `waiting_` has said it
    milliseconds readers_turn_until_{};
};

using phase_table = std::map<std::string, read_phase, std::less<>>;

}  // namespace holdfast::sim
