// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

namespace holdfast::inline HOLDFAST_ABI {

/// Called when an operation has ended.
class completion {
public:
    /// Called once for each started operation, by the thread that ended it, with no lock of the store held. Runs no
    /// user code. May be called before `start` has returned. May destroy the operation.
    virtual void complete() noexcept = 0;

    /// Called for an acquire that has to wait as another holds the lock: before `complete`, once or more often, by any
    /// thread, also with locks of the store held. Runs no user code, and does not touch the operation.
    virtual void must_wait() noexcept {}

protected:
    ~completion() = default;
};

/// A request to a store, which goes on by itself: answers, time-outs and retries need no caller that waits.
///
/// - `start(done)` sends what there is to send and does not wait for answers. Called once. If it throws, nothing was
///   begun, and `done` is not called. In a child of `fork` it throws `error` (`misconfigured`).
/// - `cancel()` ends the operation early; `done` is called all the same, once. It does not wait, may be called from any
///   thread after `start`, until the operation is destroyed, and has no effect if it has ended.
/// - `outcome()` is the result. Requires: `done` was called. Every operation ends within its deadline and the store's
///   operation timeout.
/// - A started operation is destroyed after `done` was called, or by `done`.
template <class R>
class operation {
public:
    operation() = default;
    operation(operation const&) = delete;
    operation& operator=(operation const&) = delete;
    virtual ~operation() = default;

    /// Effects: sends what there is to send; `done` is called once the operation has ended.
    virtual void start(completion& done) = 0;
    /// Effects: ends the operation early.
    virtual void cancel() noexcept = 0;
    /// Returns: the result. Requires: `done` was called.
    [[nodiscard]] virtual R outcome() const = 0;
};

}  // namespace holdfast
