// SPDX-License-Identifier: MIT
#pragma once

// How `make_store` opens a store. If a file of the program includes the header of a store, the program has its weak
// function once, even before the first constructor runs; otherwise it is null. The library holdfast::compiled has
// `make_store` itself.

#include <holdfast/core/abi.hpp>
#include <holdfast/core/store.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::detail {

[[gnu::weak, gnu::visibility("default")]] store open_memory_url(std::string_view url);
[[gnu::weak, gnu::visibility("default")]] store open_redis_url(std::string_view url);
[[gnu::weak, gnu::visibility("default")]] store open_redlock_url(std::string_view url);
[[gnu::weak, gnu::visibility("default")]] store open_zookeeper_url(std::string_view url);

}  // namespace holdfast::detail
