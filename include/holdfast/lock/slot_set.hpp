// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/random.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/semaphore_slot.hpp>
#include <holdfast/core/slot_source.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/all_but_last.hpp>
#include <holdfast/lock/slot_wait.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The slots of a semaphore, for one number of permits: a lock each, of which a permit is one. A slot that is taken
/// stays so until it is unlocked, also if its lease is lost.
///
/// Why at most `size()` are held: no two hold one slot. That is the lock's own promise, on a majority of servers, too;
/// a counter on each of several servers could not keep it.
class slot_set {
public:
    /// Makes what makes the slots of a semaphore.
    using maker = std::function<std::unique_ptr<slot_source>(semaphore_slot const&)>;

    /// Throws: `error` (`misconfigured`), and what `make` throws.
    slot_set(std::string_view name, std::ptrdiff_t max, maker const& make)
    {
        check(name, max);
        auto const n = static_cast<std::size_t>(max);
        source_ = make({name, n});
        slots_.reserve(n);
        while (slots_.size() < n) slots_.push_back(source_->make_slot(slots_.size()));
        // Nanoseconds since the machine was started differ from object to object and from machine to machine.
        auto const seed = static_cast<std::uint64_t>(boot_clock::now().time_since_epoch().count());
        first_ = random_sequence{seed}.below(slots_.size());
    }

    slot_set(slot_set const&) = delete;
    slot_set& operator=(slot_set const&) = delete;

    ~slot_set() { close(); }

    /// Effects: adds all slots to `some`.
    void add_to(all_but_last& some) const noexcept
    {
        for (auto const& one : slots_) some.add(one);
    }

    /// Effects: gives back all that are taken, together: it waits for the answer to the last one only. What waits, and
    /// what is taken from now on, is cancelled.
    void close() noexcept
    {
        all_but_last together;
        add_to(together);
        for (auto const& one : slots_) one->close();
        source_.reset();
    }

    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
    [[nodiscard]] std::shared_ptr<lock_object> const& at(std::size_t slot) const { return slots_.at(slot); }

    /// Returns: what has made them. Requires: they are not closed.
    [[nodiscard]] slot_source& source() const noexcept { return *source_; }

    /// Returns: which slot is tried first: the one that was taken last.
    [[nodiscard]] std::size_t first() const noexcept { return first_.load(std::memory_order_relaxed); }
    /// Effects: `slot` was taken; the next one to take a slot tries it first.
    void took(std::size_t slot) noexcept { first_.store(slot, std::memory_order_relaxed); }

    /// Effects: `all` waits for every slot, from `first()` on, unless it has won or failed before. Throws: what
    /// `slot_wait::begin` throws; it waits for those before, then.
    void wait_for_each(slot_wait& all) const
    {
        auto const begin = first();
        for (std::size_t n = 0; n < size() && !all.decided(); ++n) {  // mutant: a wait for one slot only
            auto const slot = (begin + n) % size();
            all.begin(slot, slots_[slot]);
        }
    }

    /// Stopped when these slots are not to be taken any more: another number is in use, or the semaphore has ended.
    std::stop_source out_of_use;

private:
    static void check(std::string_view name, std::ptrdiff_t max)
    {
        check_name(name);
        if (max < 1 || max > semaphore_object::most)
            throw error_of(name, {make_error_code(errc::misconfigured),
                                  "a semaphore of " + std::to_string(max) + " permits; 1 to " +
                                      std::to_string(semaphore_object::most) + " are possible"});
    }

    std::unique_ptr<slot_source> source_;  // null after the end of the semaphore
    std::vector<std::shared_ptr<lock_object>> slots_;
    std::atomic<std::size_t> first_{0};
};

}  // namespace holdfast::detail
