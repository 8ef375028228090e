// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/announcer.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_stats.hpp>
#include <holdfast/core/store.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// How a lease was found lost.
enum class loss {
    deadline,  ///< it was not renewed in time
    session,   ///< the store said so without being asked
    taken,     ///< the answer to a renewal or a release says that the lock is not ours
    late,      ///< the answer to a renewal came too late
};

/// Counts what the locks of a client do, and tells its observer. Counting takes no lock, and may be done with the
/// mutex of a queue held; telling may not. Thread-safe.
class activity {
public:
    /// A call that waits for a lock, as long as this lives.
    class wait {
    public:
        explicit wait(activity& in) noexcept : in_{in} { in_.waiting_.add(1); }
        wait(wait const&) = delete;
        wait& operator=(wait const&) = delete;
        ~wait() { in_.waiting_.add(-1); }

    private:
        activity& in_;
    };

    /// Effects: `f` is told what happens from now on, in place of an earlier one; null: none is.
    void observe(lock_observer f)
    {
        auto made = f ? std::make_shared<lock_observer const>(std::move(f)) : nullptr;
        std::scoped_lock guard{mutex_};
        observed_.store(made != nullptr, std::memory_order_relaxed);
        observer_.swap(made);
    }

    /// Effects: counts a lock that was acquired from the store or, with `handed_over`, from another holder here.
    void granted() noexcept { acquired_.add(1); }
    void handed_over() noexcept { handed_over_.add(1); }

    /// Effects: counts the end of a call that waited for `d`: it was granted the lock, or `why` not.
    void waited(boot_clock::duration d, std::error_code why) noexcept
    {
        if (!why)
            waits_.add(d);
        else if (why == errc::timed_out)
            timed_out_.add(1);
        else if (why == std::errc::operation_canceled)
            canceled_.add(1);
        else
            failed_.add(1);
    }

    /// Effects: counts the end of a hold of `d`; it was released or lost, which is known and counted now or later.
    void ended(boot_clock::duration d) noexcept
    {
        ended_.add(1);
        holds_.add(d);
    }
    void released() noexcept { released_.add(1); }
    void lost(loss how) noexcept
    {
        (how == loss::session || how == loss::taken ? lost_in_store_ : lost_by_deadline_).add(1);
    }

    /// Effects: counts the answer to a renewal or an extension after which the lease goes on.
    void renewed() noexcept { renewed_.add(1); }
    void renewal_failed() noexcept { renewals_failed_.add(1); }

    /// Returns: whether there is an observer.
    [[nodiscard]] bool observed() const noexcept { return observed_.load(std::memory_order_relaxed); }

    /// Effects: tells the observer, if there is one, of what `event()` returns: in a thread of `background`, or in this
    /// one if that is null. Dropped if memory is short, too much waits, or `background` ends first. What the observer
    /// throws ends the program.
    template <class F>
    void tell(announcer* background, F const& event) noexcept
    try {
        if (!observed()) return;
        auto const f = observer();
        if (!f) return;
        if (!background) return called(*f, event());
        // One that is replaced meanwhile is not told any more.
        announcer::call one{[f = std::weak_ptr{f}, e = event()]() noexcept {
            if (auto const observer = f.lock()) (*observer)(e);
        }};
        background->tell_event(std::move(one));
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): one event less
    }

    [[nodiscard]] lock_stats stats() const noexcept
    {
        lock_stats s;
        auto const ended = ended_.get();
        s.released = released_.get();
        s.lost_by_deadline = lost_by_deadline_.get();
        s.lost_in_store = lost_in_store_.get();
        s.handed_over = handed_over_.get();
        s.acquired = acquired_.get() + s.handed_over;
        s.held = s.acquired - ended;  // what was read first is no more than what was acquired
        s.waiting = waiting_.get();
        s.timed_out = timed_out_.get();
        s.canceled = canceled_.get();
        s.failed = failed_.get();
        s.renewed = renewed_.get();
        s.renewals_failed = renewals_failed_.get();
        s.waits = waits_.get();
        s.holds = holds_.get();
        return s;
    }

private:
    class counter {
    public:
        /// Sequentially consistent with `get`, so that sums of several are right.
        void add(std::int64_t n) noexcept { n_.fetch_add(static_cast<std::uint64_t>(n)); }
        [[nodiscard]] std::uint64_t get() const noexcept { return n_.load(); }

    private:
        std::atomic<std::uint64_t> n_{0};
    };

    class histogram {
    public:
        void add(boot_clock::duration d) noexcept
        {
            auto const& bounds = duration_histogram::bounds;
            auto const at = std::lower_bound(bounds.begin(), bounds.end(), d) - bounds.begin();
            counts_[static_cast<std::size_t>(at)].add(1);
            sum_.add(std::chrono::round<std::chrono::microseconds>(d).count());
        }

        [[nodiscard]] duration_histogram get() const noexcept
        {
            duration_histogram all;
            std::transform(counts_.begin(), counts_.end(), all.counts.begin(), [](auto const& n) { return n.get(); });
            all.sum = std::chrono::microseconds{static_cast<std::int64_t>(sum_.get())};
            return all;
        }

    private:
        std::array<counter, duration_histogram::bounds.size() + 1> counts_{};
        counter sum_;
    };

    /// An exception of the user's is not taken for a want of memory here.
    static void called(lock_observer const& f, lock_event const& e) noexcept { f(e); }

    [[nodiscard]] std::shared_ptr<lock_observer const> observer() const noexcept
    {
        std::scoped_lock guard{mutex_};
        return observer_;
    }

    counter waiting_, acquired_, handed_over_, timed_out_, canceled_, failed_, released_, ended_;
    counter renewed_, renewals_failed_, lost_by_deadline_, lost_in_store_;
    histogram waits_, holds_;
    std::atomic<bool> observed_{false};
    mutable std::mutex mutex_;
    std::shared_ptr<lock_observer const> observer_;
};

}  // namespace holdfast::detail
