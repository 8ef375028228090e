// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/lock/permit_call.hpp>
#include <holdfast/lock/slot_sizes.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Makes what takes `n` permits of a semaphore.
class permit_source final : public async_source {
public:
    /// `sizes`: of the semaphore `of`.
    permit_source(std::shared_ptr<semaphore_object> of, slot_sizes& sizes, std::ptrdiff_t n) noexcept
        : of_{std::move(of)}, sizes_{sizes}, n_{n}
    {
    }

    [[nodiscard]] std::shared_ptr<async_object> to_lock() override
    {
        static_cast<void>(sizes_.current_for(n_));
        return make();
    }

    [[nodiscard]] std::shared_ptr<async_object> to_unlock(holdfast::lease& hold) override
    {
        sizes_.check_process();
        auto made = make();
        made->take_over();
        hold = made->lease();
        return made;
    }

private:
    [[nodiscard]] std::shared_ptr<permit_call> make() const
    {
        auto const n = std::clamp<std::ptrdiff_t>(n_, 0, semaphore_object::most + 1);
        return std::make_shared<permit_call>(of_, sizes_, static_cast<std::size_t>(n));
    }

    std::shared_ptr<semaphore_object> const of_;
    slot_sizes& sizes_;
    std::ptrdiff_t const n_;
};

}  // namespace holdfast::detail
