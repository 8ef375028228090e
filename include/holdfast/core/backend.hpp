// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/token.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string_view>

namespace holdfast {

/// What an acquire asks of a backend.
struct acquire_request {
    std::chrono::milliseconds ttl{};

    /// How many consecutive fencing tokens to reserve, at most 64; 0 for none.
    unsigned fences = 1;

    backoff_options retry{};

    /// No attempt begins after it; `time_point::min()` stands for exactly one attempt.
    boot_clock::time_point deadline = boot_clock::time_point::max();

    /// The acquire fails with `unavailable` when by then, and ever since it began, no quorum could be asked.
    boot_clock::time_point unavailable_at = boot_clock::time_point::max();

    /// And when none could be asked for that long since one was.
    boot_clock::duration unavailable_after = boot_clock::duration::max();
};

/// What an acquire got.
struct grant {
    owner_token token;

    /// ttl − elapsed − drift, counted from before the first byte was sent. A store must not grant the lock to another before that.
    boot_clock::time_point valid_until;

    /// The first of the reserved fencing tokens; the others follow it. 0 where none was asked for.
    std::uint64_t fence = 0;

    /// How many are reserved: as many as were asked for, or more.
    unsigned fences = 1;

    /// For how long a store leases that does not go by the ttl it is asked for; every extension is for the same. 0: for what is asked.
    std::chrono::milliseconds ttl{0};
};

/// An operation of a backend: begun by `start()`, it goes on by itself; somebody waits for it.
///
/// - `start()` sends what there is to send and does not wait for answers. Called once.
/// - `wait_until(t)` returns whether the operation has its result; by `t` at the latest, with allowance for one wake-up. The calling
///   thread may do the work of other operations meanwhile, but runs no code of the user.
/// - `outcome()` is the result, once there is one. Every operation has one within its deadline and the backend's operation timeout.
/// - Destroying an operation that has no result abandons it: what it may have left behind is rolled back or dies with its ttl.
template <class O, class Result>
concept Operation = requires(O& operation, boot_clock::time_point t) {
    operation.start();
    { operation.wait_until(t) } -> std::same_as<bool>;
    { operation.outcome() } -> std::convertible_to<Result>;
};

/// What someone who adds a store must write. `holdfast::basic_mutex<B>` makes a lock of it.
///
/// - `key` is what the store knows about one name, made once by `make_key(name)`; shared, immutable.
/// - `acquire_operation(b, key, request)` takes the lock for a fresh owner token and yields a `grant`. Failures: `timed_out` (the
///   deadline passed while others held it, also for a single attempt), `std::errc::operation_canceled` after `cancel()`,
///   `unavailable`, `misconfigured`. After a failure nothing of ours is left, or it dies with its ttl. `cancel()` may be called from
///   any thread between `start()` and the end of the last `wait_until`, also from a signal of a stop token; it does not wait. It may have
///   `unavailable()`, which may be called from any thread after `start()`, with a lock held: whether it has tried to ask, and could not so far;
///   nothing where that is not known yet.
/// - `extend_operation(b, key, token, ttl)` is compare-and-extend and yields the new `valid_until`, counted from before its first byte
///   was sent. Failures: `lease_lost` only where the store said that the lock is not the token's; otherwise the deadline stands.
///   It may have `withdraw()`, which may be called as `cancel()` may: the lease has ended, and nothing more is sent; its result is of no account.
/// - `release_operation(b, key, token)` is compare-and-delete and yields no error, `not_owner`, or why it is not known. It may have
///   `others_wait()`: whether clients other than this one are known to wait for the lock; then they are given the time to ask for it.
/// - Operations on one key take effect in the order in which they were started, as far as the store is reached.
/// - Fencing tokens strictly increase from grant to grant of one name; the reserved ones overlap with nobody's.
/// - `on_loss(f)`, which a store may have, keeps the function `f` and calls it, with none of its locks held, when it learns by itself that
///   leases have ended: they are then asked about at once, and not when their renewal is due.
/// - `still_leased(token)`, which a store may have, returns false where it knows by itself that the lease of `token` has ended: such a lease
///   is passed to nobody. It asks nobody; called with a lock held.
/// - `check(name, options)` throws `misconfigured` for what can be seen to be wrong without I/O.
/// - `take_remark(key)`, if there is one, returns what was found wrong with what is kept of that name and did not keep an acquire from its result,
///   once; `on_error` is told.
/// - `refused_lease(ttl)`, where there is one, returns why a lease cannot be extended to `ttl`; empty where it can.
template <class B>
concept Backend =
    requires(B& backend, typename B::key const& key, acquire_request const& request, std::string_view name, lock_options const& options,
             owner_token const& token, std::chrono::milliseconds ttl) {
        { backend.make_key(name) } -> std::convertible_to<typename B::key>;
        backend.check(name, options);
        typename B::acquire_operation;
        typename B::extend_operation;
        typename B::release_operation;
        requires std::constructible_from<typename B::acquire_operation, B&, typename B::key const&, acquire_request const&>;
        requires std::constructible_from<typename B::extend_operation, B&, typename B::key const&, owner_token const&,
                                         std::chrono::milliseconds>;
        requires std::constructible_from<typename B::release_operation, B&, typename B::key const&, owner_token const&>;
        requires Operation<typename B::acquire_operation, result<grant>>;
        requires Operation<typename B::extend_operation, result<boot_clock::time_point>>;
        requires Operation<typename B::release_operation, std::error_code>;
        requires requires(typename B::acquire_operation& operation) {
            { operation.cancel() } noexcept;
        };
    };

}  // namespace holdfast
