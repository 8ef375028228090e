// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/linked_line.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/io/follower.hpp>
#include <holdfast/io/outlet.hpp>
#include <holdfast/io/poll_for.hpp>
#include <holdfast/io/running.hpp>
#include <holdfast/io/source.hpp>
#include <holdfast/io/unsent_outlets.hpp>
#include <holdfast/io/wake_up.hpp>

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::io {

/// Runs the connections and the timers of one client, without a thread of its own. A thread that waits *leads* if no
/// other does: it polls all descriptors, reads, and serves every operation; when it is signalled it hands leadership
/// on. The other waiting threads *follow*: each sleeps until it is signalled, its time has come, or it is promoted.
///
/// | a waiting thread | sleeps in    | left by |
/// |------------------|--------------|---------|
/// | leads            | `ppoll`      | its parker is signalled, or its time has come: the first follower is promoted |
/// | follows          | its parker   | signalled, time: returns · promoted: leads, if no other thread does |
///
/// While no caller waits, the client's own thread leads, if it is asked to (`service`): for one `ppoll` at a time. What
/// others send meanwhile goes out between two of them, in one call for all.
///
/// `lock()` and `unlock()` guard what the sources and operations share. Completions are called after `unlock()`.
/// Source: leader/followers (Schmidt, O'Ryan, Kircher, Pyarali, Buschmann: "Leader/Followers", PLoP 2000).
class reactor {
public:
    /// Effects: prepares a reactor for at most `most_sources` sources. `orphaned` is signalled when the client's own
    /// thread gave way to callers and the last one leaves; null: no such thread.
    explicit reactor(std::size_t most_sources, wake_up const* orphaned = nullptr) : orphaned_{orphaned}
    {
        sources_.reserve(most_sources);
        ready_.reserve(most_sources);
        polled_.reserve(most_sources + 1);
    }

    reactor(reactor const&) = delete;
    reactor& operator=(reactor const&) = delete;
    void lock()
    {
        if (!mutex_.try_lock()) lock_in_turn();
    }
    /// Effects: unlocks, calls the completions of operations that have ended, and sends what is to be sent. If many
    /// threads wait, it lets others run before it sends, so that their bytes go along.
    void unlock() noexcept
    {
        if (!release(to_send())) return;
        std::scoped_lock guard{mutex_};  // the leader may have been signalled without knowing it yet
        interrupt();
    }

    /// Effects: sends `bytes` on `o` after what was sent before; at the latest when the lock is given up.
    /// Throws: `std::bad_alloc`, in which case nothing is sent.
    void send(std::shared_ptr<outlet> const& o, std::string_view bytes)
    {
        o->append(bytes);
        if (!unsent_.add(o) && o->flush()) interrupt();
    }
    /// Effects: calls `s.compose` before the next send. Returns: false if it will not, for want of room.
    bool send_later(source& s) noexcept { return unsent_.add_later(s); }
    /// Returns: how many descriptors are polled at most.
    [[nodiscard]] std::size_t most_polled() const noexcept { return sources_.capacity() + 1; }
    /// Effects: polls `s` from now on. Called with the lock held, like all below unless they say otherwise.
    void add(source& s) noexcept
    {
        sources_.push_back(&s);
        interrupt();
    }
    void remove(source& s) noexcept
    {
        std::erase(sources_, &s);
        unsent_.forget(s);
        std::replace(ready_.begin(), ready_.end(), &s, static_cast<source*>(nullptr));
        interrupt();
    }

    /// Effects: notes that the interest or the descriptor of a source has changed.
    void changed() noexcept { interrupt(); }
    /// Effects: runs `one` from now on, until `ended` or `abandon`.
    void begin(running& one, completion& done) noexcept { detail::ended_operations::bind(one, done); }
    /// Effects: notes that `wake_at()` of `one` may have changed.
    void updated(running& one) noexcept
    {
        timers_.put(one);
        if (timers_.next() < polls_until_) interrupt();
    }
    /// Effects: calls the completion of `one` when the lock is given up. No effect if it has ended before.
    void ended(running& one) noexcept
    {
        timers_.remove(one);
        ended_.add(one);
    }
    /// Effects: stops running `one`, which has not ended; its completion is not called.
    void abandon(running& one) noexcept { timers_.remove(one); }
    /// Effects: sends all that is to be sent, also what other threads have taken up to send. Called without the lock.
    void flush() noexcept
    {
        std::scoped_lock guard{*this};
        for (auto* const s : sources_) s->flush();
        interrupt();  // the leader does not know yet whether it has to wait until a socket takes more
    }

    /// Effects: waits until `who` is signalled, or `t`, and serves everything meanwhile, or lets another thread do so.
    /// Called without the lock. Returns: the signals of `who`; 0 if there were none.
    std::uint32_t drive(detail::parker& who, boot_clock::time_point t) noexcept
    {
        std::unique_lock guard{*this};
        attended_ = false;  // this caller sends what there is to be sent
        for (;;) {
            auto signals = who.take();
            if ((signals & ~lead_signal) == 0) {
                if (!leads_) return lead(who, t);
                follower me{&who};
                followers_.add(me);
                guard.unlock();
                signals = who.park_until(t);
                guard.lock();
                followers_.remove(me);
                if ((signals & ~lead_signal) == 0 && (!leads_ || boot_clock::now() < t)) continue;
            }
            if (!leads_) promote();  // this thread may have been promoted without noticing it
            return signals & ~lead_signal;
        }
    }

    /// Effects: leads for one `ppoll`, if no caller waits: adds what is to be polled to `polled`. Otherwise `orphaned`
    /// is signalled when none does any more. Called without the lock by the client's thread, like the next two.
    /// Returns: whether it leads; then `end_turn` must be called.
    bool begin_turn(std::vector<pollfd>& polled, boot_clock::time_point& until) noexcept
    {
        lock();
        gave_way_ = leads_ || followers_.first() != nullptr;  // which has been promoted
        if (gave_way_) {
            unlock();
            return false;
        }
        leads_ = attended_ = true;
        until = std::min(until, prepare_poll(polled, until));
        release(unsent_.take());
        return true;
    }

    /// Effects: serves the events in `polled`, the part that `begin_turn` added. Returns: its number of descriptors.
    std::size_t end_turn(pollfd const* polled) noexcept
    {
        lock_in_turn();
        auto const count = ready_.size() + 1;
        serve(polled);
        leads_ = false;
        promote();
        unlock();  // what is to be sent goes along with the next turn
        return count;
    }

    /// Effects: the client's own thread takes no more turns for now.
    void rest() noexcept
    {
        std::scoped_lock guard{*this};
        attended_ = false;
    }

private:
    /// From this many followers on, throughput counts more than latency (64 on two processors: a quarter more).
    static constexpr std::size_t crowd = 8;
    static constexpr std::uint32_t lead_signal = std::uint32_t{1} << 30U;

    /// Effects: see `drive`; the lock is held before and after. Polls once even if `t` has passed.
    std::uint32_t lead(detail::parker& who, boot_clock::time_point t) noexcept
    {
        leads_ = true;
        attended_ = false;
        std::uint32_t signals = 0;
        bool rested = false;  // nothing came for a while: the answers to what a timer sends need not be read one by one
        auto now = boot_clock::now();
        do {
            polled_.clear();
            auto const until = prepare_poll(polled_, t);
            {
                auto const out = to_send();
                release(out);
                signals = who.take() & ~lead_signal;
                if (rested && signals == 0) out.await_last(wake_.descriptor());
            }
            if (rested) now = boot_clock::now();
            rested = signals == 0 && poll_for(polled_, until - now) == 0 && until - now >= unsent_outlets::rest;
            lock_in_turn();
            now = serve(polled_.data());
            if (signals == 0 && !ended_.empty()) {
                release(to_send());
                signals = who.take() & ~lead_signal;
                lock_in_turn();
            }
        } while (signals == 0 && now < t);
        leads_ = false;
        promote();
        return signals;
    }

    /// Effects: adds what is to be polled. Returns: until when to poll.
    boot_clock::time_point prepare_poll(std::vector<pollfd>& polled, boot_clock::time_point t) noexcept
    {
        polls_until_ = std::min(t, timers_.next());
        polled.push_back({.fd = wake_.descriptor(), .events = POLLIN, .revents = 0});
        for (auto const* s : sources_) polled.push_back({.fd = s->descriptor(), .events = s->interest(), .revents = 0});
        ready_.assign(sources_.begin(), sources_.end());
        polling_ = true;
        return polls_until_;
    }

    /// Effects: reads what has come, and calls the operations whose time has come. Returns: the time after the poll.
    boot_clock::time_point serve(pollfd const* polled) noexcept
    {
        polling_ = false;
        if (polled[0].revents != 0) {
            interrupted_ = false;
            wake_.drain();
        }
        auto const now = boot_clock::now();
        for (std::size_t i = 0; i < ready_.size(); ++i)
            if (ready_[i] && polled[i + 1].revents != 0 && polled[i + 1].fd == ready_[i]->descriptor())
                ready_[i]->on_ready(polled[i + 1].revents, now);
        ready_.clear();
        timers_.run(now);
        return now;
    }

    /// Returns: what a caller sends when it gives up the lock: nothing if the client's thread will.
    [[nodiscard]] unsent_outlets to_send() noexcept { return attended_ ? unsent_outlets{} : unsent_.take(); }
    /// Effects: unlocks, calls completions, sends `out`. Returns: whether it called any; a new leader may not know it.
    bool release(unsent_outlets const& out) noexcept
    {
        auto const ended = std::exchange(ended_, {});
        if (!unsent_.empty()) interrupt();
        bool const crowded = followers_.size() >= crowd && !out.empty();
        mutex_.unlock();
        detail::ended_operations::tell(ended);
        if (crowded) ::sched_yield();
        out.flush([this] { static_cast<void>(std::scoped_lock{mutex_}), interrupt(); });  // as in `flush`
        return !ended.empty();
    }

    /// Effects: locks, after the threads that already wait: with a mutex alone the leader could pass them each time.
    void lock_in_turn()
    {
        std::scoped_lock const in_turn{turn_};
        mutex_.lock();
    }

    void promote() noexcept
    {
        if (auto* const first = followers_.first())
            first->who->unpark(lead_signal);
        else if (std::exchange(gave_way_, false))
            orphaned_->signal();
    }

    /// Effects: makes a leader that polls look again.
    void interrupt() noexcept
    {
        if (polling_ && !std::exchange(interrupted_, true)) wake_.signal();
    }

    std::mutex mutex_;
    std::mutex turn_;  // held by the thread that gets mutex_ next
    wake_up wake_;
    wake_up const* orphaned_;
    bool gave_way_ = false;  // the client's own thread wants to know when no caller leads
    bool attended_ = false;  // it takes turns; no caller has been here since its last one
    std::vector<source*> sources_;
    timers timers_;
    detail::linked_line<follower> followers_;
    detail::ended_operations ended_;  // this and the next are handled when the lock is given up
    unsent_outlets unsent_;
    bool leads_ = false;  // a thread leads; what follows belongs to it
    boot_clock::time_point polls_until_{};
    bool polling_ = false;
    bool interrupted_ = false;
    std::vector<pollfd> polled_;
    std::vector<source*> ready_;
};

}  // namespace holdfast::io
