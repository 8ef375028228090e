// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/store.hpp>

#include <memory>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// The leases that the clients of one memory share.
class leases {
public:
    leases() = default;
    leases(leases const&) = delete;
    leases& operator=(leases const&) = delete;
    virtual ~leases() = default;

    /// Effects: ends the lease of `name`, if there is one.
    virtual void erase(std::string const& name) = 0;
};

/// A client of the leases: what makes its locks, and the leases.
struct opened {
    std::shared_ptr<holdfast::detail::lock_factory> locks;
    std::shared_ptr<leases> shared;
};

}  // namespace holdfast::memory
