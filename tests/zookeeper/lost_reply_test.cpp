// SPDX-License-Identifier: MIT
//
// Requests and answers that are lost on their way: nothing is held twice, nothing is left behind.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/zookeeper_proxy.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <array>
#include <chrono>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::test::connected;
using holdfast::test::eventually;
using holdfast::test::zookeeper_proxy;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::mutex;
using holdfast::zookeeper::node_options;
using holdfast::zookeeper::queueing;
using holdfast::zookeeper::session;

TEST_CASE("whatever is lost of a lock and its unlock, it is held once and leaves nothing")
{
    auto const nodes = GENERATE(node_options{}, node_options{.queueing = queueing::none});
    zookeeper_server server;
    zookeeper_proxy proxy{server.port()};
    auto zk = connected(proxy.address(), {.session_timeout = 20s});
    zookeeper_tree tree{server.address()};
    mutex m{zk, "/locks/orders", {}, nodes};
    auto const count = [&] {
        return nodes.queueing == queueing::none ? (tree.exists("/locks/orders") ? 1U : 0U) : tree.children("/locks/orders").size();
    };
    int struck = 0;
    using op = zookeeper_proxy;
    for (auto const what :
         {op::create_container, op::create, op::get_children, op::erase, op::create, op::erase, op::create, op::get_children})
        for (bool const swallow : {true, false}) {
            CAPTURE(what, swallow);
            if (swallow)
                proxy.swallow_next(what);
            else
                proxy.drop_next(what);
            m.lock();
            CHECK(m.lease().still_held());
            CHECK(count() == 1);
            std::error_code ec;
            m.unlock(ec);
            CHECK_FALSE(ec);
            CHECK(count() == 0);
            struck = proxy.struck();
        }
    CHECK(struck > 10);
}

TEST_CASE("a wait whose watch is lost still ends with the release")
{
    zookeeper_server server;
    zookeeper_proxy proxy{server.port()};
    auto here = connected(server.address());
    auto there = connected(proxy.address(), {.session_timeout = 20s});
    mutex holder{here, "/orders"};
    mutex waiting{there, "/orders"};
    zookeeper_tree tree{server.address()};
    for (auto const what : {zookeeper_proxy::get_data, zookeeper_proxy::get_children})
        for (bool const swallow : {true, false}) {
            holder.lock();
            if (swallow)
                proxy.swallow_next(what);
            else
                proxy.drop_next(what);
            std::jthread waiter{[&] { waiting.lock(); }};
            CHECK(eventually([&] { return tree.children("/orders").size() == 2; }));
            holder.unlock();
            waiter.join();
            CHECK(waiting.lease().still_held());
            waiting.unlock();
            CHECK(tree.children("/orders").empty());
        }
}

TEST_CASE("a release that cannot be confirmed in time is done in the background")
{
    zookeeper_server server;
    zookeeper_proxy proxy{server.port()};
    auto zk = connected(proxy.address(), {.session_timeout = 1min, .operation_timeout = 200ms});
    zookeeper_tree tree{server.address()};
    mutex m{zk, "/orders"};
    m.lock();
    proxy.silence();
    std::error_code ec;
    auto const begun = boot_clock::now();
    m.unlock(ec);
    CHECK(ec == errc::outcome_unknown);
    CHECK(boot_clock::now() - begun < 30s);
    CHECK(tree.children("/orders").size() == 1);
    proxy.pass();
    CHECK(eventually([&] { return tree.children("/orders").empty(); }));
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("an acquire that ends while its create is under way leaves nothing")
{
    zookeeper_server server;
    zookeeper_proxy proxy{server.port()};
    auto zk = connected(proxy.address(), {.session_timeout = 1min, .operation_timeout = 300ms});
    zookeeper_tree tree{server.address()};
    tree.create("/orders");
    mutex m{zk, "/orders"};
    m.lock();  // from now on it does not look before it creates
    m.unlock();
    auto const asked = proxy.seen(zookeeper_proxy::create);
    proxy.silence();
    CHECK_THROWS_AS(m.try_lock_for(100ms), holdfast::error);
    proxy.pass();
    CHECK(eventually([&] { return proxy.seen(zookeeper_proxy::create) > asked; }));
    CHECK(eventually([&] { return tree.children("/orders").empty(); }));
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("a holder cut off from every server loses its lock before a rival has it")
{
    zookeeper_server server;
    zookeeper_proxy proxy{server.port()};
    auto here = connected(proxy.address(), {.session_timeout = 8s});
    auto there = connected(server.address());
    mutex holder{here, "/orders"};
    mutex rival{there, "/orders"};
    for (int i = 0; i < 2; ++i) {
        CHECK(holder.try_lock_for(2min));
        auto const lease = holder.lease();
        proxy.silence();
        rival.lock();
        CHECK_FALSE(lease.still_held());
        CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
        rival.unlock();
        proxy.pass();
        holder.unlock();
    }
}

TEST_CASE("free, a lock costs one round trip and one request to give back")
{
    zookeeper_server server;
    zookeeper_proxy proxy{server.port()};
    auto zk = connected(proxy.address());
    mutex m{zk, "/orders"};
    m.lock();
    m.unlock();
    auto const seen = [&](zookeeper_proxy::operation what) { return proxy.seen(what); };
    auto const before = std::array{seen(zookeeper_proxy::create), seen(zookeeper_proxy::get_children), seen(zookeeper_proxy::get_data)};
    for (int i = 0; i < 10; ++i) {
        m.lock();
        m.unlock();
    }
    CHECK(seen(zookeeper_proxy::create) == before[0] + 10);
    CHECK(seen(zookeeper_proxy::get_children) == before[1] + 10);
    CHECK(seen(zookeeper_proxy::get_data) == before[2]);
}
