// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/announce.hpp>
#include <holdfast/lock/announcer.hpp>
#include <holdfast/lock/failure_reports.hpp>
#include <holdfast/lock/renewal.hpp>
#include <holdfast/lock/waiting_line.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <system_error>

namespace holdfast::detail {

/// Returns: whether clients other than this one wait for the lock, as far as its release learnt.
template <class Release>
[[nodiscard]] bool others_wait(Release const& released) noexcept
{
    if constexpr (requires { released.others_wait(); })
        return released.others_wait();
    else
        return false;
}

/// Returns: `code`, which a release ended with, and what more it has to say.
template <class Release>
[[nodiscard]] failure explained(Release const& released, std::error_code code) noexcept
{
    if constexpr (requires { released.why(); }) try {
            if (code) return released.why();
        } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): the code is what counts
        }
    return {code, {}};
}

/// Since when the store has been unavailable: an outage that one thread in line waited out is not waited out again by each of those behind it.
class outage {
public:
    /// Returns: since when `one` has seen nothing but that.
    [[nodiscard]] boot_clock::time_point seen_by(waiter const& one) const noexcept
    {
        return since_ ? std::max(one.since, *since_) : boot_clock::now();
    }

    /// Returns: whether there has been nothing but that since `one` came. Requires: somebody asks, which was noted.
    [[nodiscard]] bool is_all_for(waiter const& one) const noexcept
    {
        auto const since = asks_->unavailable_since(since_);
        return since && *since <= one.since;
    }

    /// Effects: notes whose turn it is. What was seen before one who did not have to wait for that may be long ago.
    void asked_by(waiter const& one) noexcept
    {
        asks_ = one.request;
        if (!one.was_in_line()) since_.reset();
    }

    /// Effects: notes what came of an attempt; `since` is since when, where that is this.
    void note(std::error_code outcome, boot_clock::time_point since) noexcept
    {
        since_.reset();
        if (outcome == errc::unavailable) since_ = since;
    }

private:
    std::optional<boot_clock::time_point> since_;
    pending_request const* asks_ = nullptr;  // dangles when nobody asks any more
};

/// What a thread in line asks of the store when its turn has come.
template <Backend B>
class attempt final : public pending_request {
public:
    attempt(B& backend, typename B::key const& key, lock_options const& options, boot_clock::time_point deadline) noexcept
        : backend_{backend}, key_{key}, options_{options}, deadline_{deadline}
    {
    }

    attempt(attempt const&) = delete;
    attempt& operator=(attempt const&) = delete;

    [[nodiscard]] boot_clock::time_point deadline() const noexcept { return deadline_; }

    /// Returns: whether it is too late to begin it.
    [[nodiscard]] bool late() const noexcept { return boot_clock::now() >= deadline_; }

    /// Returns: since when the store has been unavailable, where that is what came of it.
    [[nodiscard]] boot_clock::time_point unavailable_since_then() const noexcept
    {
        return std::max(asked_since_, boot_clock::now() - patience_);  // it may have been answered for a long while before
    }

    /// Effects: sends the request, for a lease that is passed on at most `handoffs` times. The store has been unavailable since `asked_since`,
    /// as far as is known.
    void begin(boot_clock::time_point asked_since, unsigned handoffs)
    {
        asked_since_ = asked_since;
        auto unavailable_at = deadline_;  // who has one is told only where nobody was ever asked
        if (deadline_ == boot_clock::time_point::max()) {
            unavailable_at = saturating_add(asked_since, options_.unavailable_after);
            if (unavailable_at != boot_clock::time_point::max()) patience_ = options_.unavailable_after;
        }
        operation_.emplace(backend_, key_,
                           acquire_request{.ttl = options_.ttl,
                                           .fences = options_.fencing ? handoffs + 1 : 0,
                                           .retry = options_.retry,
                                           .deadline = deadline_,
                                           .unavailable_at = unavailable_at,
                                           .unavailable_after = patience_});
        operation_->start();
        begun_.store(true, std::memory_order_release);
    }

    [[nodiscard]] std::optional<boot_clock::time_point>
    unavailable_since(std::optional<boot_clock::time_point> before) const noexcept override
    {
        if (!begun_.load(std::memory_order_acquire)) return before;
        if constexpr (requires { operation_->unavailable(); }) {
            auto const known = operation_->unavailable();
            if (!known) return before;
            if (*known) return asked_since_;
        }
        return std::nullopt;
    }

    /// Effects: waits for the answer; `reports` is told, also while it waits, that what stands in the way of the lock `name` is no lock. The hook is
    /// called in a thread of `calls`: it may take its time, and may ask for the lock. Requires: `begin` has returned.
    [[nodiscard]] result<grant> outcome(std::string_view name, std::stop_token const& stop, failure_reports& reports, announcer& calls,
                                        std::shared_ptr<lock_options const> const& options)
    {
        std::stop_callback const cancel_on_stop{stop, [&]() noexcept { operation_->cancel(); }};
        boot_clock::duration pause = std::chrono::seconds{1};
        while (!operation_->wait_until(saturating_add(boot_clock::now(), pause))) {
            tell_obstacle(reports, name, calls, options);
            pause = std::min<boot_clock::duration>(2 * pause, std::chrono::minutes{1});
        }
        tell_obstacle(reports, name, calls, options);
        return operation_->outcome();
    }

private:
    void tell_obstacle(failure_reports& reports, std::string_view name, announcer& calls,
                       std::shared_ptr<lock_options const> const& options) const
    {
        if constexpr (requires { operation_->obstacle(); })
            if (options->on_error)
                if (auto const what = operation_->obstacle())
                    tell(&calls, options, [&](auto const& told) { reports.obstructed(told, name, *what); });
    }

    B& backend_;
    typename B::key const& key_;
    lock_options const& options_;
    boot_clock::time_point deadline_;
    boot_clock::time_point asked_since_{};
    boot_clock::duration patience_ = boot_clock::duration::max();  // with an outage, once it was answered
    std::optional<typename B::acquire_operation> operation_;
    std::atomic<bool> begun_{false};  // others may look at the operation
};

}  // namespace holdfast::detail
