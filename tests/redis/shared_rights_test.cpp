// SPDX-License-Identifier: MIT
//
// A read-write lock says which right it lacks, and takes nothing then.
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

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::test::redis_server;

namespace rights = holdfast::test;

TEST_CASE("a right that readers lack is named, and nothing is held")
{
    std::istringstream commands{std::string{rights::shared_commands} + " +zadd +zrem"};
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
    }
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
