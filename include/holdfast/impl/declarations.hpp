// SPDX-License-Identifier: MIT
#pragma once

// What the library holdfast::compiled contains. Included in place of the other headers of this folder if
// HOLDFAST_COMPILED is defined.

#include <holdfast/core/abi.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/memory/opened.hpp>
#include <holdfast/redis/client_options.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/opened.hpp>
#include <holdfast/redlock/masters_options.hpp>
#include <holdfast/zookeeper/opened.hpp>
#include <holdfast/zookeeper/session_options.hpp>

#include <memory>
#include <string_view>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI {

namespace detail {
[[nodiscard]] store open_url(std::string_view url);
}

namespace memory {
[[nodiscard]] opened open_memory(std::shared_ptr<leases> shared);
}

namespace redis {
[[nodiscard]] opened open_client(client_options options);
[[nodiscard]] opened open_client(std::string_view url, client_options options);
}  // namespace redis

namespace redlock {
[[nodiscard]] redis::opened open_masters(std::vector<redis::endpoint> servers, masters_options options);
}

namespace zookeeper {
[[nodiscard]] opened open_session(std::string_view servers, session_options options);
}

}  // namespace holdfast
