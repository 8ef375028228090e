// SPDX-License-Identifier: MIT
//
// Users who may not use the queues of waiters: they have just the rights that 0.1 asked for.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/redis_rights.hpp"

#include <holdfast/redis.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::eventually;
using holdfast::test::least_rights;
using holdfast::test::redis_server;
using holdfast::test::unhurried;

namespace {

redis_server server_with(std::string const& line) { return redis_server{{.config = {line}}}; }

/// Effects: the user `app` waits, again and again, for a lock that is released by way of the URL `releasing` when its
/// client listens to so many channels. It never looks by itself.
void check_that_it_is_woken(redis_server& server, long channels, std::string const& releasing)
{
    client holding{releasing, unhurried()};
    client redis{server.url("app", "secret"), unhurried()};
    mutex held{holding, "orders", {.ttl = 1h, .retry = {.most = 1h}}};
    mutex m{redis, "orders", {.ttl = 1h, .retry = {.most = 1h}}};
    for (int i = 0; i < 3; ++i) {
        held.lock();
        std::jthread waiter{[&] { m.lock(); }};
        CHECK(eventually([&] { return holdfast::test::subscriptions(server) == channels; }));
        held.unlock();
        waiter.join();
        m.unlock();
    }
}

}  // namespace

TEST_CASE("a user without rights to the queue waits for messages to all, and is told so once")
{
    auto server = server_with(least_rights("secret", "orders*", {}, false));
    client holding{server.url(), unhurried()};
    client redis{server.url("app", "secret"), unhurried()};
    std::mutex guard;
    std::vector<std::string> told;
    holdfast::lock_options const patient{.ttl = 1h, .retry = {.most = 1h}, .on_error = [&](holdfast::error const& e) {
                                             std::scoped_lock lock{guard};
                                             told.emplace_back(e.what());
                                         }};
    mutex held{holding, "orders", patient};
    mutex m{redis, "orders", patient};
    for (int i = 0; i < 3; ++i) {
        held.lock();
        std::jthread waiter{[&] { m.lock(); }};
        CHECK(eventually([&] { return holdfast::test::subscriptions(server) >= 1; }));
        CHECK(holdfast::test::waiters(server) == 0);
        held.unlock();
        waiter.join();
        m.unlock();
    }
    auto const times = [&](std::string_view words) {
        return std::count_if(told.begin(), told.end(),
                             [&](auto const& one) { return one.find(words) != std::string::npos; });
    };
    CHECK(eventually([&] {
        std::scoped_lock lock{guard};
        return told.size() == 2 && times("not served in turn") == 1 && times("the records of holders") == 1;
    }));
}

TEST_CASE("a user with a right to the keys of the queue, but not to its commands, waits for messages to all")
{
    auto server = server_with("user app on >secret ~* &* -@all " + std::string{holdfast::test::lock_commands});
    check_that_it_is_woken(server, 2, server.url());
}

TEST_CASE("a user with some of the commands of the queue waits for messages to all")
{
    std::string const some = GENERATE("+zadd +zrem ", "+zadd +zrem +zrank ", "+zrem +zrank +zpopmin ");
    auto server = server_with("user app on >secret ~* &* -@all " + some + std::string{holdfast::test::lock_commands});
    check_that_it_is_woken(server, 2, GENERATE(true, false) ? server.url() : server.url("app", "secret"));
}

TEST_CASE("a user without the right to PEXPIRE, which every lock needs, leaves no queue that stays")
{
    auto server = server_with(least_rights("secret", "orders*", "-pexpire"));
    client holding{server.url(), unhurried()};
    client redis{server.url("app", "secret"), unhurried()};
    mutex held{holding, "orders", {.ttl = 1h}};
    mutex m{redis, "orders", {.ttl = 1h, .retry = {.most = 1h}}};
    held.lock();
    std::jthread waiter{[&] { CHECK_THROWS(m.lock()); }};
    CHECK(eventually([&] { return holdfast::test::subscriptions(server) == 2; }));  // it does without the queue
    CHECK_FALSE(holdfast::test::exists(server, "holdfast:queue:{orders}"));
    held.unlock();
}

TEST_CASE("a user who may not listen to its inbox waits for messages to all")
{
    auto server = server_with("user app on >secret ~* resetchannels &holdfast:free:{orders} +@all");
    check_that_it_is_woken(server, 1, server.url());
}

TEST_CASE("a right to the queue that is granted later is used by the next connection")
{
    auto server = server_with(least_rights("secret", "orders*", {}, false));
    client holding{server.url(), unhurried()};
    client redis{server.url("app", "secret"), unhurried()};
    mutex held{holding, "orders", {.ttl = 1h}};
    mutex m{redis, "orders", {.ttl = 1h, .retry = {.most = 1h}}};
    bool const anew = GENERATE(false, true);
    for (bool const granted : {false, true}) {
        if (granted) server.command({"ACL", "SETUSER", "app", "allkeys", "allchannels", "+@all"});
        if (granted && anew) server.command({"CLIENT", "KILL", "USER", "app"});
        held.lock();
        std::jthread waiter{[&] { m.lock(); }};
        auto const listen = granted && anew ? "holdfast:wake:*" : "holdfast:free:*";
        CHECK(eventually([&] { return !server.command({"PUBSUB", "CHANNELS", listen}).elements.empty(); }));
        CHECK(eventually([&] { return holdfast::test::waiters(server) == (granted && anew ? 1 : 0); }));
        held.unlock();
        waiter.join();
        m.unlock();
    }
}

TEST_CASE("users with and without rights to the queue get a lock by turns")
{
    auto server = server_with(least_rights("secret", "orders*", {}, false));
    client with{server.url(), unhurried()};
    client without{server.url("app", "secret"), unhurried()};
    client another{server.url("app", "secret"), unhurried()};
    std::vector<std::jthread> threads;
    std::atomic<int> inside{0};
    std::atomic<bool> alone{true};
    for (auto* const one : {&with, &without, &another})
        threads.emplace_back([&, one] {
            mutex m{*one, "orders", {.ttl = 1h, .retry = {.most = 1h}}};
            for (int i = 0; i < 100; ++i) {
                m.lock();
                if (++inside != 1) alone = false;
                std::this_thread::yield();
                --inside;
                m.unlock();
            }
        });
    threads.clear();
    CHECK(alone);
}

TEST_CASE("a name that a user has no right to does not take the queue from its other locks")
{
    auto server = server_with(least_rights("secret", "orders*"));
    client holding{server.url(), unhurried()};
    client redis{server.url("app", "secret"), unhurried()};
    mutex held{holding, "orders", {.ttl = 1h}};
    mutex m{redis, "orders", {.ttl = 1h, .retry = {.most = 1h}}};
    mutex other{redis, "invoices"};
    held.lock();
    CHECK_THROWS(other.try_lock());
    std::jthread waiter{[&] { m.lock(); }};
    CHECK(eventually([&] { return holdfast::test::waiters(server) == 1; }));
    CHECK_THROWS(other.try_lock());
    held.unlock();
    waiter.join();
}

TEST_CASE("who cannot be called gets its turn beside those who are called all the time")
{
    bool const tries = GENERATE(true, false);
    redis_server server;
    auto options = unhurried();
    options.subscribe = false;
    client one{server.url(), unhurried()};
    client two{server.url(), unhurried()};
    client outside{server.url(), options};
    // Not one of those that are busy: a thread that waits in the same client goes ahead of one that tries.
    client trying{server.url(), unhurried()};
    std::vector<std::jthread> threads;
    for (auto* const busy : {&one, &two})
        threads.emplace_back([busy](std::stop_token const& stop) {
            mutex m{*busy, "orders", {.ttl = 1h}};
            while (!stop.stop_requested()) {
                m.lock();
                m.unlock();
            }
        });
    mutex m{tries ? trying : outside, "orders", {.ttl = 1h, .retry = {.most = 2ms}}};
    for (int i = 0; i < 10; ++i) {
        CHECK(eventually([&] { return tries ? m.try_lock() : m.try_lock_for(100ms); }));
        m.unlock();
    }
}

TEST_CASE("a waiter for whose second connection the server has no room gets its turn beside those who are called")
{
    redis_server server;
    std::deque<client> called;
    for (int i = 0; i < 6; ++i) called.emplace_back(server.url(), unhurried());
    client late{server.url(), unhurried()};
    mutex m{late, "orders", {.ttl = 1h, .retry = {.most = 2ms}}};
    REQUIRE(m.try_lock());
    m.unlock();
    std::vector<std::jthread> threads;
    for (auto& busy : called)
        threads.emplace_back([&busy](std::stop_token const& stop) {
            mutex held{busy, "orders", {.ttl = 1h}};
            while (!stop.stop_requested()) {
                held.lock();
                held.unlock();
            }
        });
    CHECK(eventually([&] { return holdfast::test::subscriptions(server) == 6; }));
    server.command({"CONFIG", "SET", "maxclients", "1"});
    for (int i = 0; i < 10; ++i) {
        m.lock();
        m.unlock();
    }
}
