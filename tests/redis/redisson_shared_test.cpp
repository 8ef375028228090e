// SPDX-License-Identifier: MIT
//
// A read-write lock in Redisson's layout, and Redisson's RReadWriteLock of the same name.
#include "observed.hpp"
#include "redisson_peer.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/refusal.hpp"

#include <holdfast/redis.hpp>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redis::client;
using holdfast::redis::shared_mutex;
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

holdfast::lock_options const patient{.ttl = 30s, .retry = {.most = 1h}, .unavailable_after = 5min};

struct fixture {
    std::string name = "prices";
    redis_server server{};
    client redis{server.url(), in_redisson()};
    shared_mutex m{redis, name, patient};
    redisson_peer peer{server, name};
    redisson_peer second{server, name, "6f1c3a52-0b1e-4f6e-9a55-3d2f81c07e11:48"};

    std::string mode() { return server.command({"HGET", name, "mode"}).text; }
    long long left() { return server.command({"PTTL", name}).integer; }
    long long left_of(redisson_peer const& p, int hold = 1)
    {
        return server.command({"PTTL", p.timeout() + ":" + std::to_string(hold)}).integer;
    }

    /// Returns: the fields of the hash that are neither the mode nor the peers'.
    std::vector<std::string> ours()
    {
        std::vector<std::string> some;
        for (auto const& one : server.command({"HKEYS", name}).elements)
            if (one.text != "mode" && !one.text.starts_with(peer.owner().substr(0, 36))) some.push_back(one.text);
        return some;
    }
    std::string timeout_of_ours() { return peer.timeout_of(ours().at(0)) + ":1"; }
};

}  // namespace

TEST_CASE("in Redisson's layout a reader has a field and a key, and a writer a field")
{
    fixture f;
    f.m.lock_shared();
    CHECK(f.mode() == "read");
    auto const fields = f.ours();
    REQUIRE(fields.size() == 1);
    CHECK(fields[0].ends_with(":1"));
    CHECK(f.server.command({"HGET", f.name, fields[0]}).text == "1");
    CHECK(f.left() > 0);
    CHECK(f.left() <= 30'000);
    CHECK(exists(f.server, "{prices}:" + fields[0] + ":rwlock_timeout:1"));
    f.m.unlock_shared();
    f.m.lock();
    CHECK(f.mode() == "write");
    CHECK(f.ours().at(0).ends_with(":1:write"));
    f.m.unlock();
    CHECK(f.server.command({"KEYS", "*"}).elements.size() == 1);  // the counter
}

TEST_CASE("readers of both are beside each other, and writers of both alone")
{
    fixture f;
    f.name = GENERATE("prices", "{shop}prices", "prices{");
    shared_mutex m{f.redis, f.name, patient};
    redisson_peer peer{f.server, f.name};
    redisson_peer second{f.server, f.name, f.second.owner()};
    CHECK(peer.lock_read());
    CHECK(m.try_lock_shared_for(1min));
    CHECK(second.lock_read());
    CHECK_FALSE(m.try_lock());
    CHECK_FALSE(peer.lock_write());
    CHECK(peer.unlock_read() == outcome::still_held);
    CHECK(second.unlock_read() == outcome::still_held);
    CHECK(m.lease_shared().still_held());
    CHECK_FALSE(peer.lock_write());
    m.unlock_shared();
    CHECK(peer.lock_write());
    CHECK_FALSE(m.try_lock());
    CHECK_FALSE(m.try_lock_shared());
    CHECK(peer.lock_write());
    CHECK(peer.unlock_write() == outcome::still_held);
    CHECK_FALSE(m.try_lock_shared());
    CHECK(peer.unlock_write() == outcome::freed);
    CHECK(m.try_lock_for(1min));
    CHECK_FALSE(peer.lock_read());
    CHECK_FALSE(peer.lock_write());
    CHECK(peer.unlock_read() == outcome::not_owner);
    CHECK(peer.unlock_write() == outcome::not_owner);
    m.unlock();
    CHECK(peer.lock_read());
    CHECK(peer.unlock_read() == outcome::freed);
}

TEST_CASE("a reader that leaves cuts no lease of those that stay")
{
    fixture f;
    CHECK(f.peer.lock_read(3'600'000));
    CHECK(f.second.lock_read(600'000));
    CHECK(f.second.lock_read(1'200'000));
    f.m.lock_shared();
    CHECK(f.left() > 3'000'000);
    f.m.unlock_shared();
    CHECK(f.left() > 3'000'000);
    f.m.lock_shared();
    CHECK(f.peer.unlock_read() == outcome::still_held);
    CHECK(f.left() > 600'000);  // the second hold of the other
    CHECK(f.left() <= 1'200'000);
    f.m.unlock_shared();
    CHECK(f.left() > 600'000);
    f.m.lock_shared();
    CHECK(f.second.unlock_read() == outcome::still_held);
    CHECK(f.second.unlock_read() == outcome::still_held);
    CHECK(f.left() > 0);
    CHECK(f.left() <= 30'000);
    CHECK(f.m.lease_shared().still_held());
    f.m.unlock_shared();
    CHECK_FALSE(exists(f.server, f.name));
}

TEST_CASE("a reader of Redisson whose lease is over keeps no writer out when ours leaves")
{
    fixture f;
    CHECK(f.peer.lock_read(1));
    f.m.lock_shared();
    CHECK(eventually([&] { return f.left_of(f.peer) == -2; }));
    CHECK_FALSE(f.second.lock_write());
    f.m.unlock_shared();
    CHECK(f.second.lock_write());
    CHECK_FALSE(f.peer.renew_read());
}

TEST_CASE("our reader whose lease is over keeps no writer out when theirs leaves")
{
    fixture f;
    f.m.lock_shared();
    CHECK(f.peer.lock_read());
    auto const fields = f.ours();
    f.server.command({"DEL", f.timeout_of_ours()});
    std::error_code ec;
    CHECK_FALSE(f.m.extend_shared(20s, ec));
    CHECK(ec == holdfast::errc::lease_lost);
    CHECK(f.peer.unlock_read() == outcome::freed);
    CHECK(f.second.lock_write());
    f.m.unlock_shared();
    CHECK(f.mode() == "write");
}

TEST_CASE("renewals of Redisson touch our leases, and ours only our own")
{
    fixture f;
    f.m.lock_shared();
    CHECK(f.peer.lock_read(600'000));
    CHECK(f.peer.renew_read(30'000));  // shortens their own, too
    CHECK(f.m.lease_shared().still_held());
    auto const timeout = f.timeout_of_ours();
    CHECK(f.server.command({"PTTL", timeout}).integer <= 30'000);
    CHECK(f.peer.renew_read(3'600'000));
    CHECK(f.server.command({"PTTL", timeout}).integer > 3'000'000);
    f.server.command({"PEXPIRE", timeout, "20000"});
    f.server.command({"PEXPIRE", f.name, "20000"});
    f.server.command({"PEXPIRE", f.peer.timeout() + ":1", "20000"});
    std::error_code ec;
    f.server.command({"CONFIG", "RESETSTAT"});
    CHECK(f.m.extend_shared(30s, ec));
    auto const asked = f.server.command({"INFO", "commandstats"}).text;
    CHECK(asked.find("hgetall") == std::string::npos);  // with many readers, that is slow
    CHECK(f.server.command({"PTTL", timeout}).integer > 20'000);
    CHECK(f.left() > 20'000);
    CHECK(f.left_of(f.peer) <= 20'000);
}

TEST_CASE("a lease that Redisson's renewals would shorten is refused")
{
    fixture f;
    CHECK_THAT(refusal([&] { shared_mutex m{f.redis, "prices", {.ttl = 31s}}; }), contains("Redisson's readers"));
    CHECK_NOTHROW(holdfast::redis::mutex{f.redis, "prices", {.ttl = 31s}});
    f.m.lock_shared();
    std::error_code ec;
    CHECK_FALSE(f.m.extend_shared(31s, ec));
    CHECK(ec == holdfast::errc::misconfigured);
    CHECK(f.m.lease_shared().still_held());
    CHECK_THAT(refusal([&] { shared_mutex m{f.redis, "prices", {.min_hold = 1s}}; }), contains("min_hold"));
}

TEST_CASE("releases wake the waiters of the other library")
{
    fixture f;
    connection told{f.server.port()};
    auto const message = [&] {
        auto const got = told.read().elements;
        CHECK(got.at(1).text == "redisson_rwlock:{prices}");
        return got.at(2).text;
    };
    told({"SUBSCRIBE", f.peer.read_write_channel()});
    f.m.lock_shared();
    f.m.unlock_shared();
    CHECK(message() == "0");
    f.m.lock();
    f.m.unlock();
    CHECK(message() == "1");  // all readers may come now

    bool const writes = GENERATE(true, false);
    CHECK((writes ? f.peer.lock_write() : f.peer.lock_read()));
    f.server.command({"CONFIG", "RESETSTAT"});
    std::atomic<bool> held{false};
    std::jthread waiter{[&] {
        writes ? f.m.lock_shared() : f.m.lock();
        held = true;
    }};
    CHECK(eventually([&] { return holdfast::test::lock_requests(f.server) == 2; }));
    CHECK_FALSE(held);
    CHECK((writes ? f.peer.unlock_write() : f.peer.unlock_read()) == outcome::freed);
    CHECK(eventually([&] { return held.load(); }));
}

TEST_CASE("our writer becomes a reader and a reader the writer, and no writer of Redisson comes in between")
{
    fixture f;
    f.m.lock();
    f.m.unlock_and_lock_shared();
    CHECK(f.mode() == "read");
    CHECK_FALSE(f.peer.lock_write());
    CHECK(f.peer.lock_read());
    CHECK_FALSE(f.m.try_unlock_shared_and_lock());
    CHECK(f.m.lease_shared().still_held());
    CHECK(f.peer.unlock_read() == outcome::still_held);
    CHECK(f.second.lock_read(1));  // its field stays, and is none of a reader any more
    CHECK(eventually([&] { return f.left_of(f.second) == -2; }));
    CHECK(f.m.try_unlock_shared_and_lock());
    CHECK(f.mode() == "write");
    CHECK(f.ours().size() == 1);
    CHECK_FALSE(f.peer.lock_read());
    CHECK_FALSE(f.second.renew_read());
    CHECK(f.m.lease().still_held());
    f.m.unlock();
    CHECK_FALSE(exists(f.server, f.name));
}

TEST_CASE("a writer of Redisson that becomes a reader lets our readers in")
{
    fixture f;
    CHECK(f.peer.lock_write());
    CHECK(f.peer.lock_read());
    CHECK_FALSE(f.m.try_lock_shared());
    CHECK(f.peer.unlock_write() == outcome::freed);
    CHECK(f.mode() == "read");
    CHECK(f.m.try_lock_shared_for(1min));
    CHECK_FALSE(f.m.try_lock());
    CHECK(f.peer.unlock_read() == outcome::still_held);
    f.m.unlock_shared();
    CHECK_FALSE(exists(f.server, f.name));
}

TEST_CASE("a mutex of the same name keeps out readers and writers of ours, and they it")
{
    fixture f;
    holdfast::redis::mutex plain{f.redis, f.name, {.ttl = 1h}};
    plain.lock();
    CHECK_FALSE(f.m.try_lock());
    CHECK_FALSE(f.m.try_lock_shared());
    plain.unlock();
    CHECK(f.m.try_lock_shared_for(1min));
    CHECK_FALSE(plain.try_lock());
    f.m.unlock_shared();
    CHECK(f.m.try_lock_for(1min));
    CHECK_FALSE(plain.try_lock());
    CHECK(f.redis.force_unlock(f.name));
    CHECK(plain.try_lock_for(1min));
}

TEST_CASE("a read-write lock that is broken tells the waiters of both kinds")
{
    fixture f;
    connection told{f.server.port()};
    told({"SUBSCRIBE", f.peer.read_write_channel()});
    CHECK(f.peer.lock_read());
    CHECK(f.redis.force_unlock(f.name));
    CHECK(told.read().elements.at(2).text == "1");
    CHECK_FALSE(f.peer.renew_read());
}

TEST_CASE("readers and writers of both in a crowd")
{
    fixture f;
    client other{f.server.url(), in_redisson()};
    std::atomic<int> readers{0};
    std::atomic<int> writers{0};
    std::atomic<int> wrong{0};
    int sections = 0;  // unguarded: a writer's lock guards it
    auto const read = [&] {
        ++readers;
        if (writers != 0) ++wrong;
        std::this_thread::yield();
        --readers;
    };
    auto const write = [&] {
        if (++writers != 1 || readers != 0) ++wrong;
        ++sections;
        std::this_thread::yield();
        --writers;
    };
    constexpr int each = 25;
    {
        std::vector<std::jthread> threads;
        for (auto* const c : {&f.redis, &other})
            threads.emplace_back([&, c] {
                shared_mutex m{*c, f.name, {.ttl = 30s, .retry = {.most = 20ms}, .unavailable_after = 5min}};
                for (int i = 0; i < each; ++i) {
                    m.lock();
                    write();
                    m.unlock_and_lock_shared();
                    read();
                    m.unlock_shared();
                }
            });
        for (int thread = 0; thread < 2; ++thread)
            threads.emplace_back([&, thread] {
                redisson_peer peer{f.server, f.name, f.peer.owner().substr(0, 37) + std::to_string(thread)};
                for (int i = 0; i < each; ++i) {
                    while (!peer.lock_write()) std::this_thread::sleep_for(1ms);
                    write();
                    if (peer.unlock_write() != outcome::freed) ++wrong;
                    while (!peer.lock_read()) std::this_thread::sleep_for(1ms);
                    read();
                    if (peer.unlock_read() == outcome::not_owner) ++wrong;
                }
            });
    }
    CHECK(wrong == 0);
    CHECK(sections == 4 * each);
    CHECK_FALSE(exists(f.server, f.name));
}
