// SPDX-License-Identifier: MIT
//
// Locks on Redis servers that talk TLS: who is trusted, what is refused, and in which words.
#include "redis/observed.hpp"
#include "secured.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/proxy.hpp"

#include <holdfast/io/tls_error.hpp>
#include <holdfast/redis.hpp>

#include <stdlib.h>

#include <chrono>
#include <string>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::child;
using holdfast::test::code_of;
using holdfast::test::contains;
using holdfast::test::plain_bytes;
using holdfast::test::proxy;
using holdfast::test::redis_server;
using holdfast::test::secured_server;
using holdfast::tls::errc;

namespace {

constexpr auto slack = 60s;  // for a busy machine; what is not refused lasts an hour

/// Returns: options of a client that waits for a busy machine, and takes no slow answer for a lost one.
holdfast::redis::client_options patient(holdfast::tls::options const& options)
{
    return {.operation_timeout = 30s, .connect_timeout = 30s, .tls = options};
}

/// What `lock` throws, and what it says.
struct refusal {
    std::error_code code;
    std::string what;
};

/// Returns: how a lock on `url` is refused. However it is asked for, and no matter how much time there is.
refusal refused(std::string const& url, holdfast::tls::options const& options)
{
    client redis{url, patient(options)};
    mutex m{redis, "orders", {.ttl = 10min, .unavailable_after = 1h}};
    refusal got;
    auto const begun = boot_clock::now();
    got.code = code_of([&] { m.lock(); }, &got.what);
    CHECK(code_of([&] { (void)m.try_lock(); }) == holdfast::errc::misconfigured);
    CHECK(code_of([&] { (void)m.try_lock_for(1h); }) == holdfast::errc::misconfigured);
    CHECK(boot_clock::now() - begun < slack);
    CHECK(got.code == holdfast::errc::misconfigured);
    CHECK_THAT(got.what, contains("orders") && contains("rediss://") && !contains("canary"));
    return got;
}

}  // namespace

TEST_CASE("a lock over TLS works with the name and with the address, and nobody on the way can read it")
{
    secured_server s{{.password = "canary-password"}};
    proxy way{s.server.port(), plain_bytes};
    way.listen_in();
    for (auto const* host : {"localhost", "127.0.0.1"}) {
        client redis{"rediss://:canary-password@" + std::string{host} + ':' + std::to_string(way.port()) + "/1",
                     patient(s.trusted())};
        mutex m{redis, "canary-name", {.ttl = 10min}};
        m.lock();
        CHECK(m.lease().still_held());
        CHECK(m.lease().fencing_token() > 0);
        m.extend(10min);
        std::error_code ec;
        m.unlock(ec);
        CHECK_FALSE(ec);
    }
    CHECK(way.connections() >= 2);
    CHECK_THAT(way.heard(), contains("localhost") && !contains("canary"));
}

TEST_CASE("a server is trusted by the system's authorities where no others are named, and not where they are")
{
    secured_server s;
    holdfast::test::authority other{"another"};
    auto born = child::fork([&] {
        ::setenv("SSL_CERT_FILE", s.signer.file().c_str(), 1);
        client redis{s.server.url(), patient({})};
        mutex m{redis, "orders", {.ttl = 10min}};
        if (!m.try_lock()) return 1;
        client strict{s.server.url(), patient({.ca_file = other.file()})};
        mutex n{strict, "invoices", {.ttl = 10min}};
        return code_of([&] { (void)n.try_lock(); }) == errc::certificate_untrusted ? 0 : 2;
    });
    CHECK(born.wait_for(30s) == 0);
    CHECK(refused(s.server.url(), {}).code == errc::certificate_untrusted);
}

TEST_CASE("certificates that must not be trusted are refused at once, each in its own words")
{
    holdfast::test::authority other{"another"};
    secured_server good{{.password = "canary"}};
    auto const untrusted = refused(good.server.url(), {.ca_file = other.file()});
    CHECK(untrusted.code == errc::certificate_untrusted);
    CHECK_THAT(untrusted.what, contains("authority") && contains("ca_file"));
    CHECK(holdfast::test::eventually(
        [&] { return good.server.log().find("alert unknown ca") != std::string::npos; }));  // it is told why

    secured_server old{{.password = "canary"}, {.valid_from = -48h, .valid_to = -24h}};
    auto const expired = refused(old.server.url(), old.trusted());
    CHECK(expired.code == errc::certificate_expired);
    CHECK_THAT(expired.what, contains("expired"));

    secured_server elsewhere{{.password = "canary"}, {.names = "DNS:redis.example"}};
    auto const misnamed = refused(elsewhere.server.url(), elsewhere.trusted());
    CHECK(misnamed.code == errc::certificate_wrong_name);
    CHECK_THAT(misnamed.what, contains("\"redis.example\"") && contains("server_name"));
    auto options = elsewhere.trusted();
    options.server_name = "redis.example";
    client redis{elsewhere.server.url(), patient(options)};
    CHECK(mutex{redis, "orders", {.ttl = 10min}}.try_lock());
}

TEST_CASE("a server that demands a certificate of its clients accepts the right one, and what it refuses is said")
{
    secured_server s{{.password = "canary"}, {}, true};
    holdfast::test::authority other{"another"};
    auto options = s.trusted();
    CHECK(refused(s.server.url(), options).code == errc::client_certificate_refused);
    auto const wrong = other.issue();
    options.certificate_file = wrong.certificate;
    options.key_file = wrong.key;
    auto const got = refused(s.server.url(), options);
    CHECK(got.code == errc::client_certificate_refused);
    CHECK_THAT(got.what, contains("certificate_file"));
    auto const right = s.signer.issue({.names = "", .common_name = "client", .key_password = "canary"});
    options.certificate_file = right.certificate;
    options.key_file = right.key;
    options.key_password = "canary";
    client redis{s.server.url(), patient(options)};
    CHECK(mutex{redis, "orders", {.ttl = 10min}}.try_lock());
}

TEST_CASE(
    "without a password it is told all the same that a client certificate is missing, also to who waits and to who releases")
{
    secured_server s{{}, {}, true};
    CHECK(refused(s.server.url(), s.trusted()).code == errc::client_certificate_refused);
    CHECK(s.server.command({"DBSIZE"}).integer == 0);
}

TEST_CASE("a wrong password over TLS is a wrong password")
{
    secured_server s{{.password = "right"}};
    CHECK(refused(s.server.url("", "canary"), s.trusted()).code == holdfast::redis::errc::authentication_failed);
}

TEST_CASE("a server that does not speak TLS is unavailable, and the message asks whether it does")
{
    redis_server plain;
    client redis{"rediss://127.0.0.1:" + std::to_string(plain.port()),
                 {.operation_timeout = 1s, .connect_timeout = 2s}};
    mutex m{redis, "orders", {.unavailable_after = 1s}};
    std::string what;
    CHECK(code_of([&] { m.lock(); }, &what) == holdfast::errc::unavailable);
    CHECK_THAT(what, contains("TLS handshake") && contains("does the server speak TLS?"));
    CHECK(code_of([&] { (void)m.try_lock(); }, &what) == holdfast::errc::unavailable);
    CHECK_THAT(what, contains("TLS"));
    CHECK(holdfast::test::eventually([&] {
        (void)code_of([&] { (void)m.try_lock(); });
        return redis.status().detail.ends_with(
            "did not end within connect_timeout, 2000 ms; does the server speak TLS?");
    }));
}

TEST_CASE("a server that expects TLS and is not asked in it is unavailable, and the message names rediss://")
{
    secured_server s;
    client redis{"redis://127.0.0.1:" + std::to_string(s.server.port()),
                 {.operation_timeout = 10s, .connect_timeout = 1min}};
    mutex m{redis, "orders", {.unavailable_after = 300ms}};
    std::string what;
    CHECK(code_of([&] { m.lock(); }, &what) == holdfast::errc::unavailable);
    CHECK_THAT(what, contains("rediss://"));
}

TEST_CASE("a client that is to verify nothing talks to anybody")
{
    secured_server s{{}, {.names = "DNS:elsewhere", .valid_from = -48h, .valid_to = -24h}};
    client redis{s.server.url(), patient({.insecure_skip_verification = true})};
    CHECK(mutex{redis, "orders", {.ttl = 10min}}.try_lock());
}
