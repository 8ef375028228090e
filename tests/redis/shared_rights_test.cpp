// SPDX-License-Identifier: MIT
//
// A read-write lock says which right it lacks, and takes nothing then.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/connection.hpp"
#include "support/redis_rights.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::test::redis_server;

namespace rights = holdfast::test;

namespace {

/// Returns: the keys that do not expire.
std::vector<std::string> keys_for_good(redis_server& server)
{
    std::vector<std::string> all;
    for (auto const& one : server.command({"KEYS", "*"}).elements)
        if (server.command({"PTTL", one.text}).integer == -1) all.push_back(one.text);
    return all;
}

}  // namespace

TEST_CASE("a right that readers lack is named, and nothing is held")
{
    std::istringstream commands{std::string{rights::shared_commands} + " +pexpire +zadd +zrem"};
    for (std::string one; commands >> one;) {
        one.front() = '-';
        INFO(one);
        redis_server server{{.config = {rights::least_rights("secret", "orders*", one)}}};
        holdfast::redis::client client{server.url("app", "secret"),
                                       {.operation_timeout = 10s, .connect_timeout = 1min}};
        holdfast::redis::shared_mutex m{client, "orders"};
        auto named = one.substr(1);
        std::string said;
        try {
            m.lock_shared();
        } catch (holdfast::error const& e) {
            CHECK(e.code() == errc::misconfigured);
            said = e.what();
        }
        std::transform(said.begin(), said.end(), said.begin(), [](unsigned char c) { return std::tolower(c); });
        CHECK(said.find(named) != std::string::npos);
        CHECK(server.command({"EXISTS", "orders"}).integer == 0);
        CHECK(keys_for_good(server).empty());
    }
}

TEST_CASE("a user without the right to PEXPIRE leaves no key that stays, and drops none that expires")
{
    redis_server server{{.config = {rights::least_rights("secret", "orders*", "-pexpire")}}};
    holdfast::redis::client others{server.url(), {.operation_timeout = 10s, .connect_timeout = 1min}};
    holdfast::redis::client client{server.url("app", "secret"), {.operation_timeout = 10s, .connect_timeout = 1min}};
    holdfast::redis::shared_mutex held{others, "orders", {.ttl = 1h}};
    holdfast::redis::shared_mutex m{client, "orders"};
    auto const asks_in_vain = [&](auto const& ask) {
        CHECK_THROWS(ask());
        CHECK(keys_for_good(server).empty());
    };
    held.lock();
    asks_in_vain([&] { m.lock_shared(); });
    held.unlock();
    server.command({"PEXPIRE", "holdfast:phase:{orders}", "0"});
    held.lock_shared();
    asks_in_vain([&] { m.lock(); });
    held.unlock_shared();
    server.command({"HSET", "holdfast:phase:{orders}", "beside", "theirs"});
    server.command({"PEXPIRE", "holdfast:phase:{orders}", "3600000"});
    asks_in_vain([&] { m.lock_shared(); });
    CHECK(holdfast::test::exists(server, "holdfast:phase:{orders}"));
}

TEST_CASE("a user without the keys of readers gets no read-write lock, and a mutex all the same")
{
    redis_server server{{.config = {rights::least_rights("secret", "orders*", {}, false)}}};
    holdfast::redis::client client{server.url("app", "secret"), {.operation_timeout = 10s, .connect_timeout = 1min}};
    holdfast::redis::shared_mutex m{client, "orders"};
    auto const code_of = [](auto const& f) -> std::error_code {
        try {
            f();
        } catch (holdfast::error const& e) {
            return e.code();
        }
        return {};
    };
    CHECK(code_of([&] { m.lock(); }) == errc::misconfigured);
    CHECK(code_of([&] { m.lock_shared(); }) == errc::misconfigured);
    CHECK(server.command({"EXISTS", "orders"}).integer == 0);
    holdfast::redis::mutex plain{client, "orders"};
    CHECK(plain.try_lock_for(1min));
}
