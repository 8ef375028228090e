// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/holdfast.hpp>
#include <holdfast/lock/basic_mutex.hpp>
#include <holdfast/lock/basic_mutex_members.hpp>
#include <holdfast/lock/domain.hpp>
#include <holdfast/memory/backend.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::memory {

/// Locks in the memory of this process: for tests, and for programs that have one process today. Thread-safe; its locks may outlive it.
class store {
public:
    store() : store{std::make_shared<data>()} {}

    /// Returns: another client of the same locks, with queues and a renewing thread of its own, as another process would have.
    [[nodiscard]] store another_client() const { return store{domain_->backend().shared()}; }

    /// Effects: ends the lease of whoever has `name`, as a server does that lost its memory. For tests.
    void erase(std::string const& name) { domain_->backend().shared()->erase(name); }

private:
    friend class mutex;

    explicit store(std::shared_ptr<data> d)
        : domain_{std::make_shared<holdfast::detail::domain<backend>>(std::make_shared<backend>(std::move(d)))}
    {
    }

    std::shared_ptr<holdfast::detail::domain<backend>> domain_;
};

/// A lock in a `store`. Meets `Lock`; see `basic_mutex` for its members.
class mutex : public basic_mutex<backend> {
public:
    /// Throws: `error` (`misconfigured`) where the name or an option cannot be used.
    mutex(store& in, std::string_view name, lock_options options = {}) : basic_mutex{in.domain_, name, std::move(options)} {}
};

static_assert(Lock<mutex>);

}  // namespace holdfast::memory
