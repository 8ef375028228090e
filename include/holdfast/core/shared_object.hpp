// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>

#include <memory>
#include <stop_token>

namespace holdfast::inline HOLDFAST_ABI::detail {

class lock_object;

/// The shared side of a `shared_mutex`: makes an object for each hold, and knows which of them `unlock_shared` gives
/// back. It may outlive the `shared_mutex`; then it is closed.
class shared_object : public async_source {
public:
    /// Has one hold.
    using object = std::shared_ptr<lock_object>;

    /// Effects: takes a shared hold, as long as `p` allows and `stop` is not requested. Returns: its object, which is
    /// in use; null if the time passed while the lock was held exclusively, or after a stop. Throws: what
    /// `mutex::lock` throws.
    [[nodiscard]] virtual object lock(patience const& p, std::stop_token const& stop) = 0;

    /// Effects: the hold of `one` is kept, as one of this thread.
    virtual void keep(object const& one) noexcept = 0;

    /// Returns: the hold of those kept that this thread took last; if it has none, the oldest; null if none is kept.
    /// It stays kept.
    [[nodiscard]] virtual object current() noexcept = 0;

    /// Effects: the same hold is in use, and to be given back by the caller. Returns: its object; null if none is kept.
    [[nodiscard]] virtual object let_go() noexcept = 0;

    /// Effects: the hold of `one`, which `let_go` returned, is kept as before.
    virtual void keep_again(object const& one) noexcept = 0;

    /// Effects: `one`, which is in use and holds nothing now, may be taken again.
    virtual void put_back(object const& one) noexcept = 0;

    /// Effects: gives back all that are held, together: it waits for the answer to the last one only. What is taken
    /// from now on is closed.
    virtual void close() noexcept = 0;
};

/// Both sides of a `shared_mutex`.
struct shared_sides {
    std::shared_ptr<lock_object> exclusive;
    std::shared_ptr<shared_object> shared;
};

}  // namespace holdfast::detail
