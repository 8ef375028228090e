// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <cstddef>
#include <memory>

namespace holdfast::inline HOLDFAST_ABI::detail {

class lock_object;

/// Makes the locks of one semaphore, and asks its store about them. As long as it lives, the number of permits is in
/// use.
class slot_source {
public:
    slot_source() = default;
    slot_source(slot_source const&) = delete;
    slot_source& operator=(slot_source const&) = delete;
    virtual ~slot_source() = default;

    /// Returns: the lock of a slot. Throws: `error` (`misconfigured`).
    [[nodiscard]] virtual std::shared_ptr<lock_object> make_slot(std::size_t slot) = 0;

    /// Returns: the lock of who collects several permits. Throws: `error` (`misconfigured`).
    [[nodiscard]] virtual std::shared_ptr<lock_object> make_turn() = 0;

    /// Returns: how many slots are held, by any client. Throws: `error`, as `store::holder`.
    [[nodiscard]] virtual std::size_t held() = 0;

    /// Effects: the number of permits in use is that of this source, whatever it was. Throws: `error`, as
    /// `store::force_unlock`. By default no number is kept.
    virtual void resize() {}
};

}  // namespace holdfast::detail
