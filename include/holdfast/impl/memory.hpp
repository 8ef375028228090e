// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/lasting.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/impl/urls.hpp>
#include <holdfast/lock/client_context.hpp>
#include <holdfast/memory/data.hpp>
#include <holdfast/memory/memory_client.hpp>
#include <holdfast/memory/opened.hpp>

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
/// meanwhile: what a `min_hold` keeps is kept.
[[gnu::weak]] store open_memory_url(std::string_view url)
{
    struct known_leases {
        std::mutex guards;
        std::map<std::string, std::shared_ptr<memory::leases>> all;
    };
    auto& shared = lasting<known_leases>();  // a store may be opened while the program ends
    std::scoped_lock guard{shared.guards};
    auto& known = shared.all[std::string{url}];
    auto made = memory::open_memory(known);
    known = made.shared;
    return store{std::move(made.locks)};
}

}  // namespace holdfast::detail
