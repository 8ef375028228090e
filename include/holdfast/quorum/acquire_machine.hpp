// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/acquire_limits.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/quorum/acquire_round.hpp>
#include <holdfast/quorum/acquire_step.hpp>
#include <holdfast/quorum/attempt_pause.hpp>
#include <holdfast/quorum/place_in_line.hpp>
#include <holdfast/quorum/report_pace.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// Takes a lock on a majority of N nodes, round by round; a single server is N = 1. No I/O, clock, thread or
/// randomness: it is told what happens and says what to do. The votes of a round are counted by `acquire_round`.
///
/// | phase | event | next |
/// |---|---|---|
/// | - | start | asking: a fresh token, acquire to all |
/// | asking | the round is won, and the lease can still be used | done: held |
/// | asking | the round is lost; won too late; or time | rolled back on every node, then as below |
/// | lost | misconfigured; the deadline; one attempt only, and decided; unavailable for too long | done: not held |
/// | lost | a majority has votes for others; or a node put us in its queue | waiting for a call or a release, or for the leases to expire |
/// | lost | votes are split among contenders, without a queue | waiting a random time, in a window that doubles |
/// | lost | no majority answered | waiting a random time before the next connection |
/// | waiting | time; or calls or reports, see `place_in_line` | asking, or done if the deadline has passed |
/// | waiting | a majority cannot report releases now | looks again every half second at least |
/// | any | cancel | done, rolled back on every node |
///
/// Source: "Distributed Locks with Redis" (redis.io); the fence is holdfast's own, see `acquire_round`.
class acquire_machine {
public:
    explicit acquire_machine(acquire_settings const& settings)
        : set_{settings},
          all_{node_set::all(settings.nodes.size)},
          pause_{settings.request.retry, settings.seed},
          round_{settings.nodes, settings.request.ttl, settings.request.stop_margin},
          limits_{settings.request}
    {
    }

    /// Returns: when `on_time` is to be called next.
    [[nodiscard]] boot_clock::time_point wake_at() const noexcept { return wake_at_; }
    /// Returns: the fence to confirm.
    [[nodiscard]] std::uint64_t fence() const noexcept { return round_.fence(); }

    /// Returns: whether rounds were lost, and no majority could be asked in any of them; nothing if no round is over.
    [[nodiscard]] std::optional<bool> unavailable_so_far() const noexcept
    {
        bool const asked = limits_.ever_asked();
        return asked || last_cause_.error ? std::optional{!asked} : std::nullopt;
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
        if (a.in_line) place_.joined(node_set::of(node));
        step.ask = next.ask;
        step.confirm = next.confirm;
        step.doubt = next.doubt;
        if (round_.asked() && std::exchange(set_.nodes.connecting, {}).count() != 0)
            wake_at_ = overdue_at_ = std::min(overdue_at_, now + set_.nodes.timeout);
        if (!was_confirming && round_.confirming()) {
            auto const asked = set_.request.once ? now : std::min(now, set_.request.deadline);
            wake_at_ = overdue_at_ = std::max(overdue_at_, asked + set_.nodes.timeout);
        }
        evaluate(now, step);
        return step;
    }

    [[nodiscard]] acquire_step on_time(boot_clock::time_point now)
    {
        acquire_step step;
        if (phase_ == phase::asking) {
            if (now >= overdue_at_) step.give_up = round_.time_out();
            wake_at_ = overdue_at_;  // unless it still hears the rest: a round that was lost may be open again
            evaluate(now, step);
        } else if (phase_ == phase::waiting && limits_.last_attempt(now)) {
            finish(step, unheld(limits_.why_over(now)));
        } else if (phase_ == phase::waiting) {
            waits_for_release_&& place_.taken() && seems_free() ? look_again(now, step) : ask(now, step);
        }
        return step;
    }

    /// Called when a node reported a release, or called this waiter.
    [[nodiscard]] acquire_step on_released(unsigned node, boot_clock::time_point now)
    {
        calls_.add(node);
        return on_watching(node, now);
    }

    /// Called when a node reports from now on: an earlier release may have been missed.
    [[nodiscard]] acquire_step on_watching(unsigned node, boot_clock::time_point now)
    {
        acquire_step step;
        unwatched_.remove(node);
        released_.add(node);
        if (phase_ == phase::waiting && waits_for_release_) called(now, step);
        return step;
    }

    [[nodiscard]] acquire_step on_watch_failed(unsigned node, std::error_code why, boot_clock::time_point now)
    {
        acquire_step step;
        unwatched_.add(node);
        if (phase_ == phase::waiting && waits_for_release_) sleep(now, std::min(wake_at_ - now, longest_sleep()));
        if (why == errc::misconfigured) unwatchable_.add(node);
        if (phase_ != phase::done && (all_ - unwatchable_).size() < majority()) {
            roll_back(step);
            finish(step, {.error = why, .node = node});
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

    [[nodiscard]] unsigned majority() const noexcept { return majority_of(set_.nodes.size); }

    void ask(boot_clock::time_point now, acquire_step& step)
    {
        phase_ = phase::asking;
        round_.begin(now);
        if (calls_.size() >= majority()) place_.called();
        released_ = calls_ = {};
        rest_until_.reset();
        step.new_token = true;
        step.ask = all_;
        wake_at_ = overdue_at_ = now + set_.nodes.timeout + set_.nodes.connecting;
    }

    void evaluate(boot_clock::time_point now, acquire_step& step)
    {
        if (round_.won()) limits_.asked(now);
        if (round_.won() && round_.usable(now))  // mutant: no validity check
            // mutant: validity counted from the end
            finish(step, {.valid_until = round_.validity(), .fence = round_.first_of(set_.request.fences)});
        else if (round_.won() || ((round_.lost() || (place_.taken() && round_.split())) && !hears_the_rest(now)))
            lose_round(now, step);
    }

    /// Returns: whether a lost round goes on: one to be decided, until all have voted; one in line, for a moment, for
    /// nodes that may win it or need no roll-back. Two with half of the votes each must not wait for one that hangs.
    [[nodiscard]] bool hears_the_rest(boot_clock::time_point now) noexcept
    {
        if (set_.request.until_decided) return round_.votes_unknown() && now < overdue_at_;
        if (!place_.taken() || !round_.unanswered() || now >= overdue_at_ || limits_.last_attempt(now)) return false;
        if (!rest_until_) rest_until_ = std::min(now + place_.for_the_rest(round_.lost()), overdue_at_);
        wake_at_ = *rest_until_;
        return now < *rest_until_;
    }

    void lose_round(boot_clock::time_point now, acquire_step& step)
    {
        step.ask = step.confirm = {};
        roll_back(step);
        last_cause_ = round_.why();
        held_until_ = round_.held_until(now);
        round_.asked() ? limits_.asked(now, round_.votes_of()) : limits_.not_asked();
        if (round_.asked()) pause_.asked();
        if (round_.hopeless())
            finish(step, {.error = last_cause_.error, .node = last_cause_.node});
        else if (auto const why = limits_.why_over(now))
            finish(step, unheld(why));
        else
            wait(now, step);
    }

    void wait(boot_clock::time_point now, acquire_step& step)
    {
        phase_ = phase::waiting;
        if (round_.won()) place_.left();  // too late, it may be each time: others go first
        step.stays = place_.taken();
        waits_for_release_ = !set_.request.once && (round_.held_by_others() || (round_.asked() && place_.taken()));
        if (round_.grants() > 0 && !place_.taken()) pause_.collided();
        if (round_.asked() && !set_.request.once) step.watch = !std::exchange(watching_, true);
        if (waits_for_release_) {
            auto const left = round_.until_majority_expires(set_.request.retry.most);
            sleep(now, std::min(left + pause_.up_to(left / 8), longest_sleep()));
            if (pace_.found(round_.until_majority_expires(report_pace::unknown), now)) place_.others_go_on();
            if (place_.taken()) wake_by(now + pause_.about(place_.look()));
            called(now, step);
        } else if (round_.asked()) {
            sleep(now, pause_.among_contenders(set_.request.until_decided ? round_.took(now) : boot_clock::duration{}));
        } else {
            sleep(now, std::min(pause_.in_outage(), limits_.outage_ends() - now));
        }
    }

    /// Returns: the longest wait for a message.
    [[nodiscard]] boot_clock::duration longest_sleep() const noexcept
    {
        boot_clock::duration const most = set_.request.retry.most * (place_.taken() ? set_.patience : 1);
        bool const told = (all_ - unwatched_).size() >= majority();
        return told ? most : std::min<boot_clock::duration>(most, place_in_line::longest_unheard);
    }

    [[nodiscard]] bool seems_free() const noexcept { return released_.size() >= majority(); }

    /// Effects: looks again if nodes have called this waiter, or reported a release, since the round began.
    void called(boot_clock::time_point now, acquire_step& step)
    {
        if (!place_.taken()) return seems_free() ? look_again(now, step) : void();
        if (released_.empty()) return;
        if (!seems_free()) return wake_by(now + pause_.about(place_.after_minority()));
        auto const rest = place_.nodes() - released_ - unwatched_;
        rest.empty() ? look_again(now, step) : wake_by(now + place_in_line::grace);
    }

    void wake_by(boot_clock::time_point t) noexcept { wake_at_ = std::min(wake_at_, t); }
    /// Contenders that collided before spread out. A waiter that did not collide asks at once, unless such reports were
    /// false, or it is to leave the lock free: it does so once, if it has the time.
    void look_again(boot_clock::time_point now, acquire_step& step)
    {
        waits_for_release_ = false;
        auto spread = place_.taken() ? std::exchange(set_.request.leaves_free, {}) : pause_.among_contenders();
        if (place_.taken() && now + spread >= set_.request.deadline) spread = {};
        auto const pause = spread + pause_.about(pace_.reported(now));
        pause.count() == 0 ? ask(now, step) : sleep(now, pause);
    }

    void sleep(boot_clock::time_point now, boot_clock::duration d) noexcept
    {
        wake_at_ = std::min(now + d, set_.request.deadline);
    }

    /// Returns: that it ended with `why`; in an outage, with the error of a node that may pass, if there is one.
    [[nodiscard]] acquire_outcome unheld(std::error_code why) const
    {
        bool const passing = last_cause_.error && last_cause_.error != errc::misconfigured;
        if (why != errc::unavailable || !passing) return {.error = why, .held_until = held_until_};
        return {.error = last_cause_.error, .node = last_cause_.node};
    }

    void finish(acquire_step& step, acquire_outcome const& outcome)
    {
        phase_ = phase::done;
        wake_at_ = boot_clock::time_point::max();
        step.done = outcome;
    }

    /// Every node, even those that seemed to refuse. Final is only a single server's "held", and that of a node that
    /// put us in line.
    void roll_back(acquire_step& step) const noexcept
    {
        // mutant: failed round not rolled back
        if (phase_ == phase::asking && !round_.certainly_held()) step.roll_back = all_ - round_.in_line();
        if (phase_ == phase::asking) step.refused = round_.in_line();
    }

    acquire_settings set_;
    node_set all_;
    attempt_pause pause_;
    phase phase_ = phase::waiting;
    boot_clock::time_point wake_at_ = boot_clock::time_point::max();
    boot_clock::time_point overdue_at_{};               // when an answer of the round is overdue
    std::optional<boot_clock::time_point> rest_until_;  // until when a lost round waits for the answers that are left
    acquire_round round_;
    place_in_line place_;
    node_set released_;  // since the round began
    node_set calls_;     // the same, without those that only began to report
    detail::acquire_limits limits_;
    node_failures::cause last_cause_{};
    boot_clock::time_point held_until_{};
    bool watching_ = false;
    bool waits_for_release_ = false;
    report_pace pace_;
    node_set unwatched_;    // cannot report releases now
    node_set unwatchable_;  // never will
};

}  // namespace holdfast::quorum
