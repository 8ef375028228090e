// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/awaited.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// What operators ask of a store: each call asks, and waits for the answer. Throws: `error`, with the lock's name.
class inspection {
public:
    explicit inspection(lock_store& in) noexcept : store_{in} {}

    [[nodiscard]] lock_report inspect(shared_key const& key, report_of what) const
    {
        return answer_to(*store_.inspect(key, what), key, what == report_of::holder ? "holder" : "contenders");
    }
    [[nodiscard]] bool force_release(shared_key const& key) const
    {
        return answer_to(*store_.force_release(key), key, "force_unlock");
    }
    [[nodiscard]] bool request_release(shared_key const& key) const
    {
        return answer_to(*store_.request_release(key), key, "request_release");
    }
    [[nodiscard]] std::vector<std::string> list(std::string_view prefix) const
    {
        return answer_to(*store_.list(prefix), nullptr, "list");
    }
    /// `slots`: all those of one semaphore.
    [[nodiscard]] std::size_t count_held(std::vector<shared_key> const& slots) const
    {
        return answer_to(*store_.count_held(slots), slots.front(), "permits_in_use");
    }
    /// `slot`: one of a semaphore with the new number of permits; `ttl`: of its leases.
    void resize(shared_key const& slot, std::chrono::milliseconds ttl) const
    {
        if (auto const asking = store_.resize(slot, ttl)) static_cast<void>(answer_to(*asking, slot, "resize"));
    }

    /// Effects: asks by `asking`, a question of this store about the lock of `key`, and waits. Returns: the answer.
    /// Throws: `error`, which calls the question `what`.
    template <class T>
    [[nodiscard]] T answer_to(operation<result<T>>& asking, shared_key const& key, std::string what) const
    {
        awaited told;
        asking.start(told);
        told.wait(store_, key);
        auto got = asking.outcome();
        if (got) return std::move(*got);
        if (!got.why().detail.empty()) what.append("; ").append(got.why().detail);
        throw error_of(key ? key->name() : std::string{}, {got.code(), std::move(what), got.why().server});
    }

private:
    lock_store& store_;
};

}  // namespace holdfast::detail
