// SPDX-License-Identifier: MIT
//
// What a server refuses, and what a lock makes of it.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/redis_rights.hpp"
#include "support/refusal.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::code_of;
using holdfast::test::contains;
using holdfast::test::redis_server;
using holdfast::test::refusal;
using holdfast::test::unhurried;

TEST_CASE("a wrong password is reported at once and not repeated in the message")
{
    redis_server server{{.password = "right-secret"}};
    client redis{server.url("", "wrong-secret"), unhurried()};
    mutex m{redis, "orders", {.unavailable_after = 1h}};
    std::string what;
    auto const begun = boot_clock::now();
    auto const code = code_of([&] { m.lock(); }, &what);
    CHECK(code == errc::misconfigured);
    CHECK(code == holdfast::redis::errc::authentication_failed);
    CHECK(boot_clock::now() - begun < 1min);
    CHECK_THAT(what, contains("orders"));
    CHECK_THAT(what, contains(std::to_string(server.port())));
    CHECK_THAT(what, !contains("secret"));
    CHECK(code_of([&] { (void)m.try_lock(); }) == errc::misconfigured);
    CHECK(code_of([&] { (void)m.try_lock_for(1h); }) == errc::misconfigured);
}

TEST_CASE("no password where one is needed, and an unknown user, are reported at once")
{
    redis_server server{{.password = "right-secret"}};
    for (auto const& url :
         {"redis://127.0.0.1:" + std::to_string(server.port()), server.url("nobody", "some-secret")}) {
        client redis{url, unhurried()};
        mutex m{redis, "orders"};
        std::string what;
        CHECK(code_of([&] { m.lock(); }, &what) == errc::misconfigured);
        CHECK_THAT(what, !contains("secret"));
        bool const said = what.find("the server asks for a password, and none is given") != std::string::npos;
        CHECK(said == (url.find('@') == std::string::npos));
    }
}

TEST_CASE("an endpoint without a password is refused with words that do not speak of a URL")
{
    redis_server server{{.password = "right-secret"}};
    auto options = unhurried();
    options.server.port = server.port();
    client redis{options};
    mutex m{redis, "orders"};
    std::string what;
    CHECK(code_of([&] { m.lock(); }, &what) == holdfast::redis::errc::authentication_failed);
    CHECK_THAT(what, contains("the server asks for a password, and none is given") && !contains("URL"));
}

TEST_CASE("a server that is full is unavailable, and its refusal is not taken for that of the password")
{
    redis_server server{{.password = "secret", .config = {"maxclients 1"}}};
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders", {.unavailable_after = 300ms}};
    auto const code = code_of([&] { m.lock(); });
    CHECK(code == errc::unavailable);
    server.command({"CONFIG", "SET", "maxclients", "100"});
    CHECK(m.try_lock_for(20s));
}

TEST_CASE("the right password and user are accepted")
{
    redis_server server{{.password = "p@ss:w/rd", .config = {"user app on >other ~* &* +@all"}}};
    for (auto const& url :
         {server.url("", "p%40ss:w%2frd"), server.url("default", "p%40ss%3aw%2Frd"), server.url("app", "other")}) {
        client redis{url, unhurried()};
        mutex m{redis, "orders"};
        CHECK(m.try_lock());
    }
}

TEST_CASE("a user without the right to run scripts is reported at once")
{
    redis_server server{{.config = {"user app on >app-secret ~* &* +@all -@scripting"}}};
    client redis{server.url("app", "app-secret"), unhurried()};
    mutex m{redis, "orders", {.unavailable_after = 1h}};
    std::string what;
    auto const begun = boot_clock::now();
    auto const code = code_of([&] { m.lock(); }, &what);
    CHECK(code == errc::misconfigured);
    CHECK(code == holdfast::redis::errc::not_permitted);
    CHECK(boot_clock::now() - begun < 1min);
    CHECK_THAT(what, !contains("secret"));
    CHECK_FALSE(holdfast::test::exists(server, "orders"));
}

TEST_CASE("who may not run every script takes nothing, without a fence either")
{
    auto const denied = GENERATE(as<std::string>{}, "-@scripting", "-eval", "-eval -evalsha");
    redis_server server{{.config = {"user app on >app-secret ~* &* +@all " + denied}}};
    client all{server.url(), unhurried()};
    mutex known{all, "stock", {.fencing = false}};  // the server knows the script from now on
    for (int i = 0; i < 2; ++i) {
        known.lock();
        known.unlock();
    }
    client redis{server.url("app", "app-secret"), unhurried()};
    mutex m{redis, "orders", {.fencing = false, .unavailable_after = 1h}};
    for (int i = 0; i < 3; ++i) {
        CHECK(code_of([&] { m.lock(); }) == holdfast::redis::errc::not_permitted);
        CHECK_FALSE(holdfast::test::exists(server, "orders"));
    }
}

TEST_CASE("a right that is missing inside a script is reported at once, and the command is named")
{
    auto const command = GENERATE(as<std::string>{}, "set", "getrange", "time", "pexpire", "pttl");
    CAPTURE(command);
    redis_server server{{.config = {"user app on >app-secret ~* &* +@all -" + command}}};
    client redis{server.url("app", "app-secret"), unhurried()};
    mutex m{redis, "orders", {.unavailable_after = 1h}};
    std::string what;
    auto const begun = boot_clock::now();
    auto const code = code_of([&] { m.lock(); }, &what);
    CHECK(code == errc::misconfigured);
    CHECK(code == holdfast::redis::errc::not_permitted);
    CHECK(boot_clock::now() - begun < 1min);
    std::string upper = command;
    for (auto& c : upper) c = static_cast<char>(c - 'a' + 'A');
    CHECK_THAT(what, contains("\"" + upper + "\" is not permitted"));
    CHECK(holdfast::test::eventually([&] { return !holdfast::test::exists(server, "orders"); }));
    CHECK(code_of([&] { (void)m.try_lock(); }) == holdfast::redis::errc::not_permitted);
    server.command({"ACL", "SETUSER", "app", "+@all"});
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("an error that is not known is told in the server's words")
{
    redis_server server;
    holdfast::test::proxy way{server.port()};
    client redis{way.url(), unhurried()};
    mutex m{redis, "orders"};
    m.lock();
    m.unlock();
    way.spoil_next_reply("-ERR out of \x1b[1mpaper\r\n");
    std::string what;
    CHECK(code_of([&] { (void)m.try_lock(); }, &what) == errc::unavailable);
    CHECK_THAT(what, contains("orders") && contains("the server said \"ERR out of \\x1b[1mpaper\""));
}

TEST_CASE("a user who may not renew is granted nothing by a majority either")
{
    holdfast::test::redis_fleet servers{3, {.config = {"user app on >app-secret ~* &* +@all -pexpire"}}};
    holdfast::redlock::masters client{servers.urls("app", "app-secret"),
                                      {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms}};
    holdfast::redlock::mutex m{client, "orders", {.unavailable_after = 1h}};
    std::string what;
    CHECK(code_of([&] { m.lock(); }, &what) == holdfast::redis::errc::not_permitted);
    CHECK_THAT(what, contains("\"PEXPIRE\" is not permitted"));
    for (auto& one : servers) CHECK(holdfast::test::eventually([&] { return !holdfast::test::exists(one, "orders"); }));
}

TEST_CASE("a user without the right to the key is reported at once")
{
    redis_server server{{.config = {"user app on >secret ~other:* &* +@all"}}};
    client redis{server.url("app", "secret"), unhurried()};
    mutex m{redis, "orders"};
    CHECK(code_of([&] { m.lock(); }) == errc::misconfigured);
}

TEST_CASE("a waiter without the right to the channel is reported, and a holder without it releases")
{
    redis_server server{{.config = {"user app on >secret ~* resetchannels +@all"}}};
    client redis{server.url("app", "secret"), unhurried()};
    mutex m{redis, "orders"};
    REQUIRE(m.try_lock());
    client other{server.url("app", "secret"), unhurried()};
    mutex waiting{other, "orders"};
    CHECK_FALSE(waiting.try_lock());
    CHECK(code_of([&] { waiting.lock(); }) == errc::misconfigured);
    std::error_code ec;
    m.unlock(ec);
    CHECK_FALSE(ec);
    CHECK_FALSE(holdfast::test::exists(server, "orders"));
}

TEST_CASE("a right to the channel that is given later is used, as that to another channel is at once")
{
    redis_server server{{.config = {"user app on >secret ~* resetchannels &holdfast:free:{stock} +@all"}}};
    client holding{server.url(), unhurried()};
    client redis{server.url("app", "secret"), unhurried()};
    mutex orders{holding, "orders"};
    mutex stock{holding, "stock"};
    orders.lock();
    stock.lock();
    auto const wakes = [](mutex& held, mutex& waiting) {
        std::jthread const later{[&] {
            std::this_thread::sleep_for(200ms);
            held.unlock();
        }};
        return code_of([&] { waiting.lock(); });
    };
    mutex waiting_for_orders{redis, "orders"};
    mutex waiting_for_stock{redis, "stock"};
    CHECK(code_of([&] { waiting_for_orders.lock(); }) == holdfast::redis::errc::not_permitted);
    CHECK_FALSE(wakes(stock, waiting_for_stock));
    server.command({"ACL", "SETUSER", "app", "allchannels"});
    CHECK_FALSE(wakes(orders, waiting_for_orders));
}

TEST_CASE("a database that does not exist is reported at once")
{
    redis_server server{{.config = {"databases 4"}}};
    client redis{server.url() + "/9", unhurried()};
    mutex m{redis, "orders"};
    auto const code = code_of([&] { m.lock(); });
    CHECK(code == errc::misconfigured);
    CHECK(code == holdfast::redis::errc::bad_database);
}

TEST_CASE("a server without memory or a replica is unavailable, not misconfigured")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders", {.unavailable_after = 100ms}};

    server.command({"CONFIG", "SET", "maxmemory", "1"});
    auto code = code_of([&] { m.lock(); });
    CHECK(code == errc::unavailable);
    CHECK(code == holdfast::redis::errc::out_of_memory);
    server.command({"CONFIG", "SET", "maxmemory", "0"});

    server.command({"REPLICAOF", "127.0.0.1", "1"});
    code = code_of([&] { (void)m.try_lock(); });
    CHECK(code == errc::unavailable);
    CHECK(code == holdfast::redis::errc::read_only);
    server.command({"REPLICAOF", "NO", "ONE"});
    CHECK(m.try_lock());
}

TEST_CASE("reserved names are refused")
{
    client redis{"redis://127.0.0.1"};
    CHECK(code_of([&] { mutex const m{redis, "holdfast:fence:{orders}"}; }) == errc::misconfigured);
    client prefixed{"redis://127.0.0.1", {.key_prefix = "holdfast:"}};
    CHECK(code_of([&] { mutex const m{prefixed, "x"}; }) == errc::misconfigured);
    client shop{"redis://127.0.0.1", {.key_prefix = "shop:"}};
    CHECK_FALSE(code_of([&] { mutex const m{shop, "holdfast:x"}; }));
}

TEST_CASE("options of a client that cannot be used are refused by name")
{
    auto const refused = [](holdfast::redis::client_options const& options) {
        return refusal([&] { client const c{"redis://127.0.0.1", options}; });
    };
    CHECK_THAT(refused({.operation_timeout = 0ms}), contains("operation_timeout"));
    CHECK_THAT(refused({.operation_timeout = std::chrono::milliseconds::max()}), contains("operation_timeout"));
    CHECK_THAT(refused({.connect_timeout = -1ms}), contains("connect_timeout"));
    CHECK_THAT(refused({.connections = 0}), contains("connections"));
    CHECK_THAT(refused({.connections = 65}), contains("connections"));
    CHECK_THAT(refused({.restart_guard = -1ms}), contains("restart_guard"));

    auto const refused_server = [](holdfast::redis::endpoint const& server) {
        CHECK_THAT(refusal([&] { holdfast::redlock::masters const m{std::vector{server}}; }), contains("masters"));
        return refusal([&] { client const c{{.server = server}}; });
    };
    CHECK_THAT(refused_server({.host = ""}), contains("server") && contains("host"));
    CHECK_THAT(refused_server({.port = 0}), contains("port"));
    CHECK_THAT(refused_server({.unix_path = "run/redis.sock"}), contains("path") && contains("absolute"));
    CHECK_THAT(refused_server({.unix_path = "/" + std::string(107, 'x')}), contains("107"));
    CHECK_THAT(refused_server({.host = std::string("a\0b", 3)}), contains("zero byte"));

    client redis{"redis://127.0.0.1", {.operation_timeout = 500ms}};
    std::string what;
    CHECK(code_of([&] { mutex const m{redis, "orders", {.ttl = 999ms}}; }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("ttl"));
    CHECK_THAT(what, contains("999"));
}

TEST_CASE("a user with no more rights than a lock needs can do everything")
{
    using holdfast::test::database_commands;
    using holdfast::test::redlock_commands;
    redis_server server{
        {.config = {holdfast::test::least_rights(
             "secret", "orders*", std::string{redlock_commands}.append(" ").append(database_commands))}}};
    for (bool const fencing : {true, false}) {
        client redis{server.url("app", "secret"),
                     {.operation_timeout = 6s, .connect_timeout = 1min, .restart_guard = fencing ? 0ms : 13s}};
        client elsewhere{server.url("app", "secret") + "/1", unhurried()};
        mutex m{redis, "orders/42", {.ttl = 12s, .fencing = fencing}};
        mutex waiting{redis, "orders/42", {.ttl = 12s, .fencing = fencing, .max_local_handoffs = 0}};
        mutex other_database{elsewhere, "orders/42"};
        CHECK(other_database.try_lock());
        REQUIRE(m.try_lock_for(1min));
        auto const lease = m.lease();
        auto const until = lease.expires_at();
        CHECK_FALSE(waiting.try_lock_for(10ms));
        CHECK(holdfast::test::eventually([&] { return lease.expires_at() != until; }));
        CHECK(lease.still_held());
        std::error_code ec;
        CHECK(m.extend(13s, ec));
        m.unlock(ec);
        CHECK_FALSE(ec);
        CHECK(waiting.try_lock_for(1min));
    }
}

TEST_CASE("a lease that is longer than the restart guard is refused, also by extend")
{
    redis_server server;
    client redis{server.url(), {.operation_timeout = 1s, .connect_timeout = 1min, .restart_guard = 2s}};
    auto const longer = [&] {
        mutex m{redis, "orders", {.ttl = 2001ms}};
        (void)m.try_lock();
    };
    std::string what;
    CHECK(code_of(longer, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("restart_guard"));
    mutex m{redis, "orders", {.ttl = 2s, .unavailable_after = 1min}};
    REQUIRE(m.try_lock_for(1min));
    std::error_code ec;
    CHECK_FALSE(m.extend(2001ms, ec));
    CHECK(ec == errc::misconfigured);
    CHECK(m.lease().still_held());
}

TEST_CASE("a fair lock of a client that does not subscribe is refused")
{
    redis_server server;
    auto options = unhurried();
    options.subscribe = false;
    client redis{server.url(), options};
    std::string what;
    CHECK(code_of([&] { mutex const m{redis, "orders", {.fair = true}}; }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("does not subscribe"));
}
