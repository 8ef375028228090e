// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>

#include <memory>

namespace holdfast::inline HOLDFAST_ABI::detail {

class joint_hold;

/// The present hold of a `multi_mutex`, which asynchronous calls take and give back, too. It may outlive the
/// `multi_mutex`; then it is closed.
class joint_object : public async_source {
public:
    using hold = std::shared_ptr<joint_hold>;

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
