// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <cstddef>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Objects in the order in which they came, linked by their members `previous` and `next`: it needs no memory and owns
/// nothing. Not thread-safe.
template <class T>
class linked_line {
public:
    /// Returns: the first one; null if there is none.
    [[nodiscard]] T* first() const noexcept { return first_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    void add(T& one) noexcept
    {
        one.previous = last_;
        one.next = nullptr;
        (last_ ? last_->next : first_) = &one;
        last_ = &one;
        ++size_;
    }

    void remove(T& one) noexcept
    {
        (one.previous ? one.previous->next : first_) = one.next;
        (one.next ? one.next->previous : last_) = one.previous;
        --size_;
    }

    /// Effects: calls `f` with each of them. It may remove that one, but no other, and may add others.
    void for_each(auto const& f) const
    {
        for (auto* one = first_; one;) f(*std::exchange(one, one->next));
    }

private:
    T* first_ = nullptr;
    T* last_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace holdfast::detail
