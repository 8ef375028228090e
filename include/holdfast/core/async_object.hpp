// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/make_as.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/token.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

class joint_request;

/// How long an acquire waits at most.
struct patience {
    boot_clock::time_point deadline = boot_clock::time_point::max();
    bool once = false;                    ///< a single attempt, without a wait, whatever `deadline` is
    bool until_decided = false;           ///< see `acquire_request::until_decided`: until `deadline`
    std::optional<owner_token> beside{};  ///< see `acquire_request::beside`
    bool undisputed = false;              ///< see `acquire_request::undisputed`
    joint_request* joint = nullptr;       ///< it is asked for together with others; a single attempt
    failure* why_not = nullptr;           ///< set if a thread's call fails without an exception
    bool told_later = false;              ///< its user is told of a grant some time after it, by `begin_use`

    /// Returns: for `d` at most.
    template <class Rep, class Period>
    [[nodiscard]] static patience in(std::chrono::duration<Rep, Period> const& d)
    {
        return {.deadline = saturating_add(boot_clock::now(), d)};
    }

    /// Returns: until `t` at the latest.
    template <class Clock, class Duration>
    [[nodiscard]] static patience until(std::chrono::time_point<Clock, Duration> const& t)
    {
        auto const deadline = to_boot_clock(t);
        constexpr boot_clock::time_point earliest{};  // earlier points have passed as well
        return {.deadline = deadline < earliest ? earliest : deadline};
    }

    /// Returns: until when it may wait before it asks.
    [[nodiscard]] boot_clock::time_point may_wait_until() const noexcept
    {
        return once && !until_decided ? boot_clock::time_point::min() : deadline;
    }
};

/// Called once with the result of an asynchronous call.
class async_result {
public:
    async_result() = default;
    async_result(async_result const&) = delete;
    async_result& operator=(async_result const&) = delete;
    virtual ~async_result() = default;

    /// `held` says whether the lock is held now; if not, `ec` says why: `timed_out`, `operation_canceled`, or what
    /// `lock()` throws.
    virtual void deliver(std::error_code ec, bool held) noexcept = 0;

    /// Effects: notes the words for an unlock that fails, before `deliver`. By default they are not wanted.
    virtual void explain(failure const& /*why*/) noexcept {}

    /// Returns: whether `deliver` runs user code, which may be slow: then it is called in a thread that is started for
    /// it. Otherwise the client's thread calls it.
    [[nodiscard]] virtual bool runs_user_code() const noexcept { return false; }
};

/// Calls a function with the result of an asynchronous call.
template <class F, bool RunsUserCode>
class callback final : public async_result {
public:
    explicit callback(F f) : f_{std::move(f)} {}
    void deliver(std::error_code ec, bool held) noexcept override { f_(ec, held); }
    [[nodiscard]] bool runs_user_code() const noexcept override { return RunsUserCode; }

private:
    F f_;
};

/// Returns: what calls `f(ec, held)`, a user function.
template <class F>
[[nodiscard]] std::unique_ptr<async_result> callback_of(F f)
{
    return make_as<async_result, callback<F, true>>(std::move(f));
}

/// Returns: what calls `f(ec, held)`, which runs no user code.
template <class F>
[[nodiscard]] std::unique_ptr<async_result> result_to(F f)
{
    return make_as<async_result, callback<F, false>>(std::move(f));
}

/// Returns: what calls the member `then` of `of`, which runs no user code. `of` lives until then.
template <class Of>
[[nodiscard]] std::unique_ptr<async_result> result_to(std::shared_ptr<Of> of, void (Of::*then)(std::error_code, bool))
{
    return result_to([of = std::move(of), then](std::error_code ec, bool held) { ((*of).*then)(ec, held); });
}

/// Returns: what calls `f(ec)` of what is told a result.
[[nodiscard]] inline auto with_code(std::function<void(std::error_code)> f)
{
    return [f = std::move(f)](std::error_code ec, bool) { f(ec); };
}

/// Returns: what calls `f(ec, held)`; that the time passed is no error.
[[nodiscard]] inline auto in_time(std::function<void(std::error_code, bool)> f)
{
    return
        [f = std::move(f)](std::error_code ec, bool held) { f(ec == errc::timed_out ? std::error_code{} : ec, held); };
}

/// What takes and gives back one hold asynchronously: the object of a mutex, or what stands for one hold of an object
/// that may have several. It may outlive that object; then it is closed.
class async_object {
public:
    async_object() = default;
    async_object(async_object const&) = delete;
    async_object& operator=(async_object const&) = delete;
    virtual ~async_object() = default;

    /// Effects: as `lock()` with the limits `p`; `told` gets the result. If it throws, nothing was begun.
    virtual void begin_lock(patience const& p, std::stop_token stop, std::unique_ptr<async_result> told) = 0;

    /// Effects: as `unlock(ec)`, if `hold` is still the hold of this object; otherwise the result is `not_owner`.
    virtual void begin_unlock(holdfast::lease const& hold, std::unique_ptr<async_result> told) = 0;

    /// Effects: as `unlock`, if `hold` is still the hold of this object; does not wait for the answer.
    virtual void give_back(holdfast::lease const& hold) noexcept = 0;

    /// Effects: a user is told of the hold, which was taken with `told_later` or asynchronously: a `min_hold` is for it
    /// from now on. In vain if there is none.
    virtual void begin_use() noexcept {}

    /// Effects: the hold is left to the user, to give back by a member of the object that it was taken for.
    virtual void leave() noexcept {}

    [[nodiscard]] virtual holdfast::lease lease() const = 0;
    [[nodiscard]] virtual bool closed() const noexcept = 0;
};

/// Has an `async_object` for each call. It may outlive the object that it belongs to; what it has then is closed.
class async_source {
public:
    async_source() = default;
    async_source(async_source const&) = delete;
    async_source& operator=(async_source const&) = delete;
    virtual ~async_source() = default;

    /// Returns: what takes a new hold. Throws: `error` in a child of `fork`; `std::bad_alloc`, and as `begin_lock`.
    [[nodiscard]] virtual std::shared_ptr<async_object> to_lock() = 0;

    /// Returns: what gives back the hold that the user's `unlock` would, which is set to `hold`; that is empty if there
    /// is none. Throws: as `to_lock`.
    [[nodiscard]] virtual std::shared_ptr<async_object> to_unlock(holdfast::lease& hold) = 0;
};

/// Gives the adapters of asynchronous frameworks access to what takes the holds of an object.
struct async_access;

/// Effects: `hold`, which `of` was granted, reaches its user, who is told of it next. If what it was taken for was
/// destroyed meanwhile, it is given back instead, and `ec` is set. Returns: whether it is held.
[[nodiscard]] inline bool reach_user(async_object& of, holdfast::lease const& hold, std::error_code& ec) noexcept
{
    if (of.closed()) {
        of.give_back(hold);
        ec = std::make_error_code(std::errc::operation_canceled);
        return false;
    }
    of.begin_use();
    return true;
}

/// Effects: begins to take a hold of `from`; `f(ec, held)` is told the result. The hold is left to the user.
template <class F>
// NOLINTNEXTLINE(performance-unnecessary-value-param): it is moved
void begin_lock_of(async_source& from, patience const& p, std::stop_token stop, F f)
{
    auto const one = from.to_lock();
    one->begin_lock(p, std::move(stop),
                    callback_of([one = std::shared_ptr<async_object>{one}, f = std::move(f)](std::error_code ec,
                                                                                             bool held) mutable {
                        held = held && reach_user(*one, one->lease(), ec);
                        if (held) one->leave();
                        one.reset();  // `f` may end the client
                        f(ec, held);
                    }));
}

/// Effects: begins to give back a hold of `from`; `f(ec)` is told the result. What gives it back is not used for
/// another hold until then.
inline void begin_unlock_of(async_source& from, std::function<void(std::error_code)> f)
{
    holdfast::lease hold;
    auto const one = from.to_unlock(hold);
    one->begin_unlock(hold,
                      callback_of([one = one, f = with_code(std::move(f))](std::error_code ec, bool held) mutable {
                          one.reset();  // `f` may end the client
                          f(ec, held);
                      }));
}

}  // namespace holdfast::detail
