// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/slot_source.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/permit_source.hpp>
#include <holdfast/lock/permits.hpp>
#include <holdfast/lock/report.hpp>
#include <holdfast/lock/slot_sizes.hpp>

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// A semaphore of which each permit is a slot, a lock.
class slot_semaphore final : public semaphore_object {
public:
    /// Effects: has the slots that `make` makes, which is kept for `resize`. Throws: as `slot_sizes`.
    slot_semaphore(std::string_view name, std::ptrdiff_t max, slot_sizes::maker make)
        : permits_{std::make_shared<permits>(name, max, std::move(make))},
          turn_{permits_->sizes().current()->source->make_turn()}
    {
    }

    [[nodiscard]] held_slots take(std::ptrdiff_t n, patience const& p, std::stop_token const& stop) override
    {
        if (permits_->in_child()) throw made_before_fork(name());
        return permits_->sizes().take(n, *turn_, p, stop);
    }

    bool keep(held_slots some) noexcept override { return permits_->keep(std::move(some)); }
    [[nodiscard]] held_slots let_go(std::size_t n) noexcept override { return permits_->let_go(n); }

    void close() noexcept override
    {
        permits_->close();
        turn_->close();
    }

    [[nodiscard]] std::shared_ptr<async_source> source(std::ptrdiff_t n) override
    {
        return std::make_shared<permit_source>(permits_, turn_, n);
    }

    void resize(std::ptrdiff_t max) override { permits_->resize(max); }
    [[nodiscard]] std::ptrdiff_t permits_in_use() const override { return permits_->sizes().held(); }
    [[nodiscard]] std::ptrdiff_t max() const noexcept override { return permits_->sizes().max(); }
    [[nodiscard]] std::string const& name() const noexcept override { return permits_->sizes().name(); }

private:
    std::shared_ptr<permits> const permits_;
    std::shared_ptr<lock_object> const turn_;  // the lock of the caller that collects several permits
};

}  // namespace holdfast::detail
