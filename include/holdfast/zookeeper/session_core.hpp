// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/linked_line.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/held_nodes.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/sent_call.hpp>
#include <holdfast/zookeeper/session_host.hpp>
#include <holdfast/zookeeper/session_lease.hpp>
#include <holdfast/zookeeper/session_mutex.hpp>
#include <holdfast/zookeeper/session_operation.hpp>
#include <holdfast/zookeeper/session_options.hpp>
#include <holdfast/zookeeper/transport.hpp>
#include <holdfast/zookeeper/watch_list.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// What the locks of a session share: the connection to the servers, the pending operations, the nodes that it holds.
/// All but construction and `host()` is called with `mutex()` held. It does nothing by itself: `session_engine` does.
///
/// | state     | event                          | next |
/// |-----------|--------------------------------|------|
/// | lost      | connected, in a new session    | connected; operations begin |
/// | connected | the connection breaks          | suspended; requests are answered `lost` |
/// | suspended | connected, in the same session | connected; operations go on |
/// | suspended | not confirmed until its end    | lost, though it may still be connected again |
/// | any       | the servers say that it is over | lost; operations begin again in the next one |
class session_core {
public:
    session_core(ensemble servers, session_options options, std::unique_ptr<session_host> host)
        : servers_{std::move(servers)}, options_{std::move(options)}, host_{std::move(host)}
    {
    }
    session_core(session_core const&) = delete;
    session_core& operator=(session_core const&) = delete;
    virtual ~session_core() = default;

    [[nodiscard]] session_mutex& mutex() noexcept { return mutex_; }
    [[nodiscard]] session_host& host() const noexcept { return *host_; }
    [[nodiscard]] bool in_child() const noexcept { return host_->in_child(); }
    /// Effects: runs it from now on; `lock` wants it. Called without `mutex()`. Throws: as
    /// `session_host::ensure_running`.
    virtual void ensure_running(std::string_view lock) = 0;

    [[nodiscard]] session_options const& options() const noexcept { return options_; }
    [[nodiscard]] std::string const& chroot() const noexcept { return servers_.chroot; }
    [[nodiscard]] std::string const& address() const noexcept { return servers_.address; }
    [[nodiscard]] session_state state() const noexcept { return state_; }
    [[nodiscard]] bool connected() const noexcept { return state_ == session_state::connected; }
    [[nodiscard]] std::int64_t session() const noexcept { return session_; }
    [[nodiscard]] session_lease const& lease() const noexcept { return lease_; }
    [[nodiscard]] held_nodes& held() noexcept { return held_; }
    [[nodiscard]] std::condition_variable_any& changed() noexcept { return changed_; }
    /// Returns: since when no server has been reached, if one was before.
    [[nodiscard]] boot_clock::time_point suspended_since() const noexcept { return suspended_since_; }
    /// Returns: why there will never be a session; no error if there may be one.
    [[nodiscard]] std::error_code refused() const noexcept { return refused_; }

    /// Returns: whether it is known that the session may list the children of the lock at `path`. If there are many
    /// paths, some are forgotten.
    [[nodiscard]] bool may_list(std::string_view path) const noexcept { return listed_[place_of(path)] == hash(path); }
    void note_list(std::string_view path) noexcept { listed_[place_of(path)] = hash(path); }

    /// Returns: details of `why` for a message about the lock at `path`: the servers that were asked and the last
    /// reason of the C client, or the permissions that the nodes must give.
    [[nodiscard]] std::string explanation(std::error_code why, std::string_view path) const
    {
        if (why == errc::may_not_read || why == errc::may_not_create || why == errc::may_not_delete)
            return "it needs the permissions READ, CREATE and DELETE at " + holdfast::quoted(path) +
                   ", or at the node above it" +
                   (why == errc::may_not_read ? "; with auth_scheme others read a node only if world_writable is set"
                                              : "");
        if (why != holdfast::errc::unavailable) return {};
        auto const problem = connected() ? std::string{} : host_->problem();
        return "servers " + servers_.text + (problem.empty() ? "" : ": ") + problem;
    }

    /// Effects: tells `who` what happens from now on; at once, if requests can be sent. Throws: what `who` throws,
    /// which is then told nothing.
    void attach(session_operation& who)
    {
        operations_.add(who);
        who.attached_ = true;
        try {
            if (connected()) who.on_connected(session_);
        } catch (...) {
            detach(who);
            throw;
        }
    }

    /// Effects: tells `who` nothing any more.
    void detach(session_operation& who) noexcept
    {
        if (!std::exchange(who.attached_, false)) return;
        operations_.remove(who);
        who.due_ = boot_clock::time_point::max();
        forget_answers(who);
        held_.unreserve(who.making_);
        if (auto const path = watches_.remove(who); !path.empty()) guarded([&] { unwatch(path); });
    }

    /// Effects: `who` does not get the answers to what it has sent.
    void forget_answers(session_operation& who) noexcept
    {
        if (std::exchange(who.unanswered_, 0) == 0) return;
        for (auto* const some : {&sent_, &unsent_})
            for (auto& one : *some)
                if (one.from == &who) one.from = nullptr;
    }

    /// Effects: sends what a machine of `from` says, up to what the session cannot take: the machine then fails.
    void perform(session_operation& from, std::vector<action> const& actions)
    {
        for (auto const& one : actions)
            if (!send(&from, one.tag, one.what)) return;
    }

    /// Effects: sends a request that only shows that the session lives, unless one was sent since `not_before`.
    /// `to_quorum`: one that a quorum answers.
    void show_life(bool to_quorum, boot_clock::time_point not_before)
    {
        if (!connected() || last_sent(to_quorum) > not_before) return;
        send(nullptr, 0, {to_quorum ? request::kind::confirm : request::kind::touch});
    }

    /// Effects: keeps `who` and tells it what happens, until `drop`. Until then the `bytes` of its node count.
    void keep(std::shared_ptr<session_operation> const& who, std::size_t bytes)
    {
        held_.count(who->making_, bytes);
        who->kept_ = who;
        try {
            attach(*who);
        } catch (...) {
            who->kept_.reset();
            throw;
        }
    }

    /// Effects: tells `who` nothing any more, and lets go of it: it may be destroyed.
    void drop(session_operation& who) noexcept
    {
        detach(who);
        auto const last = std::move(who.kept_);
    }

    /// Effects: the thread looks at `one` by `t`, if it is attached. It is woken only if it sleeps for longer.
    void look_at(session_operation& one, boot_clock::time_point t) noexcept
    {
        one.due_ = t;
        wake_thread(t);
    }

    /// Effects: looks at the operations whose time has come. Returns: when to look at the next one.
    boot_clock::time_point look(boot_clock::time_point now) noexcept
    {
        auto next = boot_clock::time_point::max();
        operations_.for_each([&](session_operation& one) {
            if (one.due_ > now) return;
            one.due_ = boot_clock::time_point::max();
            one.on_time(now);
        });
        operations_.for_each([&](session_operation const& one) { next = std::min(next, one.due_); });
        return next;
    }

    /// Effects: after a while, tells the operations that they can go on: one of them missed something.
    void go_on_later() noexcept
    {
        auto const pause = std::max(session_lease::interval(lease_.timeout()), std::chrono::milliseconds{1});
        go_on_at_ = std::min(go_on_at_, boot_clock::now() + pause);
    }

    /// Effects: the thread ends the session `id`, and with it all its nodes: one of them could not be remembered.
    void abandon_session(std::int64_t id) noexcept
    {
        if (id == 0 || id != session_) return;
        abandoned_ = true;
        wake_thread();
    }

    /// Effects: the thread looks at everything by `t`.
    void wake_thread(boot_clock::time_point t = {}) noexcept
    {
        if (t >= thread_wakes_) return;
        thread_wakes_ = t;
        host_->wake();
    }

protected:
    [[nodiscard]] boot_clock::time_point last_sent(bool to_quorum) const noexcept
    {
        return to_quorum ? last_write_ : last_sent_;
    }

    /// Returns: false if the session cannot take it; its answer says why.
    bool send(session_operation* from, unsigned tag, request const& what)
    {
        std::list<sent_call> made(1);
        auto& one = made.front();
        one.what = what.what;
        one.from = from;
        one.tag = tag;
        one.path = what.path;
        one.place = made.begin();
        auto const why = note_sent(from, tag, what);
        if (why) one.unsent = {answer::refused, why};
        // After one that was lost it would prove nothing: that may have been a barrier. One that was refused is none.
        auto const lost = [](sent_call const& u) { return u.unsent.what == answer::lost; };
        bool const can = !why && way_ && connected() && std::none_of(unsent_.begin(), unsent_.end(), lost);
        sent_.splice(sent_.end(), made);
        if (from) ++from->unanswered_;
        one.sent = boot_clock::now();
        bool const sent = can && way_->send(what, one, !options_.auth_scheme.empty() && !options_.world_writable);
        // The C client knows of no such watch: its answer is to come, or its notice has come. It is removed after that.
        if (!sent && what.what == request::kind::unwatch) {
            sent_.erase(one.place);
            if (!can) go_on_later();
            return true;
        }
        if (!why) last_sent_ = one.sent;
        if (what.what == request::kind::confirm) last_write_ = one.sent;
        if (sent) return true;
        unsent_.splice(unsent_.end(), sent_, one.place);
        wake_thread();
        return !why;
    }

    /// Effects: notes that `what` is sent. Returns: why the session cannot take what that leaves; no error if it can.
    [[nodiscard]] std::error_code note_sent(session_operation* from, unsigned tag, request const& what)
    {
        if (sets_watch(what.what) && !watches_.add(*from, tag, what.path)) return errc::too_many_watches;
        if (makes_lock_node(what.what) && !held_.reserve(from->making_, what.path)) return errc::too_many_nodes;
        return {};
    }

    /// Effects: removes the watch of the node at `path`, unless an operation waits for it. Until then it stays listed.
    void unwatch(std::string const& path)
    {
        if (connected() && !watches_.wanted(path)) send(nullptr, 0, {request::kind::unwatch, path});
    }

    /// Effects: calls `f`, which tells operations something, unless the session will end. Without memory, the session
    /// ends.
    void guarded(auto const& f) noexcept
    try {
        if (!abandoned_) f();
    } catch (...) {
        abandon_session(session_);
    }

    session_mutex mutex_;
    ensemble const servers_;
    session_options const options_;
    std::unique_ptr<session_host> const host_;
    std::error_code refused_;
    session_state state_ = session_state::lost;
    std::condition_variable_any changed_;
    std::int64_t session_ = 0;
    session_lease lease_;
    held_nodes held_;
    bool abandoned_ = false;  // we will end the session
    boot_clock::time_point last_sent_{};
    boot_clock::time_point last_write_{};  // when a confirm was sent last, or what a quorum has answered
    boot_clock::time_point suspended_since_{};
    boot_clock::time_point go_on_at_ = boot_clock::time_point::max();
    boot_clock::time_point thread_wakes_{};  // when it wakes by itself; awake, it looks at everything before it sleeps
    holdfast::detail::linked_line<session_operation> operations_;
    std::list<sent_call> sent_;
    std::list<sent_call> unsent_;  // could not be sent, or get no answer: the session answers them itself
    watch_list watches_;
    std::unique_ptr<transport> way_;

private:
    static std::size_t hash(std::string_view path) noexcept { return std::hash<std::string_view>{}(path) | 1U; }
    std::size_t place_of(std::string_view path) const noexcept { return hash(path) % listed_.size(); }

    std::array<std::size_t, 1'021> listed_{};
};

}  // namespace holdfast::zookeeper
