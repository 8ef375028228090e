// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>

#include <cstddef>
#include <memory>
#include <stop_token>

namespace holdfast::inline HOLDFAST_ABI::detail {

class joint_hold;

/// What became of an attempt at several locks together.
struct joint_outcome {
    enum class kind {
        not_asked,  ///< they cannot be asked for together, or that failed
        refused,    ///< one of them is not free
        held,       ///< all of them are held
    };
    kind what = kind::not_asked;
    std::size_t blocker = 0;  ///< the place of the one that is not free
};

/// The present hold of a `multi_mutex`, which asynchronous calls take and give back, too. It may outlive the
/// `multi_mutex`; then it is closed.
class joint_object : public async_source {
public:
    using hold = std::shared_ptr<joint_hold>;

    /// Effects: one attempt at all of them by one request, if their store has that.
    virtual joint_outcome try_lock_all(patience const& p, std::stop_token const& stop) = 0;

    /// Effects: takes the lock at `place`; those before it are held. Returns: whether it is held. Throws: as
    /// `lock_object::lock`; `resource_deadlock_would_occur` if it is one of those before it.
    virtual bool lock(std::size_t place, patience const& p, std::stop_token const& stop) = 0;

    /// Effects: `made` is the present hold. Returns: false, and it is not, after `close`.
    virtual bool keep(hold made) noexcept = 0;

    /// Returns: the present hold; null if there is none.
    [[nodiscard]] virtual hold held() const noexcept = 0;

    /// Effects: there is no present hold any more. Returns: what it was, and the caller is to give back.
    [[nodiscard]] virtual hold let_go() noexcept = 0;

    /// Effects: cancels asynchronous calls, also those that are begun later.
    virtual void close() noexcept = 0;
};

}  // namespace holdfast::detail
