// SPDX-License-Identifier: MIT
//
// Requests and answers that are lost on their way: nothing is held twice, nothing is left behind.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <chrono>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::test::code_of;
using holdfast::test::connected;
using holdfast::test::eventually;
using holdfast::test::of;
using holdfast::test::proxy;
using holdfast::test::zookeeper_packets;
using holdfast::test::zookeeper_request;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::mutex;
using holdfast::zookeeper::node_options;
using holdfast::zookeeper::queueing;
using holdfast::zookeeper::session;

TEST_CASE("whatever is lost of a lock and its unlock, it is held once and leaves nothing", "[lesson-1][lesson-15]")
{
    auto const nodes = GENERATE(node_options{}, node_options{.queueing = queueing::none});
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto zk = connected(way.address(), {.session_timeout = 20s});
    zookeeper_tree tree{server.address()};
    mutex m{zk, "/locks/orders", {}, nodes};
    auto const count = [&] {
        return nodes.queueing == queueing::none ? (tree.exists("/locks/orders") ? 1U : 0U)
                                                : tree.children("/locks/orders").size();
    };
    int struck = 0;
    using op = zookeeper_request;
    for (auto const what : {op::create_container, op::create, op::get_children, op::erase, op::create, op::erase,
                            op::create, op::get_children})
        for (bool const swallow : {true, false}) {
            CAPTURE(static_cast<int>(what), swallow);
            way.heal();
            if (swallow)
                way.swallow_next_reply({.matches = of(what)});
            else
                way.drop_next_request({.matches = of(what)});
            m.lock();
            CHECK(m.lease().still_held());
            CHECK(count() == 1);
            std::error_code ec;
            m.unlock(ec);
            CHECK_FALSE(ec);
            CHECK(count() == 0);
            struck = way.struck();
        }
    CHECK(struck > 10);
}

TEST_CASE("a wait whose watch is lost still ends with the release")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto here = connected(server.address());
    auto there = connected(way.address(), {.session_timeout = 20s});
    mutex holder{here, "/orders"};
    mutex waiting{there, "/orders"};
    zookeeper_tree tree{server.address()};
    for (auto const what : {zookeeper_request::get_data, zookeeper_request::get_children})
        for (bool const swallow : {true, false}) {
            holder.lock();
            auto const struck = way.struck();
            if (swallow)
                way.swallow_next_reply({.matches = of(what)});
            else
                way.drop_next_request({.matches = of(what)});
            std::jthread waiter{[&] { waiting.lock(); }};
            CHECK(eventually([&] { return way.struck() == struck + 1; }));
            CHECK(eventually([&] { return tree.children("/orders").size() == 2; }));
            holder.unlock();
            waiter.join();
            CHECK(waiting.lease().still_held());
            waiting.unlock();
            CHECK(tree.children("/orders").empty());
        }
}

TEST_CASE("a release that cannot be confirmed in time is done in the background", "[lesson-15]")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto zk = connected(way.address(), {.session_timeout = 1min, .operation_timeout = 200ms});
    zookeeper_tree tree{server.address()};
    mutex m{zk, "/orders"};
    m.lock();
    way.freeze();
    std::error_code ec;
    auto const begun = boot_clock::now();
    m.unlock(ec);
    CHECK(ec == errc::outcome_unknown);
    CHECK(boot_clock::now() - begun < 30s);
    CHECK(tree.children("/orders").size() == 1);
    way.pass();
    CHECK(eventually([&] { return tree.children("/orders").empty(); }));
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("a lock that is broken without an answer may be free or not, and says so")
{
    auto const nodes = GENERATE(node_options{}, node_options{.queueing = queueing::none});
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto here = connected(server.address());
    auto there = connected(way.address(), {.session_timeout = 1min, .operation_timeout = 500ms});
    mutex holder{here, "/orders", {}, nodes};
    mutex of_operator{there, "/orders", {}, nodes};
    holder.lock();
    std::error_code ec;

    way.hold(of(zookeeper_request::set_data));  // asking again does no harm
    CHECK_FALSE(of_operator.request_release(ec));
    CHECK(ec == errc::unavailable);
    way.let_go();

    way.hold(of(zookeeper_request::erase));
    CHECK_FALSE(of_operator.force_unlock(ec));
    CHECK(ec == errc::outcome_unknown);
    way.let_go();
    CHECK(eventually([&] { return !holder.holder(); }));

    way.freeze();
    CHECK_FALSE(of_operator.force_unlock(ec));  // nothing was deleted
    CHECK(ec == errc::unavailable);
    way.pass();
}

TEST_CASE(
    "a question whose connection breaks again and again is answered when that ends, and fails in time if it does not")
{
    using op = zookeeper_request;
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto here = connected(server.address());
    auto elsewhere = connected(server.address());
    auto there = connected(way.address(), {.session_timeout = 1min});
    mutex holder{here, "/orders"};
    mutex waiting{elsewhere, "/orders"};
    mutex of_operator{there, "/orders"};
    holder.lock();
    std::jthread waiter{[&] { waiting.lock(); }};
    CHECK(eventually([&] { return holder.contenders().size() == 2; }));
    for (auto const what : {op::get_children, op::get_data}) {
        CAPTURE(static_cast<int>(what));
        int const before = way.struck();
        way.swallow_next_reply({.matches = of(what), .times = 3});
        auto const line = of_operator.contenders();
        CHECK(line.size() == 2);
        if (line.size() != 2) continue;
        CHECK(line.front().fencing_token == holder.lease().fencing_token());
        CHECK(line.back().fencing_token > line.front().fencing_token);
        CHECK(way.struck() >= before + 2);  // of two that are asked at once, the end of the connection may take one
    }
    way.swallow_next_reply({.matches = of(op::set_data), .times = 3});
    CHECK(of_operator.request_release());
    CHECK(eventually([&] { return holder.lease().release_requested().stop_requested(); }));

    way.swallow_next_reply({.matches = of(op::get_data), .times = 1'000'000});
    auto hasty = connected(way.address(), {.session_timeout = 1min, .operation_timeout = 500ms});
    mutex of_hasty{hasty, "/orders"};
    auto const begun = boot_clock::now();
    CHECK(code_of([&] { static_cast<void>(of_hasty.contenders()); }) == errc::unavailable);
    CHECK(boot_clock::now() - begun < 30s);
    way.heal();

    way.swallow_next_reply({.matches = of(op::erase)});
    CHECK(of_operator.force_unlock());  // which was done at once, and is not done to the next one
    waiter.join();
    CHECK(waiting.lease().still_held());
    auto const next = of_operator.holder();
    REQUIRE(next);
    CHECK(next->fencing_token == waiting.lease().fencing_token());
}

TEST_CASE("an acquire that ends while its create is under way leaves nothing", "[lesson-15]")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto zk = connected(way.address(), {.session_timeout = 1min, .operation_timeout = 300ms});
    zookeeper_tree tree{server.address()};
    tree.create("/orders");
    mutex m{zk, "/orders"};
    m.lock();  // from now on it does not look before it creates
    m.unlock();
    auto const creates = way.count(of(zookeeper_request::create));
    way.freeze();
    CHECK_THROWS_AS(m.try_lock_for(100ms), holdfast::error);
    way.pass();
    CHECK(eventually([&] { return creates() > 0; }));
    CHECK(eventually([&] { return tree.children("/orders").empty(); }));
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("a holder cut off from every server loses its lock before a rival has it")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto here = connected(way.address(), {.session_timeout = 8s});
    auto there = connected(server.address());
    mutex holder{here, "/orders"};
    mutex rival{there, "/orders"};
    for (int i = 0; i < 2; ++i) {
        CHECK(holder.try_lock_for(2min));
        auto const lease = holder.lease();
        way.freeze();
        rival.lock();
        CHECK_FALSE(lease.still_held());
        CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
        rival.unlock();
        way.pass();
        holder.unlock();
    }
}

TEST_CASE("free, a lock costs one round trip and one request to give back")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto zk = connected(way.address());
    mutex m{zk, "/orders"};
    m.lock();
    m.unlock();
    auto const creates = way.count(of(zookeeper_request::create));
    auto const lists = way.count(of(zookeeper_request::get_children));
    auto const looks = way.count(of(zookeeper_request::get_data));
    for (int i = 0; i < 10; ++i) {
        m.lock();
        m.unlock();
    }
    CHECK(creates() == 10);
    CHECK(lists() == 10);
    CHECK(looks() == 0);
}
