// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/async_permit.hpp>
#include <holdfast/adapters/kept_permits.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/lock/report.hpp>

#include <cstddef>
#include <memory>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// What is behind a `semaphore`.
class permits final : public async_source, public kept_permits, public std::enable_shared_from_this<permits> {
public:
    using kept_permits::kept_permits;

    /// Effects: as `semaphore::resize`.
    void resize(std::ptrdiff_t max)
    {
        if (in_child()) throw made_before_fork(sizes().name());
        sizes().resize(max);
    }

    [[nodiscard]] std::shared_ptr<async_object> to_lock() override
    {
        if (in_child()) throw made_before_fork(sizes().name());
        return std::make_shared<async_permit>(shared_from_this());
    }

    [[nodiscard]] std::shared_ptr<async_object> to_unlock(holdfast::lease& hold) override
    {
        if (in_child()) throw made_before_fork(sizes().name());
        auto made = std::make_shared<async_permit>(shared_from_this());
        made->take_over(let_go());
        hold = made->lease();
        return made;
    }
};

}  // namespace holdfast::detail
