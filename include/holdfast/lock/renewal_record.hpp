// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/failure_reports.hpp>
#include <holdfast/lock/lease_state.hpp>

#include <memory>
#include <new>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The outcome of the renewals of one lease, and what it says about a loss. Guarded by the queue's mutex.
class renewal_record {
public:
    explicit renewal_record(failure_reports& all) noexcept : all_{all} {}
    renewal_record(renewal_record const&) = delete;
    renewal_record& operator=(renewal_record const&) = delete;
    ~renewal_record() { end(); }

    /// Effects: notes the outcome of a renewal.
    void note(result<boot_clock::time_point> const& got) noexcept
    {
        all_.count(counted_, !got);
        last_.reset();
        if (got) return;
        try {
            last_ = std::make_unique<failure>(got.why());
        } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): that it failed says enough
        }
    }

    /// Effects: notes that the lease is over.
    void end() noexcept
    {
        all_.count(counted_, false);
        last_.reset();
    }

    /// Returns: the failure to report for the loss of the lease of `t`.
    [[nodiscard]] failure explain(loss how, lease_state const& t) const noexcept
    {
        failure why{make_error_code(errc::lease_lost), {}};
        try {
            why.detail = words(how, t);
            if (counted_ && last_) why.server = last_->server;
        } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): the loss is told without them
        }
        return why;
    }

private:
    [[nodiscard]] std::string words(loss how, lease_state const& t) const
    {
        auto const ms = [](auto d) { return std::to_string(d.count()) + " ms"; };
        switch (how) {
        case loss::session: return "the store ended the session that held it";
        case loss::taken: return "the store does not have it as ours any more, it expired there or was deleted";
        case loss::late: return "the answer to its renewal came too late";
        case loss::deadline: break;
        }
        if (t.held_for_most()) return "held for max_hold, " + ms(*t.options()->max_hold) + ", and not renewed since";
        if (!t.options()->renew) return "its ttl, " + ms(t.ttl()) + ", is over, and renew is off";
        if (!counted_) return "not renewed in time; was this process stopped?";
        if (!last_) return "not renewed in time; its last renewal failed";
        auto const& what = last_->detail;
        return "not renewed in time; " + (what.empty() ? "renewal" : what) + ": " + last_->code.message();
    }

    failure_reports& all_;
    std::unique_ptr<failure> last_;  // the last failure; null: no memory for it
    bool counted_ = false;           // the last renewal failed
};

}  // namespace holdfast::detail
