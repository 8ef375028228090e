// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/lock/announce.hpp>
#include <holdfast/lock/attempt.hpp>
#include <holdfast/lock/keeper.hpp>
#include <holdfast/lock/release_pause.hpp>
#include <holdfast/lock/renewal.hpp>
#include <holdfast/lock/renewal_record.hpp>
#include <holdfast/lock/tenure.hpp>
#include <holdfast/lock/waiting_line.hpp>

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::detail {

/// The threads of this process that want one lock of a client, first come, first served, and its lease while one of them has it.
///
/// | state  | meaning                                              | left by |
/// |--------|------------------------------------------------------|---------|
/// | idle   | nobody here has the lock or asks for it              | acquire → asking |
/// | asking | the first in line asks the backend, after the pause that others get; the rest sleep | granted → held; failed → asking for the next in line, or idle |
/// | held   | somebody here has it; the keeper renews its lease   | release → held by the next in line without asking, or as after loss; loss → asking for the next in line, or idle |
///
/// A lease passes to the next in line while its validity is ample, the options are the same, and handoffs are left. Then it is given back, and
/// nobody here asks for the lock before the store has answered that, nor before the pause is over (`release_pause`). Lock order: this
/// mutex, then the keeper's or the backend's. The user's code is called with none of them held.
template <class B>
class local_queue final : public kept, public std::enable_shared_from_this<local_queue<B>> {
public:
    local_queue(std::shared_ptr<B> backend, std::shared_ptr<keeper> keeper, std::shared_ptr<failure_reports> reports,
                fork_guard const& origin, std::string_view name)
        : backend_{std::move(backend)}, keeper_{std::move(keeper)}, origin_{origin}, name_{name}, key_(backend_->make_key(name)),
          record_{std::move(reports)}
    {
    }

    ~local_queue() override { keeper_->cancel(ticket_); }
    [[nodiscard]] std::string const& name() const noexcept { return name_; }
    [[nodiscard]] B& backend() const noexcept { return *backend_; }
    [[nodiscard]] typename B::key const& key() const noexcept { return key_; }
    [[nodiscard]] bool in_child() const noexcept { return origin_.in_child(); }
    [[nodiscard]] failure_reports& reports() const noexcept { return record_.all(); }

    /// Effects: waits until `owner` has the lock, or `deadline` (`time_point::min()`: does not wait), or `stop`.
    /// Returns: nothing where it has the lock; otherwise why not: `timed_out`, `operation_canceled`, or what the backend said.
    std::optional<failure> acquire(lock_owner& owner, boot_clock::time_point deadline, std::stop_token const& stop)
    {
        keeper_->ensure_running();
        attempt<B> request{*backend_, key_, *owner.options, deadline};
        std::list<waiter> self;
        auto const me = self.emplace(self.end(), owner);
        me->request = &request;
        if (std::unique_lock guard{mutex_}; state_ == state::idle && !owner.held) {  // nobody else in line can go on
            if (!ticket_.prepared()) keeper_->prepare(ticket_, this->weak_from_this());
            state_ = state::asking;
            me->now = waiter::stage::first;
            outage_.asked_by(*me);
        } else if (deadline != boot_clock::time_point::min()) {
            line_.join(self);
            guard.unlock();
            line_.wait(mutex_, me, deadline, stop);
        }
        if (me->now == waiter::stage::first) return ask(*me, request, stop);
        if (me->now == waiter::stage::granted) return std::nullopt;
        if (stop.stop_requested()) return failure{std::make_error_code(std::errc::operation_canceled), {}};
        std::scoped_lock guard{mutex_};
        return failure{make_error_code(state_ == state::asking && outage_.is_all_for(*me) ? errc::unavailable : errc::timed_out), {}};
    }

    /// Effects: gives up what `owner` has: to the next in line, or back to the store, for whose answer it waits. Whoever has the lock then may
    /// destroy `owner`. Returns: no error, `not_owner`, `lease_lost`, or why the outcome is not known.
    failure release(lock_owner& owner) noexcept
    try {
        if (in_child()) return {make_error_code(errc::not_owner), {}};
        std::unique_lock guard{mutex_};
        auto const mine = std::exchange(owner.held, nullptr);
        if (!mine) return {make_error_code(errc::not_owner), {}};
        auto const deadline = mine->deadline();
        bool const valid = mine == tenure_.holder() && mine->still_held() && still_leased(*backend_, owner.token);
        mine->end();
        // What an extend under way makes of the lease is not known.
        if (auto* const next = valid && extending_ == 0 ? line_.next() : nullptr; next && tenure_.may_pass_to(*next, deadline)) {
            bool const limited = tenure_.options()->max_hold.has_value();  // the time of one holder is not that of the next
            tenure_.count_handoff();
            tenure_.give(*next, deadline);
            if (limited) schedule();
            line_.choose(*next, waiter::stage::granted);
            guard.unlock();
            waiting_line::wake(next);
            return {};
        }
        typename B::release_operation releasing{*backend_, key_, owner.token};
        auto const begun = boot_clock::now();
        if (mine == tenure_.holder()) withdraw(renewing_);  // not to be sent again behind the release
        releasing.start();
        auto* const next = mine == tenure_.holder() || state_ == state::idle ? leave() : nullptr;
        bool const deferred = owner.options->deferred_release && !next;
        pause_.released(begun, boot_clock::now(), false);
        guard.unlock();  // `owner` may be gone from here on
        if (!deferred) {
            waiting_line::wake_up const afterwards{next};
            finish(releasing);
            std::scoped_lock noting{mutex_};
            pause_.released(begun, boot_clock::now(), others_wait(releasing));
        }
        auto const said = !valid ? make_error_code(errc::lease_lost) : deferred ? std::error_code{} : std::error_code{releasing.outcome()};
        if (said != errc::not_owner && said != errc::lease_lost) return explained(releasing, said);
        mine->lose();
        return {make_error_code(errc::lease_lost), {}};
    } catch (...) {
        return {make_error_code(errc::outcome_unknown), {}};
    }

    /// Effects: asks for a lease of `ttl` from now on for what `owner` has, and renews it with that ttl from then on.
    /// Returns: no error, `not_owner`, `lease_lost`, or why the lease runs on as before, though no longer than `ttl` until it is renewed.
    std::error_code extend(lock_owner& owner, std::chrono::milliseconds ttl)
    {
        std::unique_lock guard{mutex_};
        auto const mine = owner.held;
        if (!mine) return make_error_code(errc::not_owner);
        if (mine != tenure_.holder() || !mine->still_held()) return make_error_code(errc::lease_lost);
        typename B::extend_operation extending{*backend_, key_, owner.token, ttl};
        auto const request = tenure_.ask(ttl);
        extending.start();
        ++extending_;
        schedule();
        guard.unlock();
        auto const outcome = outcome_of(extending);
        guard.lock();
        --extending_;
        return settle(std::move(guard), request, outcome, nullptr);
    }

    /// Returns: the hold of `owner`; null where it has none.
    [[nodiscard]] std::shared_ptr<hold> hold_of(lock_owner const& owner) const
    {
        return in_child() ? nullptr : (static_cast<void>(std::scoped_lock{mutex_}), owner.held);
    }

    bool on_due(boot_clock::time_point now) noexcept override
    {
        std::unique_lock guard{mutex_};
        if (!tenure_.holder()) return false;
        if (!tenure_.holder()->still_held() || (now == boot_clock::time_point::max() && !still_leased(*backend_, tenure_.token()))) {
            lose(guard, tenure_.holder()->still_held() ? loss::session : loss::deadline, &keeper_->calls());
            return false;
        }
        bool const due = may_renew() && now >= tenure_.renew_at();
        if (due) {
            try {
                renewing_.emplace(*backend_, key_, tenure_);
                renewing_->operation.start();
            } catch (...) {  // no memory for it; the deadline stands, and the renewal is tried again before
                renewing_.reset();
                tenure_.retry_later();
            }
        }
        schedule();
        return due && renewing_;
    }

    bool finish_renewal(boot_clock::time_point t) noexcept override
    {
        if (!renewing_->operation.wait_until(t)) return false;
        auto const outcome = outcome_of(renewing_->operation);
        auto const request = renewing_->request;
        std::unique_lock guard{mutex_};
        renewing_.reset();
        settle(std::move(guard), request, outcome, &keeper_->calls());
        return true;
    }

private:
    enum class state { idle, asking, held };
    std::optional<failure> ask(waiter& me, attempt<B>& request, std::stop_token const& stop)
    {
        try {
            auto const allowed_at = (static_cast<void>(std::scoped_lock{mutex_}), pause_.ask_at());
            bool const in_time = !me.was_in_line() || !request.late();
            waiting_line::pause(me, std::min(allowed_at, request.deadline()), stop);
            bool const asks = in_time && !stop.stop_requested() && (static_cast<void>(std::scoped_lock{mutex_}), pause_.may_ask(boot_clock::now(), request.deadline()));
            if (asks) request.begin(outage_.seen_by(me), tenure_.handoffs_for(me));
            auto const got = asks ? request.outcome(name_, stop, reports(), keeper_->calls(), me.owner->options)
                : stop.stop_requested() ? result<grant>{std::make_error_code(std::errc::operation_canceled)}
                                        : result<grant>{outage_.is_all_for(me) ? errc::unavailable : errc::timed_out};
            std::unique_lock guard{mutex_};
            if (asks) outage_.note(got.code(), request.unavailable_since_then());
            if (got) return take_over(guard, me, *got);
            std::optional<failure> why{got.why()};  // before it leaves: what throws afterwards would have it leave again
            leave_and_wake(std::move(guard));
            return why;
        } catch (...) {
            leave_and_wake(std::unique_lock{mutex_});
            throw;
        }
    }

    std::nullopt_t take_over(std::unique_lock<std::mutex>& guard, waiter& me, grant const& got) noexcept
    {
        pause_.granted(boot_clock::now());
        state_ = state::held;
        tenure_.begin(got, me.owner->options);
        tenure_.give(me, tenure_.deadline_for(got.valid_until));
        schedule();
        guard.unlock();
        reports().went_well(*me.owner->options, name_);
        return std::nullopt;
    }

    /// Effects: the lock is nobody's here any more. Returns: the next in line, who is to ask for it, to be woken when the mutex is free.
    [[nodiscard]] waiter* leave() noexcept
    {
        auto* const next = line_.next();
        tenure_.end(next);
        record_.end();
        keeper_->cancel(ticket_);
        if (next) line_.choose(*next, waiter::stage::first);
        if (next) outage_.asked_by(*next);
        state_ = next ? state::asking : state::idle;
        return next;
    }

    void leave_and_wake(std::unique_lock<std::mutex> guard) noexcept
    {
        auto* const next = leave();
        guard.unlock();
        waiting_line::wake(next);
    }

    void lose(std::unique_lock<std::mutex>& guard, loss how, announcer* background) noexcept
    {
        auto const why = record_.explain(how, tenure_);
        auto const lost = tenure_.holder();
        auto const options = tenure_.options();
        lost->end();  // before the next one can have it
        withdraw(renewing_);
        leave_and_wake(std::move(guard));
        announce(background, lost->mark_lost(), options, name_, why);
    }

    /// Effects: acts on the answer to `request`; the user is told in a thread of `background`, or by this one where that is null.
    std::error_code settle(std::unique_lock<std::mutex> guard, lease_request const& request,
                           result<boot_clock::time_point> const& outcome, announcer* background) noexcept
    {
        if (!tenure_.concerns(request)) {
            if (tenure_.holder()) schedule();
            return make_error_code(errc::lease_lost);
        }
        bool const late = outcome && !tenure_.renew(request, *outcome);
        if (late || outcome.code() == errc::lease_lost) {
            lose(guard, late ? loss::late : loss::taken, background);
            return make_error_code(errc::lease_lost);
        }
        auto const options = tenure_.options();
        record_.note(outcome);
        if (!outcome) tenure_.retry_later();
        schedule();
        guard.unlock();
        tell(background, options, [&](auto const& told) { reports().note(told, name_, outcome), report_servers(*backend_, told); });
        return outcome.code();
    }

    /// One at a time: the later one would undo the other.
    [[nodiscard]] bool may_renew() const noexcept { return !renewing_ && extending_ == 0 && tenure_.renewable(); }

    void schedule() noexcept
    {
        auto const end = tenure_.holder()->deadline();
        keeper_->put(ticket_, may_renew() ? tenure_.renew_at() : end, end);
    }

    std::shared_ptr<B> const backend_;
    std::shared_ptr<keeper> const keeper_;
    fork_guard const origin_;
    std::string const name_;
    typename B::key const key_;
    mutable std::mutex mutex_;
    waiting_line line_;
    state state_ = state::idle;
    release_pause pause_;
    outage outage_;  // changed by the one who asks
    tenure tenure_;
    std::optional<renewal<B>> renewing_;
    unsigned extending_ = 0;
    renewal_record record_;
    keeper::ticket ticket_;
};

}  // namespace holdfast::detail
