// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/store.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// What goes wrong when leases are asked for, extended or released; for tests.
struct faults {
    bool unavailable = false;            ///< requests are not sent, as if no server could be reached
    std::chrono::milliseconds delay{0};  ///< how long each answer is under way
    unsigned lost_answers = 0;           ///< this many requests from now on take effect, and are never answered

    /// How long a request waits for its answer; then its outcome is unknown.
    std::chrono::milliseconds operation_timeout{1000};
};

/// The leases that the clients of one memory share.
class leases {
public:
    leases() = default;
    leases(leases const&) = delete;
    leases& operator=(leases const&) = delete;
    virtual ~leases() = default;

    /// Effects: ends the lease of `name`, if there is one.
    virtual void erase(std::string const& name) = 0;

    /// Effects: requests of all clients meet `f` from now on, in place of earlier faults.
    virtual void set_faults(faults const& f) noexcept = 0;
};

/// A client of the leases: what makes its locks, and the leases.
struct opened {
    std::shared_ptr<holdfast::detail::lock_factory> locks;
    std::shared_ptr<leases> shared;
};

}  // namespace holdfast::memory
