// SPDX-License-Identifier: MIT
//
// Memory that runs out in any step of a lock, in any thread: also in callbacks of the C client, which gets its own memory from malloc and
// is never refused any. A sanitizer brings an operator new of its own.
#include "support/refused_memory.hpp"

#ifndef HOLDFAST_SANITIZED

#include "machines.hpp"
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
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

/// Effects: runs `f` with `many` requests for memory of any thread refused from the first one on, then from the second, and so on; after each,
/// with memory, `then`. Returns: how many there were.
template <class F, class G>
long refuse_each_request(long many, F&& f, G&& then)
{
    return holdfast::test::refuse_each_request(holdfast::test::whose::everybodys, many, f, then);
}

/// How long a member that does not wait for the lock waits: often for what memory ran out for, so it is no patient time.
holdfast::zookeeper::session_options hasty() { return {.session_timeout = 20s, .operation_timeout = 200ms}; }

/// A lock, and a look at its nodes from outside.
struct place {
    explicit place(node_options form) : nodes{form} {}

    [[nodiscard]] bool empty() { return nodes.queueing == queueing::none ? !tree.exists("/locks/orders") : tree.children("/locks/orders").empty(); }

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

/// Effects: tells a machine what happens, `steps` one after the other, with each request for memory refused in each of them.
/// Requires: `step(m, k)` tells `m` the `k`th; from the step `made` on our node is there.
template <class Make, class Step>
void refuse_in_each_step(Make make, Step step, unsigned steps, unsigned made)
{
    unsigned interrupted = 0;
    for (unsigned k = 0; k < steps; ++k)
        for (long n = 0;; ++n) {
            CAPTURE(k, n);
            auto m = make();
            bool struck = false;
            for (unsigned i = 0; i <= k && !struck; ++i) {
                auto const told = step(*m, i);
                if (i == k) refuse(n, 1);
                try {
                    told();
                } catch (std::bad_alloc const&) {
                    spare_all();
                    struck = true;
                    m->machine.interrupt(std::make_error_code(std::errc::not_enough_memory));
                }
                spare_all();
            }
            if (!struck) break;
            ++interrupted;
            CHECK(m->machine.now() == holdfast::zookeeper::acquirer::phase::failed);
            CHECK(m->machine.why() == std::errc::not_enough_memory);
            if (k >= made) CHECK(m->machine.left_something());
            auto const left = m->machine.what_is_left();
            if (m->machine.left_something()) CHECK((left.node.empty() || left.prefix.empty() || left.node.starts_with(left.lock + '/' + left.prefix)));
        }
    CHECK(interrupted > steps);
}

}  // namespace

TEST_CASE("a lock whose memory runs out in any step, once or for a while, leaves no node, and is as good as new when there is memory")
{
    auto const nodes = GENERATE(node_options{}, node_options{.queueing = queueing::none});
    long const many = GENERATE(1, 1000);
    CAPTURE(static_cast<int>(nodes.queueing), many);
    place here{nodes};
    auto zk = connected(here.server.address(), hasty());
    mutex m{zk, "/locks/orders", {.retry = {.most = 20ms}}, nodes};
    CHECK(refuse_each_request(
              many,
              [&] {
                  m.lock();
                  try {
                      std::error_code ec;
                      m.extend(20s, ec);
                  } catch (std::bad_alloc const&) {
                  }
                  m.unlock();
              },
              [&] { REQUIRE(eventually([&] { return here.empty(); }, 5min)); })
          > 10);
    REQUIRE(take(m));
    CHECK(m.lease().still_held());
    m.unlock();
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
    auto zk = connected(here.server.address(), {.session_timeout = 5s, .operation_timeout = 200ms, .on_state = [&](auto) { ++told; }});
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

TEST_CASE("who has the lock cannot be said without memory, and can be with it")
{
    place here{{}};
    auto zk = connected(here.server.address(), hasty());
    mutex m{zk, "/locks/orders"};
    REQUIRE(take(m));
    auto const asking = [&] {
        if (m.contenders().size() != 1) std::abort();
    };
    CHECK(refuse_each_request(1, asking, [&] { REQUIRE(m.lease().still_held()); }) > 3);
    CHECK(eventually([&] {
        try {
            return m.contenders().size() == 1;
        } catch (std::system_error const&) {  // who is hasty may get no answer
            return false;
        }
    }));
    CHECK(m.lease().still_held());
    m.unlock();
}

TEST_CASE("a machine whose memory runs out in any step knows that its node may be there")
{
    namespace zk = holdfast::zookeeper;
    using namespace holdfast::test;
    auto const own = "/a/b/" + node(1, "0000000001");
    auto const all = names({node(7, "0000000003"), node(1, "0000000001")});
    auto const later = names({node(7, "0000000000"), node(1, "0000000001")});
    using queue = driven<zk::queue_machine>;
    auto const make_queue = [] { return std::make_unique<queue>(zk::acquire_plan{.lock = "/a/b", .tokens = counted_tokens()}, zk::naming::curator); };
    using told = std::function<void()>;
    auto const again = [](auto& m) { return told{[&m] { m.machine.connected(1); }}; };
    auto const answer_of = [](auto& m, std::size_t i, reply const& r) {
        if (i == 0) static_cast<void>(m.sent());
        return told{[&m, i, &r] { m.answer_to(i, r); }};
    };
    auto const lost = only(answer::lost);
    auto const made = created(own, 10);
    auto const seen = holdfast::test::stat(10, 1);
    auto const ok = only(answer::ok);
    SECTION("a place in a queue, behind another")
    {
        refuse_in_each_step(make_queue, [&](queue& m, unsigned k) { return k == 0 ? again(m) : k == 1 ? answer_of(m, 0, made) : answer_of(m, 1, later); }, 3, 1);
    }
    SECTION("a place in a queue of which the answer was lost")
    {
        refuse_in_each_step(
            make_queue,
            [&](queue& m, unsigned k) {
                switch (k) {
                case 0:
                case 2: return again(m);
                case 1: return answer_of(m, 0, lost);
                case 3: return answer_of(m, 0, ok);
                case 4: return answer_of(m, 1, all);
                default: return answer_of(m, 0, seen);
                }
            },
            6, 1);
    }
    SECTION("one node of which the answer was lost")
    {
        using plain = driven<zk::plain_machine>;
        auto const ours = holdfast::test::stat(10, 1, " id=" + std::string{counted_tokens()().view()});
        refuse_in_each_step(
            [] { return std::make_unique<plain>(zk::acquire_plan{.lock = "/a/b", .tokens = counted_tokens()}); },
            [&](plain& m, unsigned k) {
                switch (k) {
                case 0:
                case 2: return again(m);
                case 1: return answer_of(m, 0, lost);
                case 3: return answer_of(m, 0, ok);
                default: return answer_of(m, 1, ours);
                }
            },
            5, 1);
    }
}

TEST_CASE("changes of state for which there is no memory leave the last one to be told")
{
    holdfast::zookeeper::state_news news;
    using enum holdfast::zookeeper::session_state;
    spare_all();
    refuse(0, holdfast::test::memory::never);
    for (int i = 0; i < 1000; ++i) news.add(i % 2 == 0 ? connected : suspended);
    news.add(lost);
    spare_all();
    auto last = connected;
    int count = 0;
    for (; !news.empty(); ++count) last = news.take();
    CHECK(last == lost);
    CHECK(count > 10);
}

#endif
