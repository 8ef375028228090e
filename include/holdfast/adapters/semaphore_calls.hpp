// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/semaphore_object.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// The asynchronous members of a `semaphore`, which call a function with the result. What they promise is what
/// `mutex::async_lock` and its siblings do. For completion tokens see `<holdfast/asio.hpp>`.
class semaphore_calls {
public:
    semaphore_calls(semaphore_calls const&) = delete;
    semaphore_calls& operator=(semaphore_calls const&) = delete;

    /// Effects: as `semaphore::acquire()`, but returns at once; `f(ec)` is called when a permit is held (no error) or
    /// will not be, as by `mutex::async_lock`: `std::errc::operation_canceled` after `stop` or when the object was
    /// destroyed, or the code that `acquire()` throws. Throws: if memory or a thread is missing; then `f` is not
    /// called.
    void async_acquire(std::function<void(std::error_code)> f, std::stop_token stop = {})
    {
        async_acquire(1, std::move(f), std::move(stop));
    }

    /// As above, for `n` permits: all, or none. A caller that waits for several waits for its turn, as in
    /// `semaphore::acquire(n)`. Throws: also `error` (`misconfigured`) if `n` is not 1 to `max()`.
    void async_acquire(std::ptrdiff_t n, std::function<void(std::error_code)> f, std::stop_token stop = {})
    {
        detail::begin_lock_of(*async_permit_source(n), {}, std::move(stop), detail::with_code(std::move(f)));
    }

    /// As above, waiting for `d` at most: `f(ec, held)`, with no error and `false` if the time passed while others held
    /// the permits. One that meets a `semaphore::resize` ends no earlier than that, unless it is stopped.
    template <class Rep, class Period>
    void async_try_acquire_for(std::chrono::duration<Rep, Period> const& d,
                               std::function<void(std::error_code, bool)> f, std::stop_token stop = {})
    {
        async_try_acquire_for(1, d, std::move(f), std::move(stop));
    }

    /// As above, for `n` permits: all, or none; `d` is for all of them together.
    template <class Rep, class Period>
    void async_try_acquire_for(std::ptrdiff_t n, std::chrono::duration<Rep, Period> const& d,
                               std::function<void(std::error_code, bool)> f, std::stop_token stop = {})
    {
        detail::begin_lock_of(*async_permit_source(n), detail::patience::in(d), std::move(stop),
                              detail::in_time(std::move(f)));
    }

    /// Effects: as `semaphore::release(ec)`, but returns at once; `f(ec)` is called with its result, as above.
    void async_release(std::function<void(std::error_code)> f) { async_release(1, std::move(f)); }

    /// As above, for `n` permits, as `semaphore::release(n, ec)`.
    void async_release(std::ptrdiff_t n, std::function<void(std::error_code)> f)
    {
        detail::begin_unlock_of(*async_permit_source(n), std::move(f));
    }

protected:
    /// Effects: has the permits of `object`.
    explicit semaphore_calls(std::shared_ptr<detail::semaphore_object> object) noexcept : permits_{std::move(object)} {}

    /// Effects: gives back all permits, and cancels what waits.
    ~semaphore_calls() { permits_->close(); }

    /// Has the permits.
    std::shared_ptr<detail::semaphore_object> const permits_;  // NOLINT(*-non-private-member-variables-in-classes)

private:
    friend struct detail::async_access;

    [[nodiscard]] std::shared_ptr<detail::async_source> async_permit_source(std::ptrdiff_t n) const
    {
        return permits_->source(n);
    }
};

}  // namespace holdfast
