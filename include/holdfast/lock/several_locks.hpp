// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/random.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Recognises `std::lock` and `std::scoped_lock` over several locks by what a thread has just done. They wait for one
/// lock and try the others; if one of these is not free, they give all back, wait for that one, and try the rest. Two
/// processes that do this in opposite order can keep in step for a long time, above all if a store serves first come,
/// first served. So a thread rests for a random time before it waits again. Arithmetic only. A queue stands for a lock
/// here: objects of one name share it.
///
/// | state   | event                                  | next |
/// |---------|----------------------------------------|------|
/// | -       | a single attempt fails                 | refused |
/// | refused | the thread gives a lock back           | begins anew |
/// | any     | the thread is about to wait for a lock | - ; if it begins anew, it rests first |
class several_locks {
public:
    static constexpr std::chrono::milliseconds longest_rest{5};

    [[nodiscard]] static several_locks& of_this_thread() noexcept
    {
        thread_local several_locks mine;
        return mine;
    }

    /// Effects: notes that `object` was granted the lock of `queue`.
    void granted(void const* queue, void const* object) noexcept
    {
        held_[next_] = {queue, object};
        next_ = (next_ + 1) % held_.size();
        if (queue == twins_) rounds_ = object == refused_object_ ? rounds_ + 1 : 0;
    }

    /// Effects: notes that the thread gives the lock of `queue` back.
    void gave_back(void const* queue) noexcept
    {
        begins_anew_ = refused_;
        auto* const found =
            std::find_if(held_.begin(), held_.end(), [&](auto const& one) { return one.queue == queue; });
        if (found != held_.end()) *found = {};
    }

    /// Effects: notes that a single attempt of `object` at the lock of `queue` failed.
    /// Returns: whether the thread seems to take two objects of one lock together, which never succeeds: more than once
    /// it gave back the one that it had, waited for the one that was refused, and was refused the other. True once for
    /// each time that this happens.
    [[nodiscard]] bool refused(void const* queue, void const* object) noexcept
    {
        refused_ = true;
        // If it seems to have `object` itself, another thread has given that back.
        if (std::none_of(held_.begin(), held_.end(),
                         [&](auto const& one) { return one.queue == queue && one.object != object; }))
            return false;
        if (queue != twins_) rounds_ = 0;
        twins_ = queue;
        refused_object_ = object;
        return rounds_ == 2;
    }

    /// Effects: notes that the thread is about to wait for a lock. Returns: for how long it should rest first.
    [[nodiscard]] boot_clock::duration rest() noexcept
    {
        bool const needed = begins_anew_;
        refused_ = begins_anew_ = false;
        return boot_clock::duration{needed ? static_cast<boot_clock::rep>(jitter_.below(bound)) : 0};
    }

private:
    struct taken {
        void const* queue = nullptr;
        void const* object = nullptr;
    };

    static constexpr auto bound = static_cast<std::uint64_t>(boot_clock::duration{longest_rest}.count());

    several_locks() noexcept
        : jitter_{reinterpret_cast<std::uintptr_t>(this) ^
                  static_cast<std::uint64_t>(boot_clock::now().time_since_epoch().count())}
    {
    }

    std::array<taken, 8> held_{};  // the last ones; if more are taken together, equal ones are not found
    std::size_t next_ = 0;
    bool refused_ = false;
    bool begins_anew_ = false;
    void const* twins_ = nullptr;  // the queue of two objects: one was refused what the other had
    void const* refused_object_ = nullptr;
    unsigned rounds_ = 0;
    random_sequence jitter_;
};

}  // namespace holdfast::detail
