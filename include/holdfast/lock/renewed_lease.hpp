// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/failure_reports.hpp>
#include <holdfast/lock/lease_state.hpp>
#include <holdfast/lock/renewal.hpp>
#include <holdfast/lock/renewal_record.hpp>
#include <holdfast/lock/renewer.hpp>
#include <holdfast/lock/scheduled.hpp>
#include <holdfast/lock/waiter.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The lease of a queue and its renewals. Guarded by the queue's mutex.
///
/// | the lease is | event                                   | next |
/// |--------------|-----------------------------------------|------|
/// | held         | a third of its ttl has passed           | a renewal is sent, unless one is under way |
/// | held         | renewed, in time                        | held, until the new deadline |
/// | held         | the renewal failed                      | held, until the old deadline; tried again when a quarter of the rest has passed |
/// | held         | the store says that it is not ours; the deadline; the store knows that it ended | lost |
/// | held         | released                                | over; what is under way is cancelled |
class renewed_lease {
public:
    renewed_lease(std::shared_ptr<lock_store> store, std::shared_ptr<detail::renewer> renews, shared_key key,
                  std::shared_ptr<failure_reports> reports)
        : store_{std::move(store)}, renewer_{std::move(renews)}, key_{std::move(key)}, record_{std::move(reports)}
    {
    }
    renewed_lease(renewed_lease const&) = delete;
    renewed_lease& operator=(renewed_lease const&) = delete;
    ~renewed_lease() { renewer_->remove(timer_); }

    [[nodiscard]] lock_store& store() const noexcept { return *store_; }
    [[nodiscard]] detail::renewer& renewer() const noexcept { return *renewer_; }
    [[nodiscard]] shared_key const& key() const noexcept { return key_; }
    [[nodiscard]] lease_state& state() noexcept { return state_; }
    [[nodiscard]] lease_state const& state() const noexcept { return state_; }
    [[nodiscard]] failure_reports& reports() const noexcept { return record_.all(); }

    /// Effects: `whom` is called by the client's thread when there is something to do.
    void prepare(std::weak_ptr<scheduled> whom) noexcept
    {
        if (prepared_) return;
        renewer_->prepare(timer_, std::move(whom));
        prepared_ = true;
    }

    /// Effects: `whom` is called at once.
    void poke() noexcept { renewer_->poke(timer_); }

    /// Effects: ends the lease; nothing more is sent for it. If `next` is not null, it would have taken the lease over.
    void end(waiter const* next) noexcept
    {
        if (renewing_) renewing_->cancel();
        state_.end(next);
        record_.end();
        renewer_->cancel(timer_);
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
        return store_->still_leased(state_.token()) ? std::nullopt : std::optional{loss::session};
    }

    /// Returns: the failure to report for a loss.
    [[nodiscard]] failure explain(loss how) const noexcept { return record_.explain(how, state_); }

    /// Effects: sends a renewal for `of`, unless one is under way, and schedules the next look. Requires: the lease is
    /// held.
    void renew(std::shared_ptr<scheduled> of) noexcept
    {
        if (idle() && state_.renewable()) begin_renewal(std::move(of));
        schedule();
    }

    /// Returns: the answered renewal, which is no longer under way; null if there is none.
    [[nodiscard]] std::unique_ptr<renewal> take_answered() noexcept
    {
        if (!renewing_ || !renewing_->answered()) return nullptr;
        renewer_->end_renewal();
        return std::exchange(renewing_, nullptr);
    }

    /// Effects: mark the begin and the end of an extension by the holder. In between no renewal is sent: the later of
    /// the two would undo the other.
    void begin_extension() noexcept
    {
        ++extending_;
        schedule();
    }
    void end_extension() noexcept { --extending_; }
    [[nodiscard]] bool extending() const noexcept { return extending_ != 0; }

    /// Effects: acts on the answer to `request`; the caller handles a loss.
    [[nodiscard]] verdict settle(lease_request const& request, result<boot_clock::time_point> const& outcome) noexcept
    {
        auto const found = state_.settle(request, outcome);
        if (found.lost) return found;
        if (found.concerns) record_.note(outcome);
        if (state_.holder()) schedule();
        return found;
    }

    /// Effects: schedules the client's thread for the next renewal and for the end of the lease. Requires: it is held.
    void schedule() noexcept
    {
        auto const end = state_.holder()->deadline();
        renewer_->put(timer_, idle() ? state_.next_look() : end, end);
    }

private:
    /// Returns: whether no request for more time is under way.
    [[nodiscard]] bool idle() const noexcept { return !renewing_ && extending_ == 0; }

    void begin_renewal(std::shared_ptr<scheduled> of) noexcept
    try {
        auto made = std::make_unique<renewal>(store_->extend(key_, state_.token(), state_.ttl()), std::move(of),
                                              renewer_, timer_);
        made->asks(state_.ask(state_.ttl()));
        renewing_ = std::move(made);
        renewer_->begin_renewal();
        renewing_->start();
    } catch (...) {  // the deadline stands, and the renewal is tried again before it
        if (std::exchange(renewing_, nullptr)) renewer_->end_renewal();
        state_.retry_later();
    }

    std::shared_ptr<lock_store> const store_;
    std::shared_ptr<detail::renewer> const renewer_;
    shared_key const key_;
    lease_state state_;
    std::unique_ptr<renewal> renewing_;
    unsigned extending_ = 0;
    renewal_record record_;
    detail::renewer::timer timer_;
    bool prepared_ = false;
};

}  // namespace holdfast::detail
