// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/lasting.hpp>

#include <memory>
#include <string>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// What a store knows of one lock: made once by `lock_store::make_key`, shared, immutable. A store derives from it.
class lock_key {
public:
    /// `kind` distinguishes locks of one name that do not exclude each other in this process; empty for the usual kind.
    explicit lock_key(std::string name, std::string kind = {}, access mode = access::sole)
        : name_{std::move(name)},
          kind_{kind.empty() ? nullptr : std::make_unique<std::string const>(std::move(kind))},
          mode_{mode}
    {
    }
    lock_key(lock_key const&) = delete;
    lock_key& operator=(lock_key const&) = delete;
    virtual ~lock_key() = default;

    /// Returns: the name of the lock, as it was given.
    [[nodiscard]] std::string const& name() const noexcept { return name_; }
    /// Returns: the kind, as it was given.
    [[nodiscard]] std::string const& kind() const noexcept { return kind_ ? *kind_ : detail::lasting<std::string>(); }
    /// Returns: the access that is asked for with it.
    [[nodiscard]] access mode() const noexcept { return mode_; }

private:
    std::string name_;
    std::unique_ptr<std::string const> kind_;  // null: the usual one
    access mode_;
};

/// A key, as the operations on it share it.
using shared_key = std::shared_ptr<lock_key const>;

}  // namespace holdfast
