// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/operation.hpp>

#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// What a store keeps of an operation to report its end. Guarded by the store's lock.
class ending {
public:
    ending(ending const&) = delete;
    ending& operator=(ending const&) = delete;

protected:
    ending() = default;
    ~ending() = default;

    /// Effects: tells the completion, if there is one, that this is an acquire that waits as another holds the lock.
    void tell_must_wait() const noexcept
    {
        if (done_) done_->must_wait();
    }

private:
    friend class ended_operations;

    completion* done_ = nullptr;
    ending* next_ended_ = nullptr;
};

/// Operations that have ended and whose completions are still to be called, in the order of their ends. Allocates no
/// memory.
class ended_operations {
public:
    /// Effects: makes `done` the completion of `one`.
    static void bind(ending& one, completion& done) noexcept { one.done_ = &done; }

    /// Effects: adds `one`, unless it was added before or abandoned.
    void add(ending& one) noexcept
    {
        if (!one.done_ || one.next_ended_) return;
        one.next_ended_ = &one;  // the last one refers to itself
        (last_ ? last_->next_ended_ : first_) = &one;
        last_ = &one;
    }

    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }

    /// Effects: calls all completions, without the lock. A completion may destroy its operation.
    static void tell(ended_operations all) noexcept
    {
        for (auto* one = all.first_; one;) {
            auto* const next = one->next_ended_ == one ? nullptr : one->next_ended_;
            std::exchange(one->done_, nullptr)->complete();
            one = next;
        }
    }

private:
    ending* first_ = nullptr;
    ending* last_ = nullptr;
};

}  // namespace holdfast::detail
