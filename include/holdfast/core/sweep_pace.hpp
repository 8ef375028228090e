// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <cstddef>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// When a container, of which elements come to be of no use by themselves, is looked through for them: so seldom that
/// an insertion costs no more for it on average, and so often that its size stays proportional to what is of use.
class sweep_pace {
public:
    /// Returns: whether a container of `size` elements is looked through before another one is added.
    [[nodiscard]] bool due(std::size_t size) const noexcept { return size >= at_; }

    /// Effects: notes that `size` elements are left.
    void swept(std::size_t size) noexcept { at_ = 2 * size + 64; }

private:
    std::size_t at_ = 64;
};

}  // namespace holdfast::detail
