// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/permit_batch.hpp>
#include <holdfast/lock/permit_call.hpp>
#include <holdfast/lock/permits.hpp>
#include <holdfast/lock/report.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Makes what takes `n` permits of a semaphore.
class permit_source final : public async_source {
public:
    permit_source(std::shared_ptr<permits> of, std::shared_ptr<lock_object> turn, std::ptrdiff_t n) noexcept
        : of_{std::move(of)}, turn_{std::move(turn)}, n_{n}
    {
    }

    [[nodiscard]] std::shared_ptr<async_object> to_lock() override
    {
        if (of_->in_child()) throw made_before_fork(of_->sizes().name());
        of_->sizes().current()->slots.check_number(n_);
        if (n_ == 1) return std::make_shared<one_permit>(of_);
        return std::make_shared<permit_batch>(of_, turn_, static_cast<std::size_t>(n_));
    }

    [[nodiscard]] std::shared_ptr<async_object> to_unlock(holdfast::lease& hold) override
    {
        if (of_->in_child()) throw made_before_fork(of_->sizes().name());
        if (n_ == 1) return taken_over(std::make_shared<one_permit>(of_), hold);
        auto const n = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(n_, 0, semaphore_object::most + 1));
        return taken_over(std::make_shared<permit_batch>(of_, turn_, n), hold);
    }

private:
    template <class Made>
    [[nodiscard]] static std::shared_ptr<async_object> taken_over(std::shared_ptr<Made> made, holdfast::lease& hold)
    {
        made->take_over();
        hold = made->lease();
        return made;
    }

    std::shared_ptr<permits> const of_;
    std::shared_ptr<lock_object> const turn_;
    std::ptrdiff_t const n_;
};

}  // namespace holdfast::detail
