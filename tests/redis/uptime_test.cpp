// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/redis/eligibility.hpp>
#include <holdfast/redis/greeting.hpp>

#include <chrono>
#include <string>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::redis::eligibility;
using holdfast::redis::errc;
using holdfast::redis::greeting;
using holdfast::redis::greeting_exchange;
using holdfast::redis::reply_reader;

namespace {

/// Returns: what is learnt of a server that says of its uptime what `text` says.
greeting greeting_with(std::string const& text)
{
    greeting_exchange exchange;
    REQUIRE_FALSE(exchange.begin({}, greeting_exchange::hello::with_clock).empty());
    auto const info = "# Server\r\n" + text + "\r\n";
    reply_reader reader;
    auto const info_text = "$" + std::to_string(info.size()) + "\r\n" + info + "\r\n";
    REQUIRE(reader.feed(info_text + info_text + info_text +
                        "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"));  // of replication, memory and server
    while (!exchange.done()) {
        auto const one = reader.next();
        REQUIRE((one && *one));
        REQUIRE_FALSE(exchange.on_reply(one->get()));
    }
    return exchange.got();
}

}  // namespace

TEST_CASE("an uptime that no server has is bounded, and one that is no number is none")
{
    CHECK(greeting_with("uptime_in_seconds:7").uptime == 7s);
    CHECK(greeting_with("uptime_in_seconds:315360000").uptime == 315'360'000s);
    for (auto const* text :
         {"uptime_in_seconds:-1", "uptime_in_seconds:-9223372036854775808", "uptime_in_seconds:18446744073709551616",
          "uptime_in_seconds:", "uptime_in_seconds:x", "uptime:5"}) {
        CAPTURE(text);
        CHECK(greeting_with(text).uptime == 0s);
    }
    for (auto const* text : {"uptime_in_seconds:10000000000", "uptime_in_seconds:9223372036854775807"}) {
        CAPTURE(text);
        auto const uptime = greeting_with(text).uptime;
        CHECK(uptime > 24h * 365 * 10);
        CHECK(uptime < 24h * 365 * 100);
    }
}

TEST_CASE("a server that once had an uptime that no server has may vote when it has another one")
{
    auto const now = boot_clock::time_point{500s};
    for (auto const* text : {"10000000000", "9223372036854775807", "18446744073709551616", "-5", "x"}) {
        CAPTURE(text);
        eligibility one{1, 30s};
        auto const wild = greeting_with("uptime_in_seconds:" + std::string{text});
        one.connected(0, wild.server_time, eligibility::certain_uptime(wild.uptime), now);
        CHECK(one.guarded_for(0, now) <= 30s + 302ms);
        one.disconnected(0);
        auto const sane = greeting_with("uptime_in_seconds:100");
        one.connected(0, sane.server_time, eligibility::certain_uptime(sane.uptime), now + 1s);
        CHECK_FALSE(one.may_vote(0, now + 1s));
    }
    eligibility started{1, 30s};
    auto const just = greeting_with("uptime_in_seconds:-5");
    started.connected(0, just.server_time, eligibility::certain_uptime(just.uptime), now);
    CHECK(started.may_vote(0, now) == errc::restarted_recently);
    CHECK_FALSE(started.may_vote(0, now + 30s + 302ms));
}
