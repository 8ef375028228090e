// SPDX-License-Identifier: MIT
//
// What a server says of itself when a connection is made.
#include "support/catch.hpp"

#include <holdfast/core/error.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/greeting.hpp>
#include <holdfast/redis/hiredis.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redis::errc;
using holdfast::redis::greeting_exchange;
using hello = holdfast::redis::greeting_exchange::hello;

namespace {

std::string bulk(std::string const& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }

std::string const a_time = "*2\r\n$10\r\n1700000000\r\n$2\r\n42\r\n";
std::string const a_master = bulk("# Replication\r\nrole:master\r\nconnected_slaves:1\r\nslave0:role:slave\r\n");
std::string const some_memory = bulk("# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n");
std::string const a_server = bulk("# Server\r\nredis_mode:standalone\r\nrun_id:0123abcd\r\nuptime_in_seconds:77\r\n");

/// Returns: what `g` makes of these answers; no error where it was told everything.
std::error_code tell(greeting_exchange& g, hello h, std::vector<std::string> const& answers)
{
    static_cast<void>(g.begin({}, h));
    holdfast::redis::reply_reader reader;
    for (auto const& one : answers) {
        REQUIRE_FALSE(g.done());
        REQUIRE(reader.feed(one));
        auto const next = reader.next();
        REQUIRE((next && *next));
        if (auto const why = g.on_reply(next->get())) return why;
    }
    CHECK(g.done());
    return {};
}

}  // namespace

TEST_CASE("a server is asked about itself, and what it says is known", "[redis][greeting]")
{
    auto const h = GENERATE(hello::about_itself, hello::with_clock);
    greeting_exchange g;
    CHECK_FALSE(tell(g, h, {a_master, some_memory, a_server, a_time}));
    CHECK(g.got().run_id == "0123abcd");
    CHECK(g.got().eviction == "noeviction");
    CHECK(g.got().uptime == 77s);
    CHECK(g.got().server_time == 1'700'000'000s + 42us);
    static_cast<void>(g.begin({}, hello::plain));
    CHECK(g.done());
}

TEST_CASE(
    "a replica and a node of a cluster are refused by what they say of themselves, and by nothing that only looks like it",
    "[redis][greeting]")
{
    greeting_exchange g;
    CHECK(tell(g, hello::about_itself, {bulk("role:slave\r\n")}) == errc::read_only);
    CHECK(tell(g, hello::with_clock, {bulk("# Replication\r\nrole:slave\r\nmaster_host:h\r\n")}) == errc::read_only);
    for (std::string const role : {"replica", "active-replica"})  // of Dragonfly, of KeyDB
        CHECK(tell(g, hello::about_itself, {bulk("role:" + role + "\r\n")}) == errc::read_only);
    for (std::string const mode : {"redis_mode", "server_mode"})
        CHECK(tell(g, hello::about_itself, {a_master, some_memory, bulk("# Server\r\n" + mode + ":cluster\r\n")}) ==
              errc::moved);
    CHECK_FALSE(tell(g, hello::about_itself,
                     {bulk("xrole:slave\r\nrole:master"), bulk(""), bulk("not redis_mode:cluster"), a_time}));
    CHECK(g.got().run_id.empty());
    CHECK(g.got().eviction.empty());
}

TEST_CASE("a server need not say what it is, unless its clock and its uptime are needed", "[redis][greeting]")
{
    // Catch2 keeps a reference to a string that it is given by name, longer than the string lives.
    auto const refusal =
        GENERATE(as<std::string>{}, "-NOPERM this user has no permissions to run the 'info' command\r\n",
                 "-ERR unknown command 'INFO', with args beginning with: 'server' \r\n");
    greeting_exchange g;
    CHECK_FALSE(tell(g, hello::about_itself, {refusal, refusal, refusal, refusal}));
    CHECK_FALSE(tell(g, hello::with_clock, {refusal, refusal, a_server, a_time}));
    CHECK(tell(g, hello::with_clock, {a_master, some_memory, refusal}) == errc::not_permitted);
    CHECK(tell(g, hello::with_clock, {a_master, some_memory, a_server, refusal}) == errc::not_permitted);
    CHECK(tell(g, hello::with_clock, {a_master, some_memory, a_server, ":1\r\n"}) == errc::protocol_error);
    CHECK(tell(g, hello::about_itself, {"-LOADING Redis is loading the dataset in memory\r\n"}) == errc::loading);
    CHECK(tell(g, hello::about_itself, {"-ERR max number of clients reached\r\n"}) == errc::too_many_clients);
    CHECK(tell(g, hello::about_itself, {"-NOAUTH Authentication required.\r\n"}) == errc::authentication_failed);
    CHECK(tell(g, hello::about_itself, {"-DENIED Redis is running in protected mode\r\n"}) ==
          errc::authentication_failed);
    CHECK(tell(g, hello::about_itself, {"-STRANGE of which nothing is known\r\n"}) == errc::server_error);
}
