// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/lease.hpp>
#include <holdfast/core/options.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace holdfast::faults {

/// A lock of any store; see `Lock`.
class any_lock {
public:
    virtual ~any_lock() = default;
    virtual bool try_lock() = 0;
    virtual bool try_lock_for(std::chrono::milliseconds d) = 0;
    virtual void lock() = 0;
    virtual bool extend(std::chrono::milliseconds ttl, std::error_code& ec) = 0;
    virtual void unlock(std::error_code& ec) noexcept = 0;
    [[nodiscard]] virtual holdfast::lease lease() const = 0;
};

/// A client of any store. Its locks may outlive it.
class any_client {
public:
    virtual ~any_client() = default;
    [[nodiscard]] virtual std::unique_ptr<any_lock> lock(std::string const& name, lock_options options) = 0;
};

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

    /// Returns: options with this ttl, whose waiters look at a held lock no more often than they must.
    [[nodiscard]] lock_options options() const;
};

/// Throws: `error` where the place cannot be one; `std::runtime_error` where the program was built without its store.
[[nodiscard]] std::unique_ptr<any_client> connect(place const& where);

}  // namespace holdfast::faults
