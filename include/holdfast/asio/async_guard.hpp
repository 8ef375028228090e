// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lease_access.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/mutex.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

class async_guard;

namespace detail {

/// Gives the adapters of asynchronous frameworks access to the lock object of a mutex or a guard.
struct async_access {
    [[nodiscard]] static std::shared_ptr<lock_object> const& of(mutex const& m) noexcept { return m.object_; }
    [[nodiscard]] static std::shared_ptr<lock_object> const& of(async_guard const& g) noexcept;

    /// Returns: a guard of the present hold of `object`.
    [[nodiscard]] static async_guard guard(std::shared_ptr<lock_object> object);
};

}  // namespace detail

/// A lock that was taken asynchronously. The destructor gives it back and does not wait: the request is sent, and its
/// answer is read later. `async_unlock(guard, token)` gives it back and reports the result. The guard may outlive the
/// mutex; then it owns nothing.
///
///     auto hold = co_await holdfast::async_lock_guard(orders, asio::use_awaitable);
///     db.write(row, hold.fencing_token());
class async_guard : public lease_access {
public:
    async_guard() noexcept = default;

    /// Requires: `m` is locked, and only this guard will unlock it.
    [[nodiscard]] async_guard(mutex& m, std::adopt_lock_t) : async_guard{detail::async_access::of(m), m.lease()} {}

    /// Effects: takes over the lock of `other`, which owns none afterwards.
    async_guard(async_guard&& other) noexcept
        : lease_access{std::move(other)}, object_{std::exchange(other.object_, nullptr)}
    {
    }

    /// Effects: gives the lock back, and takes over that of `other`, which owns none afterwards.
    async_guard& operator=(async_guard&& other) noexcept
    {
        async_guard{std::move(other)}.swap(*this);
        return *this;
    }

    /// Effects: `give_back()`.
    ~async_guard() { give_back(); }

    /// Effects: gives the lock back, if it is owned, without a wait for the answer. Errors are reported to `on_error`.
    void give_back() noexcept
    {
        if (auto const object = std::exchange(object_, nullptr)) object->give_back(lease_);
    }

    /// Effects: forgets the lock; it stays locked, and the caller has to unlock the mutex.
    void release() noexcept { object_ = nullptr; }

    /// Effects: exchanges the locks of both.
    void swap(async_guard& other) noexcept
    {
        std::swap(object_, other.object_);
        std::swap(lease_, other.lease_);
    }

    /// Returns: whether the guard will give a lock back.
    [[nodiscard]] bool owns_lock() const noexcept { return object_ != nullptr; }
    /// Returns: `owns_lock()`.
    [[nodiscard]] explicit operator bool() const noexcept { return owns_lock(); }

private:
    friend struct detail::async_access;

    async_guard(std::shared_ptr<detail::lock_object> object, holdfast::lease of) noexcept
        : lease_access{std::move(of)}, object_{std::move(object)}
    {
    }

    std::shared_ptr<detail::lock_object> object_;
};

/// Effects: `a.swap(b)`.
inline void swap(async_guard& a, async_guard& b) noexcept { a.swap(b); }

inline std::shared_ptr<detail::lock_object> const& detail::async_access::of(async_guard const& g) noexcept
{
    return g.object_;
}

inline async_guard detail::async_access::guard(std::shared_ptr<lock_object> object)
{
    auto lease = object->lease();
    return {std::move(object), std::move(lease)};
}

}  // namespace holdfast
