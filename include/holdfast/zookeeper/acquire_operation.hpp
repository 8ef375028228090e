// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/acquire_limits.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/acquire_stages.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/mark_watch.hpp>
#include <holdfast/zookeeper/node_cleanup.hpp>
#include <holdfast/zookeeper/node_key.hpp>
#include <holdfast/zookeeper/pending_operation.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_lease.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Runs a machine that takes a lock, and undoes what it leaves if it fails.
///
/// | state | event | next |
/// |---|---|---|
/// | numbering | the number of permits is agreed (only for a slot of a semaphore) | working |
/// | working | the machine has the lock | confirming |
/// | working | the machine failed; the deadline; cancel | undoing, or done if nothing is left |
/// | confirming | the session is known to live for long enough | done: granted |
/// | confirming | the session is over | working, from the beginning |
/// | undoing | the node is gone, or one operation timeout | done: failed; what is left is removed in the background |
class acquire_operation final : public pending_operation<pending_acquire> {
public:
    acquire_operation(std::shared_ptr<session_core> in, std::shared_ptr<node_key const> key,
                      acquire_request const& request)
        : pending_operation{std::move(in)},
          key_{std::move(key)},
          request_{request},
          token_{session().host().fresh_token()}
    {
    }

    ~acquire_operation() override
    {
        if (!machine_ || ended() || session().in_child()) return;
        std::scoped_lock guard{session().mutex()};
        abandon();
    }

    /// Effects: this goes on with what `before` began: it has the rest of that one's time, and what that one knows of
    /// the servers. If `in` is not 0, it fails with `session_expired` unless it is connected in that session.
    /// Requires: it has not been started, and `before` has ended.
    void continue_from(acquire_operation const& before, std::int64_t in = 0)
    {
        std::scoped_lock guard{session().mutex()};
        only_in_ = in;
        started_ = before.started_;
        limits_ = before.limits_;
        had_to_wait_ = before.had_to_wait_;
    }

    void start(completion& done) override
    {
        session().ensure_running(key_->name());
        auto const now = boot_clock::now();
        std::scoped_lock guard{session().mutex()};
        if (started_ == boot_clock::time_point{}) started_ = now;
        only_attempt_ = limits_.last_attempt(now);
        if (only_attempt_ && !request_.once) started_ = std::max(started_, std::min(request_.deadline, now));
        machine_ = stages_.begin(only_attempt_);
        begin(done);
        try {
            session().attach(*this);
        } catch (...) {
            abandon();
            machine_.reset();
            throw;
        }
        look();
    }

    [[nodiscard]] std::optional<bool> unavailable() const noexcept override
    {
        std::scoped_lock guard{session().mutex()};
        if (reached()) return false;
        bool const tried = machine_ && boot_clock::now() >= timeout_after(started_);
        return tried && !session().connected() ? std::optional{true} : std::nullopt;
    }

private:
    using phase = acquire_machine::phase;
    static constexpr unsigned confirm_tag = ~0U;  // of no round of a machine

    void on_time(boot_clock::time_point) noexcept override { look(); }
    void on_suspended() noexcept override { look(); }
    void on_notice(unsigned tag) override
    {
        machine_->noticed(tag);
        go_on();
    }
    void on_connected(std::int64_t in) override
    {
        if (only_in_ != 0 && in != only_in_) return static_cast<void>(fail(boot_clock::now(), errc::session_expired));
        if (stages_.outdated(in)) {
            undo(session(), *machine_);
            machine_ = stages_.begin(only_attempt_);
        }
        machine_->connected(in);
        go_on();
    }
    void on_answer(unsigned tag, reply const& r) override
    {
        tag == confirm_tag ? static_cast<void>(confirming_ = false) : machine_->answered(tag, r);
        go_on();
    }
    void on_expired() noexcept override
    {
        machine_->expired();
        confirming_ = false;
        look();  // perhaps no server is ever reached again
    }
    void go_on()
    {
        act();
        look();
    }
    void act()
    {
        if (machine_->may_read()) session().note_list(key_->path());
        session().perform(*this, machine_->take_actions());
        if (machine_->stalled()) session().go_on_later();
    }

    void abandon() noexcept
    {
        session().detach(*this);
        if (undoing_) return undoing_->leave();
        undo(session(), *machine_);
    }

    /// Effects: goes on until it must wait for something or has ended. Without memory it ends, and so does the session
    /// if a node is left.
    void look() noexcept
    try {
        while (!ended()) {
            auto const now = boot_clock::now();
            auto const due = step(now);
            if (!ended() && due > now) return session().look_at(*this, due);
        }
    } catch (...) {
        if (machine_->left_something()) session().abandon_session(machine_->session());
        finish(std::make_error_code(std::errc::not_enough_memory));
    }

    void finish(result<grant> outcome) noexcept
    {
        if (undoing_) undoing_->leave();
        end(std::move(outcome));
    }

    /// Effects: does what is due. Returns: when to look again.
    boot_clock::time_point step(boot_clock::time_point now)
    {
        if (undoing_) return wait_for_undo(now);
        auto const limit = give_up_if_due(now);
        if (machine_->now() == phase::failed) return fail(now, machine_->why());
        if (machine_->now() == phase::granted) return stages_.numbering() ? take_slot(now) : confirm(now, limit);
        return limit;
    }

    /// Returns: until when it goes on.
    boot_clock::time_point give_up_if_due(boot_clock::time_point now)
    {
        if (reached()) limits_.asked(session().connected() ? now : std::max(started_, session().suspended_since()));
        if (!session().connected()) limits_.not_asked();
        had_to_wait_ = had_to_wait_ || machine_->waits();
        if (had_to_wait_) tell_must_wait();
        // An attempt that has begun gets its time.
        bool const under_way = session().connected() && !machine_->waits();
        auto const limit = only_attempt_ ? timeout_after(started_)
                           : under_way   ? timeout_after(limits_.until())
                                         : limits_.until();
        auto const why = canceled() ? std::make_error_code(std::errc::operation_canceled) : session().refused();
        if (why || now >= limit) machine_->give_up(why ? why : unanswered(now));
        return now >= request_.deadline ? limit : std::min(limit, request_.deadline);
    }

    /// Returns: whether a quorum could be asked, even if in an earlier session.
    [[nodiscard]] bool reached() const noexcept { return limits_.ever_asked() || (machine_ && machine_->reached()); }

    /// Returns: how it ends at `now`: `timed_out` only if another client was seen to have the lock.
    [[nodiscard]] std::error_code unanswered(boot_clock::time_point now) const
    {
        auto const why = limits_.why_over(now);
        if (!only_attempt_ && had_to_wait_ && why != holdfast::errc::unavailable) return why;
        if (!session().connected()) return errc::not_connected;
        return machine_->put_off() ? machine_->put_off() : errc::no_answer;
    }

    void begin_stage()
    {
        machine_ = stages_.begin(only_attempt_);
        if (!session().connected()) return;
        machine_->connected(session().session());
        act();
    }

    boot_clock::time_point take_slot(boot_clock::time_point now)
    {
        if (!keep_mark(session(), key_->number(), *machine_))
            return fail(now, std::make_error_code(std::errc::operation_canceled));
        begin_stage();
        return now;
    }

    boot_clock::time_point confirm(boot_clock::time_point now, boot_clock::time_point limit)
    {
        if (machine_->session() != session().session() || stages_.outdated(session().session())) {
            if (key_->max() != 0) return fail(now, errc::session_expired);  // its place in the queue is gone, too
            undo(session(), *machine_);
            begin_stage();
            return now;  // a cancel that came with the end of the session has not been looked at
        }
        auto const ttl = session_lease::duration(session().lease().timeout());
        auto const until = session().lease().until();
        // The thread woke long after the confirmation, or the process was paused.
        if (until - now < boot_clock::duration{ttl} / 2) {
            if (canceled()) return fail(now, std::make_error_code(std::errc::operation_canceled));
            if (now >= limit) return fail(now, errc::not_confirmed);
            if (confirming_ || !session().connected()) return limit;
            if (now < confirm_at_) return std::min(limit, confirm_at_);
            confirming_ = true;
            // It takes two answers, one after the other.
            confirm_at_ = std::exchange(asked_quorum_, true) ? now + ttl / 16 : now;
            session().perform(*this, {{{request::kind::confirm}, confirm_tag}});
            return limit;
        }
        session().held().add(
            token_, {machine_->what_is_left(), until + drift(ttl), machine_->first_token(), request_.stop_margin});
        session().wake_thread(until + drift(ttl));
        auto const fence = request_.fences == 0 ? 0 : machine_->first_token();
        finish(grant{.token = token_, .valid_until = until, .fence = fence, .fences = key_->tokens(), .ttl = ttl});
        return now;
    }

    boot_clock::time_point fail(boot_clock::time_point now, std::error_code why)
    {
        why_ = why;
        session().detach(*this);  // from here on it asks for nothing
        if (machine_->left_something()) undoing_ = erase(session(), machine_->what_is_left());
        undo_limit_ = timeout_after(now);
        if (why != std::errc::operation_canceled)  // an acquire with a deadline has had that time already
            undo_limit_ = std::clamp(
                timeout_after(only_attempt_ ? started_ : std::min(request_.deadline, request_.unavailable_at)), now,
                undo_limit_);
        if (undoing_) undoing_->tell(*this, undo_limit_);
        return wait_for_undo(now);
    }

    boot_clock::time_point wait_for_undo(boot_clock::time_point now)
    {
        if (undoing_ && !undoing_->settled() && now < undo_limit_) return undo_limit_;
        auto detail = machine_->detail();
        auto const left = undoing_ && undoing_->settled() ? undoing_->outcome() : std::error_code{};
        if (left && left != holdfast::errc::not_owner) why_ = left;  // its node is in the way of others
        auto const& path = stages_.numbering() ? key_->number()->path : key_->path();
        finish(failure{why_, detail.empty() ? session().explanation(why_, path) : std::move(detail)});
        return now;
    }

    std::shared_ptr<node_key const> const key_;
    acquire_request const request_;
    holdfast::detail::acquire_limits limits_{request_};
    acquire_stages stages_{session(), *key_, request_};
    owner_token const token_;  // of the lease; no other client sees it
    std::unique_ptr<acquire_machine> machine_;
    boot_clock::time_point started_{};  // when the time of a single attempt began
    std::int64_t only_in_ = 0;
    bool only_attempt_ = false;
    bool had_to_wait_ = false;  // for another client
    bool confirming_ = false;   // a quorum has been asked whether the session lives
    bool asked_quorum_ = false;
    boot_clock::time_point confirm_at_{};  // when to ask the quorum next, at the earliest
    std::error_code why_;
    std::shared_ptr<node_cleanup> undoing_;
    boot_clock::time_point undo_limit_{};
};

}  // namespace holdfast::zookeeper
