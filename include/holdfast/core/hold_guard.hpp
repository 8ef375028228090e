// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease_access.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>

#include <chrono>
#include <memory>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// What `leased_permit` and `leased_shared_lock` have in common: each owns one hold of an object that may have several.
class hold_guard : public lease_access {
public:
    /// Returns: whether the guard will give a hold back. It does not say whether the lease was lost: see `still_held`.
    [[nodiscard]] explicit operator bool() const noexcept { return object_ != nullptr; }

    /// Effects, returns: as `mutex::extend`, for this hold alone.
    bool extend(std::chrono::milliseconds ttl, std::error_code& ec)
    {
        if (object_) return object_->extend(ttl, ec);
        ec = make_error_code(errc::not_owner);
        return false;
    }

    /// Throws: `error` with the code of the overload above.
    void extend(std::chrono::milliseconds ttl)
    {
        if (object_) return object_->extend(ttl);
        throw detail::error_of({}, {make_error_code(errc::not_owner), "extend: no hold is owned"});
    }

protected:
    /// Has one hold.
    using object = std::shared_ptr<detail::lock_object>;

    hold_guard() noexcept = default;
    /// Effects: takes over the hold of `other`, which owns none afterwards.
    hold_guard(hold_guard&& other) noexcept
        : lease_access{std::move(other)}, object_{std::exchange(other.object_, nullptr)}
    {
    }
    ~hold_guard() = default;

    /// Effects: owns the hold of `one`; none if that is null.
    void own(object one)
    {
        object_ = std::move(one);
        if (object_) lease_ = object_->lease();
    }

    /// Effects: exchanges the holds of both.
    void swap(hold_guard& other) noexcept
    {
        std::swap(object_, other.object_);
        std::swap(lease_, other.lease_);
    }

    /// Effects: gives the hold back, if one is owned, and what it is of has not ended: that has given it back. Errors
    /// are reported to `on_error`. Returns: what had it; null if none was owned.
    object give_back() noexcept
    {
        auto one = std::exchange(object_, nullptr);
        if (one && !one->closed()) one->unlock();
        return one;
    }

    /// As above. Postconditions: `ec` is as `mutex::unlock(ec)` sets it.
    object give_back(std::error_code& ec) noexcept
    {
        ec = make_error_code(errc::not_owner);
        auto one = std::exchange(object_, nullptr);
        if (one) one->unlock(ec);
        return one;
    }

private:
    object object_;
};

}  // namespace holdfast
