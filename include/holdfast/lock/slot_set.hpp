// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/random.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/several_locks.hpp>
#include <holdfast/lock/slot_wait.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The slots of a semaphore: a lock each, of which a permit is one. Any number of threads may take slots; a slot that
/// is taken stays so until it is unlocked, also if its lease is lost.
///
/// To take one, the slots are tried one after another, beginning with the one that was taken last: so a semaphore that
/// has free permits takes one and touches no other. If none was free, the thread waits for all at once (`slot_wait`),
/// and is called by the first release.
///
/// Why at most `size()` are held: no two hold one slot. That is the lock's own promise, on a majority of servers, too;
/// a counter on each of several servers could not keep it.
class slot_set {
public:
    /// Makes the lock of a slot by its name.
    using maker = std::function<std::unique_ptr<lock_object>(std::string const&)>;

    /// Throws: `error` (`misconfigured`), and what `make` throws.
    slot_set(std::string_view name, std::ptrdiff_t max, maker const& make) : name_{name}
    {
        check(name, max);
        slots_.reserve(static_cast<std::size_t>(max));
        for (std::ptrdiff_t i = 0; i < max; ++i) slots_.push_back(make(name_ + '#' + std::to_string(i)));
        // Nanoseconds since the machine was started differ from object to object and from machine to machine.
        auto const seed = static_cast<std::uint64_t>(boot_clock::now().time_since_epoch().count());
        first_ = random_sequence{seed}.below(slots_.size());
    }

    slot_set(slot_set const&) = delete;
    slot_set& operator=(slot_set const&) = delete;

    ~slot_set() { close(); }

    /// Effects: gives back all that are taken, together: it waits for the answer to the last one only. What waits, and
    /// what is taken from now on, is cancelled.
    void close() noexcept
    {
        lock_object* last = nullptr;
        for (auto const& one : slots_) {
            if (one->lease() == lease{}) continue;
            if (last) last->give_back(last->lease());
            last = one.get();
        }
        for (auto const& one : slots_) one->close();
    }

    /// Throws: `error` (`misconfigured`) if there is no semaphore of `name` with `max` permits.
    static void check(std::string_view name, std::ptrdiff_t max)
    {
        check_name(name);
        if (max < 1 || max > semaphore_object::most)
            throw error_of(name, {make_error_code(errc::misconfigured),
                                  "a semaphore of " + std::to_string(max) + " permits; 1 to " +
                                      std::to_string(semaphore_object::most) + " are possible"});
    }

    /// Throws: `error` (`misconfigured`) if `n` permits cannot be taken at once.
    void check_number(std::ptrdiff_t n) const
    {
        if (n < 1 || static_cast<std::size_t>(n) > size())
            throw failed(make_error_code(errc::misconfigured),
                         std::to_string(n) + " permits at once; it has " + std::to_string(size()));
    }

    [[nodiscard]] std::string const& name() const noexcept { return name_; }
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
    [[nodiscard]] std::shared_ptr<lock_object> const& at(std::size_t slot) const { return slots_.at(slot); }

    /// Returns: which slot is tried first.
    [[nodiscard]] std::size_t first() const noexcept { return first_.load(std::memory_order_relaxed); }
    /// Effects: `slot` was taken; the next one to take a slot tries it first.
    void took(std::size_t slot) noexcept { first_.store(slot, std::memory_order_relaxed); }

    /// Effects: takes a slot, as long as `p` allows and `stop` is not requested. Returns: which one; nothing if the
    /// time passed while others held them, or after a stop. Throws: what `mutex::lock` throws; `unavailable` only if no
    /// slot could be asked. Then none is held.
    [[nodiscard]] std::optional<std::size_t> take(patience p, std::stop_token const& stop)
    {
        if (boot_clock::now() >= p.deadline) p.once = true;
        auto tried = try_each(first(), p, stop);
        while (!tried.slot) {
            if (stop.stop_requested()) return std::nullopt;
            bool const over = p.once || boot_clock::now() >= p.deadline;
            if (over && (p.once || tried.unavailable || tried.refused == size())) return none_after(tried);
            auto const waited = wait(p, stop);
            tried.slot = waited.slot;
            if (tried.slot) break;
            if (stop.stop_requested() || waited.code == errc::timed_out) return std::nullopt;
            if (waited.code == std::errc::operation_canceled) throw failed(waited.code, "the semaphore was destroyed");
            bool const outage = waited.code == errc::unavailable;
            if (outage && p.deadline != boot_clock::time_point::max()) return none_after(tried);
            // It is asked by itself: what it throws has the words of the server. An outage may also be over by now.
            tried = try_each(waited.failed, {.once = true}, stop);
            if (tried.slot) break;
            if (!outage) throw failed(waited.code);
            if (tried.refused == 0) static_cast<void>(none_after(tried));
        }
        took(*tried.slot);
        return tried.slot;
    }

private:
    /// The result of a try of each slot.
    struct attempt {
        std::optional<std::size_t> slot{};
        std::size_t refused = 0;           ///< how many are held by others
        std::exception_ptr unavailable{};  ///< what ended it, as the others could not be asked either
    };

    /// What a thread does with slots is not what `std::lock` does with several locks: it is forgotten at the end.
    class unnoticed {
    public:
        unnoticed() = default;
        unnoticed(unnoticed const&) = delete;
        unnoticed& operator=(unnoticed const&) = delete;
        ~unnoticed() { thread_ = before_; }

    private:
        several_locks& thread_ = several_locks::of_this_thread();
        several_locks const before_ = thread_;
    };

    /// Effects: tries one slot after another, from `first` on, until one is free, or the deadline has passed.
    [[nodiscard]] attempt try_each(std::size_t first, patience const& p, std::stop_token const& stop)
    {
        attempt so_far;
        unnoticed const by_several_locks;
        for (std::size_t n = 0; n < size() && !stop.stop_requested(); ++n) {
            if (n > 0 && !p.once && boot_clock::now() >= p.deadline) break;
            auto const slot = (first + n) % size();
            try {
                if (slots_[slot]->lock({.once = true}, stop)) {
                    so_far.slot = slot;
                    break;
                }
                ++so_far.refused;
            } catch (error const& e) {
                if (e.code() != errc::unavailable) throw;
                so_far.unavailable = std::current_exception();
                break;
            }
        }
        return so_far;
    }

    [[nodiscard]] slot_wait::outcome wait(patience const& p, std::stop_token const& stop)
    {
        auto const all = std::make_shared<slot_wait>(p);
        std::stop_callback const cancel_on_stop{stop, [&]() noexcept { all->cancel(); }};
        auto const first_tried = first();
        try {
            for (std::size_t n = 0; n < size() && !all->decided(); ++n) {  // mutant: a wait for one slot only
                auto const slot = (first_tried + n) % size();
                all->begin(slot, slots_[slot]);
            }
        } catch (...) {
            all->cancel();
            if (auto const ended = all->wait(); ended.slot) return ended;
            throw;
        }
        return all->wait();
    }

    /// Returns: nothing: others hold the slots, as far as they could be asked. Throws: `unavailable` if none could.
    static std::optional<std::size_t> none_after(attempt const& tried)
    {
        if (tried.unavailable && tried.refused == 0) std::rethrow_exception(tried.unavailable);
        return std::nullopt;
    }

    [[nodiscard]] error failed(std::error_code code, std::string what = {}) const
    {
        return error_of(name_, {code, std::move(what)});
    }

    std::string const name_;
    std::vector<std::shared_ptr<lock_object>> slots_;
    std::atomic<std::size_t> first_{0};  // the slot that is tried first
};

}  // namespace holdfast::detail
