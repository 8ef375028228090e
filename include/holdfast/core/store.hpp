// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/joint_object.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/lock_stats.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/shared_object.hpp>
#include <holdfast/core/token.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI {

class election_observer;
class mutex;
class semaphore;
class shared_mutex;

/// Is told what happens to the locks of a client.
using lock_observer = std::function<void(lock_event const&)>;

namespace detail {

class announcer;

/// Returns: the error of a lock that was made without what operators ask for.
[[nodiscard]] inline error no_operators()
{
    return {errc::misconfigured, "this lock cannot be inspected, broken or asked for"};
}

/// What a `mutex` calls: it implements the members of `mutex` for one store. Asynchronous calls may keep it after the
/// `mutex` is destroyed; then it is closed.
class lock_object : public async_object, public async_source, public std::enable_shared_from_this<lock_object> {
public:
    /// Returns: this, which stands for each of its holds.
    [[nodiscard]] std::shared_ptr<async_object> to_lock() override { return shared_from_this(); }
    [[nodiscard]] std::shared_ptr<async_object> to_unlock(holdfast::lease& hold) override
    {
        hold = lease();
        return shared_from_this();
    }

    virtual bool lock(patience const& p, std::stop_token const& stop) = 0;
    /// Returns: for how long `lock` without a deadline waits out an outage.
    [[nodiscard]] virtual std::chrono::milliseconds unavailable_after() const noexcept { return {}; }
    virtual void unlock() noexcept = 0;
    virtual void unlock(std::error_code& ec) noexcept = 0;

    /// Effects: tries once to take the locks of `all`, of which this is the first, by one request: all or none. If one
    /// of them cannot be asked for so, nothing is asked. Returns: `refused` only if `p` leaves no time for another
    /// attempt.
    /// Throws: `unavailable`, if `p` leaves no time for another attempt; and as `lock`.
    virtual joint_outcome try_lock_all(std::vector<lock_object*> const& /*all*/, patience const& /*p*/,
                                       std::stop_token const& /*stop*/)
    {
        return {};
    }

    /// Returns: the hold of a `multi_mutex` of the locks of `all`, of which this is the first. They are taken in their
    /// order.
    // NOLINTNEXTLINE(performance-unnecessary-value-param): an implementation keeps them
    [[nodiscard]] virtual std::shared_ptr<joint_object> make_joint(std::vector<std::shared_ptr<lock_object>> /*all*/,
                                                                   std::string const& /*name*/)
    {
        throw error{errc::misconfigured, "this lock cannot be taken together with others"};
    }

    /// Effects: reports that an unlock has failed with `why`, as `unlock()` does.
    virtual void tell_unlock_failed(failure const& /*why*/) noexcept {}

    virtual bool extend(std::chrono::milliseconds ttl, std::error_code& ec) = 0;
    virtual void extend(std::chrono::milliseconds ttl) = 0;
    [[nodiscard]] virtual std::string const& name() const noexcept = 0;

    /// Returns: which lock it is; see `lock_store::address_of`.
    [[nodiscard]] virtual std::string address() const = 0;

    /// Returns: the same for all objects of one client, whose locks may be taken together; null: they may not.
    [[nodiscard]] virtual void const* client() const noexcept { return nullptr; }

    /// Returns: what calls the user's functions in threads of the client; null: the caller does.
    [[nodiscard]] virtual announcer* calls() noexcept { return nullptr; }

    /// Returns: the owner token of its hold; nothing if it has none.
    [[nodiscard]] virtual std::optional<owner_token> held_token() const { return std::nullopt; }

    // For operators; see the members of `mutex`.
    [[nodiscard]] virtual lock_report inspect() { throw no_operators(); }
    virtual bool force_release() { throw no_operators(); }
    virtual bool request_release() { throw no_operators(); }

    /// Effects: as `unlock`, since the `mutex` is destroyed. Cancels what waits, and what begins after this.
    virtual void close() noexcept = 0;
};

/// Makes lock objects: all that a store handle knows of its store.
class lock_factory {
public:
    lock_factory() = default;
    lock_factory(lock_factory const&) = delete;
    lock_factory& operator=(lock_factory const&) = delete;
    virtual ~lock_factory() = default;

    [[nodiscard]] virtual std::shared_ptr<lock_object> make_mutex(std::string_view name, lock_options options) = 0;

    [[nodiscard]] virtual shared_sides make_shared_mutex(std::string_view name, lock_options const& options) = 0;
    [[nodiscard]] virtual std::shared_ptr<semaphore_object> make_semaphore(std::string_view name, std::ptrdiff_t max,
                                                                           lock_options const& options) = 0;

    [[nodiscard]] virtual lock_stats stats() const = 0;
    virtual void observe(lock_observer f) = 0;

    // For operators; see the members of `store`.
    [[nodiscard]] virtual lock_report inspect(std::string_view name, report_of what) = 0;
    virtual bool force_release(std::string_view name) = 0;
    virtual bool request_release(std::string_view name) = 0;
    [[nodiscard]] virtual std::vector<std::string> list(std::string_view prefix) = 0;
};

/// Returns: what `f()` returns, or nothing of its type if that throws; `ec` says why.
template <class F>
[[nodiscard]] auto without_throwing(std::error_code& ec, F const& f) noexcept -> decltype(f())
try {
    ec.clear();
    return f();
} catch (...) {
    ec = current_exception_code();
    return {};
}

/// Returns: the waiters of `all`. Throws: `error` (`misconfigured`) if the store does not know them.
[[nodiscard]] inline std::vector<lock_contender> contenders_of(lock_report all, std::string_view name)
{
    if (!all.knows_waiters)
        throw error_of(name, {make_error_code(errc::misconfigured),
                              "its store does not know which clients wait; holder() says about how many"});
    if (all.holder) all.waiters.insert(all.waiters.begin(), std::move(*all.holder));
    return std::move(all.waiters);
}

}  // namespace detail

/// Where locks are kept: one Redis, the masters of a Redlock, a ZooKeeper ensemble, memory. `redis::client`,
/// `redlock::masters`, `zookeeper::session` and `memory::store` are stores. A handle that is cheap to copy; copies
/// share connections, thread and queues. Thread-safe. Locks may outlive it. The client ends with the last handle and
/// the last lock. Its end waits until what is under way has ended, for one operation timeout at most, and until the
/// user functions that its threads have called return, unless one of this or another client ends it: two could wait for
/// each other.
class store {
public:
    /// Effects: makes a handle from the factory of its locks. For authors of a new store; see `lock_store`.
    explicit store(std::shared_ptr<detail::lock_factory> locks) noexcept : locks_{std::move(locks)} {}

    /// Returns: what the locks of this client have done so far. Each number is right for itself; what happens meanwhile
    /// may be in one and not in another.
    [[nodiscard]] lock_stats stats() const { return locks_->stats(); }

    /// Effects: `f` is called with what happens to the locks of this client from now on, in place of an earlier one; an
    /// empty one ends that. It is called with no lock of the library held: by the call that acquires or releases, or,
    /// for what happens in the background, by a thread that is started for it, one event at a time, which may be after
    /// later ones of a call. A slow one delays that call. While it is told `waiting`, the call may be granted the lock:
    /// that keeps all others waiting, of other clients, too, for up to the ttl. When it is told `attempted` or
    /// `waiting`, it must not ask for that lock. Must not throw: that ends the program. It may be called once more
    /// after it was replaced, and not after the client has ended. An event of the background is dropped if there is no
    /// memory or thread to tell it, if 10,000 wait already, or if the client ends while it waits.
    void observe(lock_observer f) { locks_->observe(std::move(f)); }

    // For operators. Each of these asks the servers and waits for the answer; `name` is that of a lock of the usual
    // kind. The forms with `ec` return nothing, `false` or an empty list if `ec` is an error.
    // Throw: `error`: `unavailable` if no quorum could be asked, or its answers do not decide; `outcome_unknown` if the
    // answer to a `force_unlock` was lost, or only a minority of the servers has done it; `misconfigured`: a name, or a
    // right that is missing, or the store cannot do that.

    /// Returns: who has the lock `name`; nothing if it is free.
    [[nodiscard]] std::optional<lock_holder> holder(std::string_view name) const
    {
        return locks_->inspect(name, report_of::holder).holder;
    }
    /// As above.
    [[nodiscard]] std::optional<lock_holder> holder(std::string_view name, std::error_code& ec) const noexcept
    {
        return detail::without_throwing(ec, [&] { return holder(name); });
    }

    /// Returns: the holder of the lock `name`, and those that wait for it, in the order in which they get it. Throws:
    /// also if the store does not know who waits, as Redis does not.
    [[nodiscard]] std::vector<lock_contender> contenders(std::string_view name) const
    {
        return detail::contenders_of(locks_->inspect(name, report_of::contenders), name);
    }
    /// As above.
    [[nodiscard]] std::vector<lock_contender> contenders(std::string_view name, std::error_code& ec) const noexcept
    {
        return detail::without_throwing(ec, [&] { return contenders(name); });
    }

    /// Returns: the names of the locks that begin with `prefix` and are held, in order, as far as the store knows them.
    /// Slow: the store's page says what it costs.
    [[nodiscard]] std::vector<std::string> list(std::string_view prefix = {}) const { return locks_->list(prefix); }
    /// As above.
    [[nodiscard]] std::vector<std::string> list(std::string_view prefix, std::error_code& ec) const noexcept
    {
        return detail::without_throwing(ec, [&] { return list(prefix); });
    }

    /// Effects: breaks the lock `name`: takes it from the client that has it now. The next waiter is called; its
    /// fencing token is greater. The former holder goes on until its next renewal, which announces its loss, or until
    /// its lease ends: only the token protects the resource until then. Returns: whether it was held.
    bool force_unlock(std::string_view name) const { return locks_->force_release(name); }
    /// As above.
    bool force_unlock(std::string_view name, std::error_code& ec) const noexcept
    {
        return detail::without_throwing(ec, [&] { return force_unlock(name); });
    }

    /// Effects: asks the holder of the lock `name` to release it: it is told by `lease::release_requested()` and an
    /// event (`observe`), with its next renewal at the latest. Returns: whether the lock is held.
    bool request_release(std::string_view name) const { return locks_->request_release(name); }
    /// As above.
    bool request_release(std::string_view name, std::error_code& ec) const noexcept
    {
        return detail::without_throwing(ec, [&] { return request_release(name); });
    }

private:
    friend class election_observer;
    friend class mutex;
    friend class semaphore;
    friend class shared_mutex;

    std::shared_ptr<detail::lock_factory> locks_;
};

}  // namespace holdfast
