// SPDX-License-Identifier: MIT
//
// Options that cannot be used, and what their refusals say.
#include "support/catch.hpp"
#include "support/certificates.hpp"
#include "support/refusal.hpp"

#include <holdfast/io/tls_error.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>
#include <holdfast/tls.hpp>

#include <fstream>
#include <set>
#include <string>

using holdfast::test::authority;
using holdfast::test::contains;
using holdfast::test::refusal;
using holdfast::tls::errc;

namespace {

std::string refused(holdfast::tls::options const& options)
{
    return refusal([&] { holdfast::redis::client const c{"rediss://u:canary@localhost", {.tls = options}}; });
}

}  // namespace

TEST_CASE("files that are not there or hold something else are refused by the name of the option")
{
    authority signer;
    auto const good = signer.issue();
    auto const junk = (signer.hashed_folder() / "junk").string();
    std::ofstream{junk} << "-----BEGIN NOTHING-----\n";
    CHECK_THAT(refused({.ca_file = "/no/such"}),
               contains("ca_file") && contains("/no/such") && contains("No such file"));
    CHECK_THAT(refused({.ca_file = junk}), contains("ca_file") && contains("PEM"));
    CHECK_THAT(refused({.ca_folder = "/no/such"}), contains("ca_folder") && contains("No such file"));
    CHECK_THAT(refused({.ca_folder = junk}), contains("ca_folder") && contains("no folder"));
    CHECK_THAT(refused({.certificate_file = "/no/such", .key_file = good.key}),
               contains("certificate_file") && contains("No such file"));
    CHECK_THAT(refused({.certificate_file = junk, .key_file = good.key}),
               contains("certificate_file") && contains("PEM"));
    CHECK_THAT(refused({.certificate_file = good.certificate, .key_file = "/no/such"}),
               contains("key_file") && contains("No such file"));
    CHECK_THAT(refused({.certificate_file = good.certificate, .key_file = junk}),
               contains("key_file") && contains("PEM"));
}

TEST_CASE("options that do not go together are refused")
{
    authority signer;
    auto const one = signer.issue();
    auto const two = signer.issue();
    CHECK_THAT(refused({.certificate_file = one.certificate, .key_file = two.key}),
               contains("key_file") && contains("not the key"));
    CHECK_THAT(refused({.certificate_file = one.certificate}), contains("key_file") && contains("missing"));
    CHECK_THAT(refused({.key_file = one.key}), contains("certificate_file") && contains("missing"));
    CHECK_THAT(refused({.key_password = "canary"}), contains("key_file") && contains("missing"));
    CHECK_THAT(refused({.ca_file = signer.file(), .insecure_skip_verification = true}),
               contains("insecure_skip_verification"));
    CHECK_THAT(refused({.server_name = std::string("a\0b", 3)}), contains("server_name") && contains("zero byte"));
}

TEST_CASE("a server_name that would accept many names, or that TLS has no room for, is refused")
{
    std::string const misconfigured = ": the lock or its client is misconfigured";
    CHECK(
        refused({.server_name = ".example.com"}) ==
        "TLS options, server_name: it begins with a dot, which would accept every name below it; give one whole name" +
            misconfigured);
    CHECK(refused({.server_name = std::string(256, 'x')}) ==
          "TLS options, server_name: it has 256 bytes; at most 255 are allowed" + misconfigured);
    CHECK_NOTHROW(holdfast::redis::client{"rediss://localhost", {.tls = {.server_name = std::string(255, 'x')}}});
}

TEST_CASE("a key that its password does not open is refused, and nobody is asked at the terminal")
{
    authority signer;
    auto const locked = signer.issue({.key_password = "canary"});
    for (std::string const password : {"", "canarywrong", "canar"}) {
        auto const what =
            refused({.certificate_file = locked.certificate, .key_file = locked.key, .key_password = password});
        CHECK_THAT(what, contains("key_file") && contains("key_password"));
        CHECK_THAT(what, !contains("canar"));
    }
}

TEST_CASE("a certificate that is encrypted is opened by the password of the key")
{
    authority signer;
    auto const locked = signer.issue({.key_password = "canary", .certificate_password = "canary"});
    CHECK(refused({.certificate_file = locked.certificate, .key_file = locked.key, .key_password = "canary"}) ==
          "(not refused)");
    CHECK_THAT(refused({.certificate_file = locked.certificate, .key_file = locked.key, .key_password = "other"}),
               contains("certificate_file"));
}

TEST_CASE("TLS options for servers that are not asked in TLS are refused")
{
    auto const what = refusal([] {
        holdfast::redis::client const c{"redis://localhost", {.tls = {.server_name = "redis.example"}}};
    });
    CHECK_THAT(what, contains("rediss://"));
    holdfast::tls::options const some{.server_name = "redis.example"};
    CHECK_THAT(refusal([&] {
                   holdfast::redlock::masters const m{{"redis://a", "unix:///b"}, {.tls = some}};
               }),
               contains("rediss://"));
    CHECK_NOTHROW(holdfast::redlock::masters{{"redis://a", "rediss://b"}, {.tls = some}});
    CHECK_THAT(refusal([] { holdfast::redis::client const c{{.server = {.unix_path = "/run/r", .tls = true}}}; }),
               contains("tls"));
}

TEST_CASE("every TLS error has a message of its own and is one condition")
{
    std::set<std::string> messages;
    for (auto const e : {errc::handshake_interrupted, errc::certificate_untrusted, errc::certificate_expired,
                         errc::certificate_wrong_name, errc::client_certificate_refused, errc::handshake_refused,
                         errc::not_tls, errc::tls_expected}) {
        auto const code = make_error_code(e);
        CHECK(messages.insert(code.message()).second);
        CHECK(code.message() != "unknown TLS error");
        CHECK((code == holdfast::errc::unavailable) == (e == errc::handshake_interrupted));
        CHECK((code == holdfast::errc::misconfigured) == (e != errc::handshake_interrupted));
    }
    CHECK(std::error_code(99, holdfast::tls::error_category()).message() == "unknown TLS error");
    CHECK(std::string{holdfast::tls::error_category().name()} == "holdfast.tls");
}
