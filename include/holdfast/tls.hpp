// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/core/abi.hpp>
#include <holdfast/io/secure_layer.hpp>
#include <holdfast/io/tls_error.hpp>
#include <holdfast/io/tls_options.hpp>
#include <holdfast/tls/context.hpp>
#include <holdfast/tls/peer_name.hpp>
#include <holdfast/tls/session.hpp>

#include <memory>
#include <string>

/// Gives a program TLS, by OpenSSL: if one of its files includes this header, `rediss://` URLs work in all of them.
namespace holdfast::inline HOLDFAST_ABI::tls {

/// TLS by OpenSSL.
class layer final : public io::secure_layer {
public:
    explicit layer(options const& o)
        : context_{o}, server_name_{o.server_name}, verified_{!o.insecure_skip_verification}
    {
    }

    [[nodiscard]] std::unique_ptr<io::secure_session> begin(std::string const& host) const override
    {
        return std::make_unique<session>(context_.get(), peer_name{server_name_.empty() ? host : server_name_},
                                         verified_);
    }

private:
    context context_;
    std::string server_name_;
    bool verified_;
};

}  // namespace holdfast::tls

namespace holdfast::inline HOLDFAST_ABI::io {

// NOLINTNEXTLINE(misc-definitions-in-headers): weak
[[gnu::weak]] std::shared_ptr<secure_layer const> make_secure_layer(tls::options const& o)
{
    return std::make_shared<tls::layer const>(o);
}

}  // namespace holdfast::io
