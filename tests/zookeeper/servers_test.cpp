// SPDX-License-Identifier: MIT
//
// The servers that the tests of this folder stand on.
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <chrono>
#include <string>
#include <vector>

using holdfast::test::eventually;
using holdfast::test::zookeeper_ensemble;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;

TEST_CASE("a server keeps what it is told over a restart")
{
    zookeeper_server server;
    CHECK(server.serves(std::chrono::seconds{30}));
    {
        zookeeper_tree tree{server.address()};
        tree.create("/a/b", "data");
        CHECK(tree.get("/a/b").data == "data");
        CHECK(tree.children("/a") == std::vector<std::string>{"b"});
    }
    server.restart();
    zookeeper_tree tree{server.address()};
    CHECK(tree.exists("/a/b"));
    tree.remove("/a");
    CHECK_FALSE(tree.exists("/a"));
}

TEST_CASE("a session can be ended behind its owner's back")
{
    zookeeper_server server;
    zookeeper_tree owner{server.address()};
    zookeeper_tree tree{server.address()};
    owner.create("/ephemeral", "", true);
    CHECK(tree.get("/ephemeral").owner == owner.session_id());
    tree.end_session(owner.session_id());
    CHECK(eventually([&] { return !tree.exists("/ephemeral"); }));
}

TEST_CASE("an ensemble goes on without its leader")
{
    zookeeper_ensemble servers;
    auto const first = servers.leader();
    zookeeper_tree{servers.addresses()}.create("/a");
    servers[first].kill();
    CHECK(servers.leader() != first);
    CHECK(zookeeper_tree{servers.addresses()}.exists("/a"));
}
