// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/election_observer_options.hpp>
#include <holdfast/adapters/observation.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/owned_thread.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/mutex.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// Says who leads: which client holds the lock of an election. It need not stand for election itself.
///
///     holdfast::election_observer seen{redis, "reports/leader",
///                                      {.on_change = [](std::optional<holdfast::lock_holder> const& leader) {
///                                          log(leader ? leader->label : "no leader");
///                                      }}};
///
/// - It asks the store each `interval`. A change is told no later than one `interval`, and the time that the question
///   and an earlier call take, after it. Of changes between two questions only the last is told.
/// - That the store cannot be asked is no change: what was told last stands, and `on_error` is told.
/// - A leader leads until the store says otherwise. One that has resigned is shown until its `on_deposed` has returned
///   and the store has taken the lock back; one that has died until its lease ends. A leader whose term is over by its
///   own clock may be shown for a moment more: only its `election::still_leader()`, and the fencing token, say whether
///   a write counts.
/// - What is known of the leader is what its client tells the store; see `lock_holder`. On Redis, and with a Redlock,
///   it tells nothing without its option `name_holder`. A leader that is not known is seen to change, too. Two
///   candidates of one client can hand the lease on without a request: they are one leader.
///
/// An observer has one thread, which asks and calls the functions, one after the other.
class election_observer {
public:
    /// Effects: begins to observe the lock `name` of `in`, one of the usual kind.
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used; and if memory or a thread is missing.
    election_observer(store const& in, std::string_view name, election_observer_options options = {})
        : election_observer{
              [from = in.locks_, name = std::string{name}] { return from->inspect(name, report_of::holder); }, name,
              std::move(options)}
    {
    }

    /// As above, for any lock, which must outlive the observer.
    explicit election_observer(mutex const& lock, election_observer_options options = {})
        : election_observer{[object = lock.object_.get()] { return object->inspect(); }, lock.name(),
                            std::move(options)}
    {
    }

    election_observer(election_observer const&) = delete;
    election_observer& operator=(election_observer const&) = delete;

    /// Effects: ends the observation. Waits for the function that runs, or for a question that is under way: one
    /// operation timeout at most, and the time for a connection if there is none. No function is called after it. One
    /// of the functions may destroy the observer: then that one is not waited for.
    ~election_observer()
    {
        if (!thread_.in_child()) observation_->stop();
        thread_.end();
    }

    /// Effects: asks the store, and waits for the answer. Returns: who leads now; nothing if there is no leader.
    /// Throws: as `store::holder`.
    [[nodiscard]] std::optional<lock_holder> leader() const { return observation_->ask().holder; }
    /// As above; nothing if `ec` is an error.
    [[nodiscard]] std::optional<lock_holder> leader(std::error_code& ec) const noexcept
    {
        return detail::without_throwing(ec, [&] { return leader(); });
    }

private:
    election_observer(std::function<lock_report()> ask, std::string_view name, election_observer_options options)
    {
        check_name(name);
        check_options(name, options);
        observation_ = std::make_shared<detail::observation>(std::move(ask), std::string{name}, std::move(options));
        thread_.start([one = observation_] { one->run(); });
    }

    std::shared_ptr<detail::observation> observation_;
    detail::owned_thread<> thread_;
};

}  // namespace holdfast
