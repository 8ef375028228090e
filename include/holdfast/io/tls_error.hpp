// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lasting.hpp>

#include <string>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::tls {

/// Why there is no TLS connection. A category of its own; each code equals one condition of `holdfast::errc`.
enum class errc {
    // unavailable: it may pass
    handshake_interrupted = 1,  ///< the connection broke, or the server broke off, before it could be used
    // misconfigured: it will not pass
    certificate_untrusted,       ///< no trusted authority has signed the server's certificate
    certificate_expired,         ///< the server's certificate, or one of those that signed it, is not valid now
    certificate_wrong_name,      ///< the server's certificate is for another host
    client_certificate_refused,  ///< the server demands a certificate of the client, or does not accept the one it got
    handshake_refused,           ///< the two sides have no version or cipher in common, or one breaks the protocol
    not_tls,                     ///< the server's answer was not TLS
    tls_expected,                ///< the server answered in TLS, though it was not asked in TLS
};

namespace detail {

class [[gnu::visibility("default")]] category final : public std::error_category {
public:
    [[nodiscard]] char const* name() const noexcept override { return "holdfast.tls"; }

    [[nodiscard]] std::string message(int value) const override
    {
        switch (static_cast<errc>(value)) {
        case errc::handshake_interrupted: return "the TLS handshake was broken off";
        case errc::certificate_untrusted:
            return "the server's certificate is not signed by a trusted authority; name its authority in the "
                   "TLS option ca_file";
        case errc::certificate_expired:
            return "the server's certificate is not valid at this time; renew it, or set the clock right";
        case errc::certificate_wrong_name:
            return "the server's certificate is for another name; use that name in the URL or in the TLS option "
                   "server_name";
        case errc::client_certificate_refused:
            return "the server does not accept the client's certificate, or its lack; see the TLS options "
                   "certificate_file and key_file";
        case errc::handshake_refused:
            return "the TLS handshake failed: no version or cipher in common, or the server demands a certificate of "
                   "the client";
        case errc::not_tls: return "the server does not speak TLS; a server without TLS is asked with redis://";
        case errc::tls_expected: return "the server speaks TLS; ask it with rediss://";
        }
        return "unknown TLS error";
    }

    [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override
    {
        bool const passing = static_cast<errc>(value) == errc::handshake_interrupted;
        return make_error_condition(passing ? holdfast::errc::unavailable : holdfast::errc::misconfigured);
    }
};

}  // namespace detail

/// Returns: the category of `tls::errc`, named "holdfast.tls".
[[nodiscard]] inline std::error_category const& error_category() noexcept
{
    return holdfast::detail::lasting<detail::category>();
}

/// Returns: the code of `e`, in `error_category()`.
[[nodiscard]] inline std::error_code make_error_code(errc e) noexcept
{
    return {static_cast<int>(e), error_category()};
}

}  // namespace holdfast::tls

template <>
struct std::is_error_code_enum<holdfast::tls::errc> : std::true_type {};
