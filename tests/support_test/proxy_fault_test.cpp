// SPDX-License-Identifier: MIT
#include "../support/catch.hpp"
#include "../support/proxy.hpp"
#include "../support/redis_server.hpp"
#include "raw_client.hpp"

#include <chrono>
#include <string>

using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

std::string request(std::string const& command, std::string const& key)
{
    return "*2\r\n$" + std::to_string(command.size()) + "\r\n" + command + "\r\n$" + std::to_string(key.size()) +
           "\r\n" + key + "\r\n";
}

struct fixture {
    redis_server server;
    proxy way{server.port()};

    std::string value(std::string const& key) { return server.command({"GET", key}).text; }
};

bool is_reset(raw_client& client) { return client.receive(1).empty() && client.error() == ECONNRESET; }

}  // namespace

TEST_CASE_METHOD(fixture, "the swallowed reply is exactly the chosen one, and its request was done")
{
    way.swallow_next_reply({.matches = containing("chosen")});
    raw_client client{way.port()};
    client.send(request("INCR", "a") + request("INCR", "b") + request("INCR", "chosen"));
    CHECK(client.receive(100) == ":1\r\n:1\r\n");
    CHECK(is_reset(client));
    CHECK(value("chosen") == "1");
    CHECK(way.struck() == 1);

    raw_client again{way.port()};
    again.send(request("INCR", "chosen"));
    CHECK(again.receive(4) == ":2\r\n");
}

TEST_CASE_METHOD(fixture, "replies before a swallowed one arrive although they are delayed")
{
    way.delay(2ms, 20ms);
    way.swallow_next_reply({.matches = containing("chosen")});
    raw_client client{way.port()};
    client.send(request("INCR", "a") + request("INCR", "chosen") + request("INCR", "b"));
    CHECK(client.receive(100) == ":1\r\n");
    CHECK(is_reset(client));
}

TEST_CASE_METHOD(fixture, "a swallowed reply can leave a silent connection instead of a reset")
{
    way.swallow_next_reply({.then = aftermath::silence});
    raw_client client{way.port()};
    client.send(request("INCR", "a"));
    CHECK(eventually([&] { return way.struck() == 1; }));
    client.send(request("INCR", "a"));
    CHECK(client.receive(1, 20ms).empty());
    CHECK(client.error() == 0);
    CHECK(value("a") == "1");
}

TEST_CASE_METHOD(fixture, "a fault strikes as often as it was told, over connections")
{
    way.swallow_next_reply({.matches = containing("INCR"), .times = 3});
    for (int i = 1; i <= 3; ++i) {
        raw_client client{way.port()};
        client.send(request("GET", "other") + request("INCR", "a"));
        CHECK(client.receive(100) == "$-1\r\n");
        CHECK(is_reset(client));
        CHECK(way.struck() == i);
    }
    raw_client client{way.port()};
    client.send(request("INCR", "a"));
    CHECK(client.receive(4) == ":4\r\n");
}

TEST_CASE_METHOD(fixture, "the nth of the matching requests can be chosen")
{
    way.swallow_next_reply({.matches = nth(3, containing("INCR"))});
    raw_client client{way.port()};
    client.send(request("INCR", "a") + request("GET", "x") + request("INCR", "a") + request("INCR", "a"));
    CHECK(client.receive(100) == ":1\r\n$-1\r\n:2\r\n");
    CHECK(is_reset(client));
    CHECK(value("a") == "3");
}

TEST_CASE_METHOD(fixture, "a dropped request never reaches the server, nor what was sent behind it")
{
    way.drop_next_request({.matches = containing("chosen")});
    raw_client client{way.port()};
    client.send(request("INCR", "a"));
    CHECK(client.receive(4) == ":1\r\n");
    client.send(request("INCR", "a") + request("INCR", "chosen") + request("INCR", "behind"));
    static_cast<void>(client.receive(100));
    CHECK(client.error() == ECONNRESET);
    CHECK(way.struck() == 1);
    CHECK(connection{way.port()}({"GET", "chosen"}).is_nil());
    CHECK(value("chosen").empty());
    CHECK(value("behind").empty());
}

TEST_CASE_METHOD(fixture, "a reply is cut after the given bytes")
{
    CHECK(server.command({"SET", "k", "0123456789"}).text == "OK");
    for (std::size_t passed : {0U, 1U, 3U, 9U, 16U}) {
        way.cut_mid_reply(passed, {.matches = containing("GET")});
        raw_client client{way.port()};
        client.send(request("INCR", "a") + request("GET", "k"));
        CHECK(client.receive(4).front() == ':');
        CHECK(client.receive(100) == std::string{"$10\r\n0123456789\r\n"}.substr(0, passed));
        CHECK(is_reset(client));
    }
    CHECK(way.struck() == 5);
    raw_client client{way.port()};
    client.send(request("GET", "k"));
    CHECK(client.receive(17) == "$10\r\n0123456789\r\n");
}

TEST_CASE_METHOD(fixture, "held requests wait, with those behind them and no others")
{
    way.hold(containing("chosen"));
    raw_client held{way.port()};
    raw_client free{way.port()};
    held.send(request("INCR", "a") + request("INCR", "chosen") + request("INCR", "b"));
    CHECK(held.receive(4) == ":1\r\n");
    CHECK(way.held() == 1);
    free.send(request("INCR", "free"));
    CHECK(free.receive(4) == ":1\r\n");
    CHECK(held.receive(1, 20ms).empty());
    CHECK(value("chosen").empty());
    CHECK(value("b").empty());

    way.let_go();
    CHECK(held.receive(8) == ":1\r\n:1\r\n");
    CHECK(way.held() == 0);
    held.send(request("INCR", "chosen"));
    CHECK(held.receive(4) == ":2\r\n");

    way.hold(containing("chosen"));
    held.send(request("INCR", "chosen"));
    CHECK(eventually([&] { return way.held() == 1; }));
    CHECK(value("chosen") == "2");
    way.let_go();
    CHECK(held.receive(4) == ":3\r\n");
}

TEST_CASE_METHOD(fixture, "a held request reaches the server after its client has given up")
{
    way.hold(containing("late"));
    {
        raw_client client{way.port()};
        client.send(request("INCR", "late") + request("INCR", "late"));
        REQUIRE(eventually([&] { return way.held() == 2; }));
    }
    CHECK(value("late").empty());
    way.let_go();
    CHECK(eventually([&] { return value("late") == "2"; }));
    CHECK(eventually([&] { return way.open_connections() == 0; }));
}

TEST_CASE_METHOD(fixture,
                 "a delayed request reaches the server although its client refuses the replies to earlier ones")
{
    {
        raw_client client{way.port()};
        way.delay(20ms, 0ms);
        client.send(request("INCR", "late") + request("INCR", "late"));
        REQUIRE(eventually([&] { return way.requests() == 2; }));
        way.delay(100ms, 0ms);
        client.send(request("INCR", "late"));
        REQUIRE(eventually([&] { return way.requests() == 3; }));
    }
    CHECK(eventually([&] { return value("late") == "3"; }));
}

TEST_CASE_METHOD(fixture, "a held request dies with its connection when that is cut")
{
    way.hold();
    raw_client client{way.port()};
    client.send(request("INCR", "a"));
    REQUIRE(eventually([&] { return way.held() == 1; }));
    way.cut_all();
    CHECK(is_reset(client));
    CHECK(way.held() == 0);
    way.let_go();
    CHECK(connection{way.port()}({"PING"}).text == "PONG");
    CHECK(value("a").empty());
}

TEST_CASE_METHOD(fixture, "healing ends every fault")
{
    way.delay(1h, 1h);
    way.trickle(1h);
    way.hold();
    way.drop_next_request({.times = 100});
    way.blackhole();
    way.heal();
    CHECK(connection{way.port()}({"PING"}).text == "PONG");
    way.refuse();
    way.heal();
    CHECK(connection{way.port()}({"PING"}).text == "PONG");
    CHECK(way.struck() == 0);
}

TEST_CASE_METHOD(fixture, "an answer in the server's place is that of the chosen request, which is not done")
{
    way.answer_next_request("-OOM enough\r\n", {.matches = containing("chosen")});
    raw_client client{way.port()};
    client.send(request("INCR", "a") + request("INCR", "chosen") + request("INCR", "b"));
    CHECK(client.receive(21) == ":1\r\n-OOM enough\r\n:1\r\n");
    CHECK(value("chosen").empty());
    CHECK(way.struck() == 1);
    client.send(request("INCR", "chosen"));
    CHECK(client.receive(4) == ":1\r\n");
}

TEST_CASE_METHOD(fixture, "nothing passes while a proxy stands still, and nothing is lost")
{
    raw_client client{way.port()};
    client.send(request("INCR", "a"));
    CHECK(client.receive(4) == ":1\r\n");
    way.freeze();
    client.send(request("INCR", "a"));
    raw_client late{way.port()};
    late.send(request("INCR", "b"));
    CHECK(client.receive(1, 100ms).empty());
    CHECK(value("a") == "1");
    way.pass();
    CHECK(client.receive(4) == ":2\r\n");
    CHECK(late.receive(4) == ":1\r\n");
}

TEST_CASE_METHOD(fixture, "a fault can have all connections reset and new ones refused, until the proxy passes")
{
    raw_client other{way.port()};
    other.send(request("INCR", "a"));
    CHECK(other.receive(4) == ":1\r\n");
    way.swallow_next_reply({.then = aftermath::refuse});
    raw_client client{way.port()};
    client.send(request("INCR", "a"));
    CHECK(is_reset(client));
    CHECK(is_reset(other));
    CHECK(value("a") == "2");
    raw_client refused{way.port()};
    refused.send(request("INCR", "a"));
    CHECK(refused.receive(1).empty());
    way.pass();
    raw_client again{way.port()};
    again.send(request("INCR", "a"));
    CHECK(again.receive(4) == ":3\r\n");
}

TEST_CASE_METHOD(fixture, "connections end within the replies where they are told to")
{
    auto const how = GENERATE(proxy::ending::reset, proxy::ending::end_of_file);
    way.end_after(6, how);
    raw_client client{way.port()};
    client.send(request("INCR", "a") + request("INCR", "a"));
    CHECK(client.receive(100) == ":1\r\n:2");
    CHECK(client.error() == (how == proxy::ending::reset ? ECONNRESET : raw_client::end_of_file));
    CHECK(way.struck() == 1);
}

TEST_CASE_METHOD(fixture, "a proxy counts chosen requests and keeps what it hears from when it is asked to")
{
    raw_client client{way.port()};
    client.send(request("INCR", "a"));
    CHECK(client.receive(4) == ":1\r\n");
    auto const chosen = way.count(containing("a"));
    way.listen_in();
    client.send(request("INCR", "a") + request("INCR", "b"));
    CHECK(client.receive(8) == ":2\r\n:1\r\n");
    CHECK(chosen() == 1);
    CHECK(way.heard() == request("INCR", "a") + request("INCR", "b"));
}

TEST_CASE_METHOD(fixture, "what is not understood is passed on as it comes")
{
    proxy blind{server.port(), plain_bytes};
    raw_client client{blind.port()};
    client.send("*1\r\n$4\r\nPI");
    client.send("NG\r\n");
    CHECK(client.receive(7) == "+PONG\r\n");
    CHECK(blind.struck() == 0);
}
