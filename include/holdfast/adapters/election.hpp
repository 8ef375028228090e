// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/candidate.hpp>
#include <holdfast/adapters/election_observer.hpp>
#include <holdfast/adapters/election_observer_options.hpp>
#include <holdfast/adapters/election_options.hpp>
#include <holdfast/adapters/term.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/owned_thread.hpp>
#include <holdfast/mutex.hpp>

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// A candidate for being the leader of a fleet: it campaigns in the background for as long as it lives. The holder of
/// the lock is the leader.
///
///     holdfast::election leader{orders, {.on_elected = [](holdfast::term const& t) { work(t.stop_token()); },
///                                        .on_deposed = [] { clean_up(); }}};
///
/// - For each term, `on_elected` is called, then `on_deposed` when the term is over and `on_elected` has returned. They
///   never run at the same time.
/// - A term is over when its lease has no more than `stop_margin` left, by the local clock and without a message; when
///   the lease is lost otherwise; at `resign()`; and at the end of the election. `max_hold` of the lock limits a term.
/// - The lock is kept, and renewed, until `on_deposed` has returned: another candidate is elected after that, or when
///   the lease ends. A key that is deleted at the server is free at once; the leader learns of it with its next
///   renewal, a third of the ttl later at most. The number of the term, checked at the resource, covers that.
/// - A failed campaign is reported to `on_error`. The candidate goes on after a pause.
///
/// The lock must outlive the election, and is not to be used otherwise meanwhile.
///
/// A candidate has one thread, which waits for the lock, watches the lease and calls `on_deposed` and `on_error`;
/// `on_elected` has another one while it runs. A hundred candidates in one process are a hundred threads: for so many,
/// use `async_lock` and `lost_token()`, which need none. They cannot end a term `stop_margin` early, nor wait for
/// `on_elected`.
///
/// Source: the rules of Kubernetes' leader election and etcd's `concurrency.Election`, with a fencing token for a term.
template <Lock M>
class election {
public:
    /// Effects: begins to campaign. Throws: `error` (`misconfigured`) if an option cannot be used; and if memory or a
    /// thread is missing.
    explicit election(M& lock, election_options options = {}) : lock_{lock}
    {
        std::string name;
        if constexpr (requires { std::string{lock.name()}; }) name = lock.name();
        check_options(name, options);
        candidate_ = std::make_shared<detail::candidate<M>>(lock, std::move(name), std::move(options));
        thread_.start([one = candidate_] { one->run(); });
    }

    election(election const&) = delete;
    election& operator=(election const&) = delete;

    /// Effects: ends the campaign or the term: `on_deposed` is called, the lock given back. Waits for that: for the
    /// functions that run, and for one operation timeout at most. None is called after it. One of these functions may
    /// destroy the election, and so may a callback of the term's stop token: then functions that run are not waited
    /// for, but callbacks of the stop token are, unless one of them is the caller; `on_deposed` is not called any more;
    /// the lock is given back before this returns.
    ~election()
    {
        if (!thread_.in_child()) {
            candidate_->stop();
            if (thread_.here()) candidate_->give_back();
        }
        thread_.end();
    }

    /// Effects: the present term is over, if there is one. Returns at once; `on_deposed` is called, and the lock given
    /// back, when `on_elected` has returned. After `pause` the candidate campaigns again. May be repeated.
    /// Returns: whether there was a term.
    bool resign() noexcept { return candidate_->resign(); }

    /// Returns: whether this candidate is the leader: `term().still_held()`.
    [[nodiscard]] bool still_leader() const noexcept { return term().still_held(); }

    /// Returns: the present term, or the last one; one that is over if there was none.
    [[nodiscard]] holdfast::term term() const noexcept { return holdfast::term{candidate_->present()}; }

    /// Effects: asks the store, and waits for the answer. Returns: who leads, this candidate or another one; nothing if
    /// there is no leader. Throws: as `mutex::holder`.
    [[nodiscard]] std::optional<lock_holder> leader() const
        requires std::derived_from<M, mutex>
    {
        return lock_.holder();
    }
    /// As above; nothing if `ec` is an error.
    [[nodiscard]] std::optional<lock_holder> leader(std::error_code& ec) const noexcept
        requires std::derived_from<M, mutex>
    {
        return lock_.holder(ec);
    }

    /// Effects: begins to observe who leads. Returns: the observer, which must not outlive the lock; it may outlive the
    /// election. Throws: as its constructor.
    [[nodiscard]] election_observer observe(election_observer_options options) const
        requires std::derived_from<M, mutex>
    {
        return election_observer{lock_, std::move(options)};
    }

private:
    M const& lock_;
    std::shared_ptr<detail::candidate<M>> candidate_;
    detail::owned_thread<typename detail::candidate<M>::threads> thread_;
};

/// An election with a lock of the type `M`.
template <Lock M>
election(M&, election_options = {}) -> election<M>;

}  // namespace holdfast
