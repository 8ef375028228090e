// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>

#include <cstddef>
#include <list>
#include <memory>
#include <stop_token>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::detail {

class lock_object;

/// A slot of a semaphore that is held: its lock, with which the slots beside it live, and its number.
struct held_slot {
    std::shared_ptr<lock_object> lock;
    std::size_t slot = 0;
};

/// In a list, so that one that is held can be passed on without memory.
using held_slots = std::list<held_slot>;

/// What a `semaphore` calls: it implements the members of `semaphore` for one store.
class semaphore_object {
public:
    semaphore_object() = default;
    semaphore_object(semaphore_object const&) = delete;
    semaphore_object& operator=(semaphore_object const&) = delete;
    virtual ~semaphore_object() = default;

    /// So many permits are possible: each costs a thread that waits a request.
    static constexpr std::ptrdiff_t most = 1'000;

    /// Effects: takes `n` slots, as long as `p` allows and `stop` is not requested. Returns: which are held now; none
    /// if the time passed, or after a stop. Throws: what `semaphore::acquire(n)` throws.
    [[nodiscard]] virtual held_slots take(std::ptrdiff_t n, patience const& p, std::stop_token const& stop) = 0;

    /// Effects: `some` are of those that `semaphore::release` gives back. Returns: whether there are any.
    virtual bool keep(held_slots some) noexcept = 0;

    /// Effects: `n` of those that were kept are not kept any more, and are to be given back by the caller. Returns:
    /// which; none if fewer were kept.
    [[nodiscard]] virtual held_slots let_go(std::size_t n) noexcept = 0;

    /// Effects: gives back all slots that are held, and cancels what waits.
    virtual void close() noexcept = 0;

    /// Returns: what takes and gives back `n` permits asynchronously. Throws: `std::bad_alloc`.
    [[nodiscard]] virtual std::shared_ptr<async_source> source(std::ptrdiff_t n) = 0;

    // See the members of `semaphore`.
    virtual void resize(std::ptrdiff_t max) = 0;
    [[nodiscard]] virtual std::ptrdiff_t permits_in_use() const = 0;
    [[nodiscard]] virtual std::ptrdiff_t max() const noexcept = 0;
    [[nodiscard]] virtual std::string const& name() const noexcept = 0;
};

}  // namespace holdfast::detail
