// SPDX-License-Identifier: MIT
//
// What a session tells of its state, and what may be done while it tells it.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::test::connected;
using holdfast::test::eventually;
using holdfast::test::patient;
using holdfast::test::proxy;
using holdfast::test::zookeeper_packets;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::mutex;
using holdfast::zookeeper::session;
using holdfast::zookeeper::session_state;

namespace {

class history {
public:
    void add(session_state s)
    {
        std::scoped_lock const guard{mutex_};
        all_.push_back(s);
    }

    [[nodiscard]] std::vector<session_state> all() const
    {
        std::scoped_lock const guard{mutex_};
        return all_;
    }

    [[nodiscard]] session_state last() const
    {
        auto const seen = all();
        return seen.empty() ? session_state::lost : seen.back();
    }

    [[nodiscard]] long count(session_state s) const
    {
        auto const seen = all();
        return std::count(seen.begin(), seen.end(), s);
    }

private:
    mutable std::mutex mutex_;
    std::vector<session_state> all_;
};

/// Returns: whether a session can have been in these states, one after the other.
bool possible(std::vector<session_state> const& seen)
{
    auto before = session_state::lost;
    for (auto const s : seen) {
        if (s == before || (before == session_state::lost && s == session_state::suspended)) return false;
        before = s;
    }
    return true;
}

}  // namespace

TEST_CASE("states that cannot follow each other are recognised")
{
    using enum session_state;
    CHECK(possible({connected, suspended, connected, suspended, lost, connected, lost}));
    CHECK_FALSE(possible({suspended}));
    CHECK_FALSE(possible({lost}));
    CHECK_FALSE(possible({connected, lost, suspended}));
    CHECK_FALSE(possible({connected, connected}));
}

TEST_CASE("each change of state is told in its order: short outages, a long one, a new session")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    history told;
    auto zk = connected(way.address(), {.session_timeout = 20s, .on_state = [&](session_state s) { told.add(s); }});
    for (int i = 1; i <= 3; ++i) {
        way.refuse();
        CHECK(eventually([&] { return told.last() == session_state::suspended; }));
        way.pass();
        CHECK(eventually([&] { return told.last() == session_state::connected; }));
    }
    CHECK(told.count(session_state::suspended) >= 3);
    CHECK(told.count(session_state::lost) == 0);
    way.refuse();
    CHECK(eventually([&] { return told.last() == session_state::lost; }));
    CHECK(zk.state() == session_state::lost);
    auto const seen = told.all();
    CHECK(seen[seen.size() - 2] == session_state::suspended);
    way.pass();
    CHECK(eventually([&] { return told.last() == session_state::connected; }));
    CHECK(zk.state() == session_state::connected);
    CHECK(told.count(session_state::lost) == 1);
    CHECK(possible(told.all()));
}

TEST_CASE("what a callback of states throws is dropped, and the session goes on")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    history told;
    auto zk = connected(way.address(), {.session_timeout = 20s, .on_state = [&](session_state s) {
                                              told.add(s);
                                              throw std::runtime_error{"dropped"};
                                          }});
    mutex m{zk, "/orders"};
    m.lock();
    way.refuse();
    CHECK(eventually([&] { return told.last() == session_state::suspended; }));
    way.pass();
    CHECK(eventually([&] { return told.last() == session_state::connected; }));
    CHECK(m.lease().still_held());
    m.unlock();
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("a callback of states may ask the session")
{
    zookeeper_server server;
    std::atomic<session*> zk{nullptr};
    std::atomic<int> asked{0};
    session made{server.address(), patient({.on_state = [&](session_state) {
                     while (zk == nullptr) std::this_thread::yield();
                     bool const in = zk.load()->state() == session_state::connected && zk.load()->connect_for(0ms);
                     asked += in ? 1 : 100;
                 }})};
    zk = &made;
    CHECK(made.connect_for(2min));
    CHECK(eventually([&] { return asked > 0; }));
    CHECK(asked == 1);
}

TEST_CASE("a callback of states may destroy the last lock and its session", "[lesson-21]")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    std::optional<session> zk;
    std::unique_ptr<mutex> m;
    std::atomic<bool> taken{false};  // not before: the connection may break by itself
    std::atomic<bool> destroyed{false};
    auto const destroy = [&](session_state s) {
        if (s == session_state::connected || !taken || destroyed) return;
        m.reset();
        zk.reset();
        destroyed = true;
    };
    zk.emplace(connected(way.address(), {.session_timeout = 8s, .operation_timeout = 100ms, .on_state = destroy}));
    m = std::make_unique<mutex>(*zk, "/orders");
    m->lock();
    auto const lease = m->lease();
    taken = true;
    way.refuse();
    CHECK(eventually([&] { return destroyed.load(); }));
    CHECK_FALSE(lease.still_held());
    way.pass();
    zookeeper_tree tree{server.address()};
    CHECK(eventually([&] { return tree.children("/orders").empty(); }));
}

TEST_CASE(
    "a callback of states that does not return delays neither the time-outs of requests nor the loss of the session")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    history told;
    std::promise<void> done;
    auto const stay = [&told, wait = done.get_future().share()](session_state s) {
        told.add(s);
        if (s == session_state::suspended) wait.wait();
    };
    auto zk = connected(way.address(), {.session_timeout = 8s, .operation_timeout = 100ms, .on_state = stay});
    mutex m{zk, "/orders"};
    mutex other{zk, "/other"};
    m.lock();
    auto const lease = m.lease();
    way.refuse();
    CHECK(eventually([&] { return told.last() == session_state::suspended; }));
    auto asked = std::async(std::launch::async, [&] { return other.try_lock(); });
    CHECK(eventually([&] { return asked.wait_for(0s) == std::future_status::ready; }));
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK(eventually([&] { return zk.state() == session_state::lost; }));
    CHECK(told.last() == session_state::suspended);
    done.set_value();
    CHECK_THROWS_AS(asked.get(), holdfast::error);
    CHECK(eventually([&] { return told.last() == session_state::lost; }));
    way.pass();
    CHECK(eventually([&] { return told.last() == session_state::connected; }));
    CHECK(possible(told.all()));
}

TEST_CASE("a callback of states may lock")
{
    zookeeper_server server;
    std::atomic<bool> held{false};
    std::optional<session> zk;
    zk.emplace(server.address(), patient({.on_state = [&](session_state) {
                   auto m = std::make_unique<mutex>(*zk, "/orders");
                   m->lock();
                   bool const has = m->lease().still_held();
                   m->unlock();
                   m.reset();  // the last of the session is to be `zk`, whose end waits for this callback
                   held = has;
               }}));
    CHECK(zk->connect_for(2min));
    CHECK(eventually([&] { return held.load(); }));
}

TEST_CASE("the end of a session waits for a callback of states that runs", "[lesson-21]")
{
    zookeeper_server server;
    std::atomic<bool> begun{false};
    std::atomic<bool> go{false};
    std::atomic<bool> returned{false};
    std::optional<session> zk{connected(server.address(), {.on_state = [&](session_state) {
                                            begun = true;
                                            while (!go) std::this_thread::sleep_for(1ms);
                                            returned = true;
                                        }})};
    CHECK(eventually([&] { return begun.load(); }));
    std::jthread const later{[&] {
        std::this_thread::sleep_for(3s);  // longer than the session waits for names that are looked up
        go = true;
    }};
    zk.reset();
    CHECK(returned);
}

TEST_CASE("a callback of states that has destroyed the session is told nothing more", "[lesson-21]")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    history told;
    std::optional<session> zk;
    std::atomic<bool> made{false};
    auto lives = std::make_shared<bool>(true);
    std::weak_ptr<bool> const seen = lives;
    zk.emplace(connected(way.address(), {.session_timeout = 8s, .on_state = [&, lives](session_state s) {
                                             told.add(s);
                                             if (s != session_state::suspended) return;
                                             while (!made || zk->state() != session_state::lost)
                                                 std::this_thread::yield();
                                             zk.reset();
                                         }}));
    made = true;
    lives.reset();
    way.refuse();
    CHECK(eventually([&] { return seen.expired(); }));
    CHECK(told.all() == std::vector{session_state::connected, session_state::suspended});
}
