// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/redis/server_status.hpp>

#include <memory>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// What a client knows of its servers.
class servers {
public:
    servers() = default;
    servers(servers const&) = delete;
    servers& operator=(servers const&) = delete;
    virtual ~servers() = default;

    /// Returns: what is known of each, without I/O. In a child of `fork`: empty.
    [[nodiscard]] virtual std::vector<server_status> status() const = 0;
};

/// A client's servers, and the factory for locks on them.
struct opened {
    std::shared_ptr<holdfast::detail::lock_factory> locks;
    std::shared_ptr<redis::servers const> servers;
};

}  // namespace holdfast::redis
