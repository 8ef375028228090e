// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/random.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/zookeeper/acquirer.hpp>
#include <holdfast/zookeeper/eraser.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/explanation.hpp>
#include <holdfast/zookeeper/lock_place.hpp>
#include <holdfast/zookeeper/node_content.hpp>
#include <holdfast/zookeeper/receiver.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_lease.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::zookeeper {

/// Runs a machine that takes a lock, and undoes what it left where it failed.
///
/// | state      | event                                        | next |
/// |------------|----------------------------------------------|------|
/// | working    | the machine has the lock                     | confirming |
/// | working    | the machine failed; the deadline; cancel     | undoing, or done where nothing is left |
/// | confirming | the session is known to live for long enough | done: granted |
/// | confirming | the session is over                          | working, from the beginning |
/// | undoing    | the node is gone, or one operation timeout   | done: failed; what is left is removed in the background |
class acquire_operation final : private receiver {
public:
    acquire_operation(lock_place& place, std::shared_ptr<std::string const> lock, acquire_request const& request)
        : place_{place}, core_{place.core()}, lock_{std::move(lock)}, request_{request}, jitter_{seed()}
    {
    }

    acquire_operation(acquire_operation const&) = delete;
    acquire_operation& operator=(acquire_operation const&) = delete;

    ~acquire_operation() override
    {
        std::scoped_lock guard{core_.mutex()};
        core_.detach(*this);
        if (undoing_) undoing_->forget();
        if (machine_ && !outcome_ && !undoing_ && machine_->left_something()) try_undo();
    }

    void start()
    {
        place_.thread().ensure_running(*lock_);
        started_ = boot_clock::now();
        std::scoped_lock guard{core_.mutex()};
        machine_ = make_machine();
        core_.attach(*this);
        if (!core_.connected()) core_.wake_thread();
    }

    bool wait_until(boot_clock::time_point t)
    {
        for (;;) {
            auto const now = boot_clock::now();
            auto wake = t;
            {
                std::scoped_lock guard{core_.mutex()};
                wake = std::min(wake, step(now));
                if (outcome_) {
                    core_.detach(*this);
                    return true;
                }
            }
            if (now >= t) return false;
            bed_.park_until(wake);
        }
    }

    void cancel() noexcept
    {
        canceled_.store(true, std::memory_order_release);
        bed_.unpark();
    }

    /// Returns: whether no server could be asked so far; nothing where there was no time for it. May be called from any thread.
    [[nodiscard]] std::optional<bool> unavailable() const noexcept
    {
        std::scoped_lock guard{core_.mutex()};
        if (reached()) return false;
        bool const tried = !core_.connected() && boot_clock::now() - started_ >= core_.options().operation_timeout;
        return tried ? std::optional{true} : std::nullopt;
    }

    [[nodiscard]] result<grant> outcome() const { return *outcome_; }

private:
    using phase = acquirer::phase;
    static constexpr unsigned confirm_tag = ~0U;  // of no round of a machine

    [[nodiscard]] static std::uint64_t seed() noexcept { return static_cast<std::uint64_t>(boot_clock::now().time_since_epoch().count()); }

    [[nodiscard]] std::unique_ptr<acquirer> make_machine() const
    {
        return place_.machine({.lock = *lock_,
                               .content = node_content(core_.options().label),
                               .once = once_,
                               .look_first = !place_.thread().readable().contains(*lock_)});
    }

    void on_answer(unsigned tag, reply const& r) override
    {
        if (tag == confirm_tag)
            confirming_ = false;
        else
            machine_->answered(tag, r);
        act();
    }
    void on_notice(unsigned tag) override
    {
        machine_->noticed(tag);
        act();
    }
    void on_connected(std::int64_t session) override
    {
        machine_->connected(session);
        act();
    }
    void on_expired() noexcept override
    {
        machine_->expired();
        resume_at_.reset();
        bed_.unpark();  // no server may ever be reached again
    }
    void on_suspended() noexcept override { bed_.unpark(); }
    void on_failure(std::error_code why) noexcept override
    {
        machine_->interrupt(why);
        bed_.unpark();
    }

    void act()
    {
        if (machine_->may_read() && !std::exchange(known_, true)) place_.thread().readable().add(*lock_);
        core_.perform(*this, machine_->take_actions());
        if (!machine_->pausing()) resume_at_.reset();
        if (machine_->now() != phase::working || machine_->pausing() || (late_ && machine_->reached())) bed_.unpark();
    }

    /// Effects: does what is due. Returns: when to look again.
    boot_clock::time_point step(boot_clock::time_point now)
    {
        if (outcome_) return now;
        if (undoing_) return wait_for_undo(now);
        auto const limit = give_up_where_due(now);
        if (machine_->now() == phase::failed) return fail(now, machine_->why());
        if (machine_->now() == phase::granted) return confirm(now, limit);
        return machine_->pausing() && core_.connected() ? std::min(limit, pause(now)) : limit;
    }

    boot_clock::time_point give_up_where_due(boot_clock::time_point now)
    {
        auto const timeout = core_.options().operation_timeout;
        bool const under_way = core_.connected() && !machine_->reached();  // an attempt that has begun is given its time
        auto const deadline = once_ ? started_ + timeout : under_way ? saturating_add(request_.deadline, timeout) : request_.deadline;
        auto const patience = once_ || request_.unavailable_at == boot_clock::time_point::max() ? boot_clock::time_point::max()
                              : !reached()                                                      ? request_.unavailable_at
                              : core_.connected() || request_.deadline != boot_clock::time_point::max()
                                  ? boot_clock::time_point::max()
                                  : saturating_add(std::max(started_, core_.suspended_since()), request_.unavailable_after);
        auto const limit = std::min(deadline, under_way ? saturating_add(patience, timeout) : patience);
        if (canceled_.load(std::memory_order_acquire))
            machine_->give_up(std::make_error_code(std::errc::operation_canceled));
        else if (core_.refused())
            machine_->give_up(core_.refused());
        else if (now >= limit && (!reached() || now >= patience))
            machine_->give_up(unanswered());
        else if (now >= limit)
            machine_->give_up(once_ ? unanswered() : make_error_code(holdfast::errc::timed_out));
        late_ = now >= request_.deadline;
        return late_ ? limit : std::min(limit, request_.deadline);
    }

    /// Returns: whether a quorum could be asked, if in an earlier session.
    [[nodiscard]] bool reached() const noexcept { return reached_before_ || (machine_ && machine_->reached()); }

    [[nodiscard]] std::error_code unanswered() const
    {
        if (!core_.connected()) return errc::not_connected;
        return machine_->put_off() ? machine_->put_off() : errc::no_answer;
    }

    boot_clock::time_point confirm(boot_clock::time_point now, boot_clock::time_point limit)
    {
        if (machine_->session() != core_.session()) {
            reached_before_ = true;
            machine_ = make_machine();
            if (core_.connected()) on_connected(core_.session());
            return now;  // a cancel that came with the end of the session has not been looked at
        }
        auto const timeout = core_.lease().timeout();
        auto const ttl = session_lease::duration(timeout);
        auto const until = core_.lease().until();
        if (until - now < boot_clock::duration{ttl} / 2) {  // woken long after it was confirmed, or a process that was paused
            if (canceled_.load(std::memory_order_acquire)) return fail(now, std::make_error_code(std::errc::operation_canceled));
            if (now >= limit) return fail(now, errc::not_confirmed);
            if (confirming_ || !core_.connected()) return limit;
            if (now < confirm_at_) return std::min(limit, confirm_at_);
            confirming_ = true;
            confirm_at_ = now + timeout / 32;
            core_.perform(*this, {{{request::kind::confirm}, confirm_tag}});
            return limit;
        }
        constexpr unsigned tokens_of_a_node = most_local_handoffs + 1;
        auto const fence = request_.fences == 0 ? 0 : static_cast<std::uint64_t>(machine_->czxid()) * tokens_of_a_node;
        core_.held().add(token_, {machine_->what_is_left(), until + drift(ttl)});
        core_.wake_thread();
        outcome_.emplace(grant{.token = token_, .valid_until = until, .fence = fence, .fences = tokens_of_a_node, .ttl = ttl});
        return now;
    }

    boot_clock::time_point fail(boot_clock::time_point now, std::error_code why)
    {
        why_ = why;
        if (!machine_->left_something()) {
            outcome_.emplace(failure{why, explanation(core_, why, *lock_)});
            return now;
        }
        undoing_ = core_.erase(machine_->what_is_left(), &bed_);
        auto const timeout = core_.options().operation_timeout;
        undo_limit_ = now + timeout;
        if (why != std::errc::operation_canceled)  // what waits no longer than it was told to has had that time already
            undo_limit_ = std::clamp(saturating_add(once_ ? started_ : std::min(request_.deadline, request_.unavailable_at), timeout), now,
                                     undo_limit_);
        return wait_for_undo(now);
    }

    boot_clock::time_point wait_for_undo(boot_clock::time_point now)
    {
        if (!undoing_->settled() && now < undo_limit_) return undo_limit_;
        undoing_->forget();
        outcome_.emplace(failure{why_, explanation(core_, why_, *lock_)});
        return now;
    }

    void try_undo() noexcept
    try {
        static_cast<void>(core_.erase(machine_->what_is_left(), nullptr));
    } catch (...) {
        core_.abandon_session(machine_->session());  // the node goes with it
    }

    boot_clock::time_point pause(boot_clock::time_point now)
    {
        if (!resume_at_)
            resume_at_ = now + std::chrono::nanoseconds{
                                   jitter_.below(static_cast<std::uint64_t>(boot_clock::duration{request_.retry.first}.count()))};
        if (now < *resume_at_) return *resume_at_;
        resume_at_.reset();
        machine_->pause_is_over();
        act();
        return request_.deadline;
    }

    lock_place& place_;
    session_core& core_;
    std::shared_ptr<std::string const> lock_;
    acquire_request request_;
    bool once_ = request_.deadline <= boot_clock::now();
    holdfast::detail::random_sequence jitter_;
    owner_token token_ = owner_token::fresh();  // of the lease; nobody else is shown it
    std::unique_ptr<acquirer> machine_;
    bool known_ = false;           // it has been noted that the list of those who wait may be read
    bool reached_before_ = false;  // a server, by an earlier machine
    boot_clock::time_point started_{};
    bool late_ = false;  // the deadline has passed, and the attempt that was under way has not been answered
    std::optional<boot_clock::time_point> resume_at_;
    bool confirming_ = false;  // a quorum has been asked whether the session lives
    boot_clock::time_point confirm_at_{};
    std::error_code why_;
    std::shared_ptr<eraser> undoing_;
    boot_clock::time_point undo_limit_{};
    std::atomic<bool> canceled_{false};
    holdfast::detail::parker bed_;
    std::optional<result<grant>> outcome_;
};

}  // namespace holdfast::zookeeper
