// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/io/secure_layer.hpp>
#include <holdfast/io/tls_options.hpp>
#include <holdfast/redis/endpoint.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Returns: the TLS of a client of `servers`; null if none of them asks for it. Throws: `error` (`misconfigured`) if
/// the program is built without TLS, if an option cannot be used, or if there are options but no server that uses them:
/// a secret that was to be protected would not be.
[[nodiscard]] inline std::shared_ptr<io::secure_layer const> secured(std::vector<endpoint> const& servers,
                                                                     tls::options const& options)
{
    auto const first = std::find_if(servers.begin(), servers.end(), [](auto const& one) { return one.tls; });
    if (first == servers.end()) {
        if (options == tls::options{}) return nullptr;
        throw error{holdfast::errc::misconfigured,
                    "TLS options are set, and no server is asked in TLS: write rediss:// in a URL, or set `tls` of an "
                    "endpoint"};
    }
    if (auto* const make = &io::make_secure_layer) return make(options);
    throw error{
        holdfast::errc::misconfigured,
        first->describe() +
            " asks for TLS, which this program is built without: include <holdfast/tls.hpp> in one of its files and "
            "link OpenSSL, with CMake the target holdfast::tls"};
}

}  // namespace holdfast::redis
