// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/hold.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/lock/lock_owner.hpp>

#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

namespace holdfast::detail {

/// What the others in line may ask of the request of the thread whose turn it is.
class pending_request {
public:
    /// Returns: since when the store has been unavailable, where the request has seen nothing else; `before` where it has not begun. May be
    /// called from any thread.
    [[nodiscard]] virtual std::optional<boot_clock::time_point> unavailable_since(std::optional<boot_clock::time_point> before) const noexcept = 0;

protected:
    ~pending_request() = default;
};

/// A thread in line. What it will need when it gets the lock is allocated before it waits.
struct waiter {
    enum class stage : std::uint8_t {
        in_line,  ///< sleeps
        first,    ///< its turn to ask the backend
        granted,  ///< has the lock, handed on by the holder before
    };

    explicit waiter(lock_owner& o) : owner{&o} {}

    [[nodiscard]] bool was_in_line() const noexcept { return home != nullptr; }

    lock_owner* owner;
    pending_request const* request = nullptr;
    boot_clock::time_point since = boot_clock::now();
    std::shared_ptr<hold> next_hold = std::make_shared<hold>();
    parker bed;
    stage now = stage::in_line;
    std::list<waiter>* home = nullptr;  ///< of its thread; while it is in line, `at` is its place there
    std::list<waiter>::iterator at{};
};

/// Threads in the order in which they came. Called with the mutex held that is given to `wait`, but
/// for `wait` and `wake`.
class waiting_line {
public:
    using place = std::list<waiter>::iterator;

    [[nodiscard]] bool empty() const noexcept { return line_.empty(); }

    /// Effects: puts the only element of `one` at the end of the line; it returns there when it leaves.
    void join(std::list<waiter>& one) noexcept
    {
        line_.splice(line_.end(), one);
        line_.back().home = &one;
        line_.back().at = std::prev(line_.end());
    }

    /// Returns: the next thread in line whose owner is not occupied; null where there is none.
    [[nodiscard]] waiter* next() noexcept
    {
        for (auto& one : line_)
            if (!one.owner->held) return &one;
        return nullptr;
    }

    /// Effects: it is the turn of `one`, which leaves the line, and has to be woken when the mutex is free.
    void choose(waiter& one, waiter::stage as) noexcept
    {
        one.now = as;
        leave(one);
    }

    /// Effects: wakes `one`, if there is one. To be called once for each that was chosen.
    static void wake(waiter* one) noexcept
    {
        if (one) one->bed.unpark(its_turn);
    }

    /// Wakes one, if there is one, at the end of a scope.
    struct [[nodiscard]] wake_up {
        waiter* one;
        ~wake_up() { wake(one); }
    };

    /// Effects: sleeps until it is the turn of the thread at `me`, or `deadline`, or `stop`; then it is out of the line.
    void wait(std::mutex& mutex, place me, boot_clock::time_point deadline, std::stop_token const& stop) noexcept
    {
        std::stop_callback const nudge_on_stop{stop, [me] { me->bed.unpark(nudge); }};
        bool turn = false;
        while (!turn && !stop.stop_requested() && boot_clock::now() < deadline)
            turn = (me->bed.park_until(deadline) & its_turn) != 0;
        if (turn) return;
        std::unique_lock guard{mutex};
        bool const chosen = me->now != waiter::stage::in_line;
        if (!chosen) leave(*me);
        guard.unlock();
        // Whoever chose us still has to wake us; until then it may touch our bed.
        while (chosen && !turn) turn = (me->bed.park_until(boot_clock::time_point::max()) & its_turn) != 0;
    }

    /// Effects: sleeps until `t`, or `stop`. For one whose turn it is, and who was woken.
    static void pause(waiter& me, boot_clock::time_point t, std::stop_token const& stop) noexcept
    {
        std::stop_callback const nudge_on_stop{stop, [&me] { me.bed.unpark(nudge); }};
        while (!stop.stop_requested() && boot_clock::now() < t) me.bed.park_until(t);
    }

private:
    static constexpr std::uint32_t nudge = 1;
    static constexpr std::uint32_t its_turn = 2;

    void leave(waiter& one) noexcept { one.home->splice(one.home->end(), line_, one.at); }

    std::list<waiter> line_;
};

}  // namespace holdfast::detail
