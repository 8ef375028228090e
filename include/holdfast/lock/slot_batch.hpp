// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/slot_set.hpp>

#include <algorithm>
#include <cstddef>
#include <stop_token>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The slots that were taken for one batch. Those that are not kept are given back.
class taken_slots {
public:
    explicit taken_slots(slot_set& of) : of_{of} {}
    taken_slots(taken_slots const&) = delete;
    taken_slots& operator=(taken_slots const&) = delete;
    ~taken_slots() { give_back(); }

    /// Effects: there is room for `n`. Throws: `std::bad_alloc`.
    void reserve(std::size_t n) { slots_.reserve(n); }
    void add(std::size_t slot) noexcept { slots_.push_back(slot); }
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
    [[nodiscard]] std::vector<std::size_t> keep() noexcept { return std::exchange(slots_, {}); }

    /// Effects: gives all back. It waits for the answer to the last one only.
    void give_back() noexcept
    {
        while (!slots_.empty()) {
            auto const& one = of_.at(slots_.back());
            slots_.pop_back();
            std::error_code ignored;  // it ends with its lease
            slots_.empty() ? one->unlock(ignored, rest::none) : one->give_back(one->lease(), rest::none);
        }
    }

    /// Effects: gives back those whose lease is lost. Returns: whether there was none.
    bool drop_lost() noexcept
    {
        auto const lost = std::partition(slots_.begin(), slots_.end(),
                                         [&](std::size_t slot) { return of_.at(slot)->lease().still_held(); });
        for (auto slot = lost; slot != slots_.end(); ++slot) {
            std::error_code ignored;
            of_.at(*slot)->unlock(ignored, rest::none);
        }
        bool const none = lost == slots_.end();
        slots_.erase(lost, slots_.end());
        return none;
    }

private:
    slot_set& of_;
    std::vector<std::size_t> slots_;
};

/// Takes several slots: all or none.
///
/// | step | |
/// |------|---|
/// | try  | takes those that are free now, one after another; if they are too few, gives all back |
/// | turn | takes the lock `turn`: one caller of all clients collects slots at a time |
/// | collect | takes one slot after another, and waits for each, with those before it held |
/// | end  | a slot that was lost is taken anew; a caller that lost its turn gives all back, and begins again |
///
/// Why no two wait for each other: only the caller whose turn it is holds slots while it waits, and it waits for
/// holders, who wait for no slot. (One that holds permits and asks for more is outside of this.) Why a large batch has
/// its turn at all: what it has collected is not given back for smaller ones.
class slot_batch {
public:
    slot_batch(slot_set& of, lock_object& turn) noexcept : slots_{of}, turn_{turn} {}

    /// Effects: takes `n` slots, as long as `p` allows and `stop` is not requested. Returns: which; none if the time
    /// passed, or after a stop. Throws: as `slot_set::take`. Then none is held. Requires: 0 < `n` <= `of.size()`.
    [[nodiscard]] std::vector<std::size_t> take(std::size_t n, patience p, std::stop_token const& stop)
    {
        if (boot_clock::now() >= p.deadline) p.once = true;
        if (n == 1) {
            std::vector<std::size_t> only(1);  // before it is taken: a slot that cannot be noted would stay so
            auto const slot = slots_.take(p, stop);
            only.resize(slot ? 1 : 0);
            if (slot) only.front() = *slot;
            return only;
        }
        taken_slots got{slots_};
        got.reserve(n);
        collect(got, n, {.once = true}, stop);
        if (got.size() == n) return got.keep();
        got.give_back();
        while (!p.once && !stop.stop_requested()) {
            if (!turn_.lock(p, stop)) break;
            holder const in_turn{turn_};
            std::stop_source over;
            auto const end = [&over]() noexcept { over.request_stop(); };
            std::stop_callback const on_stop{stop, end};
            std::stop_callback const on_loss{in_turn.lease().lost_token(), end};
            collect(got, n, p, over.get_token());
            if (got.size() == n) return got.keep();
            got.give_back();
            if (boot_clock::now() >= p.deadline) break;
        }
        return {};
    }

private:
    class holder {
    public:
        explicit holder(lock_object& of) : of_{of}, lease_{of.lease()} {}
        holder(holder const&) = delete;
        holder& operator=(holder const&) = delete;
        ~holder() { of_.give_back(lease_, rest::none); }
        [[nodiscard]] holdfast::lease const& lease() const noexcept { return lease_; }

    private:
        lock_object& of_;
        holdfast::lease const lease_;
    };

    /// Effects: takes slots until there are `n` that are held, or none can be had.
    void collect(taken_slots& into, std::size_t n, patience const& p, std::stop_token const& stop)
    {
        do {
            while (into.size() < n) {
                auto const slot = slots_.take(p, stop);
                if (!slot) return;
                into.add(*slot);
            }
        } while (!into.drop_lost());
    }

    slot_set& slots_;
    lock_object& turn_;
};

}  // namespace holdfast::detail
