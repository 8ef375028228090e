// SPDX-License-Identifier: MIT
//
// One key space with clients that use `SET key token NX PX` and compare-and-delete.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/redis.hpp>

#include <atomic>
#include <chrono>
#include <string>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::redis_server;
using holdfast::test::unhurried;

TEST_CASE("the key is the name, its value the token, its expiry the ttl", "[lesson-13]")
{
    bool const fencing = GENERATE(true, false);
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders/42", {.ttl = 1h, .fencing = fencing}};
    m.lock();
    auto const value = server.command({"GET", "orders/42"}).text;
    CHECK(value.size() == 32);
    CHECK(value.find_first_not_of("0123456789abcdef") == std::string::npos);
    auto const left = server.command({"PTTL", "orders/42"}).integer;
    CHECK(left > 3'500'000);
    CHECK(left <= 3'600'000);
    CHECK(server.command({"SET", "orders/42", "theirs", "NX", "PX", "1000"}).is_nil());
    m.unlock();
    CHECK(server.command({"SET", "orders/42", "theirs", "NX", "PX", "60000"}).text == "OK");
    CHECK_FALSE(m.try_lock());
    std::error_code ec;
    m.unlock(ec);
    CHECK(server.command({"GET", "orders/42"}).text == "theirs");
}

TEST_CASE("every attempt has a token of its own", "[lesson-7]")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders"};
    m.lock();
    auto const first = server.command({"GET", "orders"}).text;
    m.unlock();
    m.lock();
    CHECK(server.command({"GET", "orders"}).text != first);
}

TEST_CASE("a lock that is released without a message is found free by looking again")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    server.command({"SET", "orders", "theirs", "NX", "PX", "3600000"});
    mutex m{redis, "orders", {.retry = {.most = 150ms}}};
    std::atomic<bool> done{false};
    std::jthread waiter{[&] {
        m.lock();
        done = true;
    }};
    CHECK(eventually([&] { return holdfast::test::waiters(server) == 1; }));
    CHECK_FALSE(done);
    server.command({"DEL", "orders"});
    CHECK(eventually([&] { return done.load(); }));
}

TEST_CASE("whatever is in a name is in the key")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    for (auto const& name : {std::string{"a b\r\n$5"}, std::string{"zero\0byte", 9}, std::string{"\xff\xfe"},
                             std::string{"{}"}, std::string{"{tag}x"}, std::string(64 * 1024, 'n')}) {
        mutex m{redis, name};
        m.lock();
        CHECK(exists(server, name));
        m.unlock();
        CHECK_FALSE(exists(server, name));
    }
}

TEST_CASE("a key prefix keeps clients apart that have different ones")
{
    redis_server server;
    client shop{server.url(), {.operation_timeout = 10s, .connect_timeout = 1min, .key_prefix = "shop:"}};
    client farm{server.url(), {.operation_timeout = 10s, .connect_timeout = 1min, .key_prefix = "farm:"}};
    client bare{server.url(), unhurried()};
    mutex a{shop, "orders"};
    mutex b{farm, "orders"};
    mutex c{bare, "shop:orders"};
    CHECK(a.try_lock());
    CHECK(b.try_lock());
    CHECK_FALSE(c.try_lock());
    CHECK(exists(server, "shop:orders"));
    CHECK_FALSE(exists(server, "orders"));
}

TEST_CASE("a lock lives in the database of the URL")
{
    redis_server server;
    client third{server.url() + "/3", unhurried()};
    client zeroth{server.url(), unhurried()};
    mutex a{third, "orders"};
    mutex b{zeroth, "orders"};
    CHECK(a.try_lock());
    CHECK_FALSE(exists(server, "orders"));
    CHECK(b.try_lock());
    CHECK(exists(server, "orders"));
}

TEST_CASE("a unix socket leads to the same locks")
{
    redis_server server;
    client by_socket{server.unix_url(), unhurried()};
    client in_database{server.unix_url() + "?db=2", unhurried()};
    client by_port{server.url(), unhurried()};
    mutex a{by_socket, "orders"};
    mutex b{by_port, "orders"};
    mutex c{in_database, "orders"};
    CHECK(a.try_lock());
    CHECK_FALSE(b.try_lock());
    CHECK(c.try_lock());
    std::jthread waiter{[&] { b.lock(); }};
    CHECK(eventually([&] { return holdfast::test::waiters(server) == 1; }));
    a.unlock();
    waiter.join();
    CHECK(b.lease().still_held());
}

TEST_CASE("a host name is looked up")
{
    redis_server server;
    client redis{"redis://localhost:" + std::to_string(server.port()), unhurried()};
    mutex m{redis, "orders"};
    CHECK(m.try_lock_for(20s));

    client nowhere{"redis://no-such-host.invalid"};
    mutex lost{nowhere, "orders"};
    auto const begun = boot_clock::now();
    CHECK(holdfast::test::code_of([&] { (void)lost.try_lock_for(300ms); }) == holdfast::errc::unavailable);
    CHECK(boot_clock::now() - begun < 1min);
}

TEST_CASE("options in place of a URL")
{
    redis_server server{{.password = "secret"}};
    client redis{{.server = {.host = "127.0.0.1", .port = server.port(), .password = "secret", .database = 1},
                  .operation_timeout = 10s,
                  .connect_timeout = 1min}};
    mutex m{redis, "orders"};
    CHECK(m.try_lock());
}

TEST_CASE("nothing but the fence counter stays behind, and that expires")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    {
        mutex fenced{redis, "orders"};
        mutex bare{redis, "invoices", {.fencing = false}};
        fenced.lock();
        bare.lock();
    }
    CHECK(server.command({"DBSIZE"}).integer == 1);
    CHECK(server.command({"PTTL", "holdfast:fence:{orders}"}).integer > 3'000'000);
}

TEST_CASE("fencing tokens increase over everything a server may forget")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders"};
    std::uint64_t last = 0;
    auto const next = [&] {
        m.lock();
        auto const token = m.lease().fencing_token();
        m.unlock();
        bool const greater = token > last;
        last = token;
        return greater;
    };
    CHECK(next());
    server.command({"FLUSHALL"});
    CHECK(next());
    server.command({"DEL", "holdfast:fence:{orders}"});
    CHECK(next());
    server.restart();
    CHECK(next());
    server.command({"SET", "holdfast:fence:{orders}", "9000000000000000"});  // fence_test.cpp has more of these
    CHECK(next());
    CHECK(next());
}
