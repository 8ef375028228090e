// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/io/secure_layer.hpp>
#include <holdfast/io/tls_error.hpp>
#include <holdfast/tls/openssl.hpp>
#include <holdfast/tls/peer_name.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::tls {

/// The client's side of one TLS connection, between two buffers in memory.
class session final : public io::secure_session {
public:
    /// Throws: `std::bad_alloc`.
    session(SSL_CTX* context, peer_name peer, bool verified) : peer_{std::move(peer)}, ssl_{::SSL_new(context)}
    {
        error_queue const errors;
        if (!ssl_) throw std::bad_alloc{};
        auto* const in = ::BIO_new(::BIO_s_mem());
        auto* const out = ::BIO_new(::BIO_s_mem());
        if (!in || !out) {
            ::BIO_free(in);
            ::BIO_free(out);
            throw std::bad_alloc{};
        }
        ::SSL_set_bio(ssl_.get(), in, out);
        BIO_set_mem_eof_return(in, -1);  // empty means: more may come
        peer_.ask(ssl_.get());
        if (verified) {
            peer_.demand(ssl_.get());
            SSL_set_app_data(ssl_.get(), this);
            ::SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, &look_at);
        }
        ::SSL_set_connect_state(ssl_.get());
    }

    session(session const&) = delete;
    session& operator=(session const&) = delete;
    ~session() override = default;

    void receive(std::span<char const> wire) override
    {
        error_queue const errors;
        forget_taken();
        if (::BIO_write(::SSL_get_rbio(ssl_.get()), wire.data(), static_cast<int>(wire.size())) !=
            static_cast<int>(wire.size()))
            throw std::bad_alloc{};
    }

    progress handshake() override
    {
        error_queue errors;
        forget_taken();
        int const n = ::SSL_do_handshake(ssl_.get());
        secured_ = n == 1;
        if (secured_) return progress::done;
        if (may_go_on(n)) return progress::under_way;
        judge(errors.take());
        return progress::failed;
    }

    std::optional<std::size_t> read(std::span<char> buffer) override
    {
        error_queue errors;
        forget_taken();
        int const n = ::SSL_read(ssl_.get(), buffer.data(), length(buffer.size()));
        if (n > 0) return static_cast<std::size_t>(n);
        if (may_go_on(n)) return 0;
        if (::SSL_get_error(ssl_.get(), n) == SSL_ERROR_ZERO_RETURN)
            why_ = {{}, "the server ended the TLS connection"};
        else
            judge(errors.take());
        return std::nullopt;
    }

    bool write(std::string_view bytes) override
    {
        error_queue const errors;
        forget_taken();
        while (!bytes.empty()) {
            int const n = ::SSL_write(ssl_.get(), bytes.data(), length(bytes.size()));
            if (n <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
        return true;
    }

    void finish() noexcept override
    {
        error_queue const errors;
        forget_taken();
        if (!broken_) ::SSL_shutdown(ssl_.get());
    }

    std::string_view take_output() noexcept override
    {
        forget_taken();
        char* bytes = nullptr;
        auto const size = BIO_get_mem_data(::SSL_get_wbio(ssl_.get()), &bytes);
        taken_ = size > 0;
        return taken_ ? std::string_view{bytes, static_cast<std::size_t>(size)} : std::string_view{};
    }

    [[nodiscard]] failure const& why() const noexcept override { return why_; }

private:
    [[nodiscard]] static int length(std::size_t size) noexcept
    {
        return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
    }

    void forget_taken() noexcept
    {
        if (std::exchange(taken_, false)) static_cast<void>(BIO_reset(::SSL_get_wbio(ssl_.get())));
    }

    /// Effects: notes the names in a certificate that is refused for its name: they are not available afterwards. The
    /// verdict stays the same.
    static int look_at(int good, X509_STORE_CTX* context) noexcept
    {
        if (good == 1) return 1;
        auto const* const ssl =
            static_cast<SSL*>(::X509_STORE_CTX_get_ex_data(context, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
        auto const why = ::X509_STORE_CTX_get_error(context);
        if (why != X509_V_ERR_HOSTNAME_MISMATCH && why != X509_V_ERR_IP_ADDRESS_MISMATCH) return 0;
        try {
            static_cast<session*>(SSL_get_app_data(ssl))->is_for_ = names_in(::X509_STORE_CTX_get0_cert(context));
        } catch (std::bad_alloc const&) {  // the message says less
        }
        return 0;
    }

    /// Only input can ever be missing: the output takes everything, and nothing is renegotiated.
    [[nodiscard]] bool may_go_on(int n) const noexcept { return ::SSL_get_error(ssl_.get(), n) == SSL_ERROR_WANT_READ; }

    /// Effects: sets the reason of the failure, from the error `e`.
    void judge(unsigned long e)
    {
        broken_ = true;
        int const reason = ERR_GET_LIB(e) == ERR_LIB_SSL ? ERR_GET_REASON(e) : 0;
        auto const words = error_queue::words(e);
        switch (reason) {
        case SSL_R_CERTIFICATE_VERIFY_FAILED: judge_certificate(); break;
        case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
        case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
        case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
        case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED: why_ = {errc::client_certificate_refused, words}; break;
        case SSL_R_WRONG_VERSION_NUMBER:
        case SSL_R_PACKET_LENGTH_TOO_LONG:
        case SSL_R_HTTP_REQUEST: why_ = {secured_ ? errc::handshake_interrupted : errc::not_tls, words}; break;
        case SSL_R_TLSV1_ALERT_INTERNAL_ERROR:
        case SSL_R_TLSV1_ALERT_USER_CANCELLED:
        case ERR_R_MALLOC_FAILURE: why_ = {errc::handshake_interrupted, words}; break;
        default: why_ = {secured_ ? errc::handshake_interrupted : errc::handshake_refused, words}; break;
        }
    }

    void judge_certificate()
    {
        auto const result = ::SSL_get_verify_result(ssl_.get());
        std::string const words = ::X509_verify_cert_error_string(result);
        switch (result) {
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH:
            why_ = {errc::certificate_wrong_name,
                    holdfast::quoted(peer_.text()) + " was asked for, the certificate is for " + is_for_};
            break;
        case X509_V_ERR_CERT_HAS_EXPIRED:
        case X509_V_ERR_CERT_NOT_YET_VALID: why_ = {errc::certificate_expired, words}; break;
        default: why_ = {errc::certificate_untrusted, words}; break;
        }
    }

    peer_name peer_;
    openssl_ptr<SSL> ssl_;
    std::string is_for_;    // the names in a certificate that is refused because of them
    bool secured_ = false;  // the handshake is done: from here on only our side can be refused
    bool taken_ = false;    // the output has been taken
    bool broken_ = false;   // nothing more can be sent, not even the end
    failure why_{{}, "the TLS connection has ended"};
};

}  // namespace holdfast::tls
