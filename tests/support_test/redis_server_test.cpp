// SPDX-License-Identifier: MIT
#include "../support/catch.hpp"
#include "../support/redis_server.hpp"

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <utility>

using namespace holdfast::test;
using namespace std::chrono_literals;
using kind = reply::kind;

TEST_CASE("a server answers at once, on its port and on its socket")
{
    redis_server server;
    CHECK(server.running());
    CHECK(server.url() == "redis://127.0.0.1:" + std::to_string(server.port()));
    CHECK(server.command({"PING"}) == reply{kind::status, 0, "PONG", {}});

    connection by_port{server.port()};
    CHECK(by_port({"PING"}).text == "PONG");
    CHECK_THAT(by_port({"INFO", "server"}).text, contains("process_id:" + std::to_string(server.pid())));
}

TEST_CASE("every kind of reply becomes a value")
{
    redis_server server;
    std::string const binary{"a\0b\r\n", 5};
    CHECK(server.command({"SET", "k", binary}).type == kind::status);
    CHECK(server.command({"GET", "k"}) == reply{kind::string, 0, binary, {}});
    CHECK(server.command({"GET", "none"}).is_nil());
    CHECK(server.command({"INCR", "n"}) == reply{kind::integer, 1, "", {}});
    CHECK(server.command({"INCR", "k"}).is_error());
    CHECK(server.command({"MGET", "k", "none"}) == reply{kind::array, 0, "", {{kind::string, 0, binary, {}}, {}}});
}

TEST_CASE("a server keeps nothing on disk and leaves nothing behind")
{
    std::filesystem::path folder;
    ::pid_t pid = 0;
    {
        redis_server server;
        folder = server.socket().parent_path();
        pid = server.pid();
        CHECK(server.command({"CONFIG", "GET", "save"}).elements.at(1).text.empty());
        CHECK(server.command({"CONFIG", "GET", "appendonly"}).elements.at(1).text == "no");
        redis_server const moved = std::move(server);
        CHECK(moved.pid() == pid);
        CHECK(::kill(pid, 0) == 0);
    }
    CHECK(::kill(pid, 0) != 0);
    CHECK_FALSE(std::filesystem::exists(folder));
}

TEST_CASE("a restarted server is on the same port and remembers nothing")
{
    redis_server server;
    auto const port = server.port();
    auto const pid = server.pid();
    CHECK(server.command({"SET", "k", "v"}).text == "OK");
    server.restart();
    CHECK(server.port() == port);
    CHECK(server.pid() != pid);
    CHECK(server.command({"GET", "k"}).is_nil());

    server.kill();
    CHECK_FALSE(server.running());
    CHECK_THROWS_AS(server.command({"PING"}), std::runtime_error);
    server.restart();
    CHECK(connection{port}({"PING"}).text == "PONG");
}

TEST_CASE("a server that a thread restarted outlives the thread")
{
    redis_server server;
    std::thread{[&] { server.restart(); }}.join();
    for (int i = 0; i < 20; ++i) {
        std::this_thread::sleep_for(1ms);
        REQUIRE(server.command({"PING"}).text == "PONG");
    }
}

TEST_CASE("a paused server answers when it is resumed, not before")
{
    redis_server server;
    CHECK(server.command({"PING"}).text == "PONG");
    server.pause();
    std::atomic<bool> answered{false};
    std::thread asking{[&] {
        server.command({"SET", "k", "v"});
        answered = true;
    }};
    CHECK_FALSE(eventually([&] { return answered.load(); }, 20ms));
    server.resume();
    asking.join();
    CHECK(answered);
    server.pause();
}  // destroyed while paused

TEST_CASE("a server asks for the password, and lets users in as configured")
{
    redis_server server{{.password = "one", .config = {"user app on >two ~app:* +get"}}};
    CHECK(server.command({"PING"}).text == "PONG");
    CHECK(server.url() == "redis://:one@127.0.0.1:" + std::to_string(server.port()));
    CHECK(server.url("app", "two") == "redis://app:two@127.0.0.1:" + std::to_string(server.port()));

    connection stranger{server.port()};
    CHECK_THAT(stranger({"PING"}).text, contains("NOAUTH"));
    CHECK(stranger({"AUTH", "app", "two"}).text == "OK");
    CHECK(stranger({"GET", "app:1"}).is_nil());
    CHECK_THAT(stranger({"GET", "other"}).text, contains("NOPERM"));
}

TEST_CASE("a server that cannot start says why")
{
    CHECK_THROWS_WITH(redis_server({.config = {"no-such-directive 1"}}), contains("no-such-directive"));
    CHECK_THROWS_WITH(redis_server({.program = "no-such-redis-server"}), contains("no-such-redis-server"));
}

TEST_CASE("a child process has an inspection connection of its own")
{
    redis_server server;
    CHECK(server.command({"PING"}).text == "PONG");
    auto const add = [&server] {
        for (int i = 0; i < 200; ++i)
            if (server.command({"INCR", "n"}).type != kind::integer) return 1;
        return 0;
    };
    auto one = child::fork(add);
    auto two = child::fork(add);
    CHECK(add() == 0);
    CHECK(one.wait() == 0);
    CHECK(two.wait() == 0);
    CHECK(server.command({"GET", "n"}).text == "600");
}

TEST_CASE("the servers of a fleet are independent")
{
    redis_fleet fleet{5};
    auto const urls = fleet.urls();
    CHECK(std::set<std::string>(urls.begin(), urls.end()).size() == 5);

    for (std::size_t i = 0; i < fleet.size(); ++i)
        CHECK(fleet[i].command({"SET", "k", std::to_string(i)}).text == "OK");
    fleet.kill(1);
    fleet.pause(2);
    auto replies = fleet.command({"GET", "k"});
    CHECK(replies[0].text == "0");
    CHECK(replies[1].is_nil());
    CHECK(replies[2].is_nil());
    CHECK(replies[4].text == "4");

    fleet.restart(1);
    fleet.resume(2);
    replies = fleet.command({"GET", "k"});
    CHECK(replies[1].is_nil());
    CHECK(replies[2].text == "2");
    CHECK(fleet.urls() == urls);
}

TEST_CASE("a server has the environment that it is given, beside ours")
{
    temporary_folder folder;
    auto const program = folder.path() / "server";
    std::ofstream{program} << "#!/bin/sh\nenv >\"$0.env\"\nexec redis-server \"$@\"\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    redis_server server{{.environment = {"HOLDFAST_TEST=17 4"}, .program = program.string()}};
    std::ifstream file{program.string() + ".env"};
    std::string const all{std::istreambuf_iterator<char>{file}, {}};
    CHECK_THAT(all, contains("HOLDFAST_TEST=17 4\n") && contains("PATH="));
}
