// SPDX-License-Identifier: MIT
//
// Permits as kazoo's Semaphore has them, by themselves and with the real kazoo.
#include "patient.hpp"
#include "rivals.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::leased_permit;
using holdfast::test::code_of;
using holdfast::test::connected;
using holdfast::test::contains;
using holdfast::test::content;
using holdfast::test::eventually;
using holdfast::test::kazoo;
using holdfast::test::refusal;
using holdfast::test::temporary_folder;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::node_options;
using holdfast::zookeeper::permits;
using holdfast::zookeeper::semaphore;

namespace {

constexpr node_options as_kazoo{.permits = permits::kazoo};

/// Returns: what kazoo says when it asks once for one of `max` permits, while nothing of ours is in the queue.
std::string asked_once(zookeeper_server const& server, int max)
{
    zookeeper_tree tree{server.address()};
    CHECK(eventually([&] { return tree.children("/app/jobs-__lock__").empty(); }));
    temporary_folder folder;
    auto const output = (folder.path() / "output").string();
    auto asked = kazoo({"try-permit", server.address(), "/app/jobs", std::to_string(max)}, output);
    CHECK(asked.wait_for(3min) == 0);
    return content(output);
}

}  // namespace

TEST_CASE("permits of kazoo's kind are nodes below a path that says how many there are, and stays", "[lesson-15]")
{
    zookeeper_server server;
    auto here = connected(server.address());
    auto there = connected(server.address());
    zookeeper_tree tree{server.address()};
    semaphore holder{here, "/app/jobs", 2, {}, as_kazoo};
    std::optional<semaphore> rival{std::in_place, there, "/app/jobs", 2, holdfast::lock_options{}, as_kazoo};
    std::optional<leased_permit> one{std::in_place, holder};
    std::optional<leased_permit> const two{std::in_place, holder};
    CHECK(tree.get("/app/jobs").data == "2");
    CHECK(tree.get("/app/jobs").owner == 0);  // a container has one that is no session
    CHECK(tree.children("/app/jobs").size() == 2);
    CHECK(eventually([&] { return tree.children("/app/jobs-__lock__").empty(); }));
    CHECK(holder.permits_in_use() == 2);
    CHECK_FALSE(rival->try_acquire());
    CHECK_FALSE(rival->try_acquire_for(100ms));
    std::atomic<bool> held{false};
    std::jthread waiter{[&] {
        leased_permit const third{*rival};
        held = true;
    }};
    CHECK(eventually([&] { return !tree.children("/app/jobs-__lock__").empty(); }));
    for (auto const& node : tree.children("/app/jobs-__lock__")) CHECK(node.substr(32).starts_with("__lock__"));
    CHECK_FALSE(held);
    one.reset();
    waiter.join();
    CHECK(held);
    rival.reset();
    CHECK(two->still_held());
    CHECK(eventually([&] { return tree.children("/app/jobs").size() == 1; }));
    CHECK(eventually([&] { return tree.children("/app/jobs-__lock__").empty(); }));
}

TEST_CASE("a client that says another number of permits than kazoo's path is told")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    zookeeper_tree tree{server.address()};
    semaphore two{zk, "/app/jobs", 2, {}, as_kazoo};
    semaphore three{zk, "/app/jobs", 3, {}, as_kazoo};
    {
        leased_permit const permit{two};
        CHECK(code_of([&] { (void)three.try_acquire(); }) == holdfast::errc::misconfigured);
        CHECK_THAT(refusal([&] { three.acquire(); }), contains("its number of permits is 2, and this client says 3"));
        CHECK(permit.still_held());
    }
    CHECK(code_of([&] { (void)three.try_acquire(); }) == holdfast::errc::misconfigured);  // it is kept
    CHECK(asked_once(server, 3) == "Inconsistent max leases: 2, expected: 3\n");
    CHECK(asked_once(server, 2) == "held\n");
    tree.remove("/app/jobs");
    CHECK(asked_once(server, 3) == "held\n");
    CHECK(tree.get("/app/jobs").data == "3");
    CHECK(code_of([&] { (void)two.try_acquire(); }) == holdfast::errc::misconfigured);
    CHECK(three.try_acquire());
    two.resize(3);
    CHECK(two.try_acquire());
    CHECK(eventually([&] { return tree.children("/app/jobs").size() == 2; }));  // of those refused, none is left
    CHECK(eventually([&] { return tree.children("/app/jobs-__lock__").empty(); }));
}

TEST_CASE("data of a path that are no number are left alone, as kazoo leaves them")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    zookeeper_tree tree{server.address()};
    auto const* const data = GENERATE("", "of the app");
    tree.create("/app/jobs", data);
    semaphore jobs{zk, "/app/jobs", 1, {}, as_kazoo};
    leased_permit const permit{jobs};
    CHECK(asked_once(server, 1) == "refused\n");
    CHECK(tree.get("/app/jobs").data == data);
}

TEST_CASE("options that kazoo's permits cannot have are refused")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    auto nodes = as_kazoo;
    nodes.queueing = holdfast::zookeeper::queueing::none;
    CHECK_THAT(refusal([&] { semaphore s{zk, "/jobs", 2, {}, nodes}; }), contains("permits::kazoo"));
    nodes = as_kazoo;
    nodes.naming = holdfast::zookeeper::naming::kazoo;
    CHECK_THAT(refusal([&] { semaphore s{zk, "/jobs", 2, {}, nodes}; }), contains("permits::kazoo"));
}

TEST_CASE("kazoo's semaphore and this library see each other's permits")
{
    bool const kazoo_first = GENERATE(true, false);
    zookeeper_server server;
    temporary_folder folder;
    auto zk = connected(server.address());
    auto const output = (folder.path() / "output").string();
    semaphore jobs{zk, "/app/jobs", 2, {}, as_kazoo};
    std::optional<leased_permit> one;
    if (!kazoo_first) one.emplace(jobs, 1min);
    auto holder = kazoo({"hold-permit", server.address(), "/app/jobs", "2"}, output);
    REQUIRE(eventually([&] { return content(output) == "held\n"; }, 3min));
    if (kazoo_first) one.emplace(jobs, 1min);
    CHECK(one->owns_permit());
    CHECK(jobs.permits_in_use() == 2);
    CHECK_FALSE(jobs.try_acquire());
    CHECK_FALSE(jobs.try_acquire_for(100ms));
    CHECK(asked_once(server, 2) == "refused\n");
    one.reset();
    CHECK(asked_once(server, 2) == "held\n");
    holder.kill();
    leased_permit const first{jobs, 3min};
    leased_permit const second{jobs, 3min};  // when the session of kazoo's holder has expired
    CHECK(second.owns_permit());
    CHECK(asked_once(server, 2) == "refused\n");
}

TEST_CASE("a permit of a session of this library that ends is kazoo's")
{
    zookeeper_server server;
    temporary_folder folder;
    auto zk = connected(server.address());
    zookeeper_tree tree{server.address()};
    auto const output = (folder.path() / "output").string();
    semaphore jobs{zk, "/app/jobs", 1, {}, as_kazoo};
    leased_permit const one{jobs};
    auto const nodes = tree.children("/app/jobs");
    REQUIRE(nodes.size() == 1);
    auto const session = tree.owner_of("/app/jobs/" + nodes[0]);
    REQUIRE(session);
    auto waits = kazoo({"hold-permit", server.address(), "/app/jobs", "1"}, output);
    REQUIRE(eventually([&] { return tree.children("/app/jobs-__lock__").size() == 1; }, 3min));
    CHECK(content(output).empty());
    tree.end_session(*session);
    CHECK(eventually([&] { return content(output) == "held\n"; }, 3min));
    CHECK(eventually([&] { return !one.still_held(); }));
    CHECK_FALSE(jobs.try_acquire());
}

TEST_CASE("threads of this library and of kazoo never have more permits than there are, and none starves")
{
    zookeeper_server server;
    temporary_folder folder;
    auto const inside = folder.path() / "inside";
    std::filesystem::create_directory(inside);
    auto const output = (folder.path() / "one").string();
    constexpr int times = 25;
    auto zk = connected(server.address(), {.session_timeout = 60s});
    semaphore jobs{zk, "/app/jobs", 2, {.max_local_handoffs = 1}, as_kazoo};
    auto one = kazoo({"permits", server.address(), "/app/jobs", "2", inside.string(), std::to_string(times)}, output);
    share_permits(jobs, inside, times, one);
    CHECK(content(output).empty());
    zookeeper_tree tree{server.address()};
    CHECK(eventually([&] { return tree.children("/app/jobs").empty(); }));
    CHECK(eventually([&] { return tree.children("/app/jobs-__lock__").empty(); }));
}
