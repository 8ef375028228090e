// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/permit_source.hpp>
#include <holdfast/lock/permit_wait.hpp>
#include <holdfast/lock/slot_set.hpp>
#include <holdfast/lock/slot_sizes.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// A semaphore of which each permit is a slot, a lock: its slots, and which of them `acquire` has taken.
class slot_semaphore final : public semaphore_object, public std::enable_shared_from_this<slot_semaphore> {
public:
    /// Throws: as `slot_sizes`.
    slot_semaphore(std::string_view name, std::ptrdiff_t max, slot_set::maker make) : sizes_{name, max, std::move(make)}
    {
    }

    [[nodiscard]] held_slots take(std::ptrdiff_t n, patience const& p, std::stop_token const& stop) override
    {
        return permit_wait{sizes_, static_cast<std::size_t>(n), p, stop}.run();
    }

    bool keep(held_slots some) noexcept override
    {
        if (some.empty() || sizes_.in_child()) return !some.empty();  // the mutex may be locked for ever
        std::scoped_lock guard{mutex_};
        taken_.splice(taken_.end(), some);
        return true;
    }

    /// Those that are lost are let go of first, and else those that were kept first.
    [[nodiscard]] held_slots let_go(std::size_t n) noexcept override
    {
        held_slots chosen;
        if (sizes_.in_child()) return chosen;
        std::scoped_lock guard{mutex_};
        if (n > taken_.size()) return chosen;
        while (chosen.size() < n) {
            auto const lost = std::find_if(taken_.begin(), taken_.end(),
                                           [](auto const& one) { return !one.lock->lease().still_held(); });
            chosen.splice(chosen.end(), taken_, lost != taken_.end() ? lost : taken_.begin());
        }
        return chosen;
    }

    void close() noexcept override { sizes_.close(); }

    [[nodiscard]] std::shared_ptr<async_source> source(std::ptrdiff_t n) override
    {
        return std::make_shared<permit_source>(shared_from_this(), sizes_, n);
    }

    void resize(std::ptrdiff_t max) override { sizes_.resize(max); }
    [[nodiscard]] std::ptrdiff_t permits_in_use() const override { return sizes_.held(); }
    [[nodiscard]] std::ptrdiff_t max() const noexcept override { return sizes_.max(); }
    [[nodiscard]] std::string const& name() const noexcept override { return sizes_.name(); }

private:
    slot_sizes sizes_;
    std::mutex mutex_;
    held_slots taken_;  // those that were taken by `acquire`, in that order
};

}  // namespace holdfast::detail
