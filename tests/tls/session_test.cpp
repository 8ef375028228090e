// SPDX-License-Identifier: MIT
//
// One TLS connection, byte by byte, without sockets.
#include "server_side.hpp"
#include "support/catch.hpp"

#include <holdfast/io/tls_error.hpp>
#include <holdfast/tls.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>

using holdfast::test::authority;
using holdfast::test::carry;
using holdfast::test::contains;
using holdfast::test::identity;
using holdfast::test::read;
using holdfast::test::server_side;
using holdfast::test::shake_hands;
using holdfast::tls::errc;
using progress = holdfast::io::secure_session::progress;

namespace {

std::unique_ptr<holdfast::io::secure_session> client_of(holdfast::tls::options const& options,
                                                        std::string const& host = "localhost")
{
    return holdfast::tls::layer{options}.begin(host);
}

/// A connection that is ready for use.
struct connected {
    authority signer{};
    server_side server{{.shown = signer.issue()}};
    std::unique_ptr<holdfast::io::secure_session> client = client_of({.ca_file = signer.file()});

    explicit connected(int version_at_most = 0) : server{{.shown = signer.issue(), .version_at_most = version_at_most}}
    {
        REQUIRE(shake_hands(*client, server) == progress::done);
        static_cast<void>(read(*client));  // what a server says behind the handshake is no word of its user
    }
};

/// Returns: why a handshake fails with a server that shows a certificate for `names`.
holdfast::failure refused(holdfast::tls::options options, std::string const& host,
                          holdfast::test::certificate_options const& shown)
{
    authority signer;
    server_side server{{.shown = signer.issue(shown)}};
    if (options.ca_file == "signer") options.ca_file = signer.file();
    auto const client = client_of(options, host);
    auto const reached = shake_hands(*client, server);
    CHECK(reached == progress::failed);
    return client->why();
}

bool accepted(std::string const& host, std::string const& names)
{
    authority signer;
    server_side server{{.shown = signer.issue({.names = names})}};
    return shake_hands(*client_of({.ca_file = signer.file()}, host), server) == progress::done;
}

}  // namespace

TEST_CASE("both sides understand each other, in TLS 1.3 and 1.2")
{
    auto const version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
    connected c{version};
    CHECK(::SSL_version(c.server.ssl()) == version);
    std::string const question(100'000, 'q');
    REQUIRE(c.client->write(question));
    std::string const wire{c.client->take_output()};
    CHECK_THAT(wire, !contains("qqqqqqqq"));
    c.server.receive(wire);
    CHECK(c.server.read() == question);
    c.server.say("answer");
    c.server.say(", and more");
    carry(c.server, *c.client);
    CHECK(read(*c.client) == "answer, and more");
}

TEST_CASE("bytes may come one at a time")
{
    authority signer;
    server_side server{{.shown = signer.issue()}};
    auto const client = client_of({.ca_file = signer.file()});
    REQUIRE(shake_hands(*client, server, 1) == progress::done);
    server.say("answer");
    std::string got;
    for (char const c : server.output()) {
        client->receive(std::array{c});
        got += read(*client);
    }
    CHECK(got == "answer");
}

TEST_CASE("the server is asked for the name of the URL, or for that of the option, and for no address")
{
    auto const [host, server_name, asked] = GENERATE(table<std::string, std::string, std::string>({
        {"localhost", "", "localhost"},
        {"localhost.", "", "localhost"},
        {"10.0.0.1", "", ""},
        {"::1", "", ""},
        {"fe80::1%eth0", "", ""},
        {"10.0.0.1", "redis.example", "redis.example"},
        {"localhost", "redis.example", "redis.example"},
        {"localhost", "127.0.0.1", ""},
    }));
    CAPTURE(host, server_name);
    authority signer;
    server_side server{{.shown = signer.issue(
                            {.names = "DNS:localhost,DNS:redis.example,IP:10.0.0.1,IP:::1,IP:fe80::1,IP:127.0.0.1"})}};
    auto const client = client_of({.ca_file = signer.file(), .server_name = server_name}, host);
    REQUIRE(shake_hands(*client, server) == progress::done);
    auto const* const seen = ::SSL_get_servername(server.ssl(), TLSEXT_NAMETYPE_host_name);
    CHECK((seen ? std::string{seen} : std::string{}) == asked);
}

TEST_CASE("a certificate counts for the names and addresses in it, and for no others")
{
    CHECK(accepted("localhost", "DNS:localhost"));
    CHECK(accepted("LocalHost", "DNS:localhost"));
    CHECK(accepted("a.redis.example", "DNS:*.redis.example"));
    CHECK(accepted("10.0.0.1", "DNS:localhost,IP:10.0.0.1"));
    CHECK(accepted("::1", "IP:::1"));
    CHECK(accepted("0:0:0:0:0:0:0:1", "IP:::1"));

    CHECK_FALSE(accepted("localhost", "DNS:elsewhere"));
    CHECK_FALSE(accepted("localhost", "DNS:localhost.elsewhere"));
    CHECK_FALSE(accepted("redis.example", "DNS:*.redis.example"));
    CHECK_FALSE(accepted("a.b.redis.example", "DNS:*.redis.example"));
    CHECK_FALSE(accepted("ab.redis.example", "DNS:a*.redis.example"));
    CHECK_FALSE(accepted("10.0.0.1", "IP:10.0.0.2"));
    CHECK_FALSE(accepted("10.0.0.1", "DNS:10.0.0.1"));
    CHECK_FALSE(accepted("server", ""));  // its common name
}

TEST_CASE("a wrong name is refused with what was asked for and whom the certificate is for")
{
    auto const why = refused({.ca_file = "signer"}, "localhost", {.names = "DNS:redis.example,IP:10.0.0.7,IP:::7"});
    CHECK(why.code == errc::certificate_wrong_name);
    CHECK_THAT(why.detail,
               contains("\"localhost\"") && contains("\"redis.example\"") && contains("10.0.0.7") && contains("::7"));
    CHECK_THAT(refused({.ca_file = "signer"}, "10.0.0.1", {.names = ""}).detail, contains("no name or address"));
    CHECK_THAT(refused({.ca_file = "signer", .server_name = "redis.example"}, "localhost", {}).detail,
               contains("\"redis.example\""));
}

TEST_CASE("a certificate of another authority, an expired one and one that is not valid yet are refused")
{
    authority other{"another"};
    authority namesake;
    CHECK(refused({.ca_file = namesake.file()}, "localhost", {}).code == errc::certificate_untrusted);
    auto const untrusted = refused({.ca_file = other.file()}, "localhost", {});
    CHECK(untrusted.code == errc::certificate_untrusted);
    CHECK_FALSE(untrusted.detail.empty());
    CHECK(refused({}, "localhost", {}).code == errc::certificate_untrusted);  // the system's
    CHECK(refused({.ca_file = "signer"}, "localhost",
                  {.valid_from = std::chrono::hours{-48}, .valid_to = std::chrono::hours{-24}})
              .code == errc::certificate_expired);
    CHECK(refused({.ca_file = "signer"}, "localhost",
                  {.valid_from = std::chrono::hours{24}, .valid_to = std::chrono::hours{48}})
              .code == errc::certificate_expired);
}

TEST_CASE("authorities may be in a folder")
{
    authority signer;
    server_side server{{.shown = signer.issue()}};
    CHECK(shake_hands(*client_of({.ca_folder = signer.hashed_folder()}), server) == progress::done);
}

TEST_CASE("verification can be switched off by saying so")
{
    authority signer;
    server_side server{{.shown = signer.issue({
                            .names = "DNS:elsewhere",
                            .valid_to = std::chrono::hours{-1},
                        })}};
    CHECK(shake_hands(*client_of({.insecure_skip_verification = true}), server) == progress::done);
}

TEST_CASE("a server that speaks nothing newer than TLS 1.1 is refused")
{
    authority signer;
    server_side server{{.shown = signer.issue(), .version_at_most = TLS1_1_VERSION}};
    auto const client = client_of({.ca_file = signer.file()});
    CHECK(shake_hands(*client, server) == progress::failed);
    CHECK(client->why().code == errc::handshake_refused);
    holdfast::tls::context const context{{}};  // and not because OpenSSL is configured so
    CHECK(SSL_CTX_get_min_proto_version(context.get()) == TLS1_2_VERSION);
}

TEST_CASE("an answer that is not TLS is known for what it is")
{
    for (std::string const answer : {"-ERR unknown command\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", "+PONG\r\n"}) {
        CAPTURE(answer);
        authority signer;
        auto const client = client_of({.ca_file = signer.file()});
        REQUIRE(client->handshake() == progress::under_way);
        client->receive(answer);
        CHECK(client->handshake() == progress::failed);
        CHECK(client->why().code == errc::not_tls);
    }
}

TEST_CASE("a client shows its certificate to a server that asks for it")
{
    auto const version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
    authority signer;
    authority other{"another"};
    authority namesake;
    auto const seen = [&](holdfast::tls::options options) -> std::error_code {
        server_side server{{.shown = signer.issue(), .asks_client_of = signer.file(), .version_at_most = version}};
        options.ca_file = signer.file();
        auto const client = client_of(options);
        if (shake_hands(*client, server) == progress::failed) return client->why().code;
        std::array<char, 16> buffer{};
        return client->read(buffer) ? std::error_code{}
                                    : client->why().code;  // in TLS 1.3 the server judges behind the client's handshake
    };
    auto const good = signer.issue({.names = "", .common_name = "client"});
    auto const locked = signer.issue({.names = "", .common_name = "client", .key_password = "open sesame"});
    auto const bad = other.issue();
    auto const forged = namesake.issue();
    CHECK_FALSE(seen({.certificate_file = good.certificate, .key_file = good.key}));
    CHECK_FALSE(seen({.certificate_file = locked.certificate, .key_file = locked.key, .key_password = "open sesame"}));
    CHECK(seen({.certificate_file = bad.certificate, .key_file = bad.key}) == errc::client_certificate_refused);
    CHECK(seen({.certificate_file = forged.certificate, .key_file = forged.key}) == errc::client_certificate_refused);
    auto const without = seen({});
    CHECK(without == (version == TLS1_3_VERSION ? errc::client_certificate_refused
                                                : errc::handshake_refused));  // which 1.2 cannot tell apart
    CHECK(without == holdfast::errc::misconfigured);
}

TEST_CASE("a new key that the server asks for is answered while only reading")
{
    connected c{TLS1_3_VERSION};
    for (int i = 0; i < 3; ++i) {
        REQUIRE(::SSL_key_update(c.server.ssl(), SSL_KEY_UPDATE_REQUESTED) == 1);
        c.server.say("answer");
        carry(c.server, *c.client);
        CHECK(read(*c.client) == "answer");
        carry(*c.client, c.server);
        CHECK(c.server.read().empty());
        CHECK(::SSL_get_key_update_type(c.server.ssl()) == SSL_KEY_UPDATE_NONE);
        REQUIRE(c.client->write("question"));
        carry(*c.client, c.server);
        CHECK(c.server.read() == "question");
    }
}

TEST_CASE("a server that wants to negotiate again is refused, and the connection stays")
{
    connected c{TLS1_2_VERSION};
    ::SSL_renegotiate(c.server.ssl());
    ::SSL_do_handshake(c.server.ssl());
    ::ERR_clear_error();
    carry(c.server, *c.client);
    CHECK(read(*c.client).empty());
    CHECK(c.client->write("question"));
    carry(*c.client, c.server);
    std::array<char, 16> buffer{};
    CHECK(::SSL_read(c.server.ssl(), buffer.data(), static_cast<int>(buffer.size())) < 0);
    CHECK(ERR_GET_REASON(::ERR_get_error()) == SSL_R_NO_RENEGOTIATION);
    ::ERR_clear_error();
}

TEST_CASE("the end that the server announces is the end")
{
    connected c;
    c.server.say("last word");
    ::SSL_shutdown(c.server.ssl());
    carry(c.server, *c.client);
    std::array<char, 100> buffer{};
    CHECK(c.client->read(buffer) == 9);
    CHECK(c.client->read(buffer) == std::nullopt);
    CHECK_FALSE(c.client->why().code);
}

TEST_CASE("a byte that was changed on the way breaks the connection")
{
    connected c;
    c.server.say("answer");
    auto wire = c.server.output();
    wire.back() = static_cast<char>(wire.back() ^ 1);
    c.client->receive(wire);
    std::array<char, 100> buffer{};
    CHECK(c.client->read(buffer) == std::nullopt);
    CHECK(c.client->why().code == errc::handshake_interrupted);  // which may pass
    std::string const alert{c.client->take_output()};
    CHECK_FALSE(alert.empty());
    c.client->finish();
    CHECK(c.client->take_output().empty());
}

TEST_CASE("a client that leaves says so")
{
    connected c;
    c.client->finish();
    carry(*c.client, c.server);
    CHECK(c.server.read().empty());
    CHECK((::SSL_get_shutdown(c.server.ssl()) & SSL_RECEIVED_SHUTDOWN) != 0);
}

TEST_CASE("output that was taken is not given again")
{
    connected c;
    REQUIRE(c.client->write("one"));
    carry(*c.client, c.server);
    REQUIRE(c.client->write("two"));
    carry(*c.client, c.server);
    CHECK(c.client->take_output().empty());
    CHECK(c.server.read() == "onetwo");
}

TEST_CASE("errors that others left in OpenSSL's queue are not taken for those of a connection")
{
    connected c;
    ERR_raise(ERR_LIB_SSL, SSL_R_CERTIFICATE_VERIFY_FAILED);
    std::array<char, 100> buffer{};
    CHECK(c.client->read(buffer) == 0);
    CHECK(::ERR_peek_error() == 0);
}
