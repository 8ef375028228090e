// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI {

/// Which holds of one name exclude each other:
///
/// | beside    | sole | exclusive | shared |
/// |-----------|------|-----------|--------|
/// | sole      | no   | no        | no     |
/// | exclusive | no   | no        | no     |
/// | shared    | no   | no        | yes    |
enum class access : std::uint8_t {
    sole,       ///< of a mutex, which knows of no other kind
    exclusive,  ///< of a `shared_mutex`, for one
    shared,     ///< of a `shared_mutex`, together with others
};

}  // namespace holdfast
