// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>
#include <holdfast/io/secure_layer.hpp>
#include <holdfast/io/tls_options.hpp>
#include <holdfast/redis/endpoint.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace holdfast::redis {

/// Returns: the TLS of a client of `servers`; null where none of them asks for it. Throws: `error` (`misconfigured`): the program is without
/// TLS; an option cannot be used; there are options, and nobody whom they are for, so that a secret that was to be protected is not.
[[nodiscard]] inline std::shared_ptr<io::secure_layer const> secured(std::vector<endpoint> const& servers, tls::options const& options)
{
    auto const first = std::find_if(servers.begin(), servers.end(), [](auto const& one) { return one.tls; });
    if (first == servers.end()) {
        if (options == tls::options{}) return nullptr;
        throw error{holdfast::errc::misconfigured, "TLS options are set, and no server is asked in TLS; write rediss:// in its URL"};
    }
    if (auto const make = io::make_secure_layer.load()) return make(options);
    throw error{holdfast::errc::misconfigured,
                first->describe() +
                    " asks for TLS, which this program is built without: include <holdfast/tls.hpp> in one of its files and "
                    "link OpenSSL, with CMake the target holdfast::tls"};
}

}  // namespace holdfast::redis
