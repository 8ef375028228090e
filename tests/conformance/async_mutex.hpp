// SPDX-License-Identifier: MIT
//
// A lock whose members begin asynchronous calls and wait for what these tell: so the whole suite looks at those, too.
#pragma once

#include <holdfast/mutex.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::test {

/// A single attempt has no asynchronous form: `try_lock` is that of `Mutex`.
template <class Mutex>
class async_mutex : public Mutex {
public:
    template <class Client>
    async_mutex(Client const& in, std::string_view name, lock_options options = {})
        : Mutex{in, name, options}, on_error_{std::make_shared<hook const>(std::move(options.on_error))}
    {
    }

    void lock() { static_cast<void>(lock(std::stop_token{})); }

    [[nodiscard]] bool lock(std::stop_token const& stop)
    {
        if (stop.stop_requested()) return false;
        return held(told([&](auto f) { this->async_lock(std::move(f), stop); }));
    }

    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> const& d)
    {
        return try_lock_for(std::stop_token{}, d);
    }

    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::stop_token const& stop, std::chrono::duration<Rep, Period> const& d)
    {
        return try_lock_until(stop, saturating_add(boot_clock::now(), d));
    }

    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> const& t)
    {
        return try_lock_until(std::stop_token{}, t);
    }

    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::stop_token const& stop, std::chrono::time_point<Clock, Duration> const& t)
    {
        if (stop.stop_requested()) return false;
        auto const until = to_boot_clock(t);
        auto const now = boot_clock::now();  // from which the first point there is is too far away to be told
        auto const d = until == boot_clock::time_point::max() ? std::chrono::nanoseconds::max()
                                                              : std::max(until, boot_clock::time_point{}) - now;
        bool got = false;
        auto const ec = told([&](auto f) {
            auto const both = [&got, f](std::error_code why, bool is_held) {
                got = is_held;
                f(why);
            };
            this->async_try_lock_for(d, both, stop);
        });
        return held(ec) && got;
    }

    void unlock() noexcept
    {
        auto const on_error = on_error_;  // the next holder may destroy this
        auto const what = this->name() + ": unlock";
        std::error_code ec;
        unlock(ec);
        try {
            if (ec && *on_error) (*on_error)(error{ec, what});
        } catch (...) {  // NOLINT(bugprone-empty-catch): as what a hook throws of `Mutex`
        }
    }

    void unlock(std::error_code& ec) noexcept
    try {
        ec = told([&](auto f) { this->async_unlock(std::move(f)); });
    } catch (std::system_error const&) {  // in a child of fork(), where it holds nothing
        ec = make_error_code(errc::not_owner);
    }

private:
    using hook = std::function<void(error const&)>;

    /// Returns: what the call that `begin` begins tells.
    template <class Begin>
    [[nodiscard]] static std::error_code told(Begin const& begin)
    {
        auto const result = std::make_shared<std::promise<std::error_code>>();
        auto future = result->get_future();
        begin([result](std::error_code ec) { result->set_value(ec); });
        return future.get();
    }

    [[nodiscard]] bool held(std::error_code ec) const
    {
        if (ec == std::errc::operation_canceled) return false;
        if (ec) throw error{ec, "lock \"" + this->name() + "\": " + ec.message(), {.lock_name = this->name()}};
        return true;
    }

    std::shared_ptr<hook const> on_error_;
};

}  // namespace holdfast::test
