// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>

#include <cstdint>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The base of an object that is in a `timer_queue` until a time has come.
class timed {
public:
    timed() = default;
    timed(timed const&) = delete;
    timed& operator=(timed const&) = delete;

    [[nodiscard]] boot_clock::time_point at() const noexcept { return at_; }

protected:
    ~timed() = default;

private:
    friend class timer_queue;

    [[nodiscard]] bool before(timed const& other) const noexcept
    {
        return at_ != other.at_ ? at_ < other.at_ : number_ < other.number_;
    }

    boot_clock::time_point at_{};
    std::uint64_t number_ = 0;  // when it was added
    timed* first_child_ = nullptr;
    timed* next_ = nullptr;      // the next child of its parent
    timed* previous_ = nullptr;  // the child before it; of the first child, its parent
};

/// Objects in the order of their times, those of one time in the order in which they came. It allocates no memory and
/// owns nothing. Not thread-safe. To add takes constant time, to remove the logarithm of the number.
/// Source: Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap", Algorithmica 1986.
class timer_queue {
public:
    /// Returns: the first one; null if there is none.
    [[nodiscard]] timed* first() const noexcept { return first_; }

    /// Returns: the time of the first one; `time_point::max()` if there is none.
    [[nodiscard]] boot_clock::time_point next() const noexcept
    {
        return first_ ? first_->at_ : boot_clock::time_point::max();
    }

    /// Requires: `one` is in no queue.
    void add(timed& one, boot_clock::time_point at) noexcept
    {
        one.at_ = at;
        one.number_ = ++added_;
        first_ = join(first_, &one);
    }

    /// Requires: `one` is in this queue.
    void remove(timed& one) noexcept
    {
        auto* const rest = join_all(std::exchange(one.first_child_, nullptr));
        if (&one == first_) {
            first_ = rest;
            return;
        }
        (one.previous_->first_child_ == &one ? one.previous_->first_child_ : one.previous_->next_) = one.next_;
        if (one.next_) one.next_->previous_ = one.previous_;
        one.next_ = one.previous_ = nullptr;
        first_ = join(first_, rest);
    }

private:
    /// Effects: makes the later of two heaps the first child of the other. Returns: the other.
    static timed* join(timed* a, timed* b) noexcept
    {
        if (!a || !b) return a ? a : b;
        if (b->before(*a)) std::swap(a, b);
        b->previous_ = a;
        b->next_ = a->first_child_;
        if (b->next_) b->next_->previous_ = b;
        a->first_child_ = b;
        return a;
    }

    /// Effects: makes one heap of the siblings from `one` on: joins them in pairs, then the pairs from the last on.
    static timed* join_all(timed* one) noexcept
    {
        timed* pairs = nullptr;
        while (one) {
            auto* const other = std::exchange(one->next_, nullptr);
            auto* const rest = other ? std::exchange(other->next_, nullptr) : nullptr;
            one->previous_ = nullptr;
            if (other) other->previous_ = nullptr;
            one = join(one, other);
            one->next_ = std::exchange(pairs, one);
            one = rest;
        }
        timed* all = nullptr;
        while (pairs) {
            auto* const rest = std::exchange(pairs->next_, nullptr);
            all = join(all, pairs);
            pairs = rest;
        }
        return all;
    }

    timed* first_ = nullptr;
    std::uint64_t added_ = 0;
};

}  // namespace holdfast::detail
