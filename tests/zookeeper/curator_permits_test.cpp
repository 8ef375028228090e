// SPDX-License-Identifier: MIT
//
// Permits as Curator's InterProcessSemaphoreV2 has them, by themselves and with the real Curator.
#include "patient.hpp"
#include "rivals.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::leased_permit;
using holdfast::test::connected;
using holdfast::test::contains;
using holdfast::test::content;
using holdfast::test::curator;
using holdfast::test::eventually;
using holdfast::test::refusal;
using holdfast::test::temporary_folder;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::node_options;
using holdfast::zookeeper::permits;
using holdfast::zookeeper::semaphore;

namespace {

constexpr node_options as_curator{.permits = permits::curator};

/// Returns: how many watches the server has; `wchs` knows of none of lists.
std::string watches(zookeeper_server const& server)
{
    auto const said = server.ask("mntr");
    auto const at = said.find("zk_watch_count\t");
    return at == std::string::npos ? "unknown" : said.substr(at + 15, said.find('\n', at) - at - 15);
}

}  // namespace

TEST_CASE("permits of Curator's kind are nodes below the leases, and none is left behind", "[lesson-15]")
{
    zookeeper_server server;
    auto here = connected(server.address());
    auto there = connected(server.address());
    zookeeper_tree tree{server.address()};
    semaphore holder{here, "/app/jobs", 2, {}, as_curator};
    std::optional<semaphore> rival{std::in_place, there, "/app/jobs", 2, holdfast::lock_options{}, as_curator};
    leased_permit one{holder};
    leased_permit const two{holder};
    auto const nodes = tree.children("/app/jobs/leases");
    REQUIRE(nodes.size() == 2);
    for (auto const& node : nodes) {
        CHECK(node.starts_with("_c_"));
        CHECK(node.substr(39).starts_with("-lease-"));
    }
    CHECK(one.fencing_token() != two.fencing_token());
    CHECK_FALSE(rival->try_acquire());
    CHECK_FALSE(rival->try_acquire_for(100ms));
    CHECK(eventually(
        [&] { return tree.children("/app/jobs/leases") == nodes && tree.children("/app/jobs/locks").empty(); }));
    std::atomic<std::uint64_t> token{0};
    std::jthread waiter{[&] {
        leased_permit const third{*rival};
        token = third.fencing_token();
    }};
    // One of those that wait has its node beside the permits, and is woken when any of these goes.
    CHECK(eventually([&] { return tree.children("/app/jobs/leases").size() == 3; }));
    CHECK(token == 0);
    one.release();
    CHECK(eventually([&] { return token > two.fencing_token(); }));
    waiter.join();
    CHECK(rival->try_acquire_for(1min));
    rival.reset();
    CHECK(two.still_held());
    CHECK(eventually([&] { return watches(server) == "0"; }));
    CHECK(eventually([&] { return tree.children("/app/jobs/leases").size() == 1; }));
    CHECK(eventually([&] { return tree.children("/app/jobs/locks").empty(); }));
}

TEST_CASE("a session that ends while it waits for a permit begins again at the queue")
{
    zookeeper_server server;
    auto here = connected(server.address());
    auto there = connected(server.address());
    zookeeper_tree tree{server.address()};
    semaphore holder{here, "/jobs", 1, {}, as_curator};
    semaphore rival{there, "/jobs", 1, {}, as_curator};
    leased_permit one{holder};
    auto const first = tree.children("/jobs/leases");
    std::atomic<bool> held{false};
    std::jthread waiter{[&] {
        leased_permit const other{rival};
        held = true;
    }};
    // The nodes of its first try may still be there before.
    CHECK(eventually([&] { return watches(server) == "1"; }));
    auto const waits = tree.children("/jobs/locks");
    auto const session = waits.size() == 1 ? tree.owner_of("/jobs/locks/" + waits[0]) : std::nullopt;
    CHECK(session);
    if (session) tree.end_session(*session);
    CHECK(eventually([&] {
        auto const now = tree.children("/jobs/locks");
        return now.size() == 1 && now != waits && tree.children("/jobs/leases").size() == 2;
    }));
    CHECK_FALSE(held);
    CHECK(one.still_held());
    one.release();
    CHECK(eventually([&] { return held.load(); }));
}

TEST_CASE("options that Curator's permits cannot have are refused")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    auto nodes = as_curator;
    nodes.queueing = holdfast::zookeeper::queueing::none;
    CHECK_THAT(refusal([&] { semaphore s{zk, "/jobs", 2, {}, nodes}; }), contains("permits::curator"));
    nodes = as_curator;
    nodes.naming = holdfast::zookeeper::naming::kazoo;
    CHECK_THAT(refusal([&] { semaphore s{zk, "/jobs", 2, {}, nodes}; }), contains("permits::curator"));
}

TEST_CASE("Curator's semaphore and this library see each other's permits")
{
    zookeeper_server server;
    temporary_folder folder;
    auto zk = connected(server.address());
    auto const output = (folder.path() / "output").string();
    auto const said = [&] {
        auto asked = curator({"try-permit", server.address(), "/jobs", "2"}, output);
        CHECK(asked.wait_for(3min) == 0);
        return content(output);
    };
    semaphore jobs{zk, "/jobs", 2, {}, as_curator};
    auto holder = curator({"hold-permit", server.address(), "/jobs", "2"}, output);
    REQUIRE(eventually([&] { return content(output) == "held\n"; }, 3min));
    std::optional<leased_permit> one{std::in_place, jobs, 1min};
    CHECK(one->owns_permit());
    CHECK_FALSE(jobs.try_acquire());
    CHECK_FALSE(jobs.try_acquire_for(100ms));
    CHECK(said() == "refused\n");
    one.reset();
    CHECK(said() == "held\n");
    holder.kill();
    leased_permit const first{jobs, 3min};
    leased_permit const second{jobs, 3min};  // when the session of Curator's holder has expired
    CHECK(second.owns_permit());
    CHECK(said() == "refused\n");
}

TEST_CASE("threads of this library and of Curator never have more permits than there are, and none starves")
{
    zookeeper_server server;
    temporary_folder folder;
    auto const inside = folder.path() / "inside";
    std::filesystem::create_directory(inside);
    constexpr int times = 25;
    auto zk = connected(server.address(), {.session_timeout = 60s});
    semaphore jobs{zk, "/jobs", 2, {.max_local_handoffs = 1}, as_curator};
    auto one = curator({"permits", server.address(), "/jobs", "2", inside.string(), std::to_string(times)},
                       (folder.path() / "one").string());
    share_permits(jobs, inside, times, one);
    zookeeper_tree tree{server.address()};
    CHECK(eventually([&] { return tree.children("/jobs/leases").empty(); }));
    CHECK(eventually([&] { return tree.children("/jobs/locks").empty(); }));
}
