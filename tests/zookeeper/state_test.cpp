// SPDX-License-Identifier: MIT
//
// What a session tells of its state, and what may be done while it tells it.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/zookeeper_proxy.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
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
using holdfast::test::zookeeper_proxy;
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
    zookeeper_proxy proxy{server.port()};
    history told;
    auto zk = connected(proxy.address(), {.session_timeout = 20s, .on_state = [&](session_state s) { told.add(s); }});
    for (int i = 1; i <= 3; ++i) {
        proxy.cut();
        CHECK(eventually([&] { return told.last() == session_state::suspended; }));
        proxy.pass();
        CHECK(eventually([&] { return told.last() == session_state::connected; }));
    }
    CHECK(told.count(session_state::suspended) >= 3);
    CHECK(told.count(session_state::lost) == 0);
    proxy.cut();
    CHECK(eventually([&] { return told.last() == session_state::lost; }));
    CHECK(zk.state() == session_state::lost);
    auto const seen = told.all();
    CHECK(seen[seen.size() - 2] == session_state::suspended);
    proxy.pass();
    CHECK(eventually([&] { return told.last() == session_state::connected; }));
    CHECK(zk.state() == session_state::connected);
    CHECK(told.count(session_state::lost) == 1);
    CHECK(possible(told.all()));
}

TEST_CASE("what a callback of states throws is dropped, and the session goes on")
{
    zookeeper_server server;
    zookeeper_proxy proxy{server.port()};
    history told;
    auto zk = connected(proxy.address(), {.session_timeout = 20s, .on_state = [&](session_state s) {
                                              told.add(s);
                                              throw std::runtime_error{"dropped"};
                                          }});
    mutex m{zk, "/orders"};
    m.lock();
    proxy.cut();
    CHECK(eventually([&] { return told.last() == session_state::suspended; }));
    proxy.pass();
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

TEST_CASE("a callback of states may destroy the last lock and its session")
{
    zookeeper_server server;
    zookeeper_proxy proxy{server.port()};
    std::optional<session> zk;
    std::unique_ptr<mutex> m;
    std::atomic<bool> destroyed{false};
    auto const destroy = [&](session_state s) {
        if (s != session_state::suspended || destroyed) return;
        m.reset();
        zk.reset();
        destroyed = true;
    };
    zk.emplace(connected(proxy.address(), {.session_timeout = 8s, .operation_timeout = 100ms, .on_state = destroy}));
    m = std::make_unique<mutex>(*zk, "/orders");
    m->lock();
    auto const lease = m->lease();
    proxy.cut();
    CHECK(eventually([&] { return destroyed.load(); }));
    CHECK_FALSE(lease.still_held());
    proxy.pass();
    zookeeper_tree tree{server.address()};
    CHECK(eventually([&] { return tree.children("/orders").empty(); }));
}
