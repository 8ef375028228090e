// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/small_mutex.hpp>
#include <holdfast/core/token.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Returns: a token that is stopped.
[[nodiscard]] inline std::stop_token stopped_token()
{
    std::stop_source stopped;
    stopped.request_stop();
    return stopped.get_token();
}

/// One hold of one lock, from its grant to its release or loss.
///
/// | state | deadline_ | lost_ | left by |
/// |-------|-----------|-------|---------|
/// | held  | in future | false | end, lose, or a call that finds the deadline passed |
/// | over  | `over`    | false | lose (announces) |
/// | lost  | `over`    | true  | |
///
/// "over" is final: an answer that arrives after a caller was told "not held" must not revive the hold.
///
/// In a child of `fork` the copy is over, whatever the original is: it is not renewed there, and another thread may
/// have had the mutex during the fork.
class hold_state {
public:
    hold_state() = default;
    hold_state(hold_state const&) = delete;
    hold_state& operator=(hold_state const&) = delete;
    virtual ~hold_state() = default;

    /// Effects: begins the hold. Not to be called while another thread can see this object.
    void begin(std::uint64_t fence, boot_clock::time_point deadline) noexcept
    {
        fence_ = fence;
        since_ = boot_clock::now();
        deadline_.store(ticks(deadline), std::memory_order_release);
    }

    [[nodiscard]] std::uint64_t fence() const noexcept { return fence_; }

    /// Returns: when it began.
    [[nodiscard]] boot_clock::time_point since() const noexcept { return since_; }

    [[nodiscard]] virtual boot_clock::time_point deadline() const noexcept
    {
        if (origin_.in_child()) return boot_clock::time_point::min();
        return boot_clock::time_point{boot_clock::duration{deadline_.load(std::memory_order_acquire)}};
    }

    [[nodiscard]] virtual bool still_held() noexcept
    {
        if (origin_.in_child()) return false;
        auto seen = deadline_.load(std::memory_order_acquire);
        for (;;) {
            if (ticks(boot_clock::now()) < seen) return true;
            if (seen == over || deadline_.compare_exchange_weak(seen, over, std::memory_order_acq_rel)) return false;
        }
    }

    /// Effects: moves the deadline of a hold that is not over.
    /// Returns: whether the hold goes on.
    bool renew(boot_clock::time_point deadline) noexcept
    {
        auto seen = deadline_.load(std::memory_order_acquire);
        for (;;) {
            auto const now = ticks(boot_clock::now());
            if (seen <= now || ticks(deadline) <= now) return false;
            if (deadline_.compare_exchange_weak(seen, ticks(deadline), std::memory_order_acq_rel)) return true;
        }
    }

    /// Effects: moves the deadline to `deadline`, if that is earlier.
    void shorten(boot_clock::time_point deadline) noexcept
    {
        auto seen = deadline_.load(std::memory_order_acquire);
        while (ticks(deadline) < seen &&
               !deadline_.compare_exchange_weak(seen, ticks(deadline), std::memory_order_acq_rel)) {
        }
    }

    /// Effects: ends the hold because its owner released it.
    void end() noexcept { deadline_.store(over, std::memory_order_release); }

    /// Effects: ends the hold because its lease is lost.
    /// Returns: the source that stops the tokens of `lost_token()`; one without a state if none was asked for. To stop
    /// it runs the user's callbacks.
    [[nodiscard]] std::stop_source mark_lost() noexcept
    {
        end();
        std::scoped_lock guard{mutex_};
        lost_ = true;
        return source(&sources::lost);
    }

    /// Effects: the same, and stops them, also those of the joint hold; and the tokens of `at_risk()`.
    void lose() noexcept
    {
        mark_lost().request_stop();  // mutant: a loss that its holder is not told
        warning().request_stop();
        if (auto const of = joint()) of->lose();
    }

    /// Returns: whether its loss was announced.
    [[nodiscard]] bool lost() noexcept
    {
        std::scoped_lock guard{mutex_};
        return lost_;
    }

    /// Effects: it is a part of `of`, or, if that is null, of no other hold any more. The loss of a part is announced
    /// as that of the whole, too, and so is a request to release it. Returns: whether this is not lost yet.
    bool join(std::weak_ptr<hold_state> of) noexcept
    {
        if (origin_.in_child()) return true;
        std::unique_lock guard{mutex_};
        joint_ = std::move(of);
        bool const held = !lost_;
        bool const at_risk = failing_;
        bool const asked = release_requested_;
        auto const in = joint_.lock();
        guard.unlock();
        std::stop_source untold{std::nostopstate};
        if (in && at_risk) static_cast<void>(in->count_risk());  // no caller has a token of it yet
        if (in && asked) static_cast<void>(in->request_release(untold));
        return held;
    }

    /// Returns: the hold of several locks of which this is a part; null if there is none.
    [[nodiscard]] std::shared_ptr<hold_state> joint() noexcept
    {
        std::scoped_lock guard{mutex_};
        return joint_.lock();
    }

    /// Returns: a token that is stopped when the hold is lost; in a child it is stopped already. Its state is made
    /// here, as most holds are never asked for one.
    [[nodiscard]] std::stop_token lost_token()
    {
        if (origin_.in_child()) return stopped_token();
        std::scoped_lock guard{mutex_};
        return token_of(&sources::lost, lost_);
    }

    /// The sources that stop tokens of `at_risk()`, if any were asked for: of a hold, and of its joint hold.
    struct warnings {
        std::stop_source own{std::nostopstate};
        std::stop_source joint{std::nostopstate};
    };

    /// Effects: notes that a renewal has failed, and the hold goes on. Returns: what is to be stopped; nothing if the
    /// one before had failed, too.
    [[nodiscard]] warnings mark_at_risk() noexcept
    {
        std::unique_lock guard{mutex_};
        if (std::exchange(failing_, true)) return {};  // mutant: a renewal that fails without a warning
        ++risks_;
        warnings to_stop{.own = source(&sources::at_risk)};
        auto const of = joint_.lock();
        guard.unlock();
        if (of) to_stop.joint = of->count_risk();  // mutant: a risk of one of several locks that is not that of all
        return to_stop;
    }

    /// Effects: notes that it was renewed. Tokens that are asked for from now on are not stopped.
    void mark_renewed() noexcept
    {
        std::unique_lock guard{mutex_};
        if (!std::exchange(failing_, false)) return;  // mutant: a warning that outlasts the renewal after it
        end_risk();
        auto const of = joint_.lock();
        guard.unlock();
        if (of) of->count_renewed();
    }

    /// Returns: the source that stops the tokens of `at_risk()`; one without a state if none was asked for.
    [[nodiscard]] std::stop_source warning() noexcept
    {
        std::scoped_lock guard{mutex_};
        return source(&sources::at_risk);
    }

    /// Returns: a token that is stopped when a renewal fails, or the hold is lost; it is stopped already if the last
    /// renewal has failed, and in a child. Made here, as `lost_token`.
    [[nodiscard]] std::stop_token at_risk()
    {
        if (origin_.in_child()) return lost_token();
        std::scoped_lock guard{mutex_};
        return token_of(&sources::at_risk, risks_ > 0 || lost_);
    }

    /// Effects: its holder is asked to release the lock. Returns: whether that is new; then `to_stop` is the source
    /// that stops the tokens of `release_requested()`, without a state if none was asked for.
    [[nodiscard]] bool request_release(std::stop_source& to_stop) noexcept
    {
        std::scoped_lock guard{mutex_};
        if (std::exchange(release_requested_, true)) return false;
        to_stop = source(&sources::asked);
        return true;
    }

    /// Returns: a token that is stopped when its holder is asked to release the lock; made here, as `lost_token`.
    [[nodiscard]] std::stop_token release_requested()
    {
        if (origin_.in_child()) return {};
        std::scoped_lock guard{mutex_};
        return token_of(&sources::asked, release_requested_);
    }

    owner_token token;  ///< of its lease; it is given back by that, also when it was lost

    /// No user was told of it so far: a `min_hold` is not for it. Guarded by the queue of the lock.
    bool unused = false;

private:
    /// The sources of the tokens; one of which no token was asked for has no state.
    struct sources {
        std::stop_source lost{std::nostopstate};
        std::stop_source at_risk{std::nostopstate};
        std::stop_source asked{std::nostopstate};
    };

    /// Returns: one of them.
    [[nodiscard]] std::stop_source source(std::stop_source sources::*which) const noexcept
    {
        return sources_ ? *sources_.*which : std::stop_source{std::nostopstate};
    }

    /// Returns: a token of one of them, whose state is made if it has none; then it is stopped if `stopped`.
    [[nodiscard]] std::stop_token token_of(std::stop_source sources::*which, bool stopped)
    {
        if (!sources_) sources_ = std::make_unique<sources>();
        auto& of = *sources_.*which;
        if (!of.stop_possible()) {
            of = std::stop_source{};
            if (stopped) of.request_stop();
        }
        return of.get_token();
    }

    /// Effects: one more of the locks of this joint hold is at risk. Returns: what is to be stopped, if it is the
    /// first.
    [[nodiscard]] std::stop_source count_risk() noexcept
    {
        std::scoped_lock guard{mutex_};
        return ++risks_ == 1 ? source(&sources::at_risk) : std::stop_source{std::nostopstate};
    }

    /// Effects: one of them was renewed.
    void count_renewed() noexcept
    {
        std::scoped_lock guard{mutex_};
        end_risk();
    }

    void end_risk() noexcept
    {
        if (--risks_ != 0 || !sources_) return;
        // Whichever there was is stopped, or is about to be.
        sources_->at_risk = std::stop_source{std::nostopstate};
    }

    static constexpr boot_clock::rep over = boot_clock::time_point::min().time_since_epoch().count();
    static boot_clock::rep ticks(boot_clock::time_point t) noexcept { return t.time_since_epoch().count(); }

    bool failing_ = false;  // the last renewal has failed
    bool lost_ = false;
    bool release_requested_ = false;
    fork_guard const origin_;
    std::atomic<boot_clock::rep> deadline_{over};
    std::uint64_t fence_ = 0;
    boot_clock::time_point since_{};
    std::unique_ptr<sources> sources_;  // null: no token was asked for
    std::weak_ptr<hold_state> joint_;
    small_mutex mutex_;
    int risks_ = 0;  // it is at risk if this is positive: its own, or those of its parts
};

}  // namespace holdfast::detail
