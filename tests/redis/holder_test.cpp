// SPDX-License-Identifier: MIT
//
// The record of a lock's holder on the server, and what operators ask: with and without the rights to it.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/redis_rights.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redis/script_table.hpp>
#include <holdfast/shared_mutex.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::least_rights;
using holdfast::test::redis_server;
using holdfast::test::unhurried;
using holdfast::test::unnamed;
namespace scripts = holdfast::redis::scripts;

namespace {

constexpr char const* record = "holdfast:holder:{orders}";

/// Returns: options of a client whose records have that label.
holdfast::redis::client_options named(std::string label = "billing")
{
    auto options = unhurried();
    options.label = std::move(label);
    return options;
}

/// What `on_error` was told.
class told {
public:
    [[nodiscard]] holdfast::lock_options options()
    {
        return {.ttl = 1h, .on_error = [this](holdfast::error const& e) {
                    std::scoped_lock guard{mutex_};
                    all_.emplace_back(e.what());
                }};
    }
    [[nodiscard]] long times(std::string const& words)
    {
        std::scoped_lock guard{mutex_};
        return std::count_if(all_.begin(), all_.end(),
                             [&](auto const& one) { return one.find(words) != std::string::npos; });
    }

private:
    std::mutex mutex_;
    std::vector<std::string> all_;
};

}  // namespace

TEST_CASE("a record is there as long as the lock, and says what docs/redis.md says")
{
    redis_server server;
    bool const fencing = GENERATE(true, false);
    client redis{server.url(), named()};
    mutex m{redis, "orders", {.ttl = 1h, .fencing = fencing}};
    for (int i = 0; i < 2; ++i) {
        m.lock();
        auto const text = server.command({"GET", record}).text;
        REQUIRE(text.size() > 40);
        CHECK(text.substr(0, 32) == server.command({"GET", "orders"}).text);
        CHECK(text[32] == ' ');
        CHECK_THAT(text, contains(' ' + std::to_string(m.lease().fencing_token()) + " host="));
        CHECK_THAT(text, contains(" label=billing"));
        auto const left = server.command({"PTTL", record}).integer;
        CHECK(left > 50 * 60 * 1000);
        CHECK(left <= 60 * 60 * 1000);
        m.extend(2h);
        CHECK(server.command({"PTTL", record}).integer > 100 * 60 * 1000);
        m.unlock();
        CHECK_FALSE(holdfast::test::exists(server, record));
    }
}

TEST_CASE("a client that leaves no record writes no key for it, and its scripts are those without")
{
    redis_server server;
    client redis{server.url(), unnamed()};
    mutex m{redis, "orders", {.ttl = 1h}};
    m.lock();
    CHECK_FALSE(holdfast::test::exists(server, record));
    m.extend(2h);
    m.unlock();
    for (auto const* s : scripts::of_mutex_with_holder)
        CHECK(server.command({"SCRIPT", "EXISTS", std::string{s->sha1}}).elements.at(0).integer == 0);
    for (auto const* s : {&scripts::acquire_by_clock, &scripts::extend, &scripts::release})
        CHECK(server.command({"SCRIPT", "EXISTS", std::string{s->sha1}}).elements.at(0).integer == 1);
}

TEST_CASE("waiters with records are called in turn, and the record is that of the present holder")
{
    redis_server server;
    client one{server.url(), named("one")};
    client two{server.url(), named("two")};
    std::vector<std::jthread> threads;
    std::atomic<int> wrong{0};
    for (auto* const c : {&one, &two})
        threads.emplace_back([&, c] {
            mutex m{*c, "orders", {.ttl = 1h, .unavailable_after = 5min}};
            for (int i = 0; i < 50; ++i) {
                m.lock();
                auto const seen = m.holder();
                if (!seen || seen->label != (c == &one ? "one" : "two")) ++wrong;
                m.unlock();
            }
        });
    threads.clear();
    CHECK(wrong == 0);
    CHECK_FALSE(holdfast::test::exists(server, record));
}

TEST_CASE("a user without a right to the record locks without it, and is told so once")
{
    auto const queue = GENERATE(true, false);
    redis_server server{{.config = {least_rights("secret", "orders*", "+scan", queue)}}};
    client redis{server.url("app", "secret"), named()};
    client other{server.url(), unhurried()};
    told news;
    mutex m{redis, "orders", news.options()};
    mutex held{other, "orders", {.ttl = 1h}};
    for (int i = 0; i < 3; ++i) {
        held.lock();
        std::jthread waiter{[&] { m.lock(); }};
        if (queue) CHECK(eventually([&] { return holdfast::test::waiters(server) == 1; }));
        held.unlock();
        waiter.join();
        CHECK(m.lease().fencing_token() > 0);
        std::error_code ec;
        CHECK(m.extend(2h, ec));
        CHECK(other.holder("orders").value().label.empty());
        CHECK(m.holder().value().remaining.value() > 1h);
        CHECK_FALSE(other.request_release("orders", ec));
        CHECK(ec == holdfast::errc::misconfigured);
        m.unlock();
    }
    CHECK(redis.list("orders").empty());
    CHECK(eventually([&] { return news.times("records of holders") == 1; }));
    CHECK(news.times("not served in turn") == (queue ? 0 : 1));
    CHECK_FALSE(holdfast::test::exists(server, record));
}

TEST_CASE("a user with a right to the record, and none to the queue, leaves its record")
{
    redis_server server{
        {.config = {least_rights("secret", "orders*", holdfast::test::holder_keys_of("orders*"), false)}}};
    client redis{server.url("app", "secret"), named()};
    client other{server.url(), unhurried()};
    told news;
    mutex m{redis, "orders", news.options()};
    m.lock();
    CHECK(other.holder("orders").value().label == "billing");
    m.unlock();
    CHECK_FALSE(holdfast::test::exists(server, record));
    CHECK(eventually([&] { return news.times("not served in turn") == 1; }));
    CHECK(news.times("records of holders") == 0);
}

TEST_CASE("a user who may not list says which right is missing")
{
    redis_server server{{.config = {least_rights("secret", "orders*")}}};
    client redis{server.url("app", "secret"), unhurried()};
    CHECK(holdfast::test::code_of([&] { static_cast<void>(redis.list("orders")); }) == holdfast::errc::misconfigured);
    CHECK_THROWS_WITH(redis.list("orders"), contains("SCAN"));
}

TEST_CASE("an operator without a right to read a lock is told which, and not that another program has put it there")
{
    auto const more = holdfast::test::holder_keys_of("orders*") + " -getrange";
    redis_server server{{.config = {least_rights("secret", "orders*", more)}}};
    client redis{server.url("app", "secret"), unhurried()};
    client other{server.url(), named()};
    mutex m{other, "orders", {.ttl = 1h}};
    m.lock();
    CHECK_THROWS_WITH(redis.force_unlock("orders"), contains("GETRANGE"));
    CHECK_THROWS_WITH(redis.request_release("orders"), contains("GETRANGE"));
    CHECK(holdfast::test::exists(server, "orders"));
}

TEST_CASE("a record that is left of another lease is not taken for that of the holder")
{
    redis_server server;
    client redis{server.url(), named()};
    mutex m{redis, "orders", {.ttl = 1h}};
    m.lock();
    server.command({"SET", "orders", std::string(32, 'b'), "PX", "3600000"});
    auto const seen = redis.holder("orders");
    REQUIRE(seen);
    CHECK(seen->label.empty());
    CHECK(seen->pid == 0);
    std::error_code ec;
    CHECK_FALSE(redis.request_release("orders", ec));
    CHECK(ec == holdfast::errc::misconfigured);
    CHECK(redis.force_unlock("orders"));
    CHECK_FALSE(redis.holder("orders"));
}

TEST_CASE("what another library has put there is shown, and broken unless it is of another type")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    server.command({"SET", "orders", "someone"});
    auto const seen = redis.holder("orders");
    REQUIRE(seen);
    CHECK_FALSE(seen->remaining);
    CHECK(redis.list("orders").empty());  // it does not expire, and holds no token
    CHECK(redis.force_unlock("orders"));
    CHECK_FALSE(redis.holder("orders"));
    server.command({"HSET", "orders", "field", "1"});
    CHECK(redis.holder("orders"));
    std::error_code ec;
    CHECK_FALSE(redis.force_unlock("orders", ec));
    CHECK(ec == holdfast::errc::misconfigured);
    CHECK(holdfast::test::exists(server, "orders"));
}

TEST_CASE("a list goes on over many keys, and leaves out what is no lock")
{
    redis_server server;
    auto options = unhurried();
    options.key_prefix = "app?*:";
    client redis{server.url(), options};
    for (int i = 0; i < 3000; ++i) server.command({"SET", "noise" + std::to_string(i), "1"});
    for (int i = 0; i < 500; ++i)
        server.command({"SET", "app?*:job" + std::to_string(1000 + i), std::string(32, 'a'), "PX", "3600000"});
    server.command({"SET", "app?*:cache", std::string(32, 'a')});
    server.command({"SET", "app?*:cached", "text", "PX", "3600000"});
    server.command({"SET", "appxy:job", std::string(32, 'a'), "PX", "3600000"});
    server.command({"LPUSH", "app?*:jobs", "1"});
    auto const all = redis.list();
    CHECK(all.size() == 500);
    CHECK(std::is_sorted(all.begin(), all.end()));
    CHECK(all.front() == "job1000");
    CHECK(redis.list("job10").size() == 100);
    CHECK(redis.list("nothing").empty());
}

TEST_CASE("a question over a connection that the server has closed is asked again")
{
    redis_server server;
    client redis{server.url(), named()};
    mutex m{redis, "orders", {.ttl = 1h}};
    m.lock();
    server.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    CHECK(redis.holder("orders"));
    server.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    CHECK(redis.list("orders").size() == 1);
}

TEST_CASE("operators are told that a server cannot be asked, and a label that is too long is refused")
{
    redis_server server;
    client redis{server.url(), named()};
    CHECK_FALSE(redis.holder("orders"));
    server.kill();
    std::error_code ec;
    CHECK_FALSE(redis.holder("orders", ec));
    CHECK(ec == holdfast::errc::unavailable);
    CHECK_FALSE(redis.force_unlock("orders", ec));
    CHECK((ec == holdfast::errc::unavailable || ec == holdfast::errc::outcome_unknown));
    CHECK(redis.list({}, ec).empty());
    CHECK(ec == holdfast::errc::unavailable);
    CHECK(holdfast::test::code_of([&] {
              client{server.url(), named(std::string(5000, 'x'))};
          }) == holdfast::errc::misconfigured);
    CHECK(holdfast::test::code_of([&] { static_cast<void>(redis.holder("holdfast:fence:{orders}")); }) ==
          holdfast::errc::misconfigured);
}

TEST_CASE("a list leaves out a name of more than 4 KiB")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    std::string const longest(4096, 'x');
    mutex listed{redis, longest, {.ttl = 1h}};
    mutex left_out{redis, longest + 'x', {.ttl = 1h}};
    listed.lock();
    left_out.lock();
    CHECK(redis.list() == std::vector<std::string>{longest});
}

TEST_CASE(
    "a lock that readers without records have shows one holder of which nothing is known, and cannot be asked for")
{
    redis_server server;
    client redis{server.url(), unnamed()};
    client elsewhere{server.url(), unnamed()};
    holdfast::shared_mutex here{redis, "orders", {.ttl = 1h}};
    holdfast::shared_mutex there{elsewhere, "orders", {.ttl = 1h}};
    here.lock_shared();
    there.lock_shared();
    auto const seen = redis.holder("orders");
    REQUIRE(seen);
    CHECK(seen->label.empty());
    CHECK(seen->host.empty());
    CHECK(seen->fencing_token == 0);
    CHECK(seen->remaining.value_or(0ms) > 0ms);
    std::error_code ec;
    CHECK_FALSE(redis.request_release("orders", ec));
    CHECK(ec == holdfast::errc::misconfigured);
    CHECK(here.lease_shared().still_held());
    there.unlock_shared();
    CHECK(redis.holder("orders"));
    here.unlock_shared();
    CHECK_FALSE(redis.holder("orders"));
}
