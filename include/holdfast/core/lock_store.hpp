// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/acquire_request.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/lock_key.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/semaphore_slot.hpp>
#include <holdfast/core/token.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI {

/// Takes a lock for a fresh owner token. Failures: `timed_out` (the deadline passed while others held it, also for a
/// single attempt), `std::errc::operation_canceled` after `cancel()`, `unavailable`, `misconfigured`. After a failure
/// nothing of ours is left, or it expires with its ttl.
class pending_acquire : public operation<result<grant>> {
public:
    /// Returns: whether it has tried to ask and could not so far; nothing if that is not known yet. May be called from
    /// any thread, with locks held, after `start`.
    [[nodiscard]] virtual std::optional<bool> unavailable() const noexcept { return std::nullopt; }

    /// Returns: the obstacle, if it is something other than a lock; nothing if it may be a lock. May be called from any
    /// thread after `start`.
    [[nodiscard]] virtual std::optional<failure> obstacle() const { return std::nullopt; }
};

/// One of the locks that are asked for together.
using acquire_claim = std::pair<shared_key, acquire_request>;

/// Takes several locks in one attempt, all or none. Yields no error, or why not, as `pending_acquire`.
class pending_acquire_all : public operation<failure> {
public:
    /// Returns: what the claim at `place` got. Requires: `outcome()` is no error.
    [[nodiscard]] virtual grant const& granted(std::size_t place) const noexcept = 0;
    /// Returns: the place of a claim that was refused. Requires: `outcome()` is `timed_out`.
    [[nodiscard]] virtual std::size_t blocker() const noexcept = 0;
};

/// Compare-and-extend: yields the new `valid_until`, counted from before its first byte was sent. Fails with
/// `lease_lost` only if the store said that the lock is not the token's; otherwise the old deadline stands. After
/// `cancel()` nothing more is sent, and the result does not count.
class pending_extend : public operation<result<boot_clock::time_point>> {
public:
    /// Returns: whether the store said that the holder is asked to release the lock. Requires: `done` was called.
    [[nodiscard]] virtual bool release_requested() const noexcept { return false; }
};

/// Compare-and-delete. Yields no error, `not_owner`, or why the outcome is not known. Made by `release`, or lent for a
/// while (`lock_store::lend_release`), so that giving it back needs no memory: `start` does not throw.
/// `cancel()` has no effect.
class pending_release : public operation<failure> {
public:
    /// Effects: sets the lease that `start` gives back. Called when that is granted, and again when it passes to
    /// another holder, with locks held; `start` may come hours later, or never.
    virtual void bind(owner_token const& token) noexcept = 0;

    /// Returns: whether other clients are known to wait for the lock. They are given time to ask for it. Requires:
    /// `done` was called.
    [[nodiscard]] virtual bool others_wait() const noexcept { return false; }
};

/// Is lent a release.
class release_user {
public:
    /// Effects: uses `one`, which was not started; if it starts it, it waits until it has ended.
    virtual void use(pending_release& one) noexcept = 0;

protected:
    ~release_user() = default;
};

/// Asks who has a lock. Fails with `unavailable` if no quorum could be asked, or what it says is not decided.
using pending_inspection = operation<result<lock_report>>;

/// Asks for something of a lock or its holder. Yields whether the lock was held. Fails with `unavailable`,
/// `outcome_unknown` or `misconfigured`.
using pending_request = operation<result<bool>>;

/// Asks for the names of the locks that are held. Fails as `pending_inspection`.
using pending_list = operation<result<std::vector<std::string>>>;
/// Asks how many locks are held. Fails as `pending_inspection`.
using pending_count = operation<result<std::size_t>>;

/// What the author of a new store implements. `holdfast::mutex` works with any store.
///
/// - Operations on one key take effect in the order in which they were started, as far as they reach the store.
/// - Fencing tokens strictly increase from grant to grant of one name; the reserved ones overlap with no others.
/// - Members may be called from any thread. The hooks at the end have defaults for a store that does not need them.
class lock_store {
public:
    lock_store() = default;
    lock_store(lock_store const&) = delete;
    lock_store& operator=(lock_store const&) = delete;
    virtual ~lock_store() = default;

    /// Returns: the key of the lock `name`; no I/O. Throws: `error` (`misconfigured`) if it cannot have that name.
    [[nodiscard]] virtual shared_key make_key(std::string_view name) const = 0;

    /// Returns: the key of the `shared_mutex` of that name, for one of its modes; no I/O. What is done with it is that
    /// mode's: an exclusive lease is alone, and shared ones are beside each other, each with a token and an end of its
    /// own. The fencing token of an exclusive lease is greater than those of all leases before, and that of a shared
    /// one greater than those of all exclusive leases before; shared leases may have the same one. A lease of one mode
    /// may be asked for `beside` one of the other. Requires: `mode` is exclusive or shared. Throws: `error`
    /// (`misconfigured`) if the lock cannot have that name; by default, as the store has no such lock.
    [[nodiscard]] virtual shared_key make_shared_key(std::string_view name, access /*mode*/) const
    {
        throw detail::error_of(name, {make_error_code(errc::misconfigured), "this store has no shared_mutex"});
    }

    /// Returns: the key of a slot of a semaphore; no I/O. It is granted only while no client uses the semaphore with
    /// another number of permits: that is `misconfigured`. By default no number is compared. Throws: as `make_key`.
    [[nodiscard]] virtual shared_key make_slot_key(semaphore_slot const& of) { return make_key(of.lock_name()); }
    /// Returns: what says that a client uses the semaphore of `of`, until it is destroyed; by default nothing.
    [[nodiscard]] virtual std::shared_ptr<void const> use_semaphore(semaphore_slot const& /*of*/) { return {}; }

    /// Returns: a change of the number of permits in use to that of `slot`, which is one of a semaphore. It is kept for
    /// `ttl` at least, and as long as there are leases. It yields `true`, and may be repeated. Null if no number is
    /// kept, as by default.
    [[nodiscard]] virtual std::unique_ptr<operation<result<bool>>> resize(shared_key const& /*slot*/,
                                                                          std::chrono::milliseconds /*ttl*/)
    {
        return {};
    }

    /// Returns: an acquire of `key` that was not started.
    [[nodiscard]] virtual std::unique_ptr<pending_acquire> acquire(shared_key const& key,
                                                                   acquire_request const& request) = 0;
    /// Returns: whether `key` can be asked for together with others, by `acquire_all`.
    [[nodiscard]] virtual bool joins(lock_key const& /*key*/) const noexcept { return false; }
    /// Returns: an acquire of `claims` that was not started.
    [[nodiscard]] virtual std::unique_ptr<pending_acquire_all> acquire_all(std::vector<acquire_claim> const& claims)
    {
        throw cannot(claims.front().first->name(), "take several locks at once");
    }
    /// Returns: an extension to `ttl` from its start on, of the lease of `token`, that was not started.
    [[nodiscard]] virtual std::unique_ptr<pending_extend> extend(shared_key const& key, owner_token const& token,
                                                                 std::chrono::milliseconds ttl) = 0;
    /// Returns: a release of `key` that was not started; see `pending_release::bind`.
    [[nodiscard]] virtual std::unique_ptr<pending_release> release(shared_key const& key) = 0;
    /// Effects: lends `to` a release of `key` that needs no memory but the caller's stack.
    virtual void lend_release(shared_key const& key, release_user& to) noexcept = 0;

    /// Effects: the caller, which waits for an operation on `key`, or, if that is null, for one of `list`, lends its
    /// thread until `who` is signalled, or `until`. It may serve other operations meanwhile. Returns: the signals of
    /// `who`; 0 if there were none.
    virtual std::uint32_t drive(shared_key const& /*key*/, detail::parker& who, boot_clock::time_point until) noexcept
    {
        return who.park_until(until);
    }

    /// Effects: what was sent for `key` before has left the process when this returns, unless the system takes no more.
    virtual void flush(shared_key const& key) noexcept
    {
        detail::parker caller;
        drive(key, caller, boot_clock::now());
    }

    /// Effects: the client's own thread serves, for a while, the operations that no caller serves by `drive`; it
    /// returns when the descriptor `alarm` is readable. Returns: whether it did; false: the operations of this store
    /// need no such service.
    virtual bool serve(int /*alarm*/) { return false; }

    /// Effects: notes that the client's own thread serves no more until it calls `serve` again.
    virtual void rest() noexcept {}

    /// Effects: keeps `f`, and calls it when an operation has ended and the store has to go on with something that no
    /// caller waits for, until `finish` says that nothing is left. `f` may be called with the store's locks held.
    virtual void on_unfinished(std::function<void()> /*f*/) {}  // NOLINT(performance-unnecessary-value-param): as below
    /// Effects: goes on with that. Returns: whether something is left; then the client's own thread, which calls this,
    /// serves, and calls it again after a pause.
    virtual bool finish() noexcept { return false; }

    /// Effects: keeps `f`, and calls it with no lock held when the store learns by itself that leases have ended. The
    /// leases are then checked at once, not when their renewal is due.
    virtual void on_loss(std::function<void()> /*f*/) {}  // NOLINT(performance-unnecessary-value-param): others keep it

    /// Returns: false if the store knows by itself that the lease of `token` has ended: then it is not passed to
    /// another holder. Called with a lock held.
    [[nodiscard]] virtual bool still_leased(owner_token const& /*token*/) const { return true; }

    /// Returns: why no lease of `key` can have `ttl`; empty if it can. Follows the ttl and a comma.
    [[nodiscard]] virtual std::string refused_lease(lock_key const& /*key*/, std::chrono::milliseconds ttl) const
    {
        return refused_ttl(ttl, std::chrono::milliseconds{0}, {});
    }

    /// Returns: why the loss of a lease of `key` of `ttl` cannot be announced `margin` earlier than it has to be; empty
    /// if it can. Follows the margin and a comma.
    [[nodiscard]] virtual std::string refused_margin(lock_key const& key, std::chrono::milliseconds ttl,
                                                     std::chrono::milliseconds margin) const
    {
        return holdfast::refused_margin(ttl, margin, refused_lease(key, ttl - margin));
    }

    /// Returns: why `key` cannot be granted in the order of arrival, which `lock_options::fair` asks for; empty if it
    /// can.
    [[nodiscard]] virtual std::string refused_order(lock_key const& /*key*/) const
    {
        return "but this store does not say in which order it grants a lock";
    }

    /// Returns: which lock `key` is: the same text for all clients that name its servers alike, another one for every
    /// other lock. It begins with what the servers call the lock, and a zero byte: `multi_mutex` takes locks in the
    /// order of these texts. By default no other client has it.
    [[nodiscard]] virtual std::string address_of(lock_key const& key) const
    {
        return key.name() + '\0' + key.kind() + '\0' + std::to_string(reinterpret_cast<std::uintptr_t>(this));
    }

    /// Returns: the news of the servers for `on_error`; each once.
    [[nodiscard]] virtual std::vector<error> take_notices() noexcept { return {}; }

    /// Returns: a question for how many of `slots`, which are all those of one semaphore, are held. By default: none.
    [[nodiscard]] virtual std::unique_ptr<pending_count> count_held(std::vector<shared_key> const& /*slots*/)
    {
        throw cannot({}, "count permits");
    }

    // For operators; each returns an operation that was not started. Throw: `error` (`misconfigured`) if the store
    // cannot do that.

    /// Returns: a question for `what` of the lock, which never shows its owner token.
    [[nodiscard]] virtual std::unique_ptr<pending_inspection> inspect(shared_key const& key, report_of /*what*/)
    {
        throw cannot(key->name(), "say who holds a lock");
    }

    /// Returns: a release of the lock for the client that has it, without its doing. The next waiter is called; the
    /// holder finds its lease lost with its next renewal at the latest.
    [[nodiscard]] virtual std::unique_ptr<pending_request> force_release(shared_key const& key)
    {
        throw cannot(key->name(), "break a lock");
    }

    /// Returns: a request that the holder is told with its next renewal at the latest; see
    /// `pending_extend::release_requested`.
    [[nodiscard]] virtual std::unique_ptr<pending_request> request_release(shared_key const& key)
    {
        throw cannot(key->name(), "tell the holder of a lock anything");
    }

    /// Returns: a question for the locks whose names begin with `prefix`, and that are held.
    [[nodiscard]] virtual std::unique_ptr<pending_list> list(std::string_view /*prefix*/)
    {
        throw cannot({}, "list its locks");
    }

private:
    [[nodiscard]] static error cannot(std::string_view lock, std::string const& what)
    {
        return detail::error_of(lock, {make_error_code(errc::misconfigured), "this store cannot " + what});
    }
};

}  // namespace holdfast
