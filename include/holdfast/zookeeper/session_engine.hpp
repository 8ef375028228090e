// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/announcer.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/node_cleanup.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_host.hpp>
#include <holdfast/zookeeper/session_lease.hpp>
#include <holdfast/zookeeper/session_mutex.hpp>
#include <holdfast/zookeeper/session_operation.hpp>
#include <holdfast/zookeeper/session_options.hpp>
#include <holdfast/zookeeper/transport.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Keeps a session going, on whatever thread its host has. It takes what the transport tells, opens a transport, and
/// another one after expiry. It shows that the session lives, looks at operations at their times, removes the nodes of
/// leases that ended, and calls the user's callback. If memory runs out, it ends the session, and goes on in a new
/// one when the leases of that have ended.
class session_engine final : public session_core,
                             public std::enable_shared_from_this<session_engine>,
                             private transport_events {
public:
    using lock = std::unique_lock<session_mutex>;
    using session_core::state;

    session_engine(ensemble servers, session_options options, std::unique_ptr<session_host> host)
        : session_core{std::move(servers), std::move(options), std::move(host)}
    {
        news_.reserve(most_news);
    }
    ~session_engine() override
    {
        way_.reset();
        abandoned_ = true;  // nothing is sent any more
        while (auto* const one = operations_.first()) drop(*one);
    }

    /// Returns: a session that ends when the last copy of the returned pointer goes.
    [[nodiscard]] static std::shared_ptr<session_core> make(ensemble servers, session_options options,
                                                            std::unique_ptr<session_host> host)
    {
        auto made = std::make_shared<session_engine>(std::move(servers), std::move(options), std::move(host));
        auto* const raw = made.get();
        // NOLINTNEXTLINE(bugprone-use-after-move): it is asked for its host before
        return {raw, [made = std::move(made)](session_core*) mutable { made->host().end(std::move(made)); }};
    }

    void ensure_running(std::string_view name) override { host().ensure_running(*this, name); }

    /// Effects: does what is due. Requires: `guard` has the session's mutex locked; it may be unlocked meanwhile.
    /// Returns: when to call it again; earlier, if the session's host is woken.
    [[nodiscard]] boot_clock::time_point attend(lock& guard) noexcept
    {
        thread_wakes_ = {};
        auto next = boot_clock::time_point{};
        try {
            next = do_what_is_due(guard);
        } catch (...) {
            abandon_session(session_);
            next = boot_clock::now() + std::chrono::milliseconds{50};
        }
        return thread_wakes_ = next;
    }

    /// Effects: ends the session.
    void close(lock& guard)
    {
        thread_wakes_ = {};
        auto way = std::move(way_);
        guard.unlock();
        way.reset();
        guard.lock();
        over_ = false;
        unsent_.splice(unsent_.end(), sent_);
    }

    /// Calls the user's callback. The thread that attends to the session does not: all else would wait for it.
    holdfast::detail::announcer calls;

private:
    static constexpr std::size_t most_news = 64;

    boot_clock::time_point do_what_is_due(lock& guard)
    {
        if (abandoned_) finish_session();
        if (over_ && boot_clock::now() >= close_at_) close(guard);
        deliver_unsent();
        auto const now = boot_clock::now();
        auto next = over_ ? close_at_ : boot_clock::time_point::max();
        next = std::min({next, look_after(now), look(now), tell_user(now)});
        if (!way_ && !refused_) {
            if (now >= open_at_) open(now);
            if (!way_) next = std::min(next, open_at_);
        }
        return unsent_.empty() && !abandoned_ ? next : now;
    }

    void deliver_unsent() noexcept
    {
        for (auto left = unsent_.size(); left > 0 && !unsent_.empty(); --left) {
            std::list<sent_call> first;
            first.splice(first.end(), unsent_, unsent_.begin());
            deliver(first.front(), first.front().unsent);
        }
    }

    /// Effects: opens a transport; if the names of the servers are not found, that is tried again later.
    void open(boot_clock::time_point now)
    {
        // the least time between two
        open_at_ = now + std::min(std::chrono::milliseconds{1'000}, session_lease::interval(options().session_timeout));
        opened_at_ = now;
        way_ = host().open(*this);
    }

    /// Effects: begins to tell the user the next change, unless the one before is still being told.
    /// Returns: when to try again, if memory or threads are short.
    boot_clock::time_point tell_user(boot_clock::time_point now)
    {
        if (calling_ || news_.empty()) return boot_clock::time_point::max();
        holdfast::detail::announcer::call one{[this, s = news_.front()]() noexcept {
            try {
                options().on_state(s);
            } catch (...) {  // NOLINT(bugprone-empty-catch): no caller can be told
            }
            std::scoped_lock locked{mutex()};
            calling_ = false;
            wake_thread();
        }};
        calling_ = calls.try_report(one);
        if (!calling_) return now + std::chrono::milliseconds{1};
        news_.erase(news_.begin());
        return boot_clock::time_point::max();
    }

    /// Returns: when to look again.
    boot_clock::time_point look_after(boot_clock::time_point now)
    {
        held_.hand_over_ended(now, [&](leftover const& ended) { erase(*this, ended); });
        auto const next = held_.next_end();
        if (session_ == 0) return next;
        if (state() == session_state::suspended) {
            // Without locks no quorum is asked, whose answer would make the lease longer.
            auto const answered = valid_until(last_answered_, session_lease::duration(lease().timeout()));
            auto const ends = std::max(lease().until(), answered);
            if (now < ends) return std::min(next, ends);
            announce(session_state::lost);
        }
        if (!connected()) return next;
        auto const interval = session_lease::interval(lease().timeout());
        // mutant: a follower's word taken for a quorum's
        auto const active = !held_.empty();  // one that only waits is confirmed when its turn comes
        show_life(active, now - interval);
        if (now >= go_on_at_) {
            go_on_at_ = boot_clock::time_point::max();
            go_on();
        }
        return std::min({next, go_on_at_, last_sent(active) + interval});
    }

    /// Effects: lets everything go on that waits for a connection, or for a lost answer.
    void go_on() noexcept
    {
        guarded([&] {
            for (auto const& path : watches_.unwanted()) unwatch(path);
            operations_.for_each([&](session_operation& one) { one.on_connected(session_); });
        });
    }

    /// Effects: takes the answer to a request that is in no list any more.
    void deliver(sent_call const& of, reply const& r) noexcept
    {
        if (r.undecided()) go_on_later();  // the connection may still be there
        guarded([&] {
            bool const watching = sets_watch(of.what);
            if (watching && r.what != answer::ok) watches_.fail(of.from, of.tag, of.path);
            if (watching && r.what == answer::ok) unwatch(of.path);  // the wait may have been given up meanwhile
            if (of.what == request::kind::unwatch && !r.undecided()) watches_.forget(of.path);
            if (!of.from) return;
            --of.from->unanswered_;
            of.from->on_answer(of.tag, r);
        });
    }

    void on_reply(transport_events::call& of, reply&& r) noexcept override
    {
        std::scoped_lock locked{mutex()};
        auto& one = static_cast<sent_call&>(of);
        if (r.what != answer::lost) {
            // Servers with `enableEagerACLCheck` refuse by themselves what the user has no right to.
            bool const by_quorum = is_write(one.what) && !r.undecided() && r.what != answer::refused;
            if (by_quorum) last_write_ = std::max(last_write_, one.sent);
            lease_.answered(one.sent, boot_clock::now(), by_quorum);
            last_answered_ = std::max(last_answered_, one.sent);
        }
        std::list<sent_call> answered;
        answered.splice(answered.end(), sent_, one.place);
        deliver(one, r);
        // The server keeps the connection, and the C client reports no event.
        if (r.code == errc::session_expired && way_ && !over_) {
            finish_session();
            wake_thread();
        }
    }

    void on_notice(std::string_view path) noexcept override
    {
        std::scoped_lock locked{mutex()};
        for (auto const& one : watches_.take(path)) guarded([&] { one.who->on_notice(one.tag); });
    }

    void on_state(transport_events::state s, std::int64_t session, std::chrono::milliseconds timeout) noexcept override
    {
        std::scoped_lock locked{mutex()};
        if (!way_ || over_ || abandoned_) return;
        if (s == transport_events::state::connected) {
            if (session != std::exchange(session_, session)) {
                lease_.begin(opened_at_, timeout);
                last_answered_ = opened_at_;
                // What it sent without its identity would be refused. The connection may have broken meanwhile.
                if (!options().auth_scheme.empty() &&
                    !way_->authenticate(options().auth_scheme, options().auth_credential))
                    return abandon_session(session_);
            } else if (timeout < session_lease::duration(lease_.timeout())) {
                return abandon_session(session_);  // it may expire before the leases that were given for it
            } else {
                lease_.reconnected(last_answered_, timeout);
            }
            announce(session_state::connected);
            go_on();
        } else if (s == transport_events::state::suspended) {
            if (!connected()) return;
            suspended_since_ = boot_clock::now();
            announce(session_state::suspended);
            operations_.for_each([](session_operation& one) { one.on_suspended(); });
        } else if (s == transport_events::state::unopened) {
            over_ = true;
        } else {
            if (s == transport_events::state::refused) refused_ = errc::authentication_failed;
            finish_session();
        }
        wake_thread();
    }

    /// Effects: the session is over. The thread closes the handle; what was sent may be answered until then. If it is
    /// we who end it, its locks become free when the servers are told: not before every lease has ended.
    void finish_session() noexcept
    {
        if (abandoned_ && !held_.empty()) close_at_ = lease_.until();
        over_ = true;
        abandoned_ = false;
        session_ = 0;
        lease_.end();
        held_.clear();
        watches_.clear();
        if (connected()) suspended_since_ = boot_clock::now();
        announce(session_state::lost);
        operations_.for_each([](session_operation& one) { one.on_expired(); });
        mutex().expire();
    }

    /// Effects: the session is in state `s` now. If more changes come than are kept for the user, the last one replaces
    /// the one before it: the user learns the final state.
    void announce(session_state s) noexcept
    {
        if (std::exchange(state_, s) == s) return;
        changed().notify_all();
        if (!options().on_state) return;
        if (news_.size() == most_news) news_.pop_back();
        news_.push_back(s);  // for which there is room
    }

    std::vector<session_state> news_;  // that the user must still be told
    bool calling_ = false;             // the user is being told one
    bool over_ = false;                // the transport must be closed, from `close_at_` on
    boot_clock::time_point close_at_{};
    boot_clock::time_point open_at_{};
    boot_clock::time_point opened_at_{};
    boot_clock::time_point last_answered_{};  // when the request was sent that was answered last
};

}  // namespace holdfast::zookeeper
