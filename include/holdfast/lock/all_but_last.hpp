// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/store.hpp>

#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Gives back many locks that are about to be closed, together: all that are held but the last one, without a wait for
/// the answers. To close that one, later, waits for its answer, which is most likely the last of all.
class all_but_last {
public:
    /// Effects: `one` is among them, if it was not before. It gives back the one before.
    void add(std::shared_ptr<lock_object> const& one) noexcept
    {
        if (one == last_ || one->lease() == lease{}) return;
        if (auto const before = std::exchange(last_, one)) before->give_back(before->lease());
    }

private:
    std::shared_ptr<lock_object> last_;
};

}  // namespace holdfast::detail
