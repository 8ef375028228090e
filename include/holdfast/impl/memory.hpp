// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/lasting.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/impl/urls.hpp>
#include <holdfast/lock/client_context.hpp>
#include <holdfast/memory/data.hpp>
#include <holdfast/memory/memory_client.hpp>
#include <holdfast/memory/opened.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// Returns: the implementation of a `store`: a client of the leases `shared`, or of new ones if that is null.
[[nodiscard]] HOLDFAST_INLINE opened open_memory(std::shared_ptr<leases> shared)
{
    auto all = shared ? std::static_pointer_cast<data>(std::move(shared)) : std::make_shared<data>();
    auto locks = std::make_shared<holdfast::detail::client_context>(std::make_shared<memory_client>(all));
    return {std::move(locks), std::move(all)};
}

}  // namespace holdfast::memory

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Returns: the store of a URL, `memory:NAME`: the same NAME gives the same leases, also if no handle has been there
/// meanwhile: what a `min_hold` keeps is kept. A child of `fork` has its own.
// NOLINTNEXTLINE(misc-definitions-in-headers): weak
[[gnu::weak]] store open_memory_url(std::string_view url)
{
    struct known_leases {
        fork_guard origin;
        std::mutex guards;
        std::map<std::string, std::shared_ptr<memory::leases>> all;
    };
    auto& place = lasting<std::atomic<known_leases*>>();  // a store may be opened while the program ends
    auto* shared = place.load();
    if (!shared || shared->origin.in_child()) {  // at the fork, a thread of the parent may have had any of its mutexes
        auto made = std::make_unique<known_leases>();
        if (place.compare_exchange_strong(shared, made.get())) shared = made.release();
    }
    std::scoped_lock guard{shared->guards};
    auto& known = shared->all[std::string{url}];
    auto made = memory::open_memory(known);
    known = made.shared;
    return store{std::move(made.locks)};
}

}  // namespace holdfast::detail
