// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/redis/greeting.hpp>

#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Is told what a node says about itself, which may decide the votes of other nodes.
class greeting_listener {
public:
    /// `node` says `g`. Returns: no error, or why the connection is given up.
    [[nodiscard]] virtual std::error_code refuses(unsigned node, greeting const& g) = 0;

    /// A connection is up.
    virtual void on_greeting(boot_clock::time_point now) = 0;

protected:
    ~greeting_listener() = default;
};

}  // namespace holdfast::redis
