// SPDX-License-Identifier: MIT
//
// A mutex in Redisson's layout, and Redisson's locks of the same name.
#include "observed.hpp"
#include "redisson_peer.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/redis_rights.hpp"
#include "support/refusal.hpp"

#include <holdfast/redis.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::connection;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::in_redisson;
using holdfast::test::redis_server;
using holdfast::test::redisson_peer;
using holdfast::test::refusal;
using outcome = redisson_peer::outcome;

namespace {

/// Waits so long between two looks that what it hears of sooner was told to it.
holdfast::lock_options const patient{.ttl = 1h, .retry = {.most = 1h}, .unavailable_after = 5min};

}  // namespace

TEST_CASE("in Redisson's layout the key is a hash of one owner, which expires with the lease")
{
    bool const fencing = GENERATE(true, false);
    redis_server server;
    client redis{server.url(), in_redisson()};
    mutex m{redis, "orders", {.ttl = 1h, .fencing = fencing}};
    m.lock();
    auto const fields = server.command({"HGETALL", "orders"}).elements;
    REQUIRE(fields.size() == 2);
    auto const& owner = fields[0].text;
    REQUIRE(owner.size() == 38);
    for (auto const at : {8U, 13U, 18U, 23U}) CHECK(owner[at] == '-');
    CHECK(owner.substr(36) == ":1");
    CHECK(fields[1].text == "1");
    auto const left = server.command({"PTTL", "orders"}).integer;
    CHECK(left > 3'500'000);
    CHECK(left <= 3'600'000);
    CHECK(exists(server, "redisson_lock_token:{orders}") == fencing);
    m.extend(2h);
    CHECK(server.command({"PTTL", "orders"}).integer > 7'000'000);
    m.unlock();
    CHECK_FALSE(exists(server, "orders"));
    m.lock();
    CHECK(server.command({"HKEYS", "orders"}).elements.at(0).text != owner);
}

TEST_CASE("a lock and one of Redisson exclude each other, however often that is taken")
{
    redis_server server;
    client redis{server.url(), in_redisson()};
    std::string const name = GENERATE("orders", "{orders}", "orders{", "a{b}c");
    mutex m{redis, name, {.ttl = 1h}};
    redisson_peer peer{server, name};
    CHECK(peer.lock());
    CHECK(peer.lock());
    CHECK_FALSE(m.try_lock());
    CHECK(peer.unlock() == outcome::still_held);
    CHECK_FALSE(m.try_lock());
    CHECK(server.command({"HGET", name, peer.owner()}).text == "1");
    CHECK(peer.unlock() == outcome::freed);
    CHECK(m.try_lock_for(1min));
    CHECK_FALSE(peer.lock());
    CHECK_FALSE(peer.renew());
    CHECK(peer.unlock() == outcome::not_owner);
    CHECK(m.lease().still_held());
    m.unlock();
    CHECK(peer.lock());
    CHECK(peer.lock_and_get_token() > 0);
}

TEST_CASE("what expires is free, for either")
{
    redis_server server;
    client redis{server.url(), in_redisson()};
    mutex m{redis, "orders", {.ttl = 1h, .renew = false, .retry = {.most = 1h}}};
    redisson_peer peer{server, "orders"};
    CHECK(peer.lock(300));
    CHECK(m.try_lock_for(1min));  // it knows when their lease ends, as nothing is published then
    CHECK_FALSE(peer.lock());
    server.command({"PEXPIRE", "orders", "50"});
    CHECK(eventually([&] { return peer.lock(); }));
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == holdfast::errc::lease_lost);
    CHECK(server.command({"HGET", "orders", peer.owner()}).text == "1");
    CHECK(server.command({"PTTL", "orders"}).integer > 3'000'000);
}

TEST_CASE("only the own lock is renewed, and the loss of it is noticed")
{
    redis_server server;
    client redis{server.url(), in_redisson()};
    mutex m{redis, "orders", {.ttl = 20s}};
    redisson_peer peer{server, "orders"};
    m.lock();
    server.command({"PEXPIRE", "orders", "19000"});
    auto const lowest = server.command({"PTTL", "orders"}).integer;
    CHECK(eventually([&] { return server.command({"PTTL", "orders"}).integer > lowest; }));
    server.command({"DEL", "orders"});
    CHECK(peer.lock(60'000));
    CHECK(eventually([&] { return !m.lease().still_held(); }));
    CHECK(server.command({"PTTL", "orders"}).integer <= 60'000);
    CHECK(peer.renew());
    CHECK(server.command({"HLEN", "orders"}).integer == 1);
}

TEST_CASE("a release of Redisson wakes our waiter")
{
    redis_server server;
    client redis{server.url(), in_redisson()};
    redisson_peer peer{server, "orders"};
    CHECK(peer.lock());
    server.command({"CONFIG", "RESETSTAT"});
    mutex m{redis, "orders", patient};
    std::atomic<bool> held{false};
    std::jthread waiter{[&] {
        m.lock();
        held = true;
        m.unlock();
    }};
    // It looks once more when it listens.
    CHECK(eventually([&] { return holdfast::test::lock_requests(server) == 2; }));
    CHECK(server.command({"PUBSUB", "NUMSUB", peer.channel()}).elements.at(1).integer == 1);
    CHECK_FALSE(held);
    CHECK(peer.unlock() == outcome::freed);
    CHECK(eventually([&] { return held.load(); }));
    CHECK(exists(server, "holdfast:queue:{orders}") == false);
}

TEST_CASE("our release wakes a waiter of Redisson")
{
    redis_server server;
    client redis{server.url(), in_redisson()};
    mutex m{redis, "orders", {.ttl = 1h}};
    redisson_peer peer{server, "orders"};
    connection told{server.port()};
    m.lock();
    told({"SUBSCRIBE", peer.channel()});
    CHECK_FALSE(peer.lock());
    m.unlock();
    auto const message = told.read().elements;
    REQUIRE(message.size() == 3);
    CHECK(message[1].text == "redisson_lock__channel:{orders}");
    CHECK(message[2].text == "0");
    CHECK(peer.lock());
}

TEST_CASE("the tokens of both are one sequence, also if the server forgets it")
{
    redis_server server;
    client redis{server.url(), in_redisson()};
    mutex m{redis, "orders", {.ttl = 1h}};
    redisson_peer peer{server, "orders"};
    auto const theirs = [&] {
        auto const token = peer.lock_and_get_token();
        CHECK(peer.unlock() == outcome::freed);
        return static_cast<std::uint64_t>(token);
    };
    auto const ours = [&] { return holdfast::test::take_and_free(m); };
    std::uint64_t last = theirs();
    CHECK(last == 1);
    for (int i = 0; i < 5; ++i) {
        auto const first = ours();
        CHECK(first > last);
        auto const second = theirs();
        CHECK(second > first);
        last = second;
    }
    CHECK(server.command({"PTTL", peer.counter()}).integer == -1);
    server.command({"FLUSHALL"});
    CHECK(ours() > last);
}

TEST_CASE("a key of the other layout is held, and neither takes it")
{
    redis_server server;
    client as_hash{server.url(), in_redisson()};
    client as_string{server.url(), holdfast::test::unhurried()};
    mutex a{as_hash, "orders", {.ttl = 1h}};
    mutex b{as_string, "orders", {.ttl = 1h}};
    a.lock();
    CHECK_FALSE(b.try_lock());
    a.unlock();
    b.lock();
    CHECK_FALSE(a.try_lock());
    std::error_code ec;
    a.unlock(ec);
    CHECK(b.lease().still_held());
    CHECK(server.command({"TYPE", "orders"}).text == "string");
    b.unlock();
    CHECK(a.try_lock_for(1min));
}

TEST_CASE("threads and clients of both take turns, and never two at once")
{
    redis_server server;
    client one{server.url(), in_redisson()};
    client two{server.url(), in_redisson()};
    std::atomic<int> inside{0};
    std::atomic<int> overlaps{0};
    std::atomic<int> refused{0};
    int sections = 0;  // unguarded: the lock guards it
    auto const section = [&] {
        if (++inside != 1) ++overlaps;
        ++sections;
        std::this_thread::yield();
        --inside;
    };
    constexpr int each = 40;
    {
        std::vector<std::jthread> threads;
        for (auto* const c : {&one, &one, &two})
            threads.emplace_back([&, c] {
                mutex m{*c, "orders", patient};
                for (int i = 0; i < each; ++i) {
                    m.lock();
                    section();
                    m.unlock();
                }
            });
        for (int thread = 0; thread < 2; ++thread)
            threads.emplace_back([&, thread] {
                redisson_peer peer{server, "orders", "6f1c3a52-0b1e-4f6e-9a55-3d2f81c07e11:" + std::to_string(thread)};
                for (int i = 0; i < each; ++i) {
                    while (!peer.lock()) std::this_thread::sleep_for(1ms);
                    section();
                    if (peer.unlock() != outcome::freed) ++refused;
                }
            });
    }
    CHECK(sections == 5 * each);
    CHECK(overlaps == 0);
    CHECK(refused == 0);
    CHECK_FALSE(exists(server, "orders"));
}

TEST_CASE("operators see and break a lock of Redisson, and its waiters hear of it")
{
    redis_server server;
    client redis{server.url(), in_redisson()};
    redisson_peer peer{server, "orders"};
    connection told{server.port()};
    told({"SUBSCRIBE", peer.channel()});
    CHECK_FALSE(redis.holder("orders"));
    CHECK_FALSE(redis.force_unlock("orders"));
    CHECK(peer.lock());
    auto const seen = redis.holder("orders");
    REQUIRE(seen);
    CHECK(seen->remaining > 50min);
    CHECK(seen->host.empty());
    CHECK(redis.force_unlock("orders"));
    CHECK(told.read().elements.at(2).text == "0");
    CHECK_FALSE(peer.renew());
    server.command({"SET", "orders", "x"});
    CHECK(refusal([&] { redis.force_unlock("orders"); }) != "(not refused)");
    CHECK(exists(server, "orders"));
}

TEST_CASE("an operator without a right to read a lock of Redisson is told which, and breaks nothing")
{
    redis_server server{{.config = {holdfast::test::redisson_rights("secret", "orders*", "-hexists")}}};
    client redis{server.url("app", "secret"), in_redisson()};
    redisson_peer peer{server, "orders"};
    CHECK(peer.lock());
    CHECK_THAT(refusal([&] { redis.force_unlock("orders"); }), contains("HEXISTS"));
    CHECK(exists(server, "orders"));
}

TEST_CASE("what Redisson's layout cannot have is refused, and says so")
{
    redis_server server;
    client redis{server.url(), in_redisson()};
    CHECK_THAT(refusal([&] { mutex m{redis, "orders", {.fair = true}}; }), contains("Redisson's layout"));
    CHECK_THAT(refusal([&] { holdfast::redis::fair_mutex m{redis, "orders"}; }), contains("Redisson's layout"));
    CHECK_THAT(refusal([&] { (void)redis.list(); }), contains("Redisson's layout"));
    CHECK_THAT(refusal([&] { redis.request_release("orders"); }), contains("Redisson's layout"));
    CHECK_THAT(refusal([&] { mutex m{redis, "redisson_lock_token:{orders}"}; }), contains("is reserved"));
    CHECK_NOTHROW(mutex{redis, "orders", {.ttl = 1h}});
    client plain{server.url(), holdfast::test::unhurried()};
    CHECK_NOTHROW(mutex{plain, "redisson_lock_token:{orders}"});
}
