// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/mutex.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::faults {

/// Where the locks are. An aggregate that a forked process makes a client from.
struct place {
    enum class store { redis, redlock, zookeeper };

    store what = store::redis;
    std::vector<std::string> servers{};
    std::chrono::milliseconds ttl{400};  ///< of ZooKeeper, the session timeout
    std::chrono::milliseconds operation_timeout{100};
    std::optional<std::chrono::milliseconds> connect_timeout{};  ///< nothing: what the library takes
    std::chrono::milliseconds restart_guard{0};
    unsigned max_local_handoffs = lock_options{}.max_local_handoffs;
    bool deferred_release = false;
    bool fair = false;

    /// Returns: options with this ttl, whose waiters look at a held lock no more often than they must.
    [[nodiscard]] lock_options options() const;
};

/// Throws: `error` where the place cannot be one; `std::runtime_error` where the program was built without its store.
[[nodiscard]] holdfast::store connect(place const& where);

}  // namespace holdfast::faults
