// SPDX-License-Identifier: MIT
//
// Connections over TLS that are slow, are cut, or end.
#include "redis/observed.hpp"
#include "secured.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/proxy.hpp"

#include <holdfast/io/tls_error.hpp>
#include <holdfast/redis.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::child;
using holdfast::test::code_of;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::plain_bytes;
using holdfast::test::proxy;
using holdfast::test::secured_server;

namespace {

constexpr auto slack = 1min;

/// For clients that wait for a busy machine, and take no slow answer for a lost one.
holdfast::lock_options patient() { return {.ttl = 10min}; }

/// A server behind a proxy.
struct distant {
    secured_server s{};
    proxy way{s.server.port(), plain_bytes};

    [[nodiscard]] std::string url() const { return "rediss://localhost:" + std::to_string(way.port()); }
    [[nodiscard]] client make(std::chrono::milliseconds operation = 30s, std::chrono::milliseconds connect = 30s) const
    {
        return client{url(), {.operation_timeout = operation, .connect_timeout = connect, .tls = s.trusted()}};
    }
};

}  // namespace

TEST_CASE("a handshake of a byte a second is bounded by the timeouts, and given up")
{
    distant d;
    d.way.trickle(1000ms);
    auto redis = d.make(5s, 5s);
    mutex m{redis, "orders", {.unavailable_after = 7s}};  // for longer than a connection may take to be made
    std::string what;
    auto begun = boot_clock::now();
    CHECK(code_of([&] { (void)m.try_lock(); }, &what) == errc::unavailable);
    CHECK_THAT(what, contains("TLS handshake"));
    CHECK(boot_clock::now() - begun < 5s + slack);
    begun = boot_clock::now();
    CHECK(code_of([&] { m.lock(); }, &what) == errc::unavailable);
    CHECK_THAT(what, contains("TLS handshake"));
    CHECK(boot_clock::now() - begun < 12s + slack);
    CHECK(eventually([&] { return d.way.left() > 0; }));
    d.way.trickle(0ms);
    CHECK(m.try_lock_for(30s));
}

TEST_CASE("a connection that is cut in the handshake is unavailable for once, and made again")
{
    distant d;
    auto const how = GENERATE(proxy::ending::reset, proxy::ending::end_of_file);
    for (std::size_t const after : {1U, 5U, 100U, 500U}) {
        CAPTURE(after);
        auto redis = d.make();
        mutex m{redis, "orders", patient()};
        auto const struck = d.way.struck();
        d.way.end_after(after, how);
        std::string what;
        auto const code = code_of([&] { (void)m.try_lock(); }, &what);
        CHECK(d.way.struck() == struck + 1);
        CHECK(code == errc::unavailable);
        CHECK(code == holdfast::tls::errc::handshake_interrupted);
        CHECK_THAT(what, contains(how == proxy::ending::reset ? "reset" : "closed"));
        REQUIRE(m.try_lock_for(30s));
        m.unlock();
    }
}

TEST_CASE("a connection that is cut within a reply, without TLS's own end, is lost, and the lock is right")
{
    distant d;
    auto const how = GENERATE(proxy::ending::reset, proxy::ending::end_of_file);
    auto redis = d.make();
    mutex m{redis, "orders", patient()};
    for (std::size_t const after : {1U, 4U, 10U, 25U}) {
        CAPTURE(after);
        REQUIRE(m.try_lock_for(30s));
        m.unlock();
        auto const before = d.way.connections();
        auto const struck = d.way.struck();
        d.way.end_after(after, how);
        REQUIRE(m.try_lock_for(30s));  // asked again over a new connection, which knows it for the same attempt
        CHECK(d.way.struck() == struck + 1);
        CHECK(d.way.connections() > before);
        CHECK(exists(d.s.server, "orders"));
        std::error_code ec;
        m.unlock(ec);
        CHECK_FALSE(ec);
        CHECK_FALSE(exists(d.s.server, "orders"));
    }
}

TEST_CASE("a slow connection that is made carries what is said on it a byte at a time")
{
    distant d;
    auto redis = d.make();
    mutex m{redis, "orders", patient()};
    m.lock();
    m.unlock();
    d.way.trickle(1ms);
    CHECK(m.try_lock());
    m.unlock();
    CHECK(d.way.connections() == 1);
}

TEST_CASE("a server that is restarted is found again over TLS, also by who waits")
{
    secured_server s;
    client redis{s.server.url(), {.operation_timeout = 10s, .connect_timeout = 30s, .tls = s.trusted()}};
    client elsewhere{s.server.url(), {.operation_timeout = 10s, .connect_timeout = 30s, .tls = s.trusted()}};
    mutex m{redis, "orders", {.ttl = 1h}};
    mutex waiting{elsewhere, "orders", {.unavailable_after = 1min}};
    m.lock();
    std::jthread waiter{[&] { waiting.lock(); }};
    CHECK(eventually([&] { return holdfast::test::waiters(s.server) == 1; }));
    s.server.restart();
    waiter.join();
    CHECK(waiting.lease().still_held());
}

TEST_CASE("a server that dies raises no signal, and the message says why it cannot be reached")
{
    secured_server s;
    std::optional<client> redis{
        std::in_place, s.server.url(),
        holdfast::redis::client_options{.operation_timeout = 10s, .connect_timeout = 30s, .tls = s.trusted()}};
    mutex m{*redis, "orders", {.unavailable_after = 300ms}};
    m.lock();
    s.server.kill();
    m.unlock();
    std::string what;
    CHECK(eventually([&] {  // what was under way when it died is told before
        CHECK(code_of([&] { m.lock(); }, &what) == errc::unavailable);
        return what.find("Connection refused") != std::string::npos;
    }));
}

TEST_CASE("a forked child says nothing on the connections of its parent, not even good-bye")
{
    distant d;
    d.way.listen_in();
    std::optional<client> redis{d.make()};
    std::optional<mutex> m{std::in_place, *redis, "orders", patient()};
    m->lock();
    auto const heard = d.way.heard().size();
    auto born = child::fork([&] {
        m.reset();
        redis.reset();
        return 0;
    });
    CHECK(born.wait_for(30s) == 0);
    CHECK_FALSE(eventually([&] { return d.way.left() > 0 || d.way.heard().size() != heard; }, 300ms));
    CHECK(m->lease().still_held());
    m->unlock();
    CHECK_FALSE(exists(d.s.server, "orders"));
    CHECK(d.way.connections() == 1);
}

TEST_CASE("a client that goes ends its connections as TLS wants it")
{
    distant d;
    d.way.listen_in();
    std::optional<client> redis{d.make()};
    std::optional<mutex> m{std::in_place, *redis, "orders", patient()};
    m->lock();
    m->unlock();
    m.reset();
    auto const heard = d.way.heard().size();
    redis.reset();
    CHECK(eventually([&] { return d.way.left() == d.way.connections(); }));
    CHECK(d.way.heard().size() > heard);  // before the end of file
}

TEST_CASE("a server that refuses the client's certificate is not asked more and more often")
{
    secured_server s{{}, {}, true};
    proxy way{s.server.port(), plain_bytes};
    client redis{"rediss://localhost:" + std::to_string(way.port()),
                 {.operation_timeout = 30s, .connect_timeout = 30s, .tls = s.trusted()}};
    mutex m{redis, "orders", patient()};
    auto const begun = boot_clock::now();
    CHECK(eventually([&] {
        CHECK(code_of([&] { (void)m.try_lock(); }) == errc::misconfigured);
        return boot_clock::now() >= begun + 1s && way.connections() >= 2;
    }));
    CHECK(way.connections() <= 10);  // the pauses between them double
}

TEST_CASE("many threads share a connection over TLS")
{
    secured_server s;
    client redis{s.server.url(),
                 {.operation_timeout = 30s, .connect_timeout = 30s, .connections = 1, .tls = s.trusted()}};
    std::atomic<int> taken{0};
    {
        std::vector<std::jthread> crew;
        for (int t = 0; t < 8; ++t)
            crew.emplace_back([&, t] {
                for (int i = 0; i < 50; ++i) {
                    mutex m{redis, "order " + std::to_string(t) + " of " + std::to_string(i % 3), {.ttl = 10min}};
                    m.lock();
                    ++taken;
                    m.unlock();
                }
            });
    }
    CHECK(taken == 400);
    CHECK(holdfast::test::lock_requests(s.server) >= 800);
}
