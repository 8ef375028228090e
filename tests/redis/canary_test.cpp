// SPDX-License-Identifier: MIT
//
// Whatever goes wrong, what is said of it has no password and no owner token in it. Every message that is made is heard
// (overheard.hpp); here each kind of failure is brought about, on one Redis and on a Redlock.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/overheard.hpp"
#include "support/redis_rights.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::everything_heard;
using holdfast::test::exists;
using holdfast::test::redis_fleet;
using holdfast::test::redis_options;

namespace {

constexpr char const* password = "canary-of-the-user";

/// How long is waited for servers.
struct patience {
    std::chrono::milliseconds answer;
    std::chrono::milliseconds ttl;
    std::chrono::milliseconds unavailable_after;
};
constexpr patience for_answers{10s, 30s, 1min};  // which come, however busy the machine is
constexpr patience for_none{500ms, 2s, 300ms};

struct of_redis {
    using client = holdfast::redis::client;
    using mutex = holdfast::redis::mutex;
    static client connect(std::vector<std::string> const& urls, patience const& p)
    {
        return client{urls.front(), {.operation_timeout = p.answer, .connect_timeout = 1min}};
    }
};

struct of_redlock {
    using client = holdfast::redlock::masters;
    using mutex = holdfast::redlock::mutex;
    static client connect(std::vector<std::string> const& urls, patience const& p)
    {
        return client{urls, {.node_timeout = p.answer, .connect_timeout = 1min, .restart_guard = 0ms}};
    }
};

holdfast::lock_options telling(std::vector<std::string>& told, patience const& p)
{
    return {.ttl = p.ttl, .unavailable_after = p.unavailable_after, .on_error = [&told](holdfast::error const& e) {
                told.emplace_back(e.what());
            }};
}

/// Effects: does everything with a lock that fails. Returns: the code of `lock()`.
template <class Store>
std::error_code use(std::vector<std::string> const& urls, patience const& p)
{
    std::vector<std::string> told;
    auto client = Store::connect(urls, p);
    typename Store::mutex m{client, "orders", telling(told, p)};
    std::string what;
    auto const code = code_of([&] { m.lock(); }, &what);
    CHECK(code);
    CHECK_THAT(what, holdfast::test::contains("orders"));
    CHECK(code_of([&] { static_cast<void>(m.try_lock_for(10ms)); }));
    m.unlock();
    CHECK_FALSE(told.empty());  // of each master that gives no vote, too
    return code;
}

/// Effects: the same, of servers that are made with `options`, and then dealt with.
template <class Store, class Deal>
std::error_code refused(redis_options const& options, Deal deal, std::string const& user = "app",
                        std::string const& with = password, patience const& p = for_answers)
{
    redis_fleet servers{3, options};
    for (auto& one : servers) deal(one);
    return use<Store>(servers.urls(user, with), p);
}

redis_options with_user(std::string const& more)
{
    return {.config = {std::string{"user app on >"} + password + " " + more}};
}

void nothing(holdfast::test::redis_server&) {}

}  // namespace

TEMPLATE_TEST_CASE("no refusal of a server is told with a password or an owner token", "", of_redis, of_redlock)
{
    auto const all = with_user("~* &* +@all");
    CHECK(refused<TestType>(all, nothing, "app", "canary-that-is-wrong") == errc::misconfigured);
    CHECK(refused<TestType>(all, nothing, "canary-nobody") == errc::misconfigured);
    CHECK(refused<TestType>({.password = "canary-of-default"}, nothing, "", "canary-that-is-wrong") ==
          errc::misconfigured);
    CHECK(refused<TestType>(with_user("~* &* +@all -@scripting"), nothing) == errc::misconfigured);
    CHECK(refused<TestType>(with_user("~other &* +@all"), nothing) == errc::misconfigured);
    CHECK(refused<TestType>(
              all,
              [](auto& s) {
                  s.command({"CONFIG", "SET", "maxmemory", "1"});
              },
              "app", password, for_none) == errc::unavailable);
    CHECK(everything_heard().leaks().empty());
}

TEMPLATE_TEST_CASE("a server that repeats what it does not understand is not quoted", "", of_redis, of_redlock)
{
    // It says: unknown command, with args beginning with the password, or the owner token.
    for (auto const* const command : {"AUTH", "EVALSHA", "EVAL", "SET"}) {
        auto options = with_user("~* &* +@all");
        options.config.push_back(std::string{"rename-command "} + command + " not-" + command);
        CAPTURE(command);
        std::vector<std::string> told;
        redis_fleet servers{3, options};
        auto client = TestType::connect(servers.urls("app", password), for_none);
        for (bool const fencing : {true, false}) {
            auto wanted = telling(told, for_none);
            wanted.fencing = fencing;
            typename TestType::mutex m{client, "orders", wanted};
            for (int i = 0; i < 3; ++i)
                if (!code_of([&] { m.lock(); })) m.unlock();
        }
    }
    CHECK(everything_heard().count() > 0);
    CHECK(everything_heard().leaks().empty());
}

TEMPLATE_TEST_CASE("a server that cannot be reached or does not answer is told of without a password", "", of_redis,
                   of_redlock)
{
    redis_fleet servers{3, with_user("~* &* +@all")};
    auto const urls = servers.urls("app", password);
    for (auto& one : servers) one.pause();
    CHECK(use<TestType>(urls, for_none) == errc::unavailable);
    for (auto& one : servers) one.kill();
    CHECK(use<TestType>(urls, for_none) == errc::unavailable);
    CHECK(everything_heard().leaks().empty());
}

TEMPLATE_TEST_CASE("what becomes of a lease is told without its owner token", "", of_redis, of_redlock)
{
    redis_fleet servers{3, with_user("~* &* +@all")};
    std::vector<std::string> told;
    auto client = TestType::connect(servers.urls("app", password), for_answers);
    typename TestType::mutex m{client, "orders", telling(told, for_answers)};
    auto const hold = [&] {
        REQUIRE(eventually([&] {
            return !code_of([&] {
                if (!m.try_lock_for(20s)) throw std::system_error{make_error_code(errc::contended)};
            });
        }));
        std::string token;
        for (auto const& one : servers.command({"GET", "orders"})) token = std::max(token, one.text);
        REQUIRE(holdfast::test::shows_token(token));
        everything_heard().keep(token);
    };
    std::error_code ec;
    hold();
    for (auto& one : servers) one.command({"DEL", "orders"});
    CHECK_FALSE(m.extend(30s, ec));
    CHECK(ec == errc::lease_lost);
    CHECK_THROWS_AS(m.extend(30s), holdfast::error);
    m.unlock();
    hold();
    for (auto& one : servers) one.command({"SET", "orders", "another"});
    m.unlock();
    for (auto& one : servers) one.command({"DEL", "orders"});
    hold();
    for (auto& one : servers) one.kill();
    m.unlock();
    CHECK(told.size() >= 3);
    CHECK(everything_heard().count() >= 4);
    CHECK(everything_heard().leaks().empty());
}

TEST_CASE("an argument that is refused is told without its password")
{
    everything_heard().keep("canary-of-a-url");
    for (auto const* const url :
         {"redis://app:canary-of-a-url@", "redis://app:canary-of-a-url@h:99999", "redis://app:canary-of-a-url@h:x",
          "redis://app:canary-of-a-url@h/x", "http://app:canary-of-a-url@h", "redis://app:canary-of-a-url@[::1",
          "redis://app:canary-of-a-url%zz@h", "unix://app:canary-of-a-url@run/r", "redis://app:canary-of-a-url@h?x=1",
          "app:canary-of-a-url@h", "rediss://app:canary-of-a-url@h:0", "redis://h:canary-of-a-url"}) {
        CAPTURE(url);
        CHECK(code_of([&] { holdfast::redis::client const c{url}; }) == errc::misconfigured);
        CHECK(code_of([&] { holdfast::redlock::masters const m{{url, "redis://h"}}; }) == errc::misconfigured);
    }
    std::string const twice = "redis://app:canary-of-a-url@h";
    CHECK(code_of([&] { holdfast::redlock::masters const m{{twice, twice}}; }) == errc::misconfigured);
    CHECK(everything_heard().count() > 20);
    CHECK(everything_heard().leaks().empty());
}
