// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/shared_object.hpp>
#include <holdfast/core/store.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// The asynchronous members of a `shared_mutex`, which call a function with the result. What they promise is what
/// `mutex::async_lock` and its siblings do. For completion tokens see `<holdfast/asio.hpp>`.
class shared_mutex_calls {
public:
    shared_mutex_calls(shared_mutex_calls const&) = delete;
    shared_mutex_calls& operator=(shared_mutex_calls const&) = delete;

    /// Effects: as `shared_mutex::lock()`, but returns at once; `f(ec)` is called when the lock is held exclusively (no
    /// error) or will not be, as by `mutex::async_lock`. Throws: if memory or a thread is missing; then `f` is not
    /// called.
    void async_lock(std::function<void(std::error_code)> f, std::stop_token stop = {})
    {
        writer_->begin_lock({}, std::move(stop), detail::callback_of(detail::with_code(std::move(f))));
    }

    /// As above, waiting for `d` at most: `f(ec, held)`, with no error and `false` if the time passed while others held
    /// the lock.
    template <class Rep, class Period>
    void async_try_lock_for(std::chrono::duration<Rep, Period> const& d, std::function<void(std::error_code, bool)> f,
                            std::stop_token stop = {})
    {
        writer_->begin_lock(detail::patience::in(d), std::move(stop),
                            detail::callback_of(detail::in_time(std::move(f))));
    }

    /// Effects: as `shared_mutex::unlock(ec)`, but returns at once; `f(ec)` is called with its result, as above.
    void async_unlock(std::function<void(std::error_code)> f)
    {
        writer_->begin_unlock(writer_->lease(), detail::callback_of(detail::with_code(std::move(f))));
    }

    /// Effects: as `async_lock`, for a shared hold. It is of no thread: `unlock_shared` gives it back if the calling
    /// thread has none of its own, and it is the oldest.
    void async_lock_shared(std::function<void(std::error_code)> f, std::stop_token stop = {})
    {
        detail::begin_lock_of(*readers_, {}, std::move(stop), detail::with_code(std::move(f)));
    }

    /// Effects: as `async_try_lock_for`, for a shared hold.
    template <class Rep, class Period>
    void async_try_lock_shared_for(std::chrono::duration<Rep, Period> const& d,
                                   std::function<void(std::error_code, bool)> f, std::stop_token stop = {})
    {
        detail::begin_lock_of(*readers_, detail::patience::in(d), std::move(stop), detail::in_time(std::move(f)));
    }

    /// Effects: as `shared_mutex::unlock_shared(ec)`, but returns at once; `f(ec)` is called with its result.
    void async_unlock_shared(std::function<void(std::error_code)> f)
    {
        detail::begin_unlock_of(*readers_, std::move(f));
    }

protected:
    /// Effects: has these sides.
    explicit shared_mutex_calls(detail::shared_sides sides) noexcept
        : writer_{std::move(sides.exclusive)}, readers_{std::move(sides.shared)}
    {
    }

    /// Effects: gives back all that is held, and cancels what waits.
    ~shared_mutex_calls()
    {
        readers_->close();
        writer_->close();
    }

    /// Takes the exclusive hold.
    std::shared_ptr<detail::lock_object> const writer_;  // NOLINT(*-non-private-member-variables-in-classes)
    /// Has the shared holds.
    std::shared_ptr<detail::shared_object> const readers_;  // NOLINT(*-non-private-member-variables-in-classes)

private:
    friend struct detail::async_access;

    [[nodiscard]] std::shared_ptr<detail::async_source> async_source() const noexcept { return writer_; }
    [[nodiscard]] std::shared_ptr<detail::async_source> async_shared_source() const noexcept { return readers_; }
};

}  // namespace holdfast
