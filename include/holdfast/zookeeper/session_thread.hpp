// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/signals_blocked.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/client_log.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_engine.hpp>
#include <holdfast/zookeeper/session_host.hpp>
#include <holdfast/zookeeper/session_mutex.hpp>
#include <holdfast/zookeeper/session_options.hpp>
#include <holdfast/zookeeper/transport.hpp>
#include <holdfast/zookeeper/zookeeper_mt.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The host of a session in a process with threads: ZooKeeper's C client, and a thread that attends to the session from
/// its first use on.
class session_thread final : public session_host {
public:
    session_thread(std::string hosts, std::chrono::milliseconds timeout) : hosts_{std::move(hosts)}, timeout_{timeout}
    {
    }

    [[nodiscard]] std::unique_ptr<transport> open(transport_events& to) override
    try {
        return std::make_unique<zookeeper_mt>(hosts_, timeout_, to, threads_missing_);
    } catch (std::system_error const&) {
        threads_missing_ = true;
        return nullptr;
    }

    [[nodiscard]] std::string problem() const override
    {
        return threads_missing_ ? make_error_code(errc::no_threads).message() : client_log::last_error();
    }

    [[nodiscard]] owner_token fresh_token() const override { return owner_token::fresh(); }
    [[nodiscard]] bool in_child() const noexcept override { return origin_.in_child(); }
    void wake() noexcept override { parker_.unpark(); }

    void ensure_running(session_engine& session, std::string_view lock) override
    {
        if (origin_.in_child())
            throw holdfast::detail::error_of(lock,
                                             {make_error_code(holdfast::errc::misconfigured),
                                              "the ZooKeeper session was made before fork(); make one in the child"});
        std::scoped_lock guard{start_};
        if (thread_.joinable()) return;
        try {
            holdfast::detail::signals_blocked const while_starting;
            thread_ = std::thread{[this, kept = session.shared_from_this()] { run(*kept); }};
        } catch (std::system_error const&) {
            throw holdfast::detail::error_of(
                lock, {make_error_code(errc::no_threads),
                       "a ZooKeeper session needs four threads; raise the limit (ulimit -u, pids.max)"});
        }
    }

    /// Effects: ends the thread, too, and waits until the user's callback has returned, but not for names that are
    /// looked up. This thread may be one that ends with the session, if the user's callback or a completion destroyed
    /// the last lock: then the thread ends by itself. In a forked child there is no thread, and the session is the
    /// parent's: both are forgotten.
    void end(std::shared_ptr<session_engine> session) noexcept override
    {
        if (!thread_.joinable()) return;
        if (origin_.in_child()) {
            // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): a child without memory may end here
            new std::shared_ptr<session_engine>{std::move(session)};
            return;
        }
        bool const here = thread_.get_id() == std::this_thread::get_id() || session_mutex::completing() ||
                          holdfast::detail::announcer::here();
        {
            std::scoped_lock guard{session->mutex()};
            stopping_ = true;
            session->wake_thread();
        }
        std::unique_lock guard{start_};
        if (!here && over_changed_.wait_for(guard, longest_end, [this] { return over_; }))
            thread_.join();
        else
            thread_.detach();  // it keeps the session until its names have been looked up
    }

private:
    void run(session_engine& session) noexcept
    {
        session_engine::lock guard{session.mutex()};
        while (!stopping_) {
            auto const next = session.attend(guard);
            if (stopping_) break;  // the mutex was unlocked meanwhile; a thread that is awake is not woken
            guard.unlock();
            parker_.park_until(next);
            guard.lock();
        }
        session.close(guard);
        guard.unlock();
        std::unique_lock over{start_};
        over_ = true;
        over_changed_.notify_all();
        over.unlock();
        session.calls.end();
    }

    /// The end of a session waits for this long: a server's answer takes the C client 1.5 s at most, names may take
    /// minutes.
    static constexpr std::chrono::seconds longest_end{2};

    std::string const hosts_;
    std::chrono::milliseconds const timeout_;
    holdfast::detail::fork_guard origin_;
    holdfast::detail::parker parker_;
    std::atomic<bool> threads_missing_{false};  // when the last handle was opened
    bool stopping_ = false;
    std::mutex start_;
    std::condition_variable over_changed_;
    bool over_ = false;  // the thread has done all its work
    std::thread thread_;
};

/// Returns: a session with a thread; it ends when the last copy of the returned pointer goes.
[[nodiscard]] inline std::shared_ptr<session_core> open_session_thread(ensemble servers, session_options options)
{
    auto host = std::make_unique<session_thread>(servers.hosts, options.session_timeout);
    return session_engine::make(std::move(servers), std::move(options), std::move(host));
}

}  // namespace holdfast::zookeeper
