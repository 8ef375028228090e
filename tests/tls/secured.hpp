// SPDX-License-Identifier: MIT
#pragma once

#include "support/certificates.hpp"
#include "support/redis_server.hpp"

#include <holdfast/io/tls_options.hpp>

#include <utility>

namespace holdfast::test {

/// A Redis server that talks TLS, with an authority of its own.
struct secured_server {
    authority signer;
    redis_server server;

    explicit secured_server(redis_options options = {}, certificate_options const& shown = {}, bool asks_client = false)
        : server{with_tls(std::move(options), signer, shown, asks_client)}
    {
    }

    /// Returns: options with which it is trusted.
    [[nodiscard]] tls::options trusted() const { return {.ca_file = signer.file()}; }

    static redis_options with_tls(redis_options options, authority& by, certificate_options const& shown,
                                  bool asks_client)
    {
        auto const [certificate, key] = by.issue(shown);
        options.tls = {certificate, key, by.file(), asks_client};
        return options;
    }
};

}  // namespace holdfast::test
