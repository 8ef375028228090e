// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/campaign_pause.hpp>
#include <holdfast/adapters/election_options.hpp>
#include <holdfast/adapters/term.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/owned_thread.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/signals_blocked.hpp>
#include <holdfast/lock/leased_lock.hpp>
#include <holdfast/lock/report.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The threads in which an election with a lock of the type `M` waits and calls the user's functions: the system's,
/// unless the type names others as `threads`. A simulated lock does.
template <class M>
struct threads_of {
    using type = system_threads;
};
template <class M>
    requires requires { typename M::threads; }
struct threads_of<M> {
    using type = typename M::threads;
};

/// What an election does in its thread. It may outlive the election, if one of the user's functions destroyed that.
///
/// | state    | the lock              | entered when | left when |
/// |----------|-----------------------|--------------|-----------|
/// | follower | is waited for         | the election begins; a pause is over | it is granted, or that fails |
/// | elected  | is held               | it was granted; `on_elected` is called | the term is over |
/// | deposing | is held, unless lost  | the stop token is stopped | `on_elected` has returned |
/// | deposed  | is held, unless lost  | `on_deposed` is called | that has returned; the lock is given back |
/// | pausing  | is free               | a term or a failed campaign is over | the pause is over |
///
/// `on_elected` has a thread of its own, so that the end of the term is seen while it runs. It has the signal mask of
/// the thread that made this: what it does is the program's, and a process that it starts inherits what is blocked. All
/// else, also the callbacks of the stop token, is done in one thread, which is also the only one that locks and
/// unlocks.
template <Lock M>
class candidate : public std::enable_shared_from_this<candidate<M>> {
public:
    using threads = typename threads_of<M>::type;
    using thread = typename threads::thread;

    candidate(M& lock, std::string name, election_options options)
        : name_{std::move(name)},
          options_{std::move(options)},
          pauses_{options_.pause, options_.retry,
                  static_cast<std::uint64_t>(boot_clock::now().time_since_epoch().count())},
          hold_{lock, std::defer_lock}
    {
    }

    /// Effects: campaigns and leads until `stop`.
    void run() noexcept
    {
        campaigns_in_.store(threads::here());
        while (!stopped()) pause(campaign());
    }

    /// Effects: `run` ends soon. If one of the user's functions calls this, no further one is called, and what runs is
    /// not waited for.
    void stop() noexcept
    {
        auto const here = threads::here();
        stop_.request_stop();  // first: what finds itself abandoned does not begin another campaign
        if (here == campaigns_in_.load() || here == elected_in_.load()) elected_.store(call::abandoned);
        parker_.unpark();
    }

    /// Effects: gives back the lock, if it is held. To be called by the thread of `run` only.
    void give_back() noexcept
    {
        if (hold_.owns_lock()) hold_.unlock();
    }

    /// Effects: the present term is over, if there is one. Returns: whether there was one.
    bool resign() noexcept
    {
        auto const self = this->shared_from_this();  // `on_deposed` may destroy the election before this returns
        auto const of = present();
        if (!of || !of->still_held()) return false;
        of->give_up();
        parker_.unpark();
        return true;
    }

    /// Returns: the last term that has begun; null if none has.
    [[nodiscard]] std::shared_ptr<term_state> present() const noexcept
    {
        if (origin_.in_child()) return nullptr;  // the mutex may be locked for ever
        std::scoped_lock guard{mutex_};
        return present_;
    }

private:
    /// What becomes of the present call of `on_elected`. `abandoned` is final.
    enum class call : std::uint8_t {
        over,       ///< there is none, or it has returned
        pending,    ///< its thread is begun
        under_way,  ///< it runs
        abandoned,  ///< one of the user's functions has destroyed the election: it does not begin, or is not waited for
    };

    [[nodiscard]] bool abandoned() const noexcept { return elected_.load() == call::abandoned; }
    [[nodiscard]] bool stopped() const noexcept { return stop_.stop_requested(); }

    void pause(boot_clock::duration d) noexcept
    {
        auto const until = boot_clock::now() + d;
        while (!stopped() && boot_clock::now() < until) parker_.park_until(until);
    }

    /// Effects: waits until this candidate is the leader, and then until it is not. Returns: how long to wait before
    /// the next campaign.
    [[nodiscard]] boot_clock::duration campaign() noexcept
    {
        auto const begun = boot_clock::now();
        auto const why = campaigned();
        return why ? pauses_.after_failure(why, boot_clock::now() - begun) : pauses_.after_term();
    }

    /// Effects: as `campaign`. Returns: no error, or why it failed.
    [[nodiscard]] std::error_code campaigned() noexcept
    try {
        bool const was_shorter = std::exchange(was_shorter_, false);
        if (!hold_.lock(stop_.get_token())) return {};
        auto const of = std::make_shared<term_state>(hold_.lease(), options_.stop_margin);
        was_shorter_ = !of->still_held() && hold_.still_held();
        if (was_shorter_ && was_shorter)  // once: it may just have stood still for so long
            throw error_of(name_, {make_error_code(errc::misconfigured),
                                   "election: stop_margin is " + std::to_string(options_.stop_margin.count()) +
                                       " ms, and the lease that was granted is not longer; make ttl longer"});
        if (!stopped() && of->still_held()) lead(of);
        give_back();
        return {};
    } catch (error const& e) {
        give_back();
        report(options_.on_error, e);
        return e.code();
    } catch (...) {
        auto const why = current_exception_code();
        give_back();
        report(options_.on_error, name_, {why, "election"});
        return why;
    }

    /// Effects: one term; the lock is still to be given back. Throws: if `on_elected` could not be called; then the
    /// term is over.
    void lead(std::shared_ptr<term_state> const& of)
    {
        std::stop_callback const at_loss{hold_.lost_token(), [this] { parker_.unpark(); }};
        elected_.store(options_.on_elected ? call::pending : call::over);
        thread caller;
        {
            std::scoped_lock guard{mutex_};
            present_ = of;
        }
        try {
            if (options_.on_elected) caller = begin_elected(of);
        } catch (...) {
            of->announce_end();
            if (!abandoned()) throw;  // otherwise `on_error` would be called after the end of the election
        }
        // mutant: the end of a term awaited without a timer
        while (!stopped() && of->still_held()) parker_.park_until(saturating_add(boot_clock::now(), of->remaining()));
        of->announce_end();  // mutant: elected before the one before is deposed
        while (elected_.load() != call::over && !abandoned()) parker_.park_until(boot_clock::time_point::max());
        if (caller.joinable()) abandoned() ? caller.detach() : caller.join();
        if (options_.on_deposed && !abandoned()) depose();
    }

    /// An exception of the user's is not taken for that of a campaign.
    void depose() noexcept { options_.on_deposed(); }

    [[nodiscard]] thread begin_elected(std::shared_ptr<term_state> const& of)
    {
        signals_blocked const while_starting;
        return thread{[self = this->shared_from_this(), of]() noexcept {
            if (!self->passes(call::pending, call::under_way)) return;
            self->elected_in_.store(threads::here());
            self->signals_.apply();
            self->options_.on_elected(term{of});
            self->elected_in_.store({});
            if (self->passes(call::under_way, call::over)) self->parker_.unpark();
        }};
    }

    /// Effects: `on_elected` goes from the one state to the other, unless it is abandoned. Returns: whether it does.
    bool passes(call from, call to) noexcept { return elected_.compare_exchange_strong(from, to); }

    std::string const name_;
    election_options const options_;
    signal_mask const signals_;
    campaign_pause pauses_;
    leased_lock<M> hold_;
    bool was_shorter_ = false;  // the lease of the last campaign, than `stop_margin`
    std::stop_source stop_;
    parker parker_;
    // The threads that call the user's functions: each sets its own before, and compares it only with its own.
    std::atomic<typename thread::id> campaigns_in_{};
    std::atomic<typename thread::id> elected_in_{};
    std::atomic<call> elected_{call::over};
    mutable std::mutex mutex_;
    std::shared_ptr<term_state> present_;
    fork_guard const origin_;
};

}  // namespace holdfast::detail
