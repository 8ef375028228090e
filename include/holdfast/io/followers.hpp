// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/parker.hpp>

#include <cstddef>

namespace holdfast::io {

/// A thread that waits for its operation while another one leads. It lives on that thread's stack.
struct follower {
    detail::parker bed;
    boot_clock::time_point until{};
    follower* next_finished = nullptr;
    bool signalled = false;  ///< it has been told that its operation is finished, or will be as soon as the lock is free

    follower* previous = nullptr;
    follower* next = nullptr;
};

/// Followers in the order in which they came. Needs no memory. Guarded by the reactor's lock.
class follower_line {
public:
    /// Returns: who came first; null where there is nobody.
    [[nodiscard]] follower* first() const noexcept { return first_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    void add(follower& f) noexcept
    {
        f.previous = last_;
        f.next = nullptr;
        (last_ ? last_->next : first_) = &f;
        last_ = &f;
        ++size_;
    }

    void remove(follower& f) noexcept
    {
        (f.previous ? f.previous->next : first_) = f.next;
        (f.next ? f.next->previous : last_) = f.previous;
        --size_;
    }

private:
    follower* first_ = nullptr;
    follower* last_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace holdfast::io
