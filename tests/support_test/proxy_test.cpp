// SPDX-License-Identifier: MIT
#include "../support/catch.hpp"
#include "../support/proxy.hpp"
#include "../support/redis_server.hpp"
#include "raw_client.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

using namespace holdfast::test;
using namespace std::chrono_literals;
using test_clock = std::chrono::steady_clock;

namespace {

std::string repeated(std::string_view text, int times)
{
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
}

}  // namespace

TEST_CASE("a proxy passes on everything, in order")
{
    redis_server server;
    proxy way{server.port()};
    connection client{way.port()};
    std::string const large(5'000'000, 'x');
    CHECK(client({"SET", "k", large}).text == "OK");
    CHECK(client({"GET", "k"}).text == large);
    CHECK(server.command({"STRLEN", "k"}).integer == 5'000'000);

    raw_client pipelining{way.port()};
    std::string numbers;
    for (int i = 1; i <= 5000; ++i) numbers += ":" + std::to_string(i) + "\r\n";
    pipelining.send(repeated("*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n", 5000));
    CHECK(pipelining.receive(numbers.size()) == numbers);
    CHECK(way.connections() == 2);
    CHECK(way.requests() == 5002);
    CHECK(way.struck() == 0);
}

TEST_CASE("each way is delayed by at least what was asked")
{
    redis_server server;
    proxy way{server.port()};
    connection client{way.port()};
    CHECK(client({"PING"}).text == "PONG");

    auto const round_trip = [&] {
        auto const before = test_clock::now();
        CHECK(client({"PING"}).text == "PONG");
        return test_clock::now() - before;
    };
    way.delay(5ms, 0ms);
    CHECK(round_trip() >= 5ms);
    way.delay(0ms, 5ms);
    CHECK(round_trip() >= 5ms);
    way.delay(3ms, 4ms);
    CHECK(round_trip() >= 7ms);

    way.delay(30ms, 40ms);
    std::vector<test_clock::duration> all;
    for (int i = 0; i < 20; ++i) all.push_back(round_trip());
    auto const least = *std::ranges::min_element(all);
    CHECK(least >= 70ms);
    CHECK(least < 140ms);  // the delay is not paid several times
}

TEST_CASE("delays run side by side: pipelined requests take one delay, not one each")
{
    redis_server server;
    proxy way{server.port()};
    way.delay(200ms, 200ms);
    raw_client client{way.port()};
    auto const before = test_clock::now();
    for (int i = 0; i < 100; ++i) client.send("PING\r\n");
    CHECK(client.receive(700) == repeated("+PONG\r\n", 100));
    auto const taken = test_clock::now() - before;
    CHECK(taken >= 400ms);
    CHECK(taken < 20s);
}

TEST_CASE("order is kept when the delay becomes shorter")
{
    redis_server server;
    proxy way{server.port()};
    raw_client client{way.port()};
    way.delay(0ms, 50ms);
    client.send("*2\r\n$4\r\nECHO\r\n$1\r\na\r\n");
    REQUIRE(eventually([&] {
        return server.command({"INFO", "commandstats"}).text.find("cmdstat_echo") != std::string::npos;
    }));
    way.delay(0ms, 0ms);
    client.send("*2\r\n$4\r\nECHO\r\n$1\r\nb\r\n");
    CHECK(client.receive(14) == "$1\r\na\r\n$1\r\nb\r\n");
}

TEST_CASE("a black hole accepts and never answers")
{
    redis_server server;
    proxy way{server.port()};
    raw_client before{way.port()};
    raw_client idle{way.port()};
    before.send("PING\r\n");
    CHECK(before.receive(7) == "+PONG\r\n");

    way.blackhole();
    raw_client during{way.port()};
    for (auto* client : {&before, &during}) {
        client->send("*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n");
        CHECK(client->receive(1, 20ms).empty());
        CHECK(client->error() == 0);
    }
    CHECK(server.command({"GET", "n"}).is_nil());

    way.pass();
    raw_client after{way.port()};
    for (auto* client : {&idle, &after}) {
        client->send("PING\r\n");
        CHECK(client->receive(7) == "+PONG\r\n");
    }
    before.send("PING\r\n");
    CHECK(before.receive(1, 20ms).empty());
    CHECK(before.error() == 0);
}

TEST_CASE("a refusing proxy resets what is open and lets nothing in until it passes again")
{
    redis_server server;
    proxy way{server.port()};
    raw_client client{way.port()};
    client.send("PING\r\n");
    CHECK(client.receive(7) == "+PONG\r\n");

    for (int round = 0; round < 3; ++round) {
        way.refuse();
        CHECK(client.receive(1).empty());
        CHECK(client.error() == ECONNRESET);
        raw_client refused{way.port()};
        CHECK(refused.receive(1).empty());
        CHECK(refused.error() == ECONNREFUSED);
        way.pass();
        CHECK(connection{way.port()}({"PING"}).text == "PONG");
    }
}

TEST_CASE("cut connections are reset at both ends, whoever else has a copy of their descriptors")
{
    redis_server server;
    proxy way{server.port()};
    auto const clients = [&] {
        auto const list = server.command({"CLIENT", "LIST", "TYPE", "normal"}).text;
        return std::ranges::count(list, '\n') - 1;  // without the one that asks
    };
    raw_client one{way.port()};
    raw_client two{way.port()};
    for (auto* client : {&one, &two}) {
        client->send("PING\r\n");
        CHECK(client->receive(7) == "+PONG\r\n");
    }
    auto bystander = child::fork([] { return eventually([] { return false; }, 60s) ? 0 : 1; });
    CHECK(clients() == 2);
    CHECK(way.open_connections() == 2);
    way.cut_all();
    CHECK(way.open_connections() == 0);
    CHECK(one.receive(1).empty());
    CHECK(one.error() == ECONNRESET);
    CHECK(two.receive(1).empty());
    CHECK(two.error() == ECONNRESET);
    CHECK(eventually([&] { return clients() == 0; }));
    CHECK(bystander.running());
    CHECK(connection{way.port()}({"PING"}).text == "PONG");
}

TEST_CASE("an end that one side makes is told to the other")
{
    redis_server server;
    proxy way{server.port()};
    {
        raw_client client{way.port()};
        client.send("PING\r\n");
        CHECK(client.receive(7) == "+PONG\r\n");
        CHECK(way.open_connections() == 1);
    }
    CHECK(eventually([&] { return way.open_connections() == 0; }));

    raw_client client{way.port()};
    client.send("*1\r\n$4\r\nQUIT\r\n");
    CHECK(client.receive(100) == "+OK\r\n");
    CHECK(client.error() == raw_client::end_of_file);

    raw_client orphan{way.port()};
    orphan.send("PING\r\n");
    CHECK(orphan.receive(7) == "+PONG\r\n");
    server.kill();
    CHECK(orphan.receive(1).empty());
    CHECK(orphan.error() != 0);
}

TEST_CASE("a proxy lets nothing through to a dead server and everything when it is back")
{
    redis_server server;
    proxy way{server.port()};
    server.kill();
    raw_client client{way.port()};
    CHECK(client.receive(1).empty());
    CHECK(client.error() != 0);
    server.restart();
    CHECK(connection{way.port()}({"PING"}).text == "PONG");
}

TEST_CASE("a trickle gives a byte at a time")
{
    redis_server server;
    proxy way{server.port()};
    way.trickle(2ms);
    raw_client client{way.port()};
    auto const before = test_clock::now();
    client.send("PING\r\nPING\r\n");
    CHECK(client.receive(14) == "+PONG\r\n+PONG\r\n");
    CHECK(test_clock::now() - before >= 13 * 2ms);

    way.trickle(1h);
    client.send("PING\r\n");
    CHECK(client.receive(1) == "+");
    CHECK(client.receive(1, 20ms).empty());
}

TEST_CASE("published messages pass without being taken for replies")
{
    redis_server server;
    proxy way{server.port()};
    raw_client client{way.port()};
    way.hold(containing("UNSUBSCRIBE"));
    way.swallow_next_reply({.matches = containing("UNSUBSCRIBE"), .then = aftermath::silence});
    client.send("*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$11\r\nUNSUBSCRIBE\r\n$1\r\na\r\n");
    std::string const subscribed =
        "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n";
    CHECK(client.receive(subscribed.size()) == subscribed);

    std::string const message = "*3\r\n$7\r\nmessage\r\n$1\r\nb\r\n$2\r\nhi\r\n";
    CHECK(way.held() == 1);
    CHECK(server.command({"PUBLISH", "b", "hi"}).integer == 1);
    CHECK(client.receive(message.size()) == message);
    CHECK(way.struck() == 0);

    way.let_go();
    CHECK(eventually([&] { return way.struck() == 1; }));
    CHECK(client.receive(1, 20ms).empty());
}
