// SPDX-License-Identifier: MIT
//
// The server's side of a TLS connection, in memory as the session under test is: who says what when is up to the test.
#pragma once

#include "support/certificates.hpp"

#include <holdfast/io/secure_layer.hpp>
#include <holdfast/tls/openssl.hpp>

#include <array>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

namespace holdfast::test {

struct server_side_options {
    identity shown;
    std::filesystem::path asks_client_of{};  ///< clients have to show a certificate of this authority
    int version_at_most = 0;
};

class server_side {
public:
    explicit server_side(server_side_options const& options) : context_{::SSL_CTX_new(::TLS_server_method())}
    {
        auto* const context = context_.get();
        ::SSL_CTX_set_security_level(context, 0);  // it may speak what no server should
        bool good = SSL_CTX_set_min_proto_version(context, 0) == 1 &&
                    SSL_CTX_set_max_proto_version(context, options.version_at_most) == 1;
        good = good && ::SSL_CTX_use_certificate_chain_file(context, options.shown.certificate.c_str()) == 1;
        good = good && ::SSL_CTX_use_PrivateKey_file(context, options.shown.key.c_str(), SSL_FILETYPE_PEM) == 1;
        if (!options.asks_client_of.empty()) {
            good = good && ::SSL_CTX_load_verify_locations(context, options.asks_client_of.c_str(), nullptr) == 1;
            ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
        }
        if (!good) throw std::runtime_error{"the server's side of TLS cannot be set up"};
        ssl_.reset(::SSL_new(context));
        ::SSL_set_bio(ssl_.get(), ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem()));
        ::SSL_set_accept_state(ssl_.get());
    }

    [[nodiscard]] SSL* ssl() const noexcept { return ssl_.get(); }

    void receive(std::string_view wire)
    {
        ::BIO_write(::SSL_get_rbio(ssl_.get()), wire.data(), static_cast<int>(wire.size()));
    }

    /// Returns: what is to go over the wire.
    [[nodiscard]] std::string output()
    {
        std::string bytes(::BIO_ctrl_pending(::SSL_get_wbio(ssl_.get())), '\0');
        if (!bytes.empty()) ::BIO_read(::SSL_get_wbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
        return bytes;
    }

    void say(std::string_view text) { ::SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())); }

    /// Returns: what the client has said.
    [[nodiscard]] std::string read()
    {
        std::string all;
        std::array<char, 4096> buffer{};
        for (int n = 0; (n = ::SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size()))) > 0;)
            all.append(buffer.data(), static_cast<std::size_t>(n));
        ::ERR_clear_error();
        return all;
    }

private:
    tls::openssl_ptr<SSL_CTX> context_;
    tls::openssl_ptr<SSL> ssl_;
};

/// Effects: carries the bytes of both sides until none has more to say, at most `piece` of the server's at a time, with
/// a look of the client at each. Returns: how far the client's handshake has come.
inline io::secure_session::progress shake_hands(io::secure_session& client, server_side& server,
                                                std::size_t piece = std::numeric_limits<std::size_t>::max())
{
    auto reached = client.handshake();
    for (;;) {
        std::string const said{client.take_output()};
        server.receive(said);
        ::SSL_do_handshake(server.ssl());
        ::ERR_clear_error();
        auto const answer = server.output();
        if (said.empty() && answer.empty()) return reached;
        for (std::string_view rest = answer; !rest.empty(); rest.remove_prefix(std::min(piece, rest.size()))) {
            client.receive(rest.substr(0, piece));
            if (reached == io::secure_session::progress::under_way) reached = client.handshake();
        }
    }
}

/// Returns: what the server has said to `client`, which has not ended.
inline std::string read(io::secure_session& client)
{
    std::string all;
    std::array<char, 100> buffer{};
    for (;;) {
        auto const n = client.read(buffer);
        if (!n) throw std::runtime_error{"the session has ended: " + client.why().detail};
        if (*n == 0) return all;
        all.append(buffer.data(), *n);
    }
}

/// Effects: carries what the server has to say to `client`.
inline void carry(server_side& server, io::secure_session& client) { client.receive(server.output()); }

/// Effects: carries what `client` has to say to the server.
inline void carry(io::secure_session& client, server_side& server) { server.receive(client.take_output()); }

}  // namespace holdfast::test
