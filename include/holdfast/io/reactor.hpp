// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/awaited.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/io/followers.hpp>
#include <holdfast/io/outlet.hpp>
#include <holdfast/io/source.hpp>

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::io {

/// Runs the connections of one client without a thread of its own. A thread that waits for its operation *leads* where nobody does: it
/// polls all descriptors, reads, and completes everybody's operations; when its own is done it hands leadership on. The other waiting
/// threads *follow*: each sleeps until its operation is done, or has something to do in time, or it is its turn to lead.
///
/// | a waiting thread | sleeps in | left by |
/// |------------------|-----------|---------|
/// | leads            | `ppoll`   | its operation is done or its time has come: the first follower is promoted |
/// | follows          | its bed   | `finished`: returns without taking the lock · `lead`: leads where nobody does · `look`, time: looks again |
///
/// Source: leader/followers (Schmidt, O'Ryan, Kircher, Pyarali, Buschmann: "Leader/Followers", PLoP 2000).
///
/// `lock()` and `unlock()` guard everything that the sources and operations of this reactor share.
class reactor {
public:
    /// Effects: prepares a reactor for at most `most_sources` sources.
    explicit reactor(std::size_t most_sources)
    {
        sources_.reserve(most_sources);
        ready_.reserve(most_sources);
        polled_.reserve(most_sources + 1);
        wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);  // last: what throws behind it would leave it open
        if (wake_ < 0) throw error{errc::unavailable, "the process has no descriptor left for a client"};
    }

    reactor(reactor const&) = delete;
    reactor& operator=(reactor const&) = delete;
    ~reactor() { ::close(wake_); }

    void lock()
    {
        if (mutex_.try_lock()) return;
        std::scoped_lock const in_turn{turn_};
        mutex_.lock();
    }

    /// Effects: unlocks, then sends what is to be sent and wakes those whose operations were finished meanwhile. Where many wait, lets other
    /// threads run before: what they are about to send goes along, in one call for all, which the server reads in one.
    void unlock() noexcept
    {
        auto* one = std::exchange(finished_, nullptr);
        auto const count = std::exchange(unsent_count_, 0);
        if (!one && count == 0) return mutex_.unlock();
        std::array<std::shared_ptr<outlet>, most_unsent> out;
        std::move(unsent_.begin(), unsent_.begin() + count, out.begin());
        bool const crowded = followers_.size() >= crowd && count != 0;
        mutex_.unlock();
        while (one) {
            auto* const next = one->next_finished;
            one->bed.unpark(finished);
            one = next;
        }
        if (crowded) ::sched_yield();
        for (std::size_t i = 0; i < count; ++i) {
            if (!out[i]->flush()) continue;
            std::scoped_lock guard{mutex_};
            interrupt();  // the leader does not know yet that it has to wait until the socket takes more
        }
    }

    /// Effects: sends `bytes` on `o` behind what was sent before; at the latest when the lock is given up.
    /// Throws: `std::bad_alloc`, in which case nothing is sent.
    void send(std::shared_ptr<outlet> const& o, std::string_view bytes)
    {
        o->append(bytes);
        auto const* const end = unsent_.begin() + unsent_count_;
        if (std::find(unsent_.cbegin(), end, o) != end) return;
        if (unsent_count_ < most_unsent)
            unsent_[unsent_count_++] = o;
        else if (o->flush())
            interrupt();
    }

    /// Effects: polls `s` from now on. Called with the lock held, as all that follows but `wait`.
    void add(source& s) noexcept
    {
        sources_.push_back(&s);
        interrupt();
    }

    void remove(source& s) noexcept
    {
        std::erase(sources_, &s);
        std::replace(ready_.begin(), ready_.end(), &s, static_cast<source*>(nullptr));
        interrupt();
    }

    /// Effects: notes that the interest or the descriptor of a source has changed.
    void changed() noexcept { interrupt(); }

    /// Effects: notes that `done()` or `wake_at()` of `one` may have changed.
    void updated(awaited& one) noexcept
    {
        if (auto* const f = static_cast<follower*>(awaited_link::get(one))) {
            if (one.done()) {
                awaited_link::set(one, nullptr);
                followers_.remove(*f);
                f->signalled = true;
                f->next_finished = std::exchange(finished_, f);
            } else if (one.wake_at() < f->until) {
                f->bed.unpark(look);
            }
        } else if (&one == leads_for_ && (one.done() || one.wake_at() < polls_until_)) {
            interrupt();
        }
    }

    /// Effects: waits until `one` is done, or `t`. Called without the lock; by one thread for each `one`.
    /// Returns: whether it is done.
    bool wait(awaited& one, boot_clock::time_point t)
    {
        std::unique_lock guard{*this};
        bool looked = false;  // at the sockets: a thread that was kept from running may find in time what seems overdue
        for (;;) {
            if (one.done()) return true;
            auto const now = boot_clock::now();
            bool const may_judge = looked || leads_for_ != nullptr;
            if (one.wake_at() <= now && may_judge) {
                one.on_time(now);
                looked = false;
            } else if (now >= t && may_judge) {
                return false;
            } else if (leads_for_ == nullptr) {
                lead(guard, one, t);
                looked = true;
            } else if (follow(guard, one, t)) {
                return true;
            }
        }
    }

private:
    /// So many sockets are flushed without the lock; more of them with it.
    static constexpr std::size_t most_unsent = 8;

    /// So many threads follow that each one's own time counts less than what all get done. (Measured with 64 threads on two processors: a quarter
    /// more over one connection, an eighth over each of four. With 8 threads nothing is gained.)
    static constexpr std::size_t crowd = 8;

    static constexpr std::uint32_t look = 1;
    static constexpr std::uint32_t lead_signal = 2;
    static constexpr std::uint32_t finished = 4;

    /// Ends, also by an exception, when somebody else may lead.
    struct leadership {
        reactor& of;

        explicit leadership(reactor& leader) noexcept : of{leader} {}
        leadership(leadership const&) = delete;
        leadership& operator=(leadership const&) = delete;
        ~leadership()
        {
            of.leads_for_ = nullptr;
            of.promote();
        }
    };

    void lead(std::unique_lock<reactor>& guard, awaited& one, boot_clock::time_point t)
    {
        leads_for_ = &one;
        leadership const end{*this};
        auto now = boot_clock::now();
        do {
            polls_until_ = std::min(t, one.wake_at());
            polled_.assign(1, {.fd = wake_, .events = POLLIN, .revents = 0});
            for (auto const* s : sources_) polled_.push_back({.fd = s->descriptor(), .events = s->interest(), .revents = 0});
            ready_.assign(sources_.begin(), sources_.end());
            polling_ = true;
            guard.unlock();
            sleep_in_poll(std::max(polls_until_ - now, boot_clock::duration::zero()));
            lock_in_turn(guard);
            polling_ = false;
            if (polled_[0].revents != 0) drain();
            now = boot_clock::now();
            for (std::size_t i = 0; i < ready_.size(); ++i)
                if (ready_[i] && polled_[i + 1].revents != 0 && polled_[i + 1].fd == ready_[i]->descriptor())
                    ready_[i]->on_ready(polled_[i + 1].revents, now);
            ready_.clear();
        } while (!one.done() && now < std::min(t, one.wake_at()));
    }

    /// Effects: locks, behind a thread that waits for that. A mutex lets the leader pass it, who has less to do than wake up: for as long as
    /// there is something to read each time.
    void lock_in_turn(std::unique_lock<reactor>& guard)
    {
        std::scoped_lock const in_turn{turn_};
        mutex_.lock();
        guard = std::unique_lock{*this, std::adopt_lock};
    }

    /// Returns: whether `one` is done, in which case the lock is not held on return.
    bool follow(std::unique_lock<reactor>& guard, awaited& one, boot_clock::time_point t)
    {
        follower me;
        me.until = std::min(t, one.wake_at());
        followers_.add(me);
        awaited_link::set(one, &me);
        guard.unlock();
        auto signals = me.bed.park_until(me.until);
        if ((signals & finished) == 0) {
            guard.lock();
            if (!me.signalled) {
                awaited_link::set(one, nullptr);
                followers_.remove(me);
                return false;
            }
            guard.unlock();
            while ((signals & finished) == 0) signals |= me.bed.park_until(boot_clock::time_point::max());
        }
        if ((signals & lead_signal) != 0) {
            guard.lock();
            if (leads_for_ == nullptr) promote();
            guard.unlock();
        }
        return true;
    }

    void promote() noexcept
    {
        if (auto* const first = followers_.first()) first->bed.unpark(lead_signal);
    }

    void sleep_in_poll(boot_clock::duration d) noexcept
    {
        d = std::min<boot_clock::duration>(d, detail::parker::longest_nap);
        auto const whole = std::chrono::duration_cast<std::chrono::seconds>(d);
        timespec const timeout{.tv_sec = whole.count(), .tv_nsec = (d - whole).count()};
        if (::ppoll(polled_.data(), polled_.size(), &timeout, nullptr) <= 0)
            for (auto& one : polled_) one.revents = 0;
    }

    /// Effects: makes a leader that polls look again.
    void interrupt() noexcept
    {
        if (!polling_ || interrupted_) return;
        interrupted_ = true;
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(wake_, &one, sizeof one);
    }

    void drain() noexcept
    {
        interrupted_ = false;
        std::uint64_t count = 0;
        [[maybe_unused]] auto const got = ::read(wake_, &count, sizeof count);
    }

    std::mutex mutex_;
    std::mutex turn_;  // held by who waits for mutex_, before the others
    int wake_;
    std::vector<source*> sources_;
    follower_line followers_;
    follower* finished_ = nullptr;

    // To be flushed when the lock is given up.
    std::array<std::shared_ptr<outlet>, most_unsent> unsent_;
    std::size_t unsent_count_ = 0;

    // Of the leader:
    awaited* leads_for_ = nullptr;
    boot_clock::time_point polls_until_{};
    bool polling_ = false;
    bool interrupted_ = false;
    std::vector<pollfd> polled_;
    std::vector<source*> ready_;
};

}  // namespace holdfast::io
