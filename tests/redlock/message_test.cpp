// SPDX-License-Identifier: MIT
//
// What is said of masters that do not grant.
#include "masters.hpp"
#include "support/catch.hpp"

#include <string>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::contains;
using holdfast::test::redis_fleet;
using holdfast::test::redis_server;

namespace {

std::string address_of(redis_server const& server) { return "redis://127.0.0.1:" + std::to_string(server.port()); }

/// Returns: what is thrown by the one attempt of a client that has just been made.
holdfast::error attempt(std::vector<std::string> const& urls)
{
    masters three{urls, {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms}};
    mutex m{three, "orders"};
    try {
        static_cast<void>(m.try_lock());
    } catch (holdfast::error const& e) {
        return e;
    }
    return {errc::timed_out, "nothing was thrown"};
}

/// Returns: `what`, without that `one` had not answered yet: that a master is well may not be known when a majority is not.
std::string without(std::string what, redis_server const& one)
{
    auto const words = address_of(one) + " had not answered yet; ";
    if (auto const at = what.find(words); at != std::string::npos) what.erase(at, words.size());
    return what;
}

}  // namespace

TEST_CASE("no quorum: every master that is dead is named, with the reason")
{
    redis_fleet three{3};
    three[0].kill();
    three[2].kill();
    auto const e = attempt(three.urls());
    CHECK(without(e.what(), three[1]) == "lock \"orders\": no quorum of 3 masters; " + address_of(three[0]) + " (Connection refused), " +
                                             address_of(three[2]) + " (Connection refused): cannot connect");
    CHECK(e.lock_name() == "orders");
    CHECK(e.server() == address_of(three[0]));
    three[1].kill();
    std::string const all = attempt(three.urls()).what();
    for (auto const& one : three)
        CHECK_THAT(all, contains(address_of(one) + " (Connection refused)") || contains(address_of(one) + " had not answered yet"));
}

TEST_CASE("no quorum: a master that refuses is named beside one that is dead, each with its own reason")
{
    redis_fleet two{2};
    redis_server locked{{.password = "right-secret"}};
    two[1].kill();
    auto urls = two.urls();
    urls.push_back(locked.url("", "wrong-secret"));
    auto const e = attempt(urls);
    CHECK(e.code() == holdfast::redis::errc::authentication_failed);
    CHECK(e.server() == address_of(locked));
    CHECK(without(e.what(), two[0]) == "lock \"orders\": no quorum of 3 masters; " + address_of(two[1]) +
                                           " (Connection refused): cannot connect; " + address_of(locked) +
                                           ": authentication failed; check user and password");
}
