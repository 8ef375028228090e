// SPDX-License-Identifier: MIT
//
// The contracts of the scripts of Redisson's layout, on a real server; what each of them needs to be allowed.
#include "observed.hpp"
#include "redisson_peer.hpp"
#include "support/catch.hpp"
#include "support/connection.hpp"
#include "support/eventually.hpp"
#include "support/redis_rights.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redis/protocol.hpp>
#include <holdfast/redis/script_table.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::redis::command;
using holdfast::redis::layout;
using holdfast::redis::lock_keys;
using holdfast::redis::script;
using holdfast::test::eventually;
using holdfast::test::in_redisson;
using holdfast::test::redis_server;
using holdfast::test::redisson_peer;
using holdfast::test::reply;

namespace redisson = holdfast::redis::scripts::redisson;
namespace rights = holdfast::test;

namespace {

using list = std::vector<std::string>;

std::string const mine(32, 'a');
std::string const other(32, 'b');
std::string const my_field = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1";

struct fixture {
    redis_server server{};

    reply run(script const& s, list const& keys, list const& arguments)
    {
        list words{"EVAL", s.text(), std::to_string(keys.size())};
        words.insert(words.end(), keys.begin(), keys.end());
        words.insert(words.end(), arguments.begin(), arguments.end());
        return server.command(words);
    }
    long long number(script const& s, list const& keys, list const& arguments)
    {
        auto const got = run(s, keys, arguments);
        INFO(got);
        CHECK(got.type == reply::kind::integer);
        return got.integer;
    }

    long long acquire(std::string const& token) { return number(redisson::acquire, {"k"}, {token, "60000"}); }
    long long release(std::string const& token) { return number(redisson::release, {"k"}, {token, "free"}); }
    long long read(std::string const& token, std::string const& beside = "")
    {
        return number(redisson::acquire_shared, {"k", "{k}"}, {token, "60000", beside, "0"});
    }
    long long write(std::string const& token, std::string const& beside = "")
    {
        return number(redisson::acquire_exclusive, {"k", "{k}"}, {token, "60000", beside, "0"});
    }
    long long end_read(std::string const& token)
    {
        return number(redisson::release_shared, {"k", "{k}"}, {token, "free"});
    }
    long long end_write(std::string const& token)
    {
        return number(redisson::release_exclusive, {"k", "{k}"}, {token, "free"});
    }
    std::string count(std::string const& field) { return server.command({"HGET", "k", field}).text; }
    bool empty() { return server.command({"DBSIZE"}).integer == 0; }
};

}  // namespace

TEST_CASE("each command in Redisson's layout has the script that its mode and its verb say")
{
    using enum command::verb;
    auto const of = [](holdfast::access mode, command::verb what, bool fenced = false) {
        command c{
            .what = what, .keys = std::make_shared<lock_keys const>("k", "", mode, layout::redisson), .token = {}};
        if (fenced) c.fence = holdfast::redis::fence_source::clock;
        return &holdfast::redis::script_of(c);
    };
    CHECK(of(holdfast::access::sole, acquire) == &redisson::acquire);
    CHECK(of(holdfast::access::sole, acquire, true) == &redisson::acquire_by_clock);
    CHECK(of(holdfast::access::sole, extend) == &redisson::extend);
    CHECK(of(holdfast::access::sole, release) == &redisson::release);
    CHECK(of(holdfast::access::exclusive, acquire) == &redisson::acquire_exclusive);
    CHECK(of(holdfast::access::exclusive, acquire, true) == &redisson::acquire_exclusive_by_clock);
    CHECK(of(holdfast::access::exclusive, extend) == &redisson::extend_exclusive);
    CHECK(of(holdfast::access::exclusive, release) == &redisson::release_exclusive);
    CHECK(of(holdfast::access::shared, acquire) == &redisson::acquire_shared);
    CHECK(of(holdfast::access::shared, acquire, true) == &redisson::acquire_shared_by_clock);
    CHECK(of(holdfast::access::shared, extend) == &redisson::extend_shared);
    CHECK(of(holdfast::access::shared, release) == &redisson::release_shared);
    CHECK(of(holdfast::access::sole, inspect) == &redisson::inspect);
    CHECK(of(holdfast::access::sole, force_release) == &redisson::force_release);
}

TEST_CASE("Redisson's names wrap no name that has a brace")
{
    auto const keys = [](std::string const& name, holdfast::access mode = holdfast::access::sole) {
        return lock_keys{name, "", mode, layout::redisson};
    };
    CHECK(keys("a").fence().text() == "redisson_lock_token:{a}");
    CHECK(keys("a").channel().text() == "redisson_lock__channel:{a}");
    CHECK(keys("a", holdfast::access::exclusive).channel().text() == "redisson_rwlock:{a}");
    CHECK(keys("a", holdfast::access::shared).channel().text() == "redisson_rwlock:{a}");
    CHECK(keys("a", holdfast::access::shared).readers().text() == "{a}");
    for (auto const* name : {"{a}", "a{", "a{b}c", "{}"}) {
        CHECK(keys(name).fence().text() == std::string{"redisson_lock_token:"} + name);
        CHECK(keys(name).channel().text() == std::string{"redisson_lock__channel:"} + name);
        CHECK(keys(name, holdfast::access::shared).channel().text() == std::string{"redisson_rwlock:"} + name);
        CHECK(keys(name, holdfast::access::shared).readers().text() == name);
    }
}

TEST_CASE("a copy of an acquire counts no second hold, and one of a release ends no other's")
{
    fixture f;
    CHECK(f.acquire(mine) == 1);
    CHECK(f.acquire(mine) == 1);
    CHECK(f.count(my_field) == "1");
    CHECK(f.acquire(other) < -50'000);
    CHECK(f.release(other) == 0);
    CHECK(f.release(mine) == 1);
    CHECK(f.release(mine) == 0);
    CHECK(f.acquire(other) == 1);
    CHECK(f.release(mine) == 0);
    CHECK(f.number(redisson::extend, {"k"}, {mine, "60000"}) == 0);
    CHECK(f.number(redisson::extend, {"k"}, {other, "120000"}) == 1);
    CHECK(f.number(redisson::extend, {"k"}, {other, "1000"}) == 1);  // a late copy cuts nothing
    CHECK(f.server.command({"PTTL", "k"}).integer > 60'000);
    CHECK(f.release(other) == 1);
    CHECK(f.empty());

    for (int copy = 0; copy < 2; ++copy) CHECK(f.read(mine) == 1);
    CHECK(f.count(my_field) == "1");
    CHECK(f.end_read(mine) == 1);
    CHECK(f.end_read(mine) == 0);
    for (int copy = 0; copy < 2; ++copy) CHECK(f.write(mine) == 1);
    CHECK(f.count(my_field + ":write") == "1");
    CHECK(f.end_write(mine) == 1);
    CHECK(f.end_write(mine) == 0);
    CHECK(f.empty());
}

TEST_CASE("one hold stands beside the other of the same owner, in either order of their ends")
{
    fixture f;
    CHECK(f.read(mine, other) < 0);   // there is no writer
    CHECK(f.write(mine, other) < 0);  // nor a reader
    CHECK(f.empty());
    CHECK(f.write(other) == 1);
    CHECK(f.read(mine, mine) < 0);
    CHECK(f.read(mine, other) == 1);
    CHECK(f.count("mode") == "write");
    CHECK(f.end_read(mine) == 1);
    CHECK(f.count("mode") == "write");
    CHECK(f.read(mine, other) == 1);
    CHECK(f.end_write(other) == 1);
    CHECK(f.count("mode") == "read");
    CHECK(f.write(other, mine) == 1);
    CHECK(f.read(std::string(32, 'c')) < 0);
    CHECK(f.end_read(mine) == 1);
    CHECK(f.count("mode") == "write");
    CHECK(f.server.command({"HLEN", "k"}).integer == 2);
    CHECK(f.end_write(other) == 1);
    CHECK(f.empty());
}

TEST_CASE("values of another type are held, and stay")
{
    fixture f;
    f.server.command({"SET", "k", "theirs", "PX", "60000"});
    auto const marked = -holdfast::redis::other_type_mark;
    CHECK(f.acquire(mine) < marked);
    CHECK(f.read(mine) < marked);
    CHECK(f.write(mine) < marked);
    CHECK(f.release(mine) == 0);
    CHECK(f.end_read(mine) == 0);
    CHECK(f.end_write(mine) == 0);
    CHECK(f.number(redisson::extend, {"k"}, {mine, "60000"}) == 0);
    CHECK(f.number(redisson::extend_shared, {"k", "{k}"}, {mine, "60000"}) == 0);
    CHECK(f.number(redisson::extend_exclusive, {"k"}, {mine, "60000"}) == 0);
    CHECK(f.number(redisson::force_release, {"k"}, {"", "free"}) == -1);
    CHECK(f.server.command({"GET", "k"}).text == "theirs");
}

TEST_CASE("a hash without an expiry, or with a count that is none, is held")
{
    fixture f;
    f.server.command({"HSET", "k", "theirs", "1"});
    CHECK(f.acquire(mine) == -1);
    CHECK(f.read(mine) == -1);
    CHECK(f.write(mine) == -1);
    f.server.command({"HSET", "k", "mode", "read", "theirs", "1000000000"});
    f.server.command({"PEXPIRE", "k", "60000"});
    CHECK(f.read(mine) == 1);
    CHECK(f.end_read(mine) == 1);  // whose holds are not counted one by one
    CHECK(f.count("theirs") == "1000000000");
    f.server.command({"HSET", "k", "theirs", "many"});
    CHECK(f.read(mine) == 1);
    CHECK(f.write(other, mine) == 1);
    CHECK(f.server.command({"HEXISTS", "k", "theirs"}).integer == 0);
}

TEST_CASE("a fence in Redisson's counter goes on from it, or from the clock, and is replaced if it is none")
{
    fixture f;
    list const arguments{mine, "60000", "4", "3600000", "86400000000"};
    f.server.command({"SET", "f", "7"});
    auto const first = f.number(redisson::acquire_by_clock, {"k", "f"}, arguments);
    CHECK(first > 1'000'000'000'000'000);
    CHECK(f.server.command({"INCR", "f"}).integer == first + 1);
    CHECK(f.number(redisson::acquire_by_clock, {"k", "f"}, arguments) >= first + 5);
    CHECK(f.server.command({"PTTL", "f"}).integer == -1);
    f.server.command({"SET", "f", "9223372036854775807"});
    auto const replaced = f.run(redisson::acquire_by_clock, {"k", "f"}, arguments);
    REQUIRE(replaced.elements.size() == 2);
    CHECK(replaced.elements[0].integer > first + 80'000'000'000);
    CHECK(f.server.command({"INCR", "f"}).integer == replaced.elements[0].integer + 1);
}

TEST_CASE("with the rights that the page asks for, locks in Redisson's layout work; one that lacks is named")
{
    auto const line = rights::redisson_rights("secret", "orders*", "");
    {
        redis_server server{{.config = {line}}};
        holdfast::redis::client redis{server.url("app", "secret"), in_redisson()};
        holdfast::redis::mutex m{redis, "orders", {.ttl = 30s}};
        holdfast::redis::shared_mutex both{redis, "orders{1}", {.ttl = 30s}};
        redisson_peer peer{server, "orders"};
        CHECK(peer.lock());
        CHECK_FALSE(m.try_lock_for(300ms));  // it listened
        CHECK(peer.unlock() == redisson_peer::outcome::freed);
        m.lock();
        m.extend(20s);
        m.unlock();
        both.lock();
        both.unlock_and_lock_shared();
        CHECK(both.try_unlock_shared_and_lock());
        both.unlock();
        both.lock_shared();
        std::error_code ec;
        CHECK(both.extend_shared(20s, ec));
        both.unlock_shared();
        CHECK_FALSE(redis.holder("orders"));
        CHECK(server.command({"EXISTS", "orders", "orders{1}"}).integer == 0);
    }
    auto const named = [&](std::string const& without, auto const& take) {
        INFO(without);
        redis_server server{{.config = {rights::redisson_rights("secret", "orders*", "-" + without)}}};
        holdfast::redis::client redis{server.url("app", "secret"), in_redisson()};
        std::string said;
        try {
            take(redis);
        } catch (holdfast::error const& e) {
            CHECK(e.code() == errc::misconfigured);
            said = e.what();
        }
        std::transform(said.begin(), said.end(), said.begin(), [](unsigned char c) { return std::tolower(c); });
        CHECK(said.find(without) != std::string::npos);
        CHECK(server.command({"EXISTS", "orders"}).integer == 0);
    };
    auto const mutex = [](auto const& redis) { holdfast::redis::mutex{redis, "orders"}.lock(); };
    auto const reader = [](auto const& redis) { holdfast::redis::shared_mutex{redis, "orders"}.lock_shared(); };
    auto const writer = [](auto const& redis) { holdfast::redis::shared_mutex{redis, "orders"}.lock(); };
    for (auto const* one : {"hexists", "hset", "pttl", "pexpire", "set", "getrange", "time"}) named(one, mutex);
    for (auto const* one : {"hgetall", "hdel", "hset", "set", "pexpire"}) named(one, reader);
    for (auto const* one : {"hgetall", "hdel", "hset", "pexpire"}) named(one, writer);
}
