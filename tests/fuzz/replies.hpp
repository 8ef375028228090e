// SPDX-License-Identifier: MIT
//
// Replies of a server, as the fuzz targets of Redis look at them.
#pragma once

#include <holdfast/redis/hiredis.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::test {

/// Returns: all that can be asked of `r`, as text.
[[nodiscard]] inline std::string written(redis::reply const& r)
{
    using kind = redis::reply::kind;
    switch (r.what()) {
    case kind::nil: return "nil";
    case kind::integer: return ':' + std::to_string(r.integer());
    case kind::text: return '"' + std::string{r.text()} + '"';
    case kind::error: return '-' + std::string{r.text()};
    case kind::array: break;
    }
    std::string all = "[";
    for (std::size_t i = 0; i < r.size(); ++i) all += written(r[i]) + ',';
    return all + ']';
}

}  // namespace holdfast::test
