// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/ended_operations.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The mutex of a session. Calls that must be made without it are collected while it is locked, and made by the thread
/// that unlocks it. All other members are called with it locked.
class session_mutex {
public:
    void lock() { mutex_.lock(); }

    /// Effects: unlocks; then announces the end of the session, if that came, and completes the operations that have
    /// ended. A completion may destroy the last of the session: nothing of it is used after that.
    void unlock() noexcept
    {
        auto const ended = std::exchange(ended_, {});
        auto const announce = std::exchange(expired_, false) ? on_expiry_ : nullptr;
        mutex_.unlock();
        if (ended.empty() && !announce) return;
        auto const outer = std::exchange(completing_, true);
        if (announce) (*announce)();
        holdfast::detail::ended_operations::tell(ended);
        completing_ = outer;
    }

    /// Returns: whether this thread is completing operations.
    [[nodiscard]] static bool completing() noexcept { return completing_; }

    /// Effects: completes `one` when it is unlocked.
    void end(holdfast::detail::ending& one) noexcept { ended_.add(one); }

    /// Effects: calls `f` when the session is over.
    void on_expiry(std::function<void()> f) { on_expiry_ = std::make_shared<std::function<void()>>(std::move(f)); }
    void expire() noexcept { expired_ = true; }

private:
    [[gnu::visibility("default")]] static inline thread_local bool completing_ = false;

    std::mutex mutex_;
    holdfast::detail::ended_operations ended_;
    bool expired_ = false;
    std::shared_ptr<std::function<void()>> on_expiry_;
};

}  // namespace holdfast::zookeeper
