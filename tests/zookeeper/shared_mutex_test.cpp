// SPDX-License-Identifier: MIT
//
// What a read-write lock leaves in the tree, and what it finds there.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::leased_lock;
using holdfast::leased_shared_lock;
using holdfast::test::connected;
using holdfast::test::eventually;
using holdfast::test::of;
using holdfast::test::proxy;
using holdfast::test::zookeeper_packets;
using holdfast::test::zookeeper_request;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::mutex;
using holdfast::zookeeper::naming;
using holdfast::zookeeper::node_options;
using holdfast::zookeeper::queueing;
using holdfast::zookeeper::session;
using holdfast::zookeeper::shared_mutex;

namespace {

/// Returns: whether a child of `/orders` has `part` in its name.
bool has(zookeeper_tree& tree, std::string const& part)
{
    auto const all = tree.children("/orders");
    return std::any_of(all.begin(), all.end(), [&](auto const& one) { return one.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("each side has nodes with its own name, and contenders tells them in their order")
{
    auto const as = GENERATE(naming::curator, naming::kazoo);
    zookeeper_server server;
    auto zk = connected(server.address(), {.label = "shop"});
    shared_mutex m{zk, "/orders", {}, {.naming = as}};
    zookeeper_tree tree{server.address()};
    {
        leased_lock const hold{m};
        REQUIRE(tree.children("/orders").size() == 1);
        CHECK(has(tree, as == naming::curator ? "-__WRIT__0000000000" : "__lock__0000000000"));
        CHECK(hold.fencing_token() ==
              static_cast<std::uint64_t>(tree.get("/orders/" + tree.children("/orders").front()).czxid) * 64);
    }
    {
        leased_shared_lock const one{m};
        leased_shared_lock const two{m};
        CHECK(has(tree, as == naming::curator ? "-__READ__0000000001" : "__rlock__0000000001"));
        CHECK(has(tree, as == naming::curator ? "-__READ__0000000002" : "__rlock__0000000002"));
        auto const all = m.contenders();
        REQUIRE(all.size() == 2);
        CHECK(all[0].fencing_token == one.fencing_token());
        CHECK(all[1].fencing_token == two.fencing_token());
        CHECK(all[0].content.find("label=shop") != std::string::npos);
    }
    CHECK(tree.children("/orders").empty());
}

TEST_CASE("a reader waits behind a writer that waits, and when a writer leaves all readers behind it go in together")
{
    constexpr int readers = 5;
    zookeeper_server server;
    auto zk = connected(server.address());
    auto other = connected(server.address());
    zookeeper_tree tree{server.address()};
    shared_mutex m{zk, "/orders"};
    shared_mutex theirs{other, "/orders"};
    leased_shared_lock first{m};
    std::atomic<bool> written{false};
    std::atomic<bool> leave{false};
    std::atomic<int> waited_in_vain{0};
    std::jthread writer{[&] {
        leased_lock const hold{theirs};
        written = true;
        if (!eventually([&] { return leave.load(); }, 5min)) ++waited_in_vain;
    }};
    REQUIRE(eventually([&] { return has(tree, "__WRIT__"); }));
    std::atomic<int> inside{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < readers; ++i)
        threads.emplace_back([&, i] {
            leased_shared_lock const hold{i % 2 == 0 ? m : theirs};
            ++inside;
            if (!eventually([&] { return inside == readers; }, 5min)) ++waited_in_vain;  // all are in together
        });
    // The readers wait for the writer, which waits for the first one: two nodes are watched, one of them by two
    // sessions.
    REQUIRE(eventually([&] { return tree.children("/orders").size() == 2 + readers; }));
    CHECK(eventually([&] { return server.watches() == 3; }));
    CHECK_FALSE(m.try_lock_shared());
    CHECK(inside == 0);
    first.unlock();
    CHECK(eventually([&] { return written.load(); }));
    CHECK(inside == 0);
    leave = true;
    writer.join();
    threads.clear();
    CHECK(waited_in_vain == 0);
    CHECK(inside == readers);
    CHECK(tree.children("/orders").empty());
    CHECK(eventually([&] { return server.watches() == 0; }));
}

TEST_CASE("mutexes and read-write locks at one path wait for each other, first come, first served")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    auto other = connected(server.address());
    zookeeper_tree tree{server.address()};
    mutex plain{zk, "/orders"};
    mutex next{other, "/orders", {}, {.naming = naming::kazoo}};
    shared_mutex m{other, "/orders"};
    leased_shared_lock reading{m};
    std::vector<std::string> order;  // under the lock
    std::vector<std::jthread> threads;
    auto const wait = [&](std::string name, auto const& take) {
        auto const before = tree.children("/orders").size();
        threads.emplace_back([&, take, name = std::move(name)] { take([&] { order.push_back(name); }); });
        REQUIRE(eventually([&] { return tree.children("/orders").size() == before + 1; }));
    };
    wait("mutex", [&](auto const& f) { holdfast::with_lock(plain, [&](auto&) { f(); }); });
    wait("reader", [&](auto const& f) {
        leased_shared_lock const hold{m};
        f();
    });
    wait("writer", [&](auto const& f) {
        leased_lock const hold{m};
        f();
    });
    wait("kazoo's", [&](auto const& f) { holdfast::with_lock(next, [&](auto&) { f(); }); });
    CHECK(order.empty());
    reading.unlock();
    threads.clear();
    CHECK(order == std::vector<std::string>{"mutex", "reader", "writer", "kazoo's"});
    CHECK(tree.children("/orders").empty());
}

TEST_CASE("a writer that becomes a reader keeps its place, lets readers in and no writer")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    auto other = connected(server.address());
    zookeeper_tree tree{server.address()};
    shared_mutex m{zk, "/orders"};
    shared_mutex theirs{other, "/orders"};
    m.lock();
    auto const token = m.lease().fencing_token();
    std::atomic<std::uint64_t> written{0};
    std::jthread writer{[&] {
        leased_lock const hold{theirs};
        written = hold.fencing_token();
    }};
    REQUIRE(eventually([&] { return tree.children("/orders").size() == 2; }));
    m.unlock_and_lock_shared();
    auto const names = tree.children("/orders");
    CHECK(names.size() == 2);
    CHECK(has(tree, "converted-__READ__0000000000"));
    CHECK(has(tree, "-__WRIT__0000000001"));
    auto const reader = m.lease_shared().fencing_token();
    CHECK(reader > token);
    CHECK(written == 0);
    CHECK(m.try_unlock_shared_and_lock());
    CHECK(has(tree, "converted-__WRIT__0000000000"));
    CHECK(tree.children("/orders").size() == 2);
    CHECK(m.lease().fencing_token() > reader);
    m.unlock_and_lock_shared();
    auto const last = m.lease_shared().fencing_token();
    CHECK(written == 0);
    CHECK(m.lease_shared().still_held());
    m.unlock_shared();
    writer.join();
    CHECK(written > last);
    CHECK(tree.children("/orders").empty());
}

TEST_CASE("whatever is lost of a conversion, the lock is held in one mode and leaves nothing", "[lesson-1][lesson-15]")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto zk = connected(way.address(), {.session_timeout = 1min});
    zookeeper_tree tree{server.address()};
    shared_mutex m{zk, "/orders"};
    int struck = 0;
    using op = zookeeper_request;
    for (auto const what : {op::create, op::get_children, op::erase})
        for (bool const swallow : {true, false}) {
            CAPTURE(static_cast<int>(what), swallow);
            auto const lose = [&] {
                way.heal();
                if (swallow)
                    way.swallow_next_reply({.matches = of(what)});
                else
                    way.drop_next_request({.matches = of(what)});
            };
            m.lock();
            lose();
            m.unlock_and_lock_shared();
            CHECK(way.struck() == ++struck);
            CHECK(m.lease_shared().still_held());
            CHECK(eventually([&] { return tree.children("/orders").size() == 1; }));
            CHECK(has(tree, "__READ__"));
            lose();
            CHECK(m.try_unlock_shared_and_lock());
            CHECK(way.struck() == ++struck);
            CHECK(m.lease().still_held());
            CHECK(eventually([&] { return tree.children("/orders").size() == 1; }));
            CHECK(has(tree, "__WRIT__"));
            std::error_code ec;
            m.unlock(ec);
            CHECK_FALSE(ec);
            CHECK(tree.children("/orders").empty());
        }
}

TEST_CASE("a conversion that no server answers leaves the hold as it was, and no other node in the end")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto zk = connected(way.address(), {.session_timeout = 1min, .operation_timeout = 300ms});
    zookeeper_tree tree{server.address()};
    shared_mutex m{zk, "/orders", {.unavailable_after = 100ms}};
    auto const fails = [&](auto const& convert) {
        // The node is made, and no answer comes.
        way.swallow_next_reply({.matches = of(zookeeper_request::create), .then = holdfast::test::aftermath::refuse});
        CHECK(holdfast::test::code_of(convert) == errc::unavailable);
        way.heal();
        CHECK(zk.connect_for(1min));
    };
    CHECK(eventually([&] { return m.try_lock(); }));
    auto const node = tree.children("/orders");
    fails([&] { m.unlock_and_lock_shared(); });
    CHECK(m.lease().still_held());
    CHECK(eventually([&] { return tree.children("/orders") == node; }));
    std::error_code ec;
    m.unlock(ec);
    CHECK(eventually([&] { return tree.children("/orders").empty(); }));

    CHECK(eventually([&] { return m.try_lock_shared(); }));
    auto const reader = tree.children("/orders");
    fails([&] { static_cast<void>(m.try_unlock_shared_and_lock()); });
    CHECK(m.lease_shared().still_held());
    CHECK(eventually([&] { return tree.children("/orders") == reader; }));
    m.unlock_shared();
    CHECK(eventually([&] { return tree.children("/orders").empty(); }));
}

TEST_CASE("a hold whose node was taken away is not converted")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    zookeeper_tree tree{server.address()};
    shared_mutex m{zk, "/orders"};
    m.lock();
    tree.remove("/orders/" + tree.children("/orders").front());
    CHECK(holdfast::test::code_of([&] { m.unlock_and_lock_shared(); }) == errc::lease_lost);
    CHECK(eventually([&] { return tree.children("/orders").empty(); }));
    std::error_code ec;
    m.unlock(ec);
    m.lock_shared();
    tree.remove("/orders/" + tree.children("/orders").front());
    CHECK_FALSE(m.try_unlock_shared_and_lock());
    CHECK(eventually([&] { return tree.children("/orders").empty(); }));
}

TEST_CASE("readers that end with their session let a writer in")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    zookeeper_tree tree{server.address()};
    shared_mutex m{zk, "/orders"};
    shared_mutex gone{connected(server.address()), "/orders"};
    leased_shared_lock const one{gone};
    leased_shared_lock const two{gone};
    auto const told = two.lost_token();
    leased_shared_lock live{m};
    REQUIRE(tree.children("/orders").size() == 3);
    auto all = tree.children("/orders");
    std::vector<std::int64_t> owners;
    for (auto const& each : all) owners.push_back(tree.owner_of("/orders/" + each).value_or(0));
    // The session with two nodes.
    auto const session = owners[0] == owners[1] || owners[0] == owners[2] ? owners[0] : owners[1];
    tree.end_session(session);
    CHECK(eventually([&] { return tree.children("/orders").size() == 1; }));
    CHECK_FALSE(m.try_lock());
    CHECK(eventually([&] { return told.stop_requested(); }));
    CHECK_FALSE(one.still_held());
    CHECK(live.still_held());
    live.unlock();
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("a read-write lock without a queue is refused")
{
    session const zk{"127.0.0.1:1"};
    CHECK(holdfast::test::code_of([&] {
              shared_mutex const m{zk, "/orders", {}, {.queueing = queueing::none}};
          }) == errc::misconfigured);
}
