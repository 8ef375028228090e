// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/random.hpp>
#include <holdfast/redis/acquire_round.hpp>
#include <holdfast/redis/report_pace.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace holdfast::redis {

struct acquire_settings {
    unsigned nodes = 1;
    std::chrono::milliseconds node_timeout{};
    acquire_request request{};
    std::uint64_t seed = 0;  ///< of the jitter
};

/// What came of an acquire. `error` is none, `timed_out`, `operation_canceled`, `unavailable` or a code of `redis::errc`; where a node is
/// the cause, `node` and `cause` say so.
struct acquire_outcome {
    std::error_code error{};
    boot_clock::time_point valid_until{};
    std::uint64_t fence = 0;  ///< the first of the batch
    unsigned node = max_nodes;
    std::error_code cause{};
};

/// What the driver is to do, in this order.
struct acquire_step {
    node_set give_up{};      ///< the answer of these nodes is overdue
    node_set roll_back{};    ///< send release for the present token; its answer does not matter
    bool new_token = false;  ///< draw a fresh token for what follows
    node_set ask{};          ///< send acquire for the present token
    node_set confirm{};      ///< send confirm of `fence()`
    bool watch = false;      ///< have releases reported from now on
    std::optional<acquire_outcome> done{};
};

/// Takes a lock on a majority of N nodes, round by round; one Redis is N = 1. No I/O, clock, thread or randomness of its own: it is told
/// what happens and says what to do. The votes of a round are counted by `acquire_round`.
///
/// | phase   | event                                              | next |
/// |---------|----------------------------------------------------|------|
/// | -       | start                                              | asking: a fresh token, acquire to all |
/// | asking  | the round is won, and the lease can still be used  | done: held |
/// | asking  | the round is lost; won too late; or time           | rolled back on every node, then as below |
/// | lost    | wrong configuration; the deadline; one attempt only; too long unavailable | done: not held |
/// | lost    | a majority has votes for others                    | waiting for a release, for the keys to expire, or to look again |
/// | lost    | votes are split among contenders                   | waiting a random time, within a window that doubles |
/// | lost    | no majority answered                               | waiting a random time before the next connection |
/// | waiting | time; or a majority reported a release             | asking, or done where the deadline has passed |
/// | waiting | a majority cannot report releases for now         | looks again every half second at least, until it can |
/// | any     | cancel                                             | done, rolled back on every node |
///
/// Source: "Distributed Locks with Redis" (redis.io); the fence is holdfast's own, see `acquire_round`.
class acquire_machine {
public:
    explicit acquire_machine(acquire_settings const& settings) noexcept
        : set_{settings}, all_{node_set::all(settings.nodes)}, jitter_{settings.seed}, round_{settings.nodes, settings.request.ttl}
    {
    }

    /// Returns: when `on_time` is to be called next.
    [[nodiscard]] boot_clock::time_point wake_at() const noexcept { return wake_at_; }
    /// Returns: the fence to confirm.
    [[nodiscard]] std::uint64_t fence() const noexcept { return round_.fence(); }
    /// Returns: whether rounds were lost, and in none of them a majority could be asked; nothing where no round is over yet.
    [[nodiscard]] std::optional<bool> unavailable_so_far() const noexcept
    {
        return ever_asked_ || last_cause_.error ? std::optional{!ever_asked_} : std::nullopt;
    }

    [[nodiscard]] acquire_step start(boot_clock::time_point now)
    {
        acquire_step step;
        ask(now, step);
        return step;
    }

    /// Requires: `node` was told to ask or to confirm and has not answered since.
    [[nodiscard]] acquire_step on_answer(unsigned node, answer const& a, boot_clock::time_point now)
    {
        acquire_step step;
        bool const was_confirming = round_.confirming();
        auto const next = round_.on_answer(node, a);
        step.ask = next.ask;
        step.confirm = next.confirm;
        if (!was_confirming && round_.confirming()) {
            bool const once = set_.request.deadline == boot_clock::time_point::min();
            wake_at_ = std::max(wake_at_, (once ? now : std::min(now, set_.request.deadline)) + set_.node_timeout);
        }
        evaluate(now, step);
        return step;
    }

    [[nodiscard]] acquire_step on_time(boot_clock::time_point now)
    {
        acquire_step step;
        if (phase_ == phase::asking) {
            step.give_up = round_.time_out();
            evaluate(now, step);
        } else if (phase_ == phase::waiting && now >= set_.request.deadline) {
            finish(step, unheld());
        } else if (phase_ == phase::waiting) {
            ask(now, step);
        }
        return step;
    }

    /// A node reported a release; or that it reports from now on, so that an earlier one may have been missed.
    [[nodiscard]] acquire_step on_released(unsigned node, boot_clock::time_point now)
    {
        acquire_step step;
        unwatched_.remove(node);
        released_.add(node);
        if (phase_ == phase::waiting && waits_for_release_ && seems_free()) look_again(now, step);
        return step;
    }

    [[nodiscard]] acquire_step on_watch_failed(unsigned node, std::error_code why, boot_clock::time_point now)
    {
        acquire_step step;
        unwatched_.add(node);
        if (phase_ == phase::waiting && waits_for_release_) sleep(now, std::min(wake_at_ - now, longest_sleep()));
        if (why == holdfast::errc::misconfigured) unwatchable_.add(node);
        if (phase_ != phase::done && (all_ - unwatchable_).size() < quorum(set_.nodes)) {
            roll_back(step);
            finish(step, {.error = why, .node = node, .cause = why});
        }
        return step;
    }

    /// Requires: no step said that it is done.
    [[nodiscard]] acquire_step cancel(boot_clock::time_point)
    {
        acquire_step step;
        roll_back(step);
        finish(step, {.error = std::make_error_code(std::errc::operation_canceled)});
        return step;
    }

private:
    enum class phase : std::uint8_t { asking, waiting, done };

    /// The pause before the second attempt to reach servers that could not be reached.
    static constexpr std::chrono::milliseconds first_reconnect{10};

    /// The longest pause between two of them: what an outage lasts longer for those who wait for its end.
    static constexpr std::chrono::milliseconds longest_reconnect{200};

    /// The longest sleep of a waiter that no majority tells of a release, since its subscriptions were lost.
    static constexpr std::chrono::milliseconds longest_deafness{500};

    void ask(boot_clock::time_point now, acquire_step& step)
    {
        phase_ = phase::asking;
        round_.begin(now);
        released_ = {};
        step.new_token = true;
        step.ask = all_;
        wake_at_ = now + set_.node_timeout;
    }

    void evaluate(boot_clock::time_point now, acquire_step& step)
    {
        ever_asked_ = ever_asked_ || round_.won();
        if (round_.won() && round_.usable(now))
            finish(step, {.valid_until = round_.validity(), .fence = first_of_batch()});
        else if (round_.won() || round_.lost())
            lose_round(now, step);
    }

    [[nodiscard]] std::uint64_t first_of_batch() const noexcept
    {
        return round_.fence() == 0 ? 0 : round_.fence() - set_.request.fences + 1;
    }

    void lose_round(boot_clock::time_point now, acquire_step& step)
    {
        step.ask = step.confirm = {};
        roll_back(step);
        last_cause_ = round_.why();
        if (round_.asked()) {
            ever_asked_ = true;
            set_.request.unavailable_at = saturating_add(now, set_.request.unavailable_after);
            outage_pause_ = first_reconnect;
        }
        if (last_cause_.hopeless)
            finish(step, {.error = last_cause_.error, .node = last_cause_.node, .cause = last_cause_.error});
        else if (now >= set_.request.deadline)
            finish(step, unheld());
        else if (!round_.asked() && now >= set_.request.unavailable_at)
            finish(step, unavailable());
        else
            wait(now, step);
    }

    void wait(boot_clock::time_point now, acquire_step& step)
    {
        phase_ = phase::waiting;
        waits_for_release_ = round_.held_by_others();
        if (round_.grants() > 0)
            collision_window_ = std::clamp<boot_clock::duration>(2 * collision_window_, set_.request.retry.first, widest_window());
        if (waits_for_release_) {
            step.watch = !watching_;
            watching_ = true;
            auto const left = round_.until_majority_expires(set_.request.retry.most);
            sleep(now, std::min(left + at_most(left / 8), longest_sleep()));
            pace_.found(round_.until_majority_expires(report_pace::unknown), now);
            if (seems_free()) look_again(now, step);
        } else if (round_.asked()) {
            sleep(now, at_most(collision_window_));
        } else {
            sleep(now, std::min(outage_pause_ / 2 + at_most(outage_pause_ / 2), set_.request.unavailable_at - now));
            outage_pause_ = std::min<boot_clock::duration>({2 * outage_pause_, longest_reconnect, set_.request.retry.most});
        }
    }

    /// Returns: how long to wait for a message at most.
    [[nodiscard]] boot_clock::duration longest_sleep() const noexcept
    {
        boot_clock::duration const most = set_.request.retry.most;
        return (all_ - unwatched_).size() >= quorum(set_.nodes) ? most : std::min<boot_clock::duration>(most, longest_deafness);
    }

    /// Wide enough for many contenders to miss each other; wider, those who collided before would starve behind newcomers.
    [[nodiscard]] boot_clock::duration widest_window() const noexcept
    {
        return std::min<boot_clock::duration>(16 * set_.request.retry.first, set_.request.retry.most);
    }

    [[nodiscard]] bool seems_free() const noexcept { return released_.size() >= quorum(set_.nodes); }

    /// Contenders who collided before spread out; a waiter who did not goes at once, unless such reports are not true.
    void look_again(boot_clock::time_point now, acquire_step& step)
    {
        waits_for_release_ = false;
        auto const paced = pace_.reported(now);
        auto const pause = at_most(collision_window_) + (paced.count() == 0 ? paced : paced / 2 + at_most(paced / 2));
        pause.count() == 0 ? ask(now, step) : sleep(now, pause);
    }

    void sleep(boot_clock::time_point now, boot_clock::duration d) noexcept { wake_at_ = std::min(now + d, set_.request.deadline); }

    [[nodiscard]] boot_clock::duration at_most(boot_clock::duration bound) noexcept
    {
        return boot_clock::duration{static_cast<boot_clock::rep>(jitter_.below(static_cast<std::uint64_t>(bound.count())))};
    }

    [[nodiscard]] acquire_outcome unavailable() const
    {
        return {.error = make_error_code(holdfast::errc::unavailable), .node = last_cause_.node, .cause = last_cause_.error};
    }

    [[nodiscard]] acquire_outcome unheld() const
    {
        return ever_asked_ ? acquire_outcome{.error = make_error_code(holdfast::errc::timed_out)} : unavailable();
    }

    void finish(acquire_step& step, acquire_outcome const& outcome)
    {
        phase_ = phase::done;
        wake_at_ = boot_clock::time_point::max();
        step.done = outcome;
    }

    /// Every node, those that seemed to refuse too. Only a lone server's "held" is its last word.
    void roll_back(acquire_step& step) const noexcept
    {
        if (phase_ == phase::asking && !round_.certainly_held()) step.roll_back = all_;
    }

    acquire_settings set_;
    node_set all_;
    holdfast::detail::random_sequence jitter_;
    phase phase_ = phase::waiting;
    boot_clock::time_point wake_at_ = boot_clock::time_point::max();
    acquire_round round_;
    node_set released_;  // since the round began

    bool ever_asked_ = false;
    acquire_round::cause last_cause_{};
    bool watching_ = false;
    bool waits_for_release_ = false;
    report_pace pace_;
    node_set unwatched_;    // cannot report releases now
    node_set unwatchable_;  // never will
    boot_clock::duration collision_window_{};
    boot_clock::duration outage_pause_ = first_reconnect;
};

}  // namespace holdfast::redis
