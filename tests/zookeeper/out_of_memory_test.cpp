// SPDX-License-Identifier: MIT
//
// Memory that runs out in any step of a lock, in any thread: also in callbacks of the C client, which gets its own
// memory from malloc and is never refused any. A sanitizer brings an operator new of its own.
#include "support/refused_memory.hpp"
#include "support/refusing_new.hpp"

#ifndef HOLDFAST_SANITIZED

#include "patient.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;
using holdfast::test::connected;
using holdfast::test::any_refused;
using holdfast::test::eventually;
using holdfast::test::refuse;
using holdfast::test::spare_all;
using holdfast::test::spare_this_thread;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::mutex;
using holdfast::zookeeper::node_options;
using holdfast::zookeeper::queueing;
using holdfast::zookeeper::session;

namespace {

/// Effects: runs `f` with `many` requests for memory of any thread refused from the first one on, then from the second,
/// and so on; after each, with memory, `then`. Returns: how many there were.
template <class F, class G>
long refuse_each_request(long many, F&& f, G&& then)
{
    return holdfast::test::refuse_each_request(holdfast::test::whose::everybodys, many, f, then);
}

/// How long a member that does not wait for the lock waits: often for what memory ran out for, so it is no patient
/// time.
holdfast::zookeeper::session_options hasty() { return {.session_timeout = 20s, .operation_timeout = 200ms}; }

/// A lock, and a look at its nodes from outside.
struct place {
    explicit place(node_options form) : nodes{form} {}

    [[nodiscard]] bool empty()
    {
        return nodes.queueing == queueing::none ? !tree.exists("/locks/orders")
                                                : tree.children("/locks/orders").empty();
    }

    node_options nodes;
    zookeeper_server server;
    zookeeper_tree tree{server.address()};
};

/// Effects: takes the lock, as soon as a server is reached. Returns: whether it could.
bool take(mutex& m)
{
    return eventually(
        [&] {
            try {
                return m.try_lock_for(1min);
            } catch (std::system_error const&) {
                return false;
            }
        },
        5min);
}

}  // namespace

TEST_CASE(
    "a lock whose memory runs out in any step, once or for a while, leaves no node, and is as good as new when there is memory",
    "[lesson-15]")
{
    auto const nodes = GENERATE(node_options{}, node_options{.queueing = queueing::none});
    long const many = GENERATE(1, 1000);
    CAPTURE(static_cast<int>(nodes.queueing), many);
    place here{nodes};
    auto zk = connected(here.server.address(), hasty());
    // While memory is refused no session is made: it is not to be waited for.
    mutex m{zk, "/locks/orders", {.retry = {.most = 20ms}, .unavailable_after = 100ms}, nodes};
    CHECK(refuse_each_request(
              many,
              [&] {
                  // Until it is locked, or memory was refused: a slow server ends no count of requests.
                  for (bool locked = false; !locked;) try {
                          m.lock();
                          locked = true;
                      } catch (std::system_error const&) {
                          if (any_refused()) throw;
                      }
                  try {
                      std::error_code ec;
                      m.extend(20s, ec);
                  } catch (std::bad_alloc const&) {
                  }
                  m.unlock();
              },
              [&] {
                  REQUIRE(eventually([&] { return here.empty(); }, 5min));
                  REQUIRE(take(m));
                  CHECK(m.lease().still_held());
                  m.unlock();
              })
          > 10);
    CHECK(here.empty());
}

TEST_CASE("a waiter whose memory runs out in any step leaves the queue, and waits when there is memory")
{
    auto const nodes = GENERATE(node_options{}, node_options{.queueing = queueing::none});
    long const many = GENERATE(1, 1000);
    CAPTURE(static_cast<int>(nodes.queueing), many);
    place here{nodes};
    auto there = connected(here.server.address());
    mutex holder{there, "/locks/orders", {}, nodes};
    auto zk = connected(here.server.address(), hasty());
    mutex m{zk, "/locks/orders", {.retry = {.most = 20ms}}, nodes};
    REQUIRE(take(holder));
    auto const alone = [&] { return here.tree.children("/locks/orders").size() <= 1; };
    CHECK(refuse_each_request(
              many,
              [&] {
                  if (m.try_lock_for(50ms)) std::abort();
              },
              [&] { REQUIRE(eventually(alone, 5min)); })
          > 5);
    CHECK(holder.lease().still_held());
    holder.unlock();
    REQUIRE(take(m));
    m.unlock();
    CHECK(here.empty());
}

TEST_CASE("a waiter whose memory runs out when its turn comes has the lock or leaves the queue")
{
    auto const nodes = GENERATE(node_options{}, node_options{.queueing = queueing::none});
    CAPTURE(static_cast<int>(nodes.queueing));
    place here{nodes};
    auto there = connected(here.server.address());
    mutex holder{there, "/locks/orders", {}, nodes};
    auto zk = connected(here.server.address(), hasty());
    mutex m{zk, "/locks/orders", {.retry = {.most = 20ms}}, nodes};
    unsigned served = 0;
    unsigned failed = 0;
    for (long n = 0;; ++n) {
        CAPTURE(n);
        REQUIRE(take(holder));
        std::jthread waiter{[&] {
            try {
                m.lock();
                ++served;
            } catch (std::bad_alloc const&) {
                ++failed;
            } catch (std::system_error const& e) {
                if (e.code() == std::errc::not_enough_memory) ++failed;
            }
            m.unlock();
        }};
        CHECK(eventually([&] { return here.server.watches() > 0; }));
        {
            spare_this_thread const one;
            refuse(n, 1);
            holder.unlock();
        }
        waiter.join();
        bool const struck = spare_all();
        REQUIRE(eventually([&] { return here.empty(); }, 5min));
        if (!struck) break;
    }
    CHECK(served > 0);
    CHECK(failed > 0);
}

TEST_CASE("a session that ends while memory runs out is made again, and nothing of it is held")
{
    long const many = GENERATE(1, 1000);
    CAPTURE(many);
    place here{{}};
    std::atomic<unsigned> told{0};
    auto zk = connected(here.server.address(),
                        {.session_timeout = 5s, .operation_timeout = 200ms, .on_state = [&](auto) { ++told; }});
    mutex m{zk, "/locks/orders"};
    for (long n = 0;; ++n) {
        CAPTURE(n);
        REQUIRE(take(m));
        auto const lease = m.lease();
        auto const line = here.tree.children("/locks/orders");
        auto const session = line.empty() ? 0 : here.tree.owner_of("/locks/orders/" + line.front()).value_or(0);
        auto const before = told.load();
        {
            spare_this_thread const one;
            refuse(n, many);
            if (session != 0) here.tree.end_session(session);
            CHECK(eventually([&] { return !lease.still_held(); }, 5min));
            m.unlock();
            CHECK(eventually([&] { return told > before; }, 5min));
            CHECK(eventually(
                [&] {
                    try {
                        return m.try_lock_for(500ms) || any_refused();
                    } catch (std::system_error const&) {
                        return any_refused();
                    }
                },
                5min));
            m.unlock();
        }
        bool const struck = spare_all();
        REQUIRE(eventually([&] { return here.empty(); }, 5min));
        if (struck) continue;
        CHECK(n > 3);
        break;
    }
    REQUIRE(take(m));
    m.unlock();
}

TEST_CASE("a permit that no server gives is not held, whenever memory runs out, and all is as good as new after")
{
    zookeeper_server server;
    auto zk = connected(server.address(), hasty());
    auto const form = GENERATE(holdfast::zookeeper::permits::curator, holdfast::zookeeper::permits::kazoo);
    holdfast::zookeeper::semaphore jobs{zk, "/locks/jobs", 1, {}, {.permits = form}};
    REQUIRE(jobs.try_acquire_for(1min));
    jobs.release();
    server.pause();
    auto const asking = [&] {
        if (jobs.try_acquire()) std::abort();
    };
    CHECK(refuse_each_request(1'000, asking, [] {}) > 3);
    server.resume();
    CHECK(eventually([&] {
        try {
            return jobs.try_acquire_for(1min);
        } catch (std::system_error const&) {
            return false;
        }
    }));
    jobs.release();
}

TEST_CASE("who has the lock cannot be said without memory, and can be with it")
{
    place here{{}};
    auto zk = connected(here.server.address(), hasty());
    mutex m{zk, "/locks/orders"};
    REQUIRE(take(m));
    auto const asking = [&] {
        if (m.contenders().size() != 1) std::abort();
    };
    auto const afterwards = [&] {
        if (m.lease().still_held()) return;
        std::error_code
            ec;  // memory ran out in the background, which ends the session: the loss is told, and the next one has the lock
        m.unlock(ec);
        CHECK(ec == holdfast::errc::lease_lost);
        REQUIRE(take(m));
    };
    CHECK(refuse_each_request(1, asking, afterwards) > 3);
    CHECK(eventually([&] {
        try {
            return m.contenders().size() == 1;
        } catch (std::system_error const&) {  // who is hasty may get no answer
            return false;
        }
    }));
    afterwards();
    m.unlock();
}

#endif
