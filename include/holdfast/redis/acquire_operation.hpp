// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/quorum/acquire_machine.hpp>
#include <holdfast/quorum/waiting_mark.hpp>
#include <holdfast/redis/layout.hpp>
#include <holdfast/redis/machine_operation.hpp>
#include <holdfast/redis/transport.hpp>

#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Runs a `quorum::acquire_machine` over a transport.
class acquire_operation final : public machine_operation<pending_acquire, quorum::acquire_machine> {
public:
    acquire_operation(transport& way, shared_keys keys, acquire_request const& request)
        : machine_operation{way,
                            quorum::acquire_machine{
                                {.nodes = way.nodes_for(request),
                                 .request = request,
                                 .seed = way.random(),
                                 // A writer that looks seldom would be forgotten; see `waiting_mark`.
                                 .patience = keys->mode() == access::sole ? quorum::place_in_line::patience : 1}}},
          keys_{std::move(keys)},
          request_{request}
    {
    }

    /// Effects: gives up an operation that has not ended: rolls back what it got, and does not call its completion.
    ~acquire_operation() override
    {
        if (!runs()) return;
        std::scoped_lock guard{transport_};
        if (runs()) abandon(machine_.cancel(transport_.now()));
    }

    void cancel() noexcept override
    {
        std::scoped_lock guard{transport_};
        if (!outcome_) perform(machine_.cancel(transport_.now()));
    }

    /// Returns: whether rounds were lost and no quorum could be asked in any of them; nothing if no round is over.
    [[nodiscard]] std::optional<bool> unavailable() const noexcept override
    {
        std::scoped_lock guard{transport_};
        return machine_.unavailable_so_far();
    }

    /// Returns: what stands at the key on a majority of the nodes, if no lock of this kind can have put it there;
    /// otherwise nothing.
    [[nodiscard]] std::optional<failure> obstacle() const override
    {
        std::unique_lock guard{transport_};
        if (strange_.size() < quorum::majority_of(transport_.size())) return std::nullopt;
        auto const node = strange_.first();
        auto const* const what = other_type_.has(node) ? " holds a value of another type" : " has no expiry";
        guard.unlock();
        auto server = transport_.describe(node, {});
        return failure{make_error_code(holdfast::errc::contended),
                       "its key on " + server + what +
                           ": no lock of this kind has put it there, and it counts as held until it is gone",
                       server};
    }

    [[nodiscard]] result<grant> outcome() const override
    {
        auto const& got = *outcome_;
        if (!got.error)
            return grant{
                .token = token_, .valid_until = got.valid_until, .fence = got.fence, .fences = request_.fences};
        if (got.node == quorum::max_nodes && got.error != holdfast::errc::unavailable)
            return failure{.code = got.error, .detail = {}, .held_until = got.held_until};
        auto why = errors_.explain(transport_, got.error, got.node);
        if (why.code == make_error_code(errc::foreign_fence))
            why.detail += ", key " + holdfast::quoted(keys_->fence().text());
        return why;
    }

    /// A node whose vote waited for the clocks of others fails with that reason, not for want of an answer.
    void on_time(boot_clock::time_point now) noexcept override
    {
        auto const waited_for = under_way_;
        waited_for.for_each([&](unsigned node) {
            if (!under_way_.has(node) || now < machine_.wake_at() || !transport_.undecided(node, now)) return;
            forget(node_set::of(node));
            errors_.note(node, errc::clock_not_compared);
            perform(machine_.on_answer(node, quorum::answer::not_sent(errc::clock_not_compared), now));
        });
        if (now >= machine_.wake_at()) machine_operation::on_time(now);
    }

    void on_answer(unsigned node, answer const& a, boot_clock::time_point now) override
    {
        bool const endless = a.what == answer::kind::refused && a.time_left.count() < 0;
        endless || a.other_type ? strange_.add(node) : strange_.remove(node);
        a.other_type ? other_type_.add(node) : other_type_.remove(node);
        if (a.last_score != 0) transport_.saw(a.last_score);
        if (watching_) listen_with_all(node);
        if (a.what == answer::kind::applied) known_.remove(node);
        machine_operation::on_answer(node, a, now);
    }

    void on_watching(unsigned node, boot_clock::time_point now) override
    {
        if (!outcome_) perform(machine_.on_watching(node, now));
    }

    void on_released(unsigned node, boot_clock::time_point now) override
    {
        if (!outcome_) perform(machine_.on_released(node, now));
    }

    void on_watch_failed(unsigned node, std::error_code why, boot_clock::time_point now) override
    {
        if (outcome_) return;
        bool const listens = why == holdfast::errc::misconfigured && listen_with_all(node);
        if (!listens) deaf_.add(node);
        if (!listens) deaf_why_ = why;
        if (!acting()) perform(listens ? quorum::acquire_step{} : next_deaf(now));
    }

private:
    bool act(quorum::acquire_step const& step) noexcept override
    {
        bool const ends_round = step.new_token || !step.roll_back.empty() || step.done;
        give_up(step.give_up);
        // If a node refuses one that waits no longer, it keeps the readers' turn open for it, or calls it and reserves
        // the lock for it. So it is told.
        if (step.done && (!queues_ || !step.done->error))  // mutant: a late refusal followed by no leave
            under_way_.for_each([&](unsigned node) { transport_.leave_if_refused(node, this); });
        if (step.done) known_ = known_ - under_way_;
        if (ends_round) stop_asking();
        // Another server's clock may be known by now.
        if (waiter_ && queues_)
            score_ = transport_.score(entered_at_);  // mutant: one that asks again as if it came now
        give_back(step);
        if (step.new_token) draw_token();  // mutant: token used again
        if (!step.ask.empty()) {
            auto const now = transport_.now();
            auto ask = make(command::verb::acquire);
            ask.beside = request_.beside.value_or(owner_token{});
            // mutant: a writer that lets go before it reads
            ask.has_beside = request_.beside.has_value();
            ask.waits_for = quorum::waiting_mark(request_, transport_.nodes().timeout, now);
            ask.value = ask.fence == fence_source::counter ? transport_.proposal(now) : 0;
            if (transport_.calls() || !queues_) enter(now);
            ask.waiter = waiter_;
            step.ask.for_each([&](unsigned node) {
                bool const called = queues_ && waiter_ && transport_.calls(node) && transport_.queues(node);
                called ? called_.add(node) : called_.remove(node);
                ask.score = called ? score_ : 0;
                // One that waits and cannot be called is as good as a client that does not know of the queue:
                // reservations for others, who come without end, would keep it out.
                bool const respects = request_.once ? request_.in_order : !transport_.cannot_call(node);
                ask.use_queue = queues_ && respects && transport_.queues(node);
                // mutant: no restart guard for readers
                send(node, ask, no_token_ ? no_token_ : transport_.may_vote(node, now));
                if (under_way_.has(node) && waiter_ && (ask.score != 0 || !queues_)) known_.add(node);
            });
        }
        if (!step.confirm.empty()) {
            auto confirm = make(command::verb::confirm);
            confirm.value = machine_.fence();
            step.confirm.for_each([&](unsigned node) { send(node, confirm); });
        }
        if (step.watch) {
            enter(transport_.now());
            watching_ = true;
            unwatched_ = node_set::all(transport_.size());
        }
        step.doubt.for_each([&](unsigned node) { transport_.doubt_clock(node); });
        if (!step.done) return false;
        outcome_ = step.done;
        if (watching_ || !told_all_.empty()) transport_.unwatch(channel_, this);
        transport_.leave(waiter_);
        return true;
    }

    void give_back(quorum::acquire_step const& step) noexcept
    {
        auto c = make(command::verb::release);
        c.waiter = waiter_;
        step.roll_back.for_each([&](unsigned node) {
            // mutant: a roll-back that forgets to register again
            c.score = step.stays && called_.has(node) ? score_ : 0;
            // mutant: a queue forgotten whose node did not answer in time
            if (queues_) c.score != 0 ? known_.add(node) : known_.remove(node);
            transport_.send(node, c, nullptr);
        });
        step.refused.for_each([&](unsigned node) { transport_.refused(node, token_); });
        c.score = 0;
        c.token = {};  // it may arrive late, and is not to end a lease
        c.what = command::verb::leave;
        if (step.done)  // mutant: no leave at the end
            known_.for_each([&](unsigned node) { transport_.send(node, c, nullptr); });
    }

    /// Effects: it is a waiter that nodes can call, or know among the readers that wait, since `now`.
    void enter(boot_clock::time_point now) noexcept
    {
        if (waiter_ || request_.once || keys_->layout() != layout::string) return;
        entered_at_ = std::min(now, request_.since);
        if (queues_) score_ = transport_.score(entered_at_);
        waiter_ = transport_.enter(queues_ ? this : nullptr);  // readers hear of releases with all
    }

    /// Watches the nodes, after a step that said so, and tells the machine of those that cannot report releases.
    std::optional<quorum::acquire_step> more() noexcept override
    {
        if (machine_.unavailable_so_far() == false) tell_must_wait();
        while (deaf_.empty()) {
            if (unwatched_.empty()) return std::nullopt;
            auto const node = take_first(unwatched_);
            bool const in_line = queues_ && waiter_ && score_ != 0;
            if (!in_line || !transport_.queues(node)) told_all_.add(node);
            auto const why = transport_.watch(node, channel_, this, in_line);
            if (why) {
                deaf_.add(node);
                deaf_why_ = why;
            } else if (queues_ && !called_.has(node) && transport_.calls(node) && transport_.queues(node)) {
                return machine_.on_watching(node, transport_.now());  // it can get in line there now
            }
        }
        return next_deaf(transport_.now());
    }

    /// Effects: what all are told is watched, too, if the node calls nobody of this user. Returns: whether that is new.
    bool listen_with_all(unsigned node) noexcept
    {
        if (transport_.queues(node) || told_all_.has(node)) return false;
        told_all_.add(node);
        unwatched_.add(node);
        return true;
    }

    [[nodiscard]] quorum::acquire_step next_deaf(boot_clock::time_point now) noexcept
    {
        auto const node = take_first(deaf_);
        errors_.note(node, deaf_why_);
        return machine_.on_watch_failed(node, deaf_why_, now);
    }

    void draw_token() noexcept
    try {
        no_token_ = {};
        token_ = transport_.fresh_token();
        transport_.began(token_);
    } catch (...) {
        no_token_ = holdfast::detail::current_exception_code();
    }

    [[nodiscard]] command make(command::verb what) const noexcept
    {
        return {.what = what,
                .fence = request_.fences == 0 ? fence_source::none : transport_.fencing(),
                .keys = keys_,
                .token = token_,
                .ttl = request_.ttl,
                .batch = request_.fences,
                .max_lead = transport_.max_lead(),
                .rolls_back = what == command::verb::release};
    }

    shared_keys keys_;
    std::string const channel_ = keys_->channel().text();
    acquire_request request_;
    // Readers wait together, and are told with all; Redisson's locks have no queue.
    bool const queues_ = keys_->mode() != access::shared && keys_->layout() == layout::string;
    owner_token token_;
    std::error_code no_token_;  ///< why there is no token
    node_set unwatched_;        // still to be watched
    node_set deaf_;             // they cannot report releases; the machine must still be told
    std::error_code deaf_why_;  // why the last of them cannot
    node_set strange_;          // whose key does not expire, or is of another type
    node_set other_type_;       // those whose key is of another type
    bool watching_ = false;
    waiter_id waiter_;  // none: no node can call it
    boot_clock::time_point entered_at_{};
    std::int64_t score_ = 0;
    node_set known_;     // where it may be known as one that waits, also if the answer was not waited for
    node_set called_;    // in the present round, those that were told whom to call
    node_set told_all_;  // where what all are told is watched
    std::optional<quorum::acquire_outcome> outcome_;
};

}  // namespace holdfast::redis
