// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/client_parts.hpp>
#include <holdfast/lock/lease_state.hpp>
#include <holdfast/lock/renewal.hpp>
#include <holdfast/lock/renewal_record.hpp>
#include <holdfast/lock/renewer.hpp>
#include <holdfast/lock/schedule.hpp>
#include <holdfast/lock/waiter.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The lease of a queue and the requests for more time for it, one at a time: renewals, and extensions by the holder.
/// Guarded by the queue's mutex.
///
/// | the lease is | event | next |
/// |---|---|---|
/// | held | a third of its ttl has passed | a renewal is sent, unless a request is under way |
/// | held | an extension by the holder | it is sent, and a renewal that is under way cancelled |
/// | held | the answer is yes, in time | held, until the new deadline |
/// | held | the request failed | held, until the old deadline; tried again when a quarter of the rest has passed |
/// | held | the answer is yes, the deadline stays, and is near | as if the request had failed; tried again sooner |
/// | held | the store says that it is not ours; the deadline; the store knows that it ended | lost |
/// | held | released | over; what is under way is cancelled |
/// | held | released before `min_hold` is over | held by no user until then; then released |
class renewed_lease {
public:
    renewed_lease(std::shared_ptr<client_parts> client, shared_key key)
        : client_{std::move(client)}, key_{std::move(key)}, record_{client_->reports}
    {
    }
    renewed_lease(renewed_lease const&) = delete;
    renewed_lease& operator=(renewed_lease const&) = delete;
    ~renewed_lease() { renews().remove(timer_); }

    [[nodiscard]] client_parts& client() const noexcept { return *client_; }
    [[nodiscard]] shared_key const& key() const noexcept { return key_; }
    [[nodiscard]] lease_state& state() noexcept { return state_; }
    [[nodiscard]] lease_state const& state() const noexcept { return state_; }

    /// Effects: `whom` is called by the client's thread when there is something to do.
    void prepare(std::weak_ptr<scheduled> whom) noexcept
    {
        if (timer_.whom.expired()) renews().prepare(timer_, std::move(whom));
    }

    /// Effects: `whom` is called at once.
    void poke() noexcept { renews().poke(timer_); }

    /// Effects: ends the lease; nothing more is sent for it. If `next` is not null, it would have taken the lease over.
    void end(waiter const* next) noexcept
    {
        drop();
        state_.end(next);
        record_.end();
        renews().cancel(timer_);
    }

    /// Returns: how the lease was lost, as far as its deadline shows. Requires: it is held.
    [[nodiscard]] std::optional<loss> lost() const
    {
        return state_.holder()->still_held() ? std::nullopt : std::optional{loss::deadline};
    }

    /// Returns: the same, as far as the store knows without asking its servers.
    [[nodiscard]] std::optional<loss> lost_in_store() const
    {
        if (auto const how = lost()) return how;
        return client_->store->still_leased(state_.token()) ? std::nullopt : std::optional{loss::session};
    }

    /// Returns: the failure to report for a loss.
    [[nodiscard]] failure explain(loss how) const noexcept { return record_.explain(how, state_); }

    /// Effects: sends a renewal, unless a request is under way, and schedules the next look. `of` has this. Requires:
    /// the lease is held.
    void renew(std::shared_ptr<void const> of) noexcept
    {
        if (!asked_ && state_.renewable()) begin_renewal(std::move(of));
        schedule();
    }

    /// Effects: gives the lease, which ends at `deadline`, to `kept` until `release_at`, and asks at once for more time
    /// if it may end before. `of` has this. Returns: whether it asks.
    bool keep(std::shared_ptr<hold_state> kept, std::shared_ptr<lock_options const> options,
              boot_clock::time_point deadline, boot_clock::time_point release_at,
              std::shared_ptr<void const> of) noexcept
    {
        bool const more = state_.keep(std::move(kept), std::move(options), deadline, release_at);
        if (more || extending()) drop();  // it asks for less, or its caller's hold is over
        if (more)
            renew(std::move(of));
        else
            schedule();
        return more;
    }

    /// Effects: asks for a lease of `ttl` from now on; a renewal that is under way is cancelled. Returns: what the
    /// caller waits for, and then settles. Throws: what the store throws. Requires: the lease is held, no extension is
    /// under way.
    [[nodiscard]] std::shared_ptr<renewal> extend(std::chrono::milliseconds ttl)
    {
        drop();
        state_.ask(ttl);
        schedule();  // its end may have come nearer
        return send(ttl, nullptr);
    }

    /// Returns: whether an extension is under way.
    [[nodiscard]] bool extending() const noexcept { return asked_ && asked_->waited_for(); }

    /// Returns: the request that is under way; null if there is none.
    [[nodiscard]] std::shared_ptr<renewal> const& under_way() const noexcept { return asked_; }

    /// Returns: the renewal that is answered; null if there is none.
    [[nodiscard]] std::shared_ptr<renewal> answered() const noexcept
    {
        return asked_ && asked_->answered() ? asked_ : nullptr;
    }

    /// Returns: whether `one` is under way, and was not cancelled.
    [[nodiscard]] bool awaits(renewal const& one) const noexcept { return asked_.get() == &one; }

    /// Effects: acts on the answer to what is under way, and makes one that is of no use a failure; the caller handles
    /// a loss.
    [[nodiscard]] std::optional<loss> settle(result<boot_clock::time_point>& outcome) noexcept
    {
        asked_ = nullptr;
        if (auto const how = state_.settle(outcome)) return how;
        if (outcome && state_.failing()) outcome = no_longer();
        record_.note(outcome);
        if (!outcome && lost()) return loss::deadline;  // no thread has looked since then
        schedule();
        return std::nullopt;
    }

    /// Effects: schedules the client's thread for the next renewal and for the end of the lease. Requires: it is held.
    void schedule() noexcept
    {
        auto const end = state_.holder()->deadline();
        renews().put(timer_, asked_ ? std::min(end, state_.release_at()) : state_.next_look(), end);
    }

private:
    [[nodiscard]] renewer& renews() const noexcept { return *client_->renews; }

    /// Returns: the failure that a renewal is which was granted and is of no use.
    [[nodiscard]] static failure no_longer() noexcept
    {
        failure why{make_error_code(errc::unavailable), {}};
        try {
            why.detail = "it was granted, but the lease ends as soon as before";
        } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): the code says enough
        }
        return why;
    }

    void begin_renewal(std::shared_ptr<void const> of) noexcept
    try {
        renews().begin_renewal();
        auto const ttl = state_.wanted_ttl();
        state_.ask(ttl);
        static_cast<void>(send(ttl, std::move(of)));
    } catch (...) {  // the deadline stands, and the renewal is tried again before it
        renews().end_renewal(timer_);
        state_.retry_later();
    }

    /// Effects: asks the store for a lease of `ttl` from now on. Requires: no request is under way.
    std::shared_ptr<renewal> send(std::chrono::milliseconds ttl, std::shared_ptr<void const> of)
    {
        auto made = std::make_shared<renewal>(client_->store->extend(key_, state_.token(), ttl), std::move(of),
                                              renews(), timer_);
        made->start();
        return asked_ = std::move(made);
    }

    /// Effects: cancels the request that is under way; its answer does not count.
    void drop() noexcept
    {
        if (auto const gone = std::exchange(asked_, nullptr)) gone->cancel();
    }

    std::shared_ptr<client_parts> const client_;
    shared_key const key_;
    lease_state state_;
    std::shared_ptr<renewal> asked_;  // the request that is under way
    renewer::timer timer_;
    [[no_unique_address]] renewal_record record_;
};

}  // namespace holdfast::detail
