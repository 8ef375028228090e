// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/core/abi.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/memory/opened.hpp>
#ifdef HOLDFAST_COMPILED
#include <holdfast/impl/declarations.hpp>
#else
#include <holdfast/impl/memory.hpp>
#endif

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// Locks in the memory of this process: for tests, and for programs that are one process today. Thread-safe; its locks
/// may outlive it.
class store : public holdfast::store {
public:
    store() : store{open_memory(nullptr)} {}

    /// Returns: another client of the same locks. It has its own queues and renewing thread, like another process.
    [[nodiscard]] store another_client() const { return store{open_memory(leases_)}; }

    /// Effects: ends the lease of the holder of `name`, like a server that lost its memory. For tests.
    void erase(std::string const& name) { leases_->erase(name); }

    /// Effects: requests of every client of these locks meet `f` from now on, in place of earlier faults; `{}` for
    /// none. Answers that are under way come as they would have come before, and who waits for a lock already keeps
    /// the `operation_timeout`. For tests.
    void set_faults(faults const& f) noexcept { leases_->set_faults(f); }

private:
    explicit store(opened with) noexcept : holdfast::store{std::move(with.locks)}, leases_{std::move(with.shared)} {}

    std::shared_ptr<leases> leases_;
};

/// A lock in a `store`.
class mutex : public holdfast::mutex {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used.
    mutex(store const& in, std::string_view name, lock_options options = {})
        : holdfast::mutex{in, name, std::move(options)}
    {
    }
};

/// A lock in memory that is granted in the order of arrival. See `holdfast::fair_mutex`.
class fair_mutex : public holdfast::fair_mutex {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used; no I/O.
    fair_mutex(store const& on, std::string_view name, lock_options options = {})
        : holdfast::fair_mutex{on, name, std::move(options)}
    {
    }
};

/// A semaphore in a `store`. Its slots are locks of the names `name#0`, `name#1`, and so on.
class semaphore : public holdfast::semaphore {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used, or `max` is not 1 to 1,000.
    semaphore(store const& in, std::string_view name, std::ptrdiff_t max, lock_options const& options = {})
        : holdfast::semaphore{in, name, max, options}
    {
    }
};

/// A read-write lock in a `store`.
class shared_mutex : public holdfast::shared_mutex {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used.
    shared_mutex(store const& in, std::string_view name, lock_options const& options = {})
        : holdfast::shared_mutex{in, name, options}
    {
    }
};

}  // namespace holdfast::memory
