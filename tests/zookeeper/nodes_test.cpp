// SPDX-License-Identifier: MIT
//
// What the locks leave in the tree, and what they find there.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/goes_on.hpp"
#include "support/proxy.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::test::code_of;
using holdfast::test::connected;
using holdfast::test::contains;
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

TEST_CASE("a lock is a child of the node it is named after, and tells who has it")
{
    zookeeper_server server;
    auto zk = connected(server.address() + "/app/x", {.label = "shop"});
    mutex m{zk, "/locks/orders"};
    zookeeper_tree tree{server.address()};
    m.lock();
    auto const names = tree.children("/app/x/locks/orders");
    REQUIRE(names.size() == 1);
    CHECK_THAT(names.front(), contains("-lock-0000000000"));
    CHECK(names.front().starts_with("_c_"));
    auto const node = tree.get("/app/x/locks/orders/" + names.front());
    CHECK_THAT(node.data, contains("pid=" + std::to_string(::getpid())));
    CHECK_THAT(node.data, contains("label=shop"));
    CHECK(node.owner != 0);
    CHECK(m.lease().fencing_token() == static_cast<std::uint64_t>(node.czxid) * 64);
    m.unlock();
    CHECK(tree.children("/app/x/locks/orders").empty());
}

TEST_CASE("an attempt at a lock that is held, and a wait that ends, leave no node and no watch", "[lesson-15]")
{
    auto const nodes =
        GENERATE(node_options{}, node_options{.queueing = queueing::none}, node_options{.naming = naming::kazoo});
    zookeeper_server server;
    auto here = connected(server.address());
    auto there = connected(server.address(), {.operation_timeout = 10min});
    mutex holder{here, "/orders", {}, nodes};
    mutex rival{there, "/orders", {}, nodes};
    zookeeper_tree tree{server.address()};
    holder.lock();
    auto const before = tree.children("/orders");
    CHECK_FALSE(rival.try_lock());
    CHECK(server.ask("wchs").find("Total watches:0") != std::string::npos);
    CHECK(tree.children("/orders") == before);
    auto const begun = holdfast::boot_clock::now();
    CHECK_FALSE(rival.try_lock_for(100ms));
    CHECK(holdfast::boot_clock::now() - begun < 5min);  // its operation timeout is more
    CHECK(tree.children("/orders") == before);
    holder.unlock();
    CHECK(rival.try_lock());
}

TEST_CASE("a wait that its stop token ends leaves no node and no watch, and ends at once")
{
    auto const nodes = GENERATE(node_options{}, node_options{.queueing = queueing::none});
    zookeeper_server server;
    auto here = connected(server.address());
    auto there = connected(server.address(), {.operation_timeout = 10min});
    mutex holder{here, "/orders", {}, nodes};
    mutex rival{there, "/orders", {}, nodes};
    zookeeper_tree tree{server.address()};
    holder.lock();
    auto const before = tree.children("/orders");
    std::atomic<bool> locked{true};
    std::jthread waiter{[&](std::stop_token const& stop) { locked = rival.lock(stop); }};
    CHECK(eventually([&] { return server.ask("wchs").find("Total watches:1") != std::string::npos; }));
    CHECK(tree.children("/orders").size() == before.size() + (nodes.queueing == queueing::none ? 0 : 1));
    auto const begun = holdfast::boot_clock::now();
    waiter.request_stop();
    waiter.join();
    CHECK(holdfast::boot_clock::now() - begun < 5min);
    CHECK_FALSE(locked);
    CHECK(tree.children("/orders") == before);
    CHECK(holder.lease().still_held());
    holder.unlock();
    CHECK(rival.try_lock());
}

TEST_CASE("fencing tokens increase when the parent was collected and made again")
{
    zookeeper_server server{{.java = {"-Dznode.container.checkIntervalMs=100"}}};
    auto zk = connected(server.address());
    zookeeper_tree tree{server.address()};
    std::uint64_t last = 0;
    for (int i = 0; i < 3; ++i) {
        mutex m{zk, "/locks/orders"};
        m.lock();
        CHECK(m.lease().fencing_token() > last);
        last = m.lease().fencing_token();
        m.unlock();
        CHECK(eventually([&] { return !tree.exists("/locks"); }));
    }
}

TEST_CASE("an attempt at a lock of a fresh name that is abandoned leaves no container")
{
    auto const nodes = GENERATE(node_options{}, node_options{.queueing = queueing::none});
    zookeeper_server server{{.java = {"-Dznode.container.checkIntervalMs=100"}}};
    proxy way{server.port(), zookeeper_packets};
    auto zk = connected(way.address(), {.session_timeout = 1min, .operation_timeout = 300ms});
    zookeeper_tree tree{server.address()};
    for (bool const swallow : {true, false})
        for (auto const what : {zookeeper_request::create, zookeeper_request::create_container}) {
            CAPTURE(static_cast<int>(what), swallow);
            mutex m{zk, "/locks/deep/orders", {}, nodes};
            auto const struck = way.struck();
            if (swallow)
                way.swallow_next_reply({.matches = of(what), .then = holdfast::test::aftermath::refuse});
            else
                way.drop_next_request({.matches = of(what)});
            std::stop_source stop;
            std::jthread waiter{[&] {
                if (m.lock(stop.get_token())) m.unlock();
            }};
            CHECK(eventually([&] { return way.struck() > struck; }));
            stop.request_stop();
            waiter.join();
            way.heal();
            CHECK(eventually([&] { return !tree.exists("/locks"); }, 1min));
            CHECK(zk.connect_for(1min));
        }
    for (int i = 0; i < 50; ++i) {
        mutex m{zk, "/locks/" + std::to_string(i) + "/orders", {}, nodes};
        std::stop_source stop;
        std::jthread const waiter{[&] {
            if (m.lock(stop.get_token())) m.unlock();
        }};
        std::this_thread::sleep_for(i * 50us);
        stop.request_stop();
    }
    CHECK(eventually([&] { return !tree.exists("/locks"); }, 2min));
}

TEST_CASE("a lock is held, and goes on, although no client may remove nodes below /zookeeper")
{
    zookeeper_server server;
    zookeeper_tree{server.address()}.permit("/zookeeper", ZOO_PERM_READ);
    auto zk = connected(server.address());
    mutex m{zk, "/locks/orders"};
    m.lock();
    CHECK(holdfast::test::goes_on(m.lease()));
}

TEST_CASE("who may make nodes and not list them is told which right is missing, and leaves none")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    zookeeper_tree tree{server.address()};
    tree.create("/locks/orders");
    auto const refused = [&](int permissions, std::string const& right, auto const& what) {
        tree.permit("/locks/orders", permissions);
        mutex m{zk, "/locks/orders"};
        try {
            what(m);
            FAIL("the ACL should refuse it");
        } catch (holdfast::error const& e) {
            CHECK(e.code() == errc::misconfigured);
            CHECK_THAT(e.what(), contains("/locks/orders"));
            CHECK_THAT(e.what(), contains("the right " + right));
        }
        tree.permit("/locks/orders", 31);
        CHECK(tree.children("/locks/orders").empty());
    };
    constexpr int read = 1;
    constexpr int create = 4;
    constexpr int remove = 8;
    constexpr int admin = 16;
    for (auto const other : {0, remove}) {
        refused(create | admin | other, "READ", [](mutex& m) { static_cast<void>(m.try_lock()); });
        refused(create | admin | other, "READ", [](mutex& m) { static_cast<void>(m.try_lock_for(50ms)); });
        refused(create | admin | other, "READ", [](mutex& m) { m.lock(); });
        refused(read | admin | other, "CREATE", [](mutex& m) { m.lock(); });
    }
}

TEST_CASE("locks go on while the server collects their parents under them")
{
    zookeeper_server server{{.java = {"-Dznode.container.checkIntervalMs=1", "-Dznode.container.maxPerMinute=60000"}}};
    std::atomic<int> counter{0};
    std::vector<std::jthread> all;
    for (int i = 0; i < 2; ++i)
        all.emplace_back([&] {
            auto zk = connected(server.address());
            mutex m{zk, "/locks/orders", {.max_local_handoffs = 0}};
            for (int n = 0; n < 100; ++n) {
                std::scoped_lock const hold{m};
                counter.store(counter.load() + 1);
            }
        });
    all.clear();
    CHECK(counter == 200);
}

TEST_CASE("the plain form excludes others, and hands on to one of those who wait")
{
    zookeeper_server server;
    auto here = connected(server.address());
    auto there = connected(server.address());
    auto const plain = node_options{.queueing = queueing::none};
    std::atomic<int> counter{0};
    std::atomic<std::uint64_t> last{0};
    std::atomic<bool> increasing{true};
    auto const work = [&](session& zk) {
        mutex m{zk, "/locks/orders", {.max_local_handoffs = 1}, plain};
        for (int n = 0; n < 40; ++n) {
            std::scoped_lock const hold{m};
            counter.store(counter.load() + 1);
            auto const token = m.lease().fencing_token();
            if (token <= last.exchange(token)) increasing = false;
        }
    };
    {
        std::vector<std::jthread> all;
        for (auto* const zk : {&here, &here, &there, &there}) all.emplace_back([&, zk] { work(*zk); });
    }
    CHECK(counter == 160);
    CHECK(increasing);
    zookeeper_tree tree{server.address()};
    CHECK_FALSE(tree.exists("/locks/orders"));
}

TEST_CASE("locks of every form in one session have four threads together, and each learns of the session's end")
{
    auto const threads = [] {
        return std::distance(std::filesystem::directory_iterator{"/proc/self/task"},
                             std::filesystem::directory_iterator{});
    };
    zookeeper_server server;
    zookeeper_tree tree{server.address()};
    auto const before = threads();
    auto zk = connected(server.address(), {.session_timeout = 1min});
    mutex queued{zk, "/locks/a"};
    mutex other{zk, "/locks/b", {}, {.naming = naming::kazoo}};
    mutex plain{zk, "/locks/c", {}, {.queueing = queueing::none}};
    for (auto* const m : {&queued, &other, &plain}) m->lock();
    CHECK(threads() == before + 4);
    tree.end_session(tree.get("/locks/c").owner);
    for (auto* const m : {&queued, &other, &plain})
        CHECK(eventually([&] { return m->lease().lost_token().stop_requested(); }));
}

TEST_CASE("the plain form leaves another client's node alone")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    mutex m{zk, "/orders", {}, {.queueing = queueing::none}};
    zookeeper_tree other{server.address()};
    other.create("/orders", "mine", true);
    CHECK_FALSE(m.try_lock());
    CHECK_FALSE(m.try_lock_for(50ms));
    other.remove("/orders");
    m.lock();
    other.remove("/orders");
    other.create("/orders", "mine", true);
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == errc::lease_lost);
    CHECK(other.get("/orders").data == "mine");
}

TEST_CASE("the plain form says so if the node at its path is not a lock's")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    mutex queued{zk, "/orders"};
    mutex m{zk, "/orders", {}, {.queueing = queueing::none}};
    zookeeper_tree other{server.address()};
    bool const persistent = GENERATE(true, false);
    CAPTURE(persistent);
    if (persistent)
        other.create("/orders", "theirs", false);
    else
        queued.lock();
    CHECK(code_of([&] { m.lock(); }) == holdfast::zookeeper::errc::not_ephemeral);
    CHECK(code_of([&] { m.lock(); }) == errc::misconfigured);
    if (persistent) other.remove("/orders");
}

TEST_CASE("with auth the nodes are the creator's alone, without it everybody's")
{
    zookeeper_server server;
    zookeeper_tree tree{server.address(), "alice:secret"};
    auto const acl_of = [&](std::string const& path) { return tree.acl(path).at(0); };
    auto alice = connected(server.address(), {.auth_scheme = "digest", .auth_credential = "alice:secret"});
    auto bob = connected(server.address(), {.auth_scheme = "digest", .auth_credential = "bob:other"});
    auto nobody = connected(server.address());
    auto open = connected(server.address(),
                          {.auth_scheme = "digest", .auth_credential = "alice:secret", .world_writable = true});
    mutex a{alice, "/alice"};
    a.lock();
    CHECK(acl_of("/alice").starts_with("31 digest:alice:"));
    CHECK(acl_of("/alice/" + tree.children("/alice").front()).starts_with("31 digest:alice:"));
    for (auto* const zk : {&bob, &nobody}) {
        mutex m{*zk, "/alice"};
        try {
            static_cast<void>(m.try_lock());
            FAIL("the ACL should refuse it");
        } catch (holdfast::error const& e) {
            CHECK(e.code() == errc::misconfigured);
            CHECK_THAT(e.what(), contains("/alice"));
            CHECK_THAT(e.what(), !contains("secret"));
        }
    }
    // Where all may make nodes, a client of another identity may not read the one that it waits for.
    zookeeper_tree{server.address()}.create("/common");
    mutex first{alice, "/common"};
    mutex second{bob, "/common"};
    first.lock();
    try {
        second.lock();
        FAIL("the ACL should refuse it");
    } catch (holdfast::error const& e) {
        CHECK(e.code() == holdfast::zookeeper::errc::may_not_read);
        CHECK_THAT(e.what(), contains("world_writable"));
    }
    mutex n{nobody, "/nobody"};
    n.lock();
    CHECK(acl_of("/nobody") == "31 world:anyone");
    mutex o{open, "/open"};
    o.lock();
    CHECK(acl_of("/open") == "31 world:anyone");
}

TEST_CASE("contenders are listed in their order, with what they say of themselves")
{
    zookeeper_server server;
    auto here = connected(server.address() + "/app", {.label = "here"});
    auto there = connected(server.address() + "/app", {.label = "there"});
    mutex holder{here, "/orders"};
    mutex waiting{there, "/orders"};
    CHECK(holder.contenders().empty());
    holder.lock();
    std::jthread waiter{[&] { waiting.lock(); }};
    CHECK(eventually([&] { return holder.contenders().size() == 2; }));
    auto const line = waiting.contenders();
    REQUIRE(line.size() == 2);
    CHECK_THAT(line[0].content, contains("label=here"));
    CHECK_THAT(line[1].content, contains("label=there"));
    CHECK(line[0].fencing_token == holder.lease().fencing_token());
    holder.unlock();
    waiter.join();
    CHECK(waiting.contenders().size() == 1);
    CHECK(waiting.lease().fencing_token() == line[1].fencing_token);

    mutex plain{here, "/plain", {}, {.queueing = queueing::none}};
    CHECK(plain.contenders().empty());
    plain.lock();
    REQUIRE(plain.contenders().size() == 1);
    CHECK(plain.contenders().front().fencing_token == plain.lease().fencing_token());
}

TEST_CASE("a line of more contenders than are asked for at once is listed as a whole, in its order")
{
    constexpr std::size_t many = 2'100;
    zookeeper_server server;
    zookeeper_tree tree{server.address()};
    tree.create("/orders");
    for (std::size_t i = 0; i < many; ++i) tree.create("/orders/x-lock-", std::to_string(i), true, true);
    auto zk = connected(server.address(), {.operation_timeout = 5min});
    auto const line = mutex{zk, "/orders"}.contenders();
    REQUIRE(line.size() == many);
    bool in_order = true;
    for (std::size_t i = 0; i < many; ++i) in_order = in_order && line[i].content == std::to_string(i);
    CHECK(in_order);
}

TEST_CASE("an identity that the server does not know is refused for good")
{
    zookeeper_server server;
    session zk{server.address(), {.auth_scheme = "nonsense", .auth_credential = "x"}};
    mutex m{zk, "/orders"};
    for (int i = 0; i < 2; ++i) try {
            m.lock();
            FAIL("it should be refused");
        } catch (holdfast::error const& e) {
            CHECK(e.code() == errc::misconfigured);
        }
    CHECK_FALSE(zk.connect_for(1h));  // which is known at once
}

TEST_CASE("any time can be waited for a connection")
{
    zookeeper_server server;
    session zk{server.address()};
    CHECK_FALSE(zk.connect_for(std::chrono::milliseconds::min()));
    CHECK_FALSE(zk.connect_for(std::chrono::hours::min()));
    CHECK(zk.connect_for(std::chrono::milliseconds::max()));
}

TEST_CASE("a connection may be waited for for ever")
{
    zookeeper_server server;
    session zk{server.address()};
    CHECK(zk.connect_for(std::chrono::hours::max()));
}

TEST_CASE("a node that may not be removed goes as soon as it may")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    zookeeper_tree tree{server.address()};
    tree.create("/orders");
    tree.permit("/orders", 1 | 4 | 16);  // to read, to create below it, to change this
    mutex m{zk, "/orders"};
    m.lock();
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == holdfast::zookeeper::errc::may_not_delete);
    CHECK(tree.children("/orders").size() == 1);
    tree.permit("/orders", 31);
    CHECK(eventually([&] { return tree.children("/orders").empty(); }));
    CHECK(m.try_lock());
}

TEST_CASE("who does not get the lock and may not remove its node is told so, as the node is in the way of others")
{
    zookeeper_server server;
    auto first = connected(server.address());
    auto second = connected(server.address());
    zookeeper_tree tree{server.address()};
    tree.create("/orders");
    mutex held{first, "/orders"};
    held.lock();
    tree.permit("/orders", 1 | 4 | 16);  // to read, to create below it, to change this
    mutex m{second, "/orders"};
    std::string what;
    auto const code = GENERATE(true, false) ? code_of([&] { (void)m.try_lock(); }, &what)
                                            : code_of([&] { (void)m.try_lock_for(100ms); }, &what);
    CHECK(code == holdfast::zookeeper::errc::may_not_delete);
    CHECK_THAT(what, contains("DELETE") && contains("/orders"));
    CHECK(tree.children("/orders").size() == 2);
    tree.permit("/orders", 31);
    CHECK(eventually([&] { return tree.children("/orders").size() == 1; }));
}

TEST_CASE("locks go on in their order when the sequence is exhausted")
{
    zookeeper_server server;
    zookeeper_tree{server.address()}.create("/orders");
    server.restart_with_sequence("/orders", 2147483647 - 5);
    zookeeper_tree tree{server.address()};
    CHECK(tree.create("/orders/x", "", true, true).ends_with("x2147483642"));
    std::atomic<int> inside{0};
    std::atomic<bool> alone{true};
    std::atomic<int> sections{0};
    std::atomic<std::uint64_t> last{0};
    std::atomic<bool> increasing{true};
    std::vector<std::unique_ptr<session>> sessions;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) {
        sessions.push_back(std::make_unique<session>(connected(server.address())));
        threads.emplace_back([&, zk = sessions.back().get()] {
            mutex m{*zk, "/orders"};
            for (int n = 0; n < 10; ++n) {
                std::scoped_lock const hold{m};
                if (++inside != 1) alone = false;
                auto const token = m.lease().fencing_token();
                if (token <= last.exchange(token)) increasing = false;
                std::this_thread::sleep_for(1ms);
                --inside;
                ++sections;
            }
        });
    }
    threads.clear();
    CHECK(sections == 60);
    CHECK(alone);
    CHECK(increasing);
    CHECK(tree.create("/orders/x", "", true, true).ends_with("x2147483647"));
    CHECK(tree.children("/orders").size() == 2);
}
