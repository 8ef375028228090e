// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

// The only header that includes OpenSSL, 1.1.1 or later.

namespace holdfast::inline HOLDFAST_ABI::tls {

/// Frees what OpenSSL allocated.
struct openssl_deleter {
    void operator()(SSL_CTX* one) const noexcept { ::SSL_CTX_free(one); }
    void operator()(SSL* one) const noexcept { ::SSL_free(one); }
    void operator()(GENERAL_NAMES* all) const noexcept { ::GENERAL_NAMES_free(all); }
};

template <class T>
using openssl_ptr = std::unique_ptr<T, openssl_deleter>;

/// OpenSSL keeps a queue of errors for each thread. It must be empty before a call that is judged by it. This drops
/// what is in it from elsewhere, and leaves nothing of ours in it.
class error_queue {
public:
    error_queue() noexcept { ::ERR_clear_error(); }
    error_queue(error_queue const&) = delete;
    error_queue& operator=(error_queue const&) = delete;
    ~error_queue() { ::ERR_clear_error(); }

    /// Effects: empties the queue. Returns: the first error of TLS itself, whatever led to it; otherwise the first
    /// error; 0 if there is none.
    [[nodiscard]] unsigned long take() noexcept
    {
        auto const first = ::ERR_get_error();
        for (auto e = first; e != 0; e = ::ERR_get_error())
            if (ERR_GET_LIB(e) == ERR_LIB_SSL) return e;
        return first;
    }

    /// Returns: OpenSSL's text for `e`, which contains nothing of what was sent.
    [[nodiscard]] static std::string words(unsigned long e)
    {
        auto const* const text = ::ERR_reason_error_string(e);
        return text ? text : e == 0 ? "no reason given" : "error " + std::to_string(ERR_GET_REASON(e));
    }
};

}  // namespace holdfast::tls
