// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lease_access.hpp>
#include <holdfast/mutex.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

class async_guard;

namespace detail {

/// Gives the adapters of asynchronous frameworks access to the objects that take the holds of a lock or a guard.
struct async_access {
    [[nodiscard]] static std::shared_ptr<async_object> const& of(async_guard const& g) noexcept;

    /// Returns: what makes the objects that take `m`, exclusively if there is a choice.
    template <class M>
    [[nodiscard]] static auto source(M const& m) noexcept -> decltype(m.async_source())
    {
        return m.async_source();
    }

    /// Returns: what makes those for the holds of `m` that there may be several of.
    template <class M>
    [[nodiscard]] static auto shared_source(M const& m) noexcept -> decltype(m.async_shared_source())
    {
        return m.async_shared_source();
    }

    /// Returns: what makes those for `n` permits of `s`.
    template <class S>
    [[nodiscard]] static auto permit_source(S const& s, std::ptrdiff_t n = 1) -> decltype(s.async_permit_source(n))
    {
        return s.async_permit_source(n);
    }

    /// Effects: `g` owns nothing; its hold is being given back.
    static void forget(async_guard& g) noexcept;

    /// Returns: a guard of the present hold of `object`.
    [[nodiscard]] static async_guard guard(std::shared_ptr<async_object> object);
};

/// A lock that can be taken asynchronously: `mutex`, the exclusive side of `shared_mutex`, `multi_mutex`.
template <class M>
concept async_lockable = !std::is_const_v<M> && requires(M const& m) { async_access::source(m); };

/// A lock that can be taken asynchronously together with others: `shared_mutex`.
template <class M>
concept async_shared_lockable = !std::is_const_v<M> && requires(M const& m) { async_access::shared_source(m); };

/// What permits can be taken of asynchronously: `semaphore`.
template <class S>
concept async_acquirable = !std::is_const_v<S> && requires(S const& s) { async_access::permit_source(s); };

}  // namespace detail

/// A hold that was taken asynchronously, of a mutex or of what has its like. The destructor gives it back and does not
/// wait: the request is sent, and its answer is read later. `async_unlock(guard, token)` gives it back and reports the
/// result. The guard may outlive the mutex; then it owns nothing, but for that of a `multi_mutex`.
///
///     auto hold = co_await holdfast::async_lock_guard(orders, asio::use_awaitable);
///     db.write(row, hold.fencing_token());
class async_guard : public lease_access {
public:
    async_guard() noexcept = default;

    /// Effects: owns the present hold of `m`: a `mutex`, a `multi_mutex`, or a `shared_mutex` that is locked
    /// exclusively. Requires: `m` is locked, and only this guard will unlock it. Throws: `error` in a child of `fork`;
    /// `std::bad_alloc`; then `m` is locked as before.
    template <detail::async_lockable M>
    [[nodiscard]] async_guard(M& m, std::adopt_lock_t) : async_guard{*detail::async_access::source(m)}
    {
    }

    /// Returns: a guard of the shared hold of the `shared_mutex` `m` that `unlock_shared` would give back now.
    /// Requires: there is one. Throws: as the constructor above.
    template <detail::async_shared_lockable M>
    [[nodiscard]] static async_guard adopt_shared(M& m)
    {
        return async_guard{*detail::async_access::shared_source(m)};
    }

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

    /// Effects: gives the lock back, if it is owned, without a wait for the answer, which is not reported. A lease
    /// that was lost before is reported to `on_error`.
    void give_back() noexcept
    {
        if (auto const object = std::exchange(object_, nullptr)) object->give_back(lease_);
    }

    /// Effects: forgets the lock; it stays locked, and the caller has to unlock the mutex.
    void release() noexcept
    {
        if (auto const object = std::exchange(object_, nullptr)) object->leave();
    }

    /// Effects: exchanges the locks of both.
    void swap(async_guard& other) noexcept
    {
        std::swap(object_, other.object_);
        std::swap(lease_, other.lease_);
    }

    /// Returns: whether the guard will give a lock back; also after the end of the mutex that it had it of.
    [[nodiscard]] bool owns_lock() const noexcept { return object_ != nullptr; }
    /// Returns: `owns_lock()`.
    [[nodiscard]] explicit operator bool() const noexcept { return owns_lock(); }

private:
    friend struct detail::async_access;

    /// Effects: owns the hold that the user's `unlock` would give back.
    explicit async_guard(detail::async_source& of) { object_ = of.to_unlock(lease_); }

    async_guard(std::shared_ptr<detail::async_object> object, holdfast::lease of) noexcept
        : lease_access{std::move(of)}, object_{std::move(object)}
    {
    }

    std::shared_ptr<detail::async_object> object_;
};

/// Effects: `a.swap(b)`.
inline void swap(async_guard& a, async_guard& b) noexcept { a.swap(b); }

inline std::shared_ptr<detail::async_object> const& detail::async_access::of(async_guard const& g) noexcept
{
    return g.object_;
}

inline void detail::async_access::forget(async_guard& g) noexcept { g.object_ = nullptr; }

inline async_guard detail::async_access::guard(std::shared_ptr<async_object> object)
{
    auto lease = object->lease();
    return {std::move(object), std::move(lease)};
}

}  // namespace holdfast
