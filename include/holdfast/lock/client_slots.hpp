// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/slot_source.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/inspection.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The slots of one semaphore of a client.
class client_slots final : public slot_source {
public:
    /// Makes the lock of a key.
    using maker = std::function<std::unique_ptr<lock_object>(shared_key)>;
    using turn_maker = std::function<std::unique_ptr<lock_object>()>;

    /// `slots`: their keys; `turn` makes the lock of who collects several permits. `use`: see
    /// `lock_store::use_semaphore`. `ttl`: of their leases.
    client_slots(std::shared_ptr<lock_store> in, std::vector<shared_key> slots, std::shared_ptr<void const> use,
                 std::chrono::milliseconds ttl, maker make, turn_maker turn)
        : store_{std::move(in)},
          slots_{std::move(slots)},
          use_{std::move(use)},
          ttl_{ttl},
          make_{std::move(make)},
          turn_{std::move(turn)}
    {
    }

    [[nodiscard]] std::unique_ptr<lock_object> make_slot(std::size_t slot) override { return make_(slots_.at(slot)); }
    [[nodiscard]] std::unique_ptr<lock_object> make_turn() override { return turn_(); }
    [[nodiscard]] std::size_t held() override { return inspection{*store_}.count_held(slots_); }
    void resize() override { inspection{*store_}.resize(slots_.front(), ttl_); }

private:
    std::shared_ptr<lock_store> const store_;
    std::vector<shared_key> const slots_;
    std::shared_ptr<void const> const use_;
    std::chrono::milliseconds const ttl_;
    maker const make_;
    turn_maker const turn_;
};

}  // namespace holdfast::detail
