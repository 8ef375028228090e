// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/acquirer.hpp>
#include <holdfast/zookeeper/alarms.hpp>
#include <holdfast/zookeeper/audience.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/eraser.hpp>
#include <holdfast/zookeeper/held_nodes.hpp>
#include <holdfast/zookeeper/log_slot.hpp>
#include <holdfast/zookeeper/receiver.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_lease.hpp>
#include <holdfast/zookeeper/session_options.hpp>
#include <holdfast/zookeeper/state_news.hpp>
#include <holdfast/zookeeper/watch_list.hpp>
#include <holdfast/zookeeper/zookeeper_mt.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

/// What the locks of a session share: its handle, who waits for what, the nodes that it holds. Everything but construction is to be called
/// with `mutex()` held; the C client's threads take it themselves. It does nothing by itself: `session_thread` does.
///
/// | state     | event                          | next |
/// |-----------|--------------------------------|------|
/// | lost      | connected, in a new session    | connected; receivers begin |
/// | connected | the connection breaks          | suspended; requests are answered `lost` |
/// | suspended | connected, in the same session | connected; receivers go on |
/// | suspended | not confirmed until its end    | lost, though it may still be connected again |
/// | any       | the servers say that it is over | lost; receivers begin again when a new one is had |
class session_core final : private handle_events {
public:
    session_core(ensemble servers, session_options options) : servers_{std::move(servers)}, options_{std::move(options)}, log_{options_.log} {}
    session_core(session_core const&) = delete;
    session_core& operator=(session_core const&) = delete;
    ~session_core() = default;

    [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }
    [[nodiscard]] session_options const& options() const noexcept { return options_; }
    [[nodiscard]] std::string const& chroot() const noexcept { return servers_.chroot; }
    [[nodiscard]] std::string const& servers() const noexcept { return servers_.text; }
    /// Returns: why no connection could be had, as far as is known; empty if it is not.
    [[nodiscard]] std::string problem() const { return threads_missing_ ? make_error_code(errc::no_threads).message() : log_.problem(); }
    [[nodiscard]] session_state state() const noexcept { return state_; }
    [[nodiscard]] bool connected() const noexcept { return state_ == session_state::connected; }
    [[nodiscard]] std::int64_t session() const noexcept { return session_; }
    [[nodiscard]] session_lease const& lease() const noexcept { return lease_; }
    [[nodiscard]] held_nodes& held() noexcept { return held_; }

    /// Returns: since when no server has been reached, where one was before.
    [[nodiscard]] boot_clock::time_point suspended_since() const noexcept { return suspended_since_; }
    /// Returns: why no session will ever be had; no error where one may.
    [[nodiscard]] std::error_code refused() const noexcept { return refused_; }

    /// Effects: tells `who` what happens from now on; at once, where requests can be sent.
    void attach(receiver& who)
    {
        receivers_.add(who);
        if (connected()) who.hear([&] { who.on_connected(session_); });
    }

    /// Effects: tells it nothing any more.
    void detach(receiver& who) noexcept
    {
        if (!receivers_.remove(who)) return;
        watches_.abandon(std::exchange(who.watch_, 0));
        remove_abandoned();
        for (auto* const some : {&calls_, &unsent_})
            for (auto& one : *some) one.from = one.from == &who ? nullptr : one.from;
    }

    /// Effects: sends what a machine of `from` says.
    void perform(receiver& from, std::vector<action> const& actions)
    {
        for (auto const& one : actions) send(&from, one.tag, one.what);
    }

    /// Effects: sends what only shows that the session lives, `to_quorum` what a quorum answers. Nothing where that was sent since `not_before`.
    void show_life(bool to_quorum, boot_clock::time_point not_before)
    {
        if (!connected() || (to_quorum ? last_write_ : last_sent_) > not_before) return;
        send(nullptr, 0, {to_quorum ? request::kind::confirm : request::kind::touch});
    }

    /// Effects: removes a node, until that is confirmed or the session is over; `bed` is woken when it is settled, until `forget`.
    [[nodiscard]] std::shared_ptr<eraser> erase(remains what, holdfast::detail::parker* bed)
    {
        auto one = erasers_.emplace_back(std::make_shared<eraser>(*this, std::move(what), bed));
        attach(*one);
        if (one->done()) wake_thread();
        return one;
    }

    /// Effects: has `f` called when the session is over, by the thread that learns it, with no lock held.
    void add_alarm(std::function<void()> f) { alarms_.add(std::move(f)); }
    /// Effects: tells the receivers after a while that they can go on: one of them missed something.
    void go_on_later() noexcept
    {
        go_on_at_ = std::min(go_on_at_, boot_clock::now() + std::max(session_lease::interval(lease_.timeout()), std::chrono::milliseconds{1}));
    }

    /// Effects: ends the session `id`, where it is not over yet, and with it all its nodes: one of them could not be remembered.
    void abandon_session(std::int64_t id) noexcept
    {
        if (id != session_ || id == 0) return;
        finish_session();
        wake_thread();
    }

    void wake_thread() noexcept { thread_bed_.unpark(); }
    [[nodiscard]] std::condition_variable& changed() noexcept { return changed_; }

private:
    friend class session_thread;

    struct sent_call : handle_events::call {
        receiver* from = nullptr;
        unsigned tag = 0;
        std::uint64_t watch = 0;
        std::string unwatched{};
        boot_clock::time_point sent{};
        std::list<sent_call>::iterator place{};
    };

    void send(receiver* from, unsigned tag, request const& what)
    {
        std::list<sent_call> made(1);
        auto& one = made.front();
        one.from = from;
        one.tag = tag;
        if (what.what == request::kind::unwatch) one.unwatched = what.path;
        if (what.what == request::kind::watch) {
            watches_.abandon(from->watch_);
            one.watch = from->watch_ = watches_.add(*from, tag, what.path);
        }
        one.place = made.begin();
        calls_.splice(calls_.end(), made);
        one.sent = last_sent_ = boot_clock::now();
        if (is_write(what.what)) last_write_ = one.sent;
        bool const first = unsent_.empty();  // otherwise a barrier may be missing, without which its answer says nothing
        if (first && handle_ && connected() && handle_->send(what, one, one.watch, creator_only())) return;
        unsent_.splice(unsent_.end(), calls_, one.place);
        wake_thread();
    }

    void remove_abandoned() noexcept
    try {
        for (auto const& path : connected() ? watches_.take_abandoned() : std::set<std::string>{}) send(nullptr, 0, {request::kind::unwatch, path});
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): the watches go with their nodes
    }

    [[nodiscard]] bool creator_only() const noexcept { return !options_.auth_scheme.empty() && !options_.world_writable; }

    void deliver(sent_call const& of, reply const& r) noexcept
    {
        if (r.what == answer::lost || r.what == answer::postponed) go_on_later();  // the connection may stand all the same
        if (of.from) of.from->hear([&] { of.from->on_answer(of.tag, r); });
    }

    void on_reply(handle_events::call& of, reply&& r) noexcept override
    {
        std::unique_lock guard{mutex_};
        auto& one = static_cast<sent_call&>(of);
        if (r.what != answer::lost) {
            bool const by_quorum = is_write(one.what) && r.what != answer::postponed && r.code != errc::bad_request;
            lease_.answered(one.sent, boot_clock::now(), by_quorum);
            last_answered_ = std::max(last_answered_, one.sent);
        }
        std::list<sent_call> answered;
        answered.splice(answered.end(), calls_, one.place);
        if (r.what != answer::ok && one.watch != 0) static_cast<void>(watches_.take(one.watch));  // it was not set
        if (r.what == answer::lost && !one.unwatched.empty() && session_ != 0) watches_.abandon(std::move(one.unwatched));
        deliver(answered.front(), r);
        // Over a connection that the server keeps, of which the C client makes no event.
        if (r.code == errc::session_expired && handle_ && !over_) {
            finish_session();
            wake_thread();
        }
        alarms_.raise(guard);  // at once: the session's thread may be in the user's code
    }

    void on_notice(std::uint64_t watch) noexcept override
    {
        std::scoped_lock guard{mutex_};
        if (auto const one = watches_.take(watch)) one->of->hear([&] { one->of->on_notice(one->tag); });
    }

    void on_state(handle_events::state s, std::int64_t session, std::chrono::milliseconds timeout) noexcept override
    {
        std::unique_lock guard{mutex_};
        if (!handle_ || over_) return;
        if (s == handle_events::state::connected) {
            if (session != session_) {
                session_ = session;
                lease_.begin(opened_at_, timeout);
                last_answered_ = opened_at_;
                if (!options_.auth_scheme.empty()) handle_->authenticate(options_.auth_scheme, options_.auth_credential);
            } else {
                lease_.reconnected(last_answered_);
            }
            announce(session_state::connected);
            remove_abandoned();
            receivers_.tell_connected(session_);
        } else if (s == handle_events::state::suspended) {
            if (!connected()) return;
            suspended_since_ = boot_clock::now();
            announce(session_state::suspended);
            receivers_.tell_suspended();
        } else {
            if (s == handle_events::state::refused) refused_ = errc::authentication_failed;
            finish_session();
        }
        wake_thread();
        alarms_.raise(guard);
    }

    /// Effects: the session is over. The thread closes the handle; what was sent is answered until then.
    void finish_session() noexcept
    {
        over_ = true;
        session_ = 0;
        lease_.end();
        held_.clear();
        watches_.clear();
        if (connected()) suspended_since_ = boot_clock::now();
        announce(session_state::lost);
        receivers_.tell_expired();
        alarms_.set();
    }

    void announce(session_state s) noexcept
    {
        if (std::exchange(state_, s) == s) return;
        if (options_.on_state) news_.add(s);
        changed_.notify_all();
    }

    std::mutex mutex_;
    ensemble const servers_;
    session_options const options_;
    log_slot log_;
    session_state state_ = session_state::lost;
    std::error_code refused_;
    std::int64_t session_ = 0;
    session_lease lease_;
    boot_clock::time_point opened_at_{};
    boot_clock::time_point last_sent_{};
    boot_clock::time_point last_write_{};
    boot_clock::time_point last_answered_{};  // when that was sent which was answered last
    bool over_ = false;
    bool threads_missing_ = false;  // for the C client, when a handle was to be opened last
    boot_clock::time_point suspended_since_{};
    boot_clock::time_point go_on_at_ = boot_clock::time_point::max();
    audience receivers_;
    std::list<sent_call> calls_;
    std::list<sent_call> unsent_;
    watch_list watches_;
    held_nodes held_;
    std::list<std::shared_ptr<eraser>> erasers_;
    alarms alarms_;
    state_news news_;
    holdfast::detail::parker thread_bed_;
    std::condition_variable changed_;
    std::unique_ptr<zookeeper_mt> handle_;  // last: it ends first, and with it what calls us
};

inline void eraser::act()
{
    core_.perform(*this, machine_.take_actions());
    if (machine_.refused() && !machine_.done()) core_.go_on_later();
    if (!machine_.settled()) return;
    if (bed_) bed_->unpark();
    core_.wake_thread();
}

inline void eraser::on_failure(std::error_code) noexcept
{
    machine_.interrupt();
    core_.go_on_later();
}

}  // namespace holdfast::zookeeper
