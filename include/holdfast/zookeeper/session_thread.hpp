// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/signals_blocked.hpp>
#include <holdfast/zookeeper/acquirer.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/known_paths.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/spare_threads.hpp>
#include <holdfast/zookeeper/zookeeper_mt.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::zookeeper {

/// The thread of a session: opens its handle, and another one after expiry; shows that it lives; removes the nodes of leases that ended;
/// calls the user's callback. It exists from the first use on. Where memory runs out, it goes on a moment later.
class session_thread {
public:
    explicit session_thread(std::shared_ptr<session_core> core) : core_{std::move(core)} {}
    session_thread(session_thread const&) = delete;
    session_thread& operator=(session_thread const&) = delete;

    /// Effects: ends the session and the thread; where it is this thread (the user's callback destroyed the last lock), lets it end by
    /// itself. In a forked child, where there is no thread and the session is its parent's, forgets both.
    ~session_thread()
    {
        if (!thread_.joinable()) return;
        if (origin_.in_child()) {
            alignas(std::thread) static std::array<std::byte, sizeof(std::thread)> grave;
            new (grave.data()) std::thread{std::move(thread_)};
            new std::shared_ptr<session_core>{core_};  // NOLINT(bugprone-unhandled-exception-at-new): a child without memory may end here
            return;
        }
        {
            std::scoped_lock guard{core_->mutex()};
            *stopping_ = true;
            core_->wake_thread();
        }
        if (thread_.get_id() == std::this_thread::get_id())
            thread_.detach();
        else
            thread_.join();
    }

    [[nodiscard]] session_core& core() const noexcept { return *core_; }

    /// Returns: locks of which it is known that the session may list who waits. To be used with the mutex of `core()` held.
    [[nodiscard]] known_paths& readable() noexcept { return readable_; }

    [[nodiscard]] bool in_child() const noexcept { return origin_.in_child(); }

    /// Effects: starts the thread where it does not run yet; `lock` wants it.
    /// Throws: `error` (`unavailable`) where the system has not the three threads of a session; (`misconfigured`) in a forked child.
    void ensure_running(std::string_view lock = {})
    {
        auto const who = lock.empty() ? std::string{} : "lock " + holdfast::quoted(lock) + ": ";
        if (origin_.in_child())
            throw error{holdfast::errc::misconfigured, who + "the ZooKeeper session was made before fork(); make one in the child"};
        std::scoped_lock guard{start_};
        if (thread_.joinable()) return;
        if (!has_spare_threads<1 + zookeeper_mt::threads>())
            throw error{make_error_code(errc::no_threads),
                        who + "a ZooKeeper session needs three threads; raise the limit (ulimit -u, pids.max)"};
        try {
            holdfast::detail::signals_blocked const while_starting;
            thread_ = std::thread{[core = core_, stopping = stopping_] { run(*core, *stopping); }};
        } catch (std::system_error const& e) {
            throw error{holdfast::errc::unavailable, who + "the thread of a ZooKeeper session could not be started: " + e.what()};
        }
    }

private:
    static void run(session_core& core, bool const& stopping) noexcept
    {
        std::unique_lock guard{core.mutex_};
        auto open_at = boot_clock::time_point{};
        while (!stopping) {
            auto next = boot_clock::time_point{};
            try {
                next = attend(core, guard, open_at);
            } catch (...) {  // no memory; nothing of it is forgotten
                next = boot_clock::now() + std::chrono::milliseconds{50};
            }
            guard.unlock();
            core.thread_bed_.park_until(next);
            guard.lock();
        }
        close(core, guard);
    }

    /// Effects: does what is due. Returns: when to look again. Throws: with `guard` locked.
    static boot_clock::time_point attend(session_core& core, std::unique_lock<std::mutex>& guard, boot_clock::time_point& open_at)
    {
        if (core.over_) {
            core.alarms_.raise(guard);  // where nobody else did: before the servers are told
            guard.lock();
            close(core, guard);
        }
        deliver_unsent(core);
        if (tell(core, guard)) return {};
        auto const now = boot_clock::now();
        if (!core.handle_ && !core.refused_ && now >= open_at) {
            open(core, guard);
            open_at = boot_clock::now() + std::chrono::seconds{1};
            return {};
        }
        auto const next = core.handle_ || core.refused_ ? boot_clock::time_point::max() : open_at;
        return std::min(next, look_after(core, now));
    }

    /// Effects: makes a handle; where the servers' names are not found, it is tried again later.
    static void open(session_core& core, std::unique_lock<std::mutex>& guard)
    {
        core.handle_ = std::make_unique<zookeeper_mt>();
        core.over_ = core.threads_missing_ = false;
        core.opened_at_ = boot_clock::now();
        auto* const handle = core.handle_.get();
        guard.unlock();
        holdfast::detail::signals_blocked const while_starting;
        bool const possible = has_spare_threads<zookeeper_mt::threads>();
        bool const opened = possible && handle->open(core.servers_.hosts, core.options_.session_timeout, core, core.log_.get());
        guard.lock();
        core.threads_missing_ = !possible;
        if (!opened) core.handle_.reset();
    }

    static void close(session_core& core, std::unique_lock<std::mutex>& guard)
    {
        auto handle = std::move(core.handle_);
        guard.unlock();
        handle.reset();
        guard.lock();
        core.over_ = false;
        core.unsent_.splice(core.unsent_.end(), core.calls_);
    }

    static void deliver_unsent(session_core& core)
    {
        auto unsent = std::move(core.unsent_);
        core.unsent_.clear();
        for (auto& one : unsent) {
            core.deliver(one, {answer::lost, errc::connection_lost});
            if (!one.unwatched.empty() && core.session_ != 0) core.watches_.abandon(std::move(one.unwatched));
        }
        core.erasers_.remove_if([&](auto const& one) {
            if (one->done()) core.detach(*one);
            return one->done();
        });
    }

    /// Returns: whether there was anything to tell the user.
    static bool tell(session_core& core, std::unique_lock<std::mutex>& guard)
    {
        if (core.news_.empty()) return false;
        auto const news = core.news_.take();
        guard.unlock();
        try {
            core.options_.on_state(news);
        } catch (...) {  // NOLINT(bugprone-empty-catch): there is nobody to tell
        }
        guard.lock();
        return true;
    }

    /// Returns: when to look again.
    static boot_clock::time_point look_after(session_core& core, boot_clock::time_point now)
    {
        core.held_.hand_over_ended(now, [&](remains const& ended) { static_cast<void>(core.erase(ended, nullptr)); });
        auto next = core.held_.next_end();
        if (core.session_ == 0) return next;
        if (core.state_ == session_state::suspended && now >= core.lease_.until()) core.announce(session_state::lost);
        if (!core.news_.empty() || !core.unsent_.empty()) return now;
        if (core.state_ == session_state::suspended) return std::min(next, core.lease_.until());
        if (!core.connected()) return next;
        auto const interval = session_lease::interval(core.lease_.timeout());
        auto const active = !core.held_.empty() || !core.receivers_.empty();
        auto const& last = active ? core.last_write_ : core.last_sent_;
        if (now >= last + interval) core.show_life(active, now - interval);
        if (now >= core.go_on_at_) {
            core.go_on_at_ = boot_clock::time_point::max();
            core.receivers_.tell_connected(core.session_);
        }
        return std::min({next, core.go_on_at_, std::max(last, now - interval / 2) + interval});
    }

    holdfast::detail::fork_guard origin_;
    std::shared_ptr<session_core> core_;
    std::shared_ptr<bool> stopping_ = std::make_shared<bool>(false);
    known_paths readable_;
    std::mutex start_;
    std::thread thread_;
};

}  // namespace holdfast::zookeeper
