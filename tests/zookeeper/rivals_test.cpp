// SPDX-License-Identifier: MIT
//
// The same lock as the real kazoo and the real Curator have.
#include "patient.hpp"
#include "rivals.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::test::connected;
using holdfast::test::content;
using holdfast::test::curator;
using holdfast::test::eventually;
using holdfast::test::kazoo;
using holdfast::test::temporary_folder;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::mutex;
using holdfast::zookeeper::naming;
using holdfast::zookeeper::session;
using holdfast::zookeeper::shared_mutex;

namespace {

/// Effects: ends the sessions of others that have nodes of `/orders`, as the server would after a while.
void end_rivals(zookeeper_server const& server)
{
    zookeeper_tree tree{server.address()};
    for (auto const& node : tree.children("/orders")) {
        auto const path = "/orders/" + node;
        auto const owner = tree.owner_of(path);
        if (owner && !tree.get(path).data.starts_with("host=")) tree.end_session(*owner);
    }
}

std::string words(naming as) { return as == naming::kazoo ? "kazoo" : "curator"; }

}  // namespace

TEST_CASE("this library and kazoo exclude each other, and neither starves")
{
    auto const as = GENERATE(naming::curator, naming::kazoo);
    zookeeper_server server;
    temporary_folder folder;
    auto const counter = (folder.path() / "counter").string();
    std::ofstream{counter} << 0;
    constexpr int times = 40;
    auto const arguments =
        std::vector<std::string>{"count", server.address(), "/orders", words(as), counter, std::to_string(times)};
    zookeeper_tree tree{server.address()};
    auto here = connected(server.address(), {.session_timeout = 60s});  // the others have to start meanwhile
    mutex first{here, "/orders", {}, {.naming = as}};
    std::unique_lock hold{first};
    auto one = kazoo(arguments, (folder.path() / "one").string());
    auto two = kazoo(arguments, (folder.path() / "two").string());
    auto const work = [&] {
        auto zk = connected(server.address());
        mutex m{zk, "/orders", {.max_local_handoffs = 1}, {.naming = as}};
        for (int i = 0; i < times; ++i) {
            std::scoped_lock const section{m};
            auto const seen = std::stoi(content(counter));
            std::this_thread::sleep_for(1ms);
            std::ofstream{counter} << seen + 1;
        }
    };
    {
        std::jthread a{work};
        std::jthread b{work};
        CHECK(eventually([&] { return tree.children("/orders").size() == 5; }, 3min));  // all contend
        hold.unlock();
    }
    CHECK(one.wait_for(3min) == 0);
    CHECK(two.wait_for(3min) == 0);
    CHECK(content(counter) == std::to_string(4 * times));
    CHECK(tree.children("/orders").empty());
}

TEST_CASE("kazoo and this library see that the other has the lock")
{
    auto const as = GENERATE(naming::curator, naming::kazoo);
    zookeeper_server server;
    temporary_folder folder;
    auto zk = connected(server.address(), {.label = "holdfast"});
    mutex m{zk, "/orders", {}, {.naming = as}};
    auto const output = (folder.path() / "output").string();
    {
        auto holder = kazoo({"hold", server.address(), "/orders", words(as)}, output);
        REQUIRE(eventually([&] { return content(output) == "held\n"; }, 3min));
        CHECK_FALSE(m.try_lock());
        CHECK_FALSE(m.try_lock_for(50ms));
        holder.kill();
    }
    CHECK(m.try_lock_for(3min));  // when kazoo's session has expired
    auto asked = kazoo({"contenders", server.address(), "/orders", words(as)}, output);
    CHECK(asked.wait_for(3min) == 0);
    CHECK(content(output).find("label=holdfast") != std::string::npos);
}

TEST_CASE("this library, Curator and kazoo exclude each other, and none starves")
{
    zookeeper_server server;
    temporary_folder folder;
    auto const counter = (folder.path() / "counter").string();
    std::ofstream{counter} << 0;
    constexpr int times = 40;
    auto zk =
        connected(server.address(), {.session_timeout = 60s});  // as the others have it; they have to start meanwhile
    mutex m{zk, "/orders", {.max_local_handoffs = 1}};
    std::unique_lock hold{m};
    auto one = curator({"count", server.address(), "/orders", counter, std::to_string(times)},
                       (folder.path() / "one").string());
    auto two = curator({"count", server.address(), "/orders", counter, std::to_string(times)},
                       (folder.path() / "two").string());
    auto three = kazoo({"count", server.address(), "/orders", "common", counter, std::to_string(times)},
                       (folder.path() / "three").string());
    // Whoever starts first would be done before the others contend.
    zookeeper_tree tree{server.address()};
    REQUIRE(eventually([&] { return tree.children("/orders").size() == 4; }, 3min));
    hold.unlock();
    int ours = 0;
    while (ours < times || one.running() || two.running() || three.running()) {
        std::scoped_lock const section{m};
        auto const seen = std::stoi(content(counter));
        std::this_thread::sleep_for(1ms);
        std::ofstream{counter} << seen + 1;
        ++ours;
    }
    CHECK(content(counter) == std::to_string(3 * times + ours));
    CHECK(one.wait_for(3min) == 0);
    CHECK(two.wait_for(3min) == 0);
    CHECK(three.wait_for(3min) == 0);
    CHECK(tree.children("/orders").empty());
}

TEST_CASE("Curator and this library see that the other has the lock")
{
    zookeeper_server server;
    temporary_folder folder;
    auto zk = connected(server.address(), {.label = "holdfast"});
    mutex m{zk, "/orders"};
    auto const output = (folder.path() / "output").string();
    {
        auto holder = curator({"hold", server.address(), "/orders"}, output);
        REQUIRE(eventually([&] { return content(output) == "held\n"; }, 3min));
        CHECK_FALSE(m.try_lock());
        CHECK_FALSE(m.try_lock_for(50ms));
        CHECK(m.contenders().size() == 1);
        holder.kill();
    }
    CHECK(m.try_lock_for(3min));  // when Curator's session has expired
    auto asked = curator({"participants", server.address(), "/orders"}, output);
    CHECK(asked.wait_for(3min) == 0);
    CHECK(content(output).find("label=holdfast") != std::string::npos);
}

TEST_CASE("a revocable holder of Curator's is asked for the lock by this library, and those who wait are not")
{
    zookeeper_server server;
    temporary_folder folder;
    auto zk = connected(server.address());
    mutex m{zk, "/orders"};
    auto const output = (folder.path() / "output").string();
    auto holder = curator({"revocable", server.address(), "/orders"}, output);
    REQUIRE(eventually([&] { return content(output) == "held\n"; }, 3min));
    auto const next = (folder.path() / "next").string();
    auto waiter = curator({"revocable", server.address(), "/orders"}, next);
    REQUIRE(eventually([&] { return m.contenders().size() == 2; }, 3min));
    CHECK(zk.request_release("/orders"));
    CHECK(holder.wait_for(3min) == 0);  // it has given back the lock
    CHECK(content(output) == "held\nasked\n");
    REQUIRE(eventually([&] { return content(next) == "held\n"; }, 3min));
    CHECK_FALSE(m.holder().value().release_requested);
    CHECK(m.request_release());
    CHECK(waiter.wait_for(3min) == 0);
    CHECK(content(next) == "held\nasked\n");
    CHECK(m.try_lock_for(3min));
}

TEST_CASE("a holder of this library is asked for the lock by Curator's Revoker, and keeps it")
{
    zookeeper_server server;
    temporary_folder folder;
    auto zk = connected(server.address());
    auto other = connected(server.address());
    mutex m{zk, "/orders"};
    mutex next{other, "/orders"};
    auto const revoke = [&] {
        auto asks = curator({"revoke", server.address(), "/orders"}, (folder.path() / "output").string());
        CHECK(asks.wait_for(3min) == 0);
    };
    m.lock();
    auto const lease = m.lease();
    auto const waiting = std::async(std::launch::async, [&] { next.lock(); });
    REQUIRE(eventually([&] { return m.contenders().size() == 2; }));
    CHECK_FALSE(lease.release_requested().stop_requested());
    revoke();
    CHECK(eventually([&] { return lease.release_requested().stop_requested(); }, 3min));  // by a renewal
    CHECK(m.holder().value().release_requested);
    CHECK(lease.still_held());
    m.unlock();
    waiting.wait();
    auto const after = next.lease();
    CHECK_FALSE(next.holder().value().release_requested);
    CHECK_FALSE(after.release_requested().stop_requested());
    revoke();
    CHECK(eventually([&] { return after.release_requested().stop_requested(); }, 3min));
    next.unlock();
    CHECK(zookeeper_tree{server.address()}.children("/orders").empty());
}

TEST_CASE("readers and writers of this library and of Curator exclude each other as they must, and none starves")
{
    zookeeper_server server;
    temporary_folder folder;
    auto const counter = (folder.path() / "counter").string();
    std::ofstream{counter} << 0;
    constexpr int times = 40;
    auto zk = connected(server.address(), {.session_timeout = 60s});
    shared_mutex m{zk, "/orders"};
    std::unique_lock hold{m};
    auto one = curator({"mixed", server.address(), "/orders", counter, std::to_string(times)},
                       (folder.path() / "one").string());
    zookeeper_tree tree{server.address()};
    REQUIRE(eventually([&] { return tree.children("/orders").size() == 2; }, 3min));
    hold.unlock();
    int ours = 0;
    std::atomic<int> torn{0};
    {
        std::jthread reader{[&](std::stop_token const& over) {
            while (!over.stop_requested()) {
                std::shared_lock const section{m};
                auto const seen = content(counter);
                std::this_thread::sleep_for(1ms);
                if (seen.empty() || content(counter) != seen) ++torn;
            }
        }};
        while (ours < times || one.running()) {  // only one thread may ask: the one that sees the end takes the status
            std::scoped_lock const section{m};
            auto const seen = std::stoi(content(counter));
            std::this_thread::sleep_for(1ms);
            std::ofstream{counter} << seen + 1;
            ++ours;
        }
    }
    CHECK(one.wait_for(3min) == 0);
    CHECK(torn == 0);
    CHECK(content(counter) == std::to_string(times + ours));
    CHECK(tree.children("/orders").empty());
}

TEST_CASE("Curator's readers and writers and this library's see each other")
{
    zookeeper_server server;
    temporary_folder folder;
    auto zk = connected(server.address());
    shared_mutex m{zk, "/orders"};
    mutex plain{zk, "/orders"};
    auto const output = (folder.path() / "output").string();
    auto const said = [&](std::string const& what) {
        auto asked = curator({what, server.address(), "/orders"}, output);
        CHECK(asked.wait_for(3min) == 0);
        return content(output);
    };
    SECTION("a reader of Curator's")
    {
        auto holder = curator({"hold-read", server.address(), "/orders"}, output);
        REQUIRE(eventually([&] { return content(output) == "held\n"; }, 3min));
        CHECK(m.try_lock_shared());
        CHECK_FALSE(m.try_unlock_shared_and_lock());
        m.unlock_shared();
        CHECK_FALSE(m.try_lock());
        CHECK_FALSE(plain.try_lock());
        holder.kill();
        end_rivals(server);
        CHECK(m.try_lock_for(3min));
    }
    SECTION("a writer of Curator's")
    {
        auto holder = curator({"hold-write", server.address(), "/orders"}, output);
        REQUIRE(eventually([&] { return content(output) == "held\n"; }, 3min));
        CHECK_FALSE(m.try_lock_shared());
        CHECK_FALSE(m.try_lock());
        CHECK_FALSE(plain.try_lock());
        holder.kill();
        end_rivals(server);
        CHECK(m.try_lock_shared_for(3min));
    }
    SECTION("a writer of Curator's that has become a reader")
    {
        auto holder = curator({"downgrade", server.address(), "/orders"}, output);
        REQUIRE(eventually([&] { return content(output) == "held\n"; }, 3min));
        CHECK(m.try_lock_shared());
        CHECK_FALSE(m.try_unlock_shared_and_lock());
        m.unlock_shared();
        CHECK_FALSE(m.try_lock());
    }
    SECTION("a reader of ours, that was a writer")
    {
        m.lock();
        m.unlock_and_lock_shared();
        CHECK(said("try-read") == "held\n");
        CHECK(said("try-write") == "refused\n");
        CHECK(m.try_unlock_shared_and_lock());
        CHECK(said("try-read") == "refused\n");
    }
    SECTION("a writer of ours")
    {
        m.lock();
        CHECK(said("try-read") == "refused\n");
        CHECK(said("try-write") == "refused\n");
    }
}

TEST_CASE("kazoo's readers and writers and this library's see each other")
{
    auto const as = GENERATE(naming::curator, naming::kazoo);
    zookeeper_server server;
    temporary_folder folder;
    auto zk = connected(server.address());
    shared_mutex m{zk, "/orders", {}, {.naming = as}};
    mutex plain{zk, "/orders", {}, {.naming = as}};
    auto const output = (folder.path() / "output").string();
    auto const said = [&](std::string const& what) {
        auto asked = kazoo({what, server.address(), "/orders", words(as)}, output);
        CHECK(asked.wait_for(3min) == 0);
        return content(output);
    };
    auto const holds = [&](std::string const& what) {
        auto holder = kazoo({what, server.address(), "/orders", words(as)}, output);
        REQUIRE(eventually([&] { return content(output) == "held\n"; }, 3min));
        return holder;
    };
    {
        auto reader = holds("hold-read");
        CHECK(m.try_lock_shared());
        CHECK_FALSE(m.try_unlock_shared_and_lock());
        m.unlock_shared();
        CHECK_FALSE(m.try_lock());
        CHECK_FALSE(plain.try_lock());
        reader.kill();
        end_rivals(server);
    }
    REQUIRE(m.try_lock_for(3min));
    CHECK(said("try-read") == "refused\n");
    CHECK(said("try-write") == "refused\n");
    m.unlock_and_lock_shared();
    CHECK(said("try-read") == "held\n");
    CHECK(said("try-write") == "refused\n");
    REQUIRE(m.try_unlock_shared_and_lock());
    CHECK(said("try-read") == "refused\n");
    m.unlock();
    REQUIRE(plain.try_lock_for(3min));
    CHECK(said("try-read") == "refused\n");
    CHECK(said("try-write") == "refused\n");
    plain.unlock();
    {
        auto writer = holds("hold-write");
        CHECK_FALSE(m.try_lock_shared());
        CHECK_FALSE(m.try_lock());
        CHECK_FALSE(plain.try_lock());
        writer.kill();
        end_rivals(server);
    }
    CHECK(m.try_lock_shared_for(3min));
}
