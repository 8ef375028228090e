// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/tls/openssl.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::tls {

/// The name or address that the peer's certificate must have.
class peer_name {
public:
    explicit peer_name(std::string host) : text_{std::move(host)}
    {
        if (text_.find(':') != std::string::npos)
            text_.resize(std::min(text_.size(), text_.find('%')));       // the zone of an IPv6 address
        if (text_.size() > 1 && text_.ends_with('.')) text_.pop_back();  // the root of the names
        std::array<unsigned char, sizeof(in6_addr)> address{};
        is_address_ = ::inet_pton(AF_INET, text_.c_str(), address.data()) == 1 ||
                      ::inet_pton(AF_INET6, text_.c_str(), address.data()) == 1;
    }

    /// Effects: makes `ssl` ask for the name. An address is not asked for. Throws: `std::bad_alloc`.
    /// Source: RFC 6066, section 3.
    void ask(SSL* ssl) const
    {
        if (is_address_) return;
        auto name = text_;  // OpenSSL's macro for this casts, and it takes a pointer to what it could change
        if (::SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) != 1)
            throw std::bad_alloc{};
    }

    /// Effects: makes `ssl` accept only a certificate for the name, in its subject alternative names, with wildcards
    /// only as a whole label.
    /// Source: RFC 6125, section 6.4. Throws: `std::bad_alloc`.
    void demand(SSL* ssl) const
    {
        auto* const checks = ::SSL_get0_param(ssl);
        ::X509_VERIFY_PARAM_set_hostflags(checks,
                                          X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
        bool const set = is_address_ ? ::X509_VERIFY_PARAM_set1_ip_asc(checks, text_.c_str()) == 1
                                     : ::X509_VERIFY_PARAM_set1_host(checks, text_.data(), text_.size()) == 1;
        if (!set) throw std::bad_alloc{};
    }

    [[nodiscard]] std::string const& text() const noexcept { return text_; }

private:
    std::string text_;
    bool is_address_ = false;
};

/// Returns: the first names and addresses that `certificate` is for, for messages.
[[nodiscard]] inline std::string names_in(X509* certificate)
{
    constexpr int most = 8;
    std::string text;
    openssl_ptr<GENERAL_NAMES> const all{
        static_cast<GENERAL_NAMES*>(::X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr))};
    int const count = all ? sk_GENERAL_NAME_num(all.get()) : 0;
    for (int i = 0; i < count && i < most; ++i) {
        auto const* const one = sk_GENERAL_NAME_value(all.get(), i);
        std::string name;
        if (one->type == GEN_DNS) {
            auto const* const bytes = reinterpret_cast<char const*>(::ASN1_STRING_get0_data(one->d.dNSName));
            name = holdfast::quoted({bytes, static_cast<std::size_t>(::ASN1_STRING_length(one->d.dNSName))});
        } else if (one->type == GEN_IPADD) {
            std::array<char, INET6_ADDRSTRLEN> digits{};
            auto const size = ::ASN1_STRING_length(one->d.iPAddress);
            int const family = size == sizeof(in6_addr) ? AF_INET6 : AF_INET;
            if (size != sizeof(in6_addr) && size != sizeof(in_addr)) continue;
            if (::inet_ntop(family, ::ASN1_STRING_get0_data(one->d.iPAddress), digits.data(), digits.size()))
                name = digits.data();
        }
        if (!name.empty()) text += (text.empty() ? "" : ", ") + name;
    }
    return text.empty() ? "no name or address" : count > most ? text + ", …" : text;
}

}  // namespace holdfast::tls
