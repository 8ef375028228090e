// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/election_observer_options.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/report.hpp>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// What an election observer does in its thread. It may outlive the observer, if one of the user's functions destroyed
/// that.
///
/// | the store says              | before that                    | told                        |
/// |-----------------------------|--------------------------------|-----------------------------|
/// | there is a leader, or none  | nothing                        | `on_change`                 |
/// | the same again              | the same                       | -                           |
/// | another lease, or none      | another one, or none           | `on_change`                 |
/// | nothing: it cannot be asked | an answer, or another failure  | `on_error`                  |
/// | nothing: it cannot be asked | a failure with this code       | -                           |
/// | any of the answers          | a failure                      | `on_error`, over; as above  |
class observation {
public:
    observation(std::function<lock_report()> ask, std::string name, election_observer_options options)
        : ask_{std::move(ask)}, name_{std::move(name)}, options_{std::move(options)}
    {
    }

    /// Effects: observes until `stop`.
    void run() noexcept
    {
        while (!stopped()) {
            look();
            auto const again = saturating_add(boot_clock::now(), options_.interval);
            while (!stopped() && boot_clock::now() < again) parker_.park_until(again);
        }
    }

    /// Effects: `run` ends soon; a function that does not run yet is not called any more.
    void stop() noexcept
    {
        stopped_.store(true);
        parker_.unpark();
    }

    /// Returns: what the store says now. Throws: `error`.
    [[nodiscard]] lock_report ask() const { return ask_(); }

private:
    [[nodiscard]] bool stopped() const noexcept { return stopped_.load(); }

    void look() noexcept
    try {
        auto const now = ask();
        auto lease = id_of(now);
        recover();
        if (stopped() || seen_ == lease) return;
        seen_ = std::move(lease);
        tell(now.holder);
    } catch (error const& e) {
        if (fails(e.code())) report(options_.on_error, e);
    } catch (...) {
        auto const why = current_exception_code();
        if (fails(why)) report(options_.on_error, name_, {why, "observer"});
    }

    /// An exception of the user's is not taken for that of a question.
    void tell(std::optional<lock_holder> const& leader) const noexcept
    {
        if (options_.on_change) options_.on_change(leader);
    }

    /// Effects: notes a failure. Returns: whether it is to be reported.
    [[nodiscard]] bool fails(std::error_code why) noexcept
    {
        if (stopped() || failing_ == why) return false;
        failing_ = why;
        return true;
    }

    void recover()
    {
        if (stopped() || !failing_) return;
        auto const what = error{failing_,
                                "lock " + holdfast::quoted(name_) + ": its store says again who leads; this is over",
                                {.lock_name = name_, .over = true}};
        failing_.clear();
        report(options_.on_error, what);
    }

    /// Returns: what tells the present lease from others; an empty text if there is none.
    [[nodiscard]] static std::string id_of(lock_report const& now)
    {
        if (!now.holder) return {};
        if (!now.lease.empty()) return "lease " + now.lease;
        auto const& who = *now.holder;
        return "holder " + std::to_string(who.fencing_token) + ' ' + std::to_string(who.pid) + ' ' + who.host + ' ' +
               who.label;
    }

    std::function<lock_report()> const ask_;
    std::string const name_;
    election_observer_options const options_;
    std::optional<std::string> seen_;  // what was told last
    std::error_code failing_;          // what was reported last, and is not over
    parker parker_;
    std::atomic<bool> stopped_{false};
};

}  // namespace holdfast::detail
