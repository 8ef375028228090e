// SPDX-License-Identifier: MIT
//
// Sessions that end, servers that die or hang.
#include "conformance/sleeper.hpp"
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/told_leaders.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/election.hpp>
#include <holdfast/zookeeper.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::test::code_of;
using holdfast::test::connected;
using holdfast::test::eventually;
using holdfast::test::proxy;
using holdfast::test::zookeeper_ensemble;
using holdfast::test::zookeeper_packets;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::mutex;
using holdfast::zookeeper::session;
using holdfast::zookeeper::session_state;

namespace {

/// The states that a session was told to be in.
class states {
public:
    auto listen()
    {
        return [this](session_state s) {
            std::scoped_lock const guard{mutex_};
            seen_.push_back(s);
        };
    }

    [[nodiscard]] std::vector<session_state> seen() const
    {
        std::scoped_lock const guard{mutex_};
        return seen_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<session_state> seen_;
};

using all = std::vector<session_state>;

/// Returns: the session that holds the first node of the lock.
std::int64_t holder_of(zookeeper_tree& tree, std::string const& path)
{
    auto const line = holdfast::zookeeper::contenders_among(tree.children(path));
    return line.empty() ? 0 : tree.get(path + '/' + line.front().name).owner;
}

/// Effects: has the servers end a session, whose owner is told so when it is connected again. (Were it connected at
/// once, its connection could begin between the end and the servers' looking for connections to close: they drop
/// whatever is asked over that one.)
void expire(std::int64_t session, zookeeper_tree& tree, proxy& its_way)
{
    its_way.refuse();
    tree.end_session(session);
    its_way.pass();
}

}  // namespace

TEST_CASE("a session that its servers ended loses its locks and is made again by itself")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    states told;
    std::atomic<int> lost{0};
    auto zk = connected(way.address(), {.session_timeout = 20s, .on_state = told.listen()});
    mutex m{
        zk, "/orders", {.on_error = [&](holdfast::error const& e) { lost += e.code() == errc::lease_lost ? 1 : 100; }}};
    m.lock();
    auto const lease = m.lease();
    zookeeper_tree tree{server.address()};
    expire(holder_of(tree, "/orders"), tree, way);
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK_FALSE(lease.still_held());
    CHECK(eventually([&] { return lost == 1; }));
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == errc::lease_lost);
    m.lock();
    CHECK(m.lease().fencing_token() > lease.fencing_token());
    auto const seen = told.seen();
    CHECK(std::count(seen.begin(), seen.end(), session_state::lost) == 1);
    CHECK(seen.front() == session_state::connected);
    CHECK(eventually([&] { return told.seen().back() == session_state::connected; }));
}

TEST_CASE("the loss of a lock that is not renewed is announced when its session ends, not when its lease would")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto zk = connected(way.address(), {.session_timeout = 5min});
    mutex m{zk, "/orders", {.renew = false}};
    m.lock();
    auto const lease = m.lease();
    auto const would_end = lease.expires_at();
    zookeeper_tree tree{server.address()};
    expire(holder_of(tree, "/orders"), tree, way);
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK(boot_clock::now() < would_end);
}

TEST_CASE("the end of a session is announced to its holders while the user's callback does not return")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    std::promise<void> done;
    auto zk =
        connected(way.address(), {.session_timeout = 5min,
                                  .operation_timeout = 100ms,
                                  .on_state = [wait = done.get_future().share()](session_state) { wait.wait(); }});
    mutex m{zk, "/orders", {.renew = false}};
    m.lock();
    auto const lease = m.lease();
    auto const would_end = lease.expires_at();
    zookeeper_tree tree{server.address()};
    expire(holder_of(tree, "/orders"), tree, way);
    mutex other{zk, "/other"};
    CHECK_THROWS_AS(other.try_lock(),
                    holdfast::error);  // it is told of the end, for which the session's thread does not ask
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK(boot_clock::now() < would_end);
    done.set_value();
}

TEST_CASE("a waiter whose session ended gets in line again", "[lesson-14][lesson-18]")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto here = connected(server.address(), {.session_timeout = 20s});
    auto there = connected(way.address(), {.session_timeout = 20s});
    mutex holder{here, "/orders"};
    mutex waiting{there, "/orders"};
    holder.lock();
    std::jthread waiter{[&] { waiting.lock(); }};
    zookeeper_tree tree{server.address()};
    CHECK(eventually([&] { return tree.children("/orders").size() == 2; }));
    auto const before = holdfast::zookeeper::contenders_among(tree.children("/orders")).back().name;
    expire(tree.get("/orders/" + before).owner, tree, way);
    CHECK(eventually([&] {
        auto const line = holdfast::zookeeper::contenders_among(tree.children("/orders"));
        return line.size() == 2 && line.back().name != before;
    }));
    CHECK(holder.lease().still_held());
    holder.unlock();
    waiter.join();
    CHECK(waiting.lease().still_held());
}

TEST_CASE("a lock outlives a short outage, and a release during it is done afterwards", "[lesson-15]")
{
    zookeeper_server server;
    states told;
    auto zk =
        connected(server.address(), {.session_timeout = 5min, .operation_timeout = 200ms, .on_state = told.listen()});
    mutex kept{zk, "/kept"};
    mutex released{zk, "/released"};
    kept.lock();
    released.lock();
    server.kill();
    CHECK(eventually([&] { return zk.state() == session_state::suspended; }));
    std::error_code ec;
    auto const begun = boot_clock::now();
    released.unlock(ec);
    CHECK(ec == errc::unavailable);
    CHECK(boot_clock::now() - begun < 1min);
    server.restart();
    CHECK(eventually([&] { return zk.state() == session_state::connected; }));
    CHECK(kept.lease().still_held());
    zookeeper_tree tree{server.address()};
    CHECK(eventually([&] { return tree.children("/released").empty(); }));
    CHECK(tree.children("/kept").size() == 1);
    CHECK(eventually([&] { return told.seen().size() >= 3; }));  // the state is seen before it is told
    CHECK(told.seen() == all{session_state::connected, session_state::suspended, session_state::connected});
}

TEST_CASE("a holder cut off from its server announces the loss before the server can grant to another")
{
    zookeeper_server server;
    states told;
    constexpr auto timeout = 16s;
    auto zk = connected(server.address(), {.session_timeout = timeout, .on_state = told.listen()});
    mutex m{zk, "/orders"};
    m.lock();
    auto const lease = m.lease();
    server.pause();
    auto const paused = boot_clock::now();
    CHECK(lease.expires_at() < paused + timeout / 2);
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK(boot_clock::now() - paused < timeout);
    CHECK(eventually([&] { return zk.state() == session_state::lost; }));
    server.resume();
    m.unlock();
    CHECK(eventually([&] { return zk.state() == session_state::connected; }));
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("without any server a lock is unavailable, in time")
{
    std::string address;
    {
        zookeeper_server server;
        address = server.address();
    }
    session zk{address, {.operation_timeout = 300ms}};
    mutex m{zk, "/orders", {.unavailable_after = 300ms}};
    auto const thrown = [&](auto&& f) {
        try {
            f();
        } catch (holdfast::error const& e) {
            return e.code();
        }
        return std::error_code{};
    };
    auto const begun = boot_clock::now();
    CHECK(thrown([&] { static_cast<void>(m.try_lock()); }) == errc::unavailable);
    CHECK(thrown([&] { static_cast<void>(m.try_lock_for(100ms)); }) == errc::unavailable);
    CHECK(thrown([&] { m.lock(); }) == errc::unavailable);

    std::stop_source stop;
    mutex patient{zk, "/invoices", {.unavailable_after = 10min}};
    mutex behind{zk, "/invoices"};
    holdfast::test::sleeper waits{[&] { return patient.lock(stop.get_token()); }};
    CHECK(waits.sleeps());
    CHECK(thrown([&] { static_cast<void>(behind.try_lock_for(1s)); }) == errc::unavailable);
    stop.request_stop();
    CHECK_FALSE(waits.join());
    CHECK(boot_clock::now() - begun < 2min);
}

TEST_CASE("one who waits gives up when no server is reached for unavailable_after, and leaves nothing")
{
    zookeeper_server server;
    // Long enough for the server to come back.
    auto here = connected(server.address(), {.session_timeout = 5min});
    auto there = connected(server.address(), {.session_timeout = 5min, .operation_timeout = 100ms});
    mutex holder{here, "/orders"};
    mutex waiting{there, "/orders", {.unavailable_after = 3s}};
    holder.lock();
    std::atomic<bool> unavailable{false};
    std::jthread waiter{[&] {
        try {
            waiting.lock();
        } catch (holdfast::error const& e) {
            unavailable = e.code() == errc::unavailable;
        }
    }};
    {
        zookeeper_tree tree{server.address()};
        CHECK(eventually([&] { return tree.children("/orders").size() == 2; }));
    }
    server.kill();
    waiter.join();
    CHECK(unavailable);
    server.restart();
    zookeeper_tree tree{server.address()};
    CHECK(eventually([&] { return tree.children("/orders").size() == 1; }));
}

TEST_CASE("one whose session ends when he is first in line gets in line again, however long he has waited")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    constexpr auto patience = 10s;
    auto here = connected(server.address(), {.session_timeout = 5min});
    auto there = connected(way.address(), {.session_timeout = 4s, .operation_timeout = 100ms});
    mutex holder{here, "/orders"};
    mutex waiting{there, "/orders", {.unavailable_after = patience}};
    holder.lock();
    holdfast::test::sleeper waiter{[&] { return !code_of([&] { waiting.lock(); }); }};
    zookeeper_tree tree{server.address()};
    CHECK(eventually([&] { return tree.children("/orders").size() == 2; }));
    std::this_thread::sleep_for(patience + 100ms);
    way.refuse();  // until it does not count on its session any more, which goes on
    std::this_thread::sleep_for(3200ms);
    holder.unlock();
    way.pass();
    CHECK(eventually([&] { return there.state() == session_state::connected || waiting.lease().still_held(); }));
    std::this_thread::sleep_for(300ms);  // it is first, and confirms its session, which takes a quarter of its timeout
    for (auto const& one : tree.children("/orders"))
        if (auto const owner = tree.owner_of("/orders/" + one)) tree.end_session(*owner);
    CHECK(waiter.join());
}

TEST_CASE("an ensemble that loses its leader keeps the locks, and no two have one")
{
    zookeeper_ensemble servers{3, {.tick = 200ms}};
    auto here = connected(servers.addresses(), {.session_timeout = 20s});
    auto there = connected(servers.addresses(), {.session_timeout = 20s});
    std::atomic<bool> done{false};
    std::mutex guard;
    std::array<holdfast::lease, 2> leases;
    std::atomic<bool> alone{true};
    std::atomic<int> sections{0};
    std::atomic<std::uint64_t> last{0};
    std::atomic<bool> increasing{true};
    auto const work = [&](session& zk, std::size_t me) {
        mutex m{zk, "/orders", {.unavailable_after = 5min}};
        while (!done) {
            m.lock();
            auto const token = m.lease().fencing_token();
            {
                std::scoped_lock const one{guard};
                leases[me] = m.lease();
                if (leases[1 - me].still_held() && m.lease().still_held()) alone = false;
            }
            if (m.lease().still_held() && token <= last.exchange(token)) increasing = false;
            std::this_thread::sleep_for(1ms);
            m.unlock();
            ++sections;
        }
    };
    std::jthread a{[&] { work(here, 0); }};
    std::jthread b{[&] { work(there, 1); }};
    CHECK(eventually([&] { return sections > 20; }, 2min));
    servers[servers.leader()].kill();
    auto const before = sections.load();
    CHECK(eventually([&] { return sections > before + 20; }, 5min));
    done = true;
    a.join();
    b.join();
    CHECK(alone);
    CHECK(increasing);
}

TEST_CASE("a stopped leader costs a lock no more than its session, and never its exclusion")
{
    zookeeper_ensemble servers{
        3, {.tick = 200ms, .config = {"syncLimit=10"}}};  // after 2 s the others choose another leader
    auto zk = connected(servers.addresses(), {.session_timeout = 20s});
    auto other = connected(servers.addresses(), {.session_timeout = 20s});
    mutex m{zk, "/orders"};
    mutex rival{other, "/orders", {.unavailable_after = 5min}};
    m.lock();
    auto const lease = m.lease();
    auto const leader = servers.leader();
    std::atomic<bool> overlapped{false};
    std::jthread waiter{[&] {
        rival.lock();
        overlapped = lease.still_held();
    }};
    servers[leader].pause();
    std::this_thread::sleep_for(3s);
    servers[leader].resume();
    if (lease.still_held()) m.unlock();
    waiter.join();
    CHECK_FALSE(overlapped);
    CHECK(rival.lease().still_held());
}

TEST_CASE("a holder cut off from all servers of an ensemble loses its lock before a rival has it")
{
    bool const refused = GENERATE(false, true);
    CAPTURE(refused);
    zookeeper_ensemble servers;
    proxy one{servers[0].port(), zookeeper_packets};
    proxy two{servers[1].port(), zookeeper_packets};
    proxy three{servers[2].port(), zookeeper_packets};
    auto here = connected(one.address() + ',' + two.address() + ',' + three.address(), {.session_timeout = 20s});
    auto there = connected(servers.addresses());
    mutex holder{here, "/orders"};
    mutex rival{there, "/orders"};
    REQUIRE(holder.try_lock_for(2min));
    auto const lease = holder.lease();
    for (auto* const way : {&one, &two, &three}) refused ? way->refuse() : way->freeze();
    rival.lock();
    CHECK_FALSE(lease.still_held());
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    for (auto* const way : {&one, &two, &three}) way->pass();
    rival.unlock();
    holder.unlock();
    CHECK(holder.try_lock_for(2min));
    CHECK(holder.lease().fencing_token() > lease.fencing_token());
}

TEST_CASE("while all servers of an ensemble are stopped a lock is lost in time, and is nobody's until they go on")
{
    zookeeper_ensemble servers;
    auto here = connected(servers.addresses(), {.session_timeout = 20s});
    auto there = connected(servers.addresses(), {.session_timeout = 20s});
    mutex holder{here, "/orders"};
    mutex rival{there, "/orders", {.unavailable_after = 5min}};
    REQUIRE(holder.try_lock_for(2min));
    auto const lease = holder.lease();
    std::atomic<bool> granted{false};
    std::atomic<bool> overlapped{false};
    std::jthread waiter{[&] {
        rival.lock();
        overlapped = lease.still_held() || !lease.lost_token().stop_requested();
        granted = true;
    }};
    CHECK(eventually([&] { return holder.contenders().size() == 2; }));
    for (auto& server : servers) server.pause();
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK_FALSE(lease.still_held());
    CHECK_FALSE(granted);
    for (auto& server : servers) server.resume();
    CHECK(eventually([&] { return granted.load(); }, 5min));
    waiter.join();
    CHECK_FALSE(overlapped);
}

TEST_CASE("an observer whose session is cut off says so, and takes it for no change")
{
    zookeeper_server server;
    auto one = connected(server.address(), {.session_timeout = 5min});
    mutex orders{one, "/orders"};
    holdfast::election leader{orders, {.pause = 1h}};
    CHECK(eventually([&] { return leader.still_leader(); }));
    proxy way{server.port(), zookeeper_packets};
    auto two = connected(way.address(), {.session_timeout = 20s, .operation_timeout = 500ms});
    holdfast::test::told_leaders told;
    holdfast::election_observer const seen{two, "/orders", told.options()};
    CHECK(told.leads(true));
    way.refuse();
    CHECK(told.reports(errc::unavailable));
    CHECK(leader.resign());
    CHECK(eventually([&] { return !one.holder("/orders"); }));
    CHECK(told.count() == 1);
    way.pass();
    CHECK(told.leads(false));
    CHECK(told.count() == 2);
}
