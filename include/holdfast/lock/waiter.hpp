// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/hold_state.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/mutex_state.hpp>
#include <holdfast/lock/release_call.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// A blocked thread or an asynchronous call that wants the lock of a queue. What it will need when it gets the lock is
/// allocated before it waits. `wait_queue::step` says what it does next. The queue's mutex guards it, except `signal`.
///
/// | stage | meaning | left by |
/// |---|---|---|
/// | in line | waits for its turn | it is chosen → first, or granted · its deadline, cancel → ended |
/// | first | it is its turn to ask the store, after a pause | asks → asking · too late, cancel → ended |
/// | asking | its request is under way | the answer → ended, with the lock or without |
/// | granted | it has the lock, handed on by the last holder | looked at → ended |
class waiter : public completion {
public:
    enum class stage : std::uint8_t { in_line, first, asking, granted, ended };

    static constexpr std::uint32_t look = 1;            ///< something may have changed for it
    static constexpr std::uint32_t its_turn = 2;        ///< it was chosen; it must stay until it has received this
    static constexpr std::uint32_t answered = 4;        ///< its request was answered; as above
    static constexpr std::uint32_t another_has_it = 8;  ///< its request waits: another client has the lock

    waiter(mutex_state& o, patience const& p) : owner{&o}, options{o.options}, limit{p} {}
    waiter(waiter const&) = delete;
    waiter& operator=(waiter const&) = delete;

    /// Effects: `wait_queue::step` is soon called with `what`. May be called from any thread. Does not touch the waiter
    /// after the point at which it may have received the signal.
    virtual void signal(std::uint32_t what) noexcept = 0;

    /// Returns: whether its request has found the store unavailable so far; nothing if that is not known yet.
    [[nodiscard]] std::optional<bool> unavailable() const noexcept
    {
        return now == stage::asking && asking ? asking->unavailable() : std::nullopt;
    }

    [[nodiscard]] bool ended() const noexcept { return now == stage::ended; }

    /// Returns: why it did not get the lock; no error if it did. Requires: it has ended.
    [[nodiscard]] std::error_code code() const noexcept
    {
        if (why_not) return why_not->code;
        if (!thrown) return {};
        try {
            std::rethrow_exception(thrown);
        } catch (...) {
            return current_exception_code();
        }
    }

    mutex_state* owner;
    std::shared_ptr<lock_options const> options;
    patience limit;
    boot_clock::time_point since = boot_clock::now();
    std::shared_ptr<hold_state> next_hold = std::make_shared<hold_state>();
    /// Its own thread reads it without the mutex, too: `ended` is final, and only that thread sets it.
    std::atomic<stage> now{stage::in_line};
    bool was_in_line = false;
    bool handed_on = false;  ///< it got the lock from another holder of this process
    bool canceled = false;
    std::uint32_t heard = 0;  ///< the signals that it has collected
    /// The observer is to be told if it has to wait. Other threads read it, and only its own sets it.
    std::atomic<bool> tells_wait{false};
    std::atomic<bool> had_to_wait{false};  ///< its request was refused: another client had the lock, or was called

    // Of its turn.
    bool paused = false;  ///< the pause before its request has begun
    bool late = false;    ///< its deadline had passed then
    boot_clock::time_point ask_at{};

    // Of its request.
    std::unique_ptr<pending_acquire> asking;
    std::unique_ptr<release_call> releasing;  ///< for the lease that it wants; null: see `mutex_state`
    boot_clock::duration patience_in_outage = boot_clock::duration::max();
    boot_clock::time_point look_at = boot_clock::time_point::max();  ///< when the obstacle is checked next
    boot_clock::duration look_pause{};

    // Its outcome.
    std::optional<failure> why_not;
    std::exception_ptr thrown;

    waiter* previous = nullptr;
    waiter* next = nullptr;

protected:
    ~waiter() = default;

private:
    void complete() noexcept final { signal(answered); }
    void must_wait() noexcept final
    {
        had_to_wait = true;
        if (tells_wait.load(std::memory_order_relaxed)) signal(another_has_it);
    }
};

}  // namespace holdfast::detail
