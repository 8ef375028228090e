// SPDX-License-Identifier: MIT
#include <holdfast/core/lock_store.hpp>
#include <holdfast/redis/acquire_operation.hpp>
#include <holdfast/redis/quorum_operation.hpp>
#include <holdfast/sim/call.hpp>
#include <holdfast/sim/transport.hpp>

#include "support/catch.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

auto const key = std::make_shared<redis::lock_keys const>("orders");

/// Five servers and two clients, and nothing that goes wrong by itself.
struct fixture {
    sim::world world{1};
    std::array<sim::clock, 5> clocks{};
    sim::network servers{world, clocks};
    sim::host one{world, 0, {.ahead = 3h}};
    sim::host other{world, 1, {.ahead = 70h}};
    sim::transport way{one, servers, {.restart_guard = 1s}};
    sim::transport other_way{other, servers, {.restart_guard = 1s}};

    fixture()
    {
        way.connect();
        other_way.connect();
        run(2ms);
    }

    void run(boot_clock::duration d) { world.run_until(world.now() + d); }

    /// Returns: what an acquire on `t` that gives up after `patience` came to.
    static result<grant> acquire(sim::transport& t, boot_clock::duration patience = 50ms)
    {
        redis::acquire_operation operation{t, key, {.ttl = 300ms, .deadline = t.now() + patience}};
        sim::call call{t.client()};
        operation.start(call);
        REQUIRE(call.run_until(t.now() + 1s));
        return operation.outcome();
    }

    /// Gives back what `t` got.
    static void release(sim::transport& t, grant const& got)
    {
        redis::release_operation operation{t, key};
        operation.bind(got.token);
        sim::call call{t.client()};
        operation.start(call);
        REQUIRE(call.run_until(t.now() + 1s));
    }
};

}  // namespace

TEST_CASE("an operation that asks for the same moment again is told again")
{
    struct patient final : redis::running {
        patient(sim::transport& t, boot_clock::time_point when) : way{t}, at{when} {}
        [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return at; }
        void on_time(boot_clock::time_point) noexcept override { ++told == 1 ? way.updated(*this) : way.ended(*this); }

        sim::transport& way;
        boot_clock::time_point at;
        int told = 0;
    };
    fixture f;
    patient operation{f.way, f.way.now() + 10ms};
    sim::call call{f.one};
    {
        std::scoped_lock guard{f.way};
        f.way.begin(operation, call);
        f.way.updated(operation);
    }
    REQUIRE(call.run_until(f.way.now() + 1s));
    CHECK(operation.told == 2);
}

TEST_CASE("a lock is taken, refused to another, and given back over the simulated network")
{
    fixture f;
    auto const got = fixture::acquire(f.way);
    REQUIRE(got);
    CHECK(fixture::acquire(f.other_way).code() == errc::timed_out);
    redis::release_operation release{f.way, key};
    release.bind(got->token);
    sim::call releasing{f.one};
    release.start(releasing);
    REQUIRE(releasing.run_until(f.way.now() + 1s));
    CHECK_FALSE(release.outcome().code);
    auto const next = fixture::acquire(f.other_way);
    REQUIRE(next);
    CHECK(next->fence > got->fence);
}

TEST_CASE("a release that a server did not get is sent to it again by the client itself, after a pause")
{
    fixture f;
    auto const got = fixture::acquire(f.way);
    REQUIRE(got);
    redis::extend_operation extend{f.way, key, got->token, 1h};
    sim::call extending{f.one};
    extend.start(extending);
    REQUIRE(extending.run_until(f.way.now() + 1s));
    f.servers.crash(4, 100ms, sim::node::memory::kept);
    f.run(2ms);
    fixture::release(f.way, *got);
    f.run(400ms);
    CHECK(f.servers[4].get(key->lock, f.world.now()));
    f.run(100ms);
    CHECK_FALSE(f.servers[4].get(key->lock, f.world.now()));
    f.world.run_until(f.world.now() + 1h);  // and then there is nothing left to do
}

TEST_CASE("two of five servers down make no difference, three do")
{
    fixture f;
    f.servers.crash(0, 1h, sim::node::memory::lost);
    f.servers.crash(3, 1h, sim::node::memory::lost);
    f.run(2ms);
    CHECK(fixture::acquire(f.way));
    f.servers.crash(4, 1h, sim::node::memory::lost);
    f.run(1s);
    CHECK(fixture::acquire(f.other_way).code() == errc::unavailable);
}

TEST_CASE("a server that was restarted has no vote until the guard has passed")
{
    fixture f;
    for (unsigned node = 0; node < 3; ++node) f.servers.crash(node, 1ms, sim::node::memory::lost);
    f.run(20ms);
    CHECK(fixture::acquire(f.way).code() == errc::unavailable);
    f.run(1s);
    CHECK(fixture::acquire(f.way));
}

TEST_CASE("a server whose clock is out of line has no vote")
{
    sim::world world{1};
    std::array<sim::clock, 5> clocks{};
    clocks[2].ahead = 1min;
    sim::network servers{world, clocks};
    sim::host client{world, 0, {}};
    sim::transport way{client, servers, {.restart_guard = 1s}};
    way.connect();
    world.run_until(world.now() + 2ms);
    CHECK(way.may_vote(2, way.now()) == redis::errc::clock_out_of_line);
    REQUIRE(fixture::acquire(way));
    CHECK(servers[2].grants() == 0);
    CHECK(servers[1].grants() == 1);
}

TEST_CASE("a clock that a slow greeting showed only roughly is looked at again over the next connection")
{
    sim::world world{1};
    std::array<sim::clock, 5> clocks{};
    sim::network servers{world, clocks};
    sim::host client{world, 0, {}};
    sim::transport way{client, servers, {.connect_timeout = 1s, .restart_guard = 1s}};
    servers.hang(2, 800ms);
    way.connect();
    world.run_until(world.now() + 900ms);
    CHECK_FALSE(way.connected());
    way.connect();
    world.run_until(world.now() + 10ms);
    CHECK(way.connected());
    CHECK_FALSE(way.may_vote(2, way.now()));
}

TEST_CASE("what is for a paused client waits, its clock runs on")
{
    fixture f;
    redis::acquire_operation operation{f.way, key, {.ttl = 300ms, .once = true}};
    sim::call call{f.one};
    operation.start(call);
    f.one.pause(400ms);
    f.run(399ms);
    CHECK_FALSE(call.ended());
    CHECK(f.servers[0].grants() == 1);
    CHECK(fixture::acquire(f.other_way));
    f.run(10ms);
    REQUIRE(call.ended());
    CHECK(operation.outcome().code() == errc::timed_out);
}

TEST_CASE("a reader that a server refuses after the others have let it in is not waited for when readers have a turn")
{
    fixture f;
    auto const make = [](holdfast::access mode) {
        return std::make_shared<redis::lock_keys const>("orders", "", mode);
    };
    redis::command writer{.what = redis::command::verb::acquire,
                          .keys = make(holdfast::access::exclusive),
                          .token = owner_token::fresh(),
                          .ttl = 1s};
    auto& late = f.servers[4];
    REQUIRE(late.execute(writer, f.world.now()).what == quorum::answer::kind::applied);
    f.servers.hang(4, 5ms);

    redis::acquire_operation reader{f.way, make(holdfast::access::shared), {.ttl = 300ms}};
    sim::call call{f.one};
    reader.start(call);
    REQUIRE(call.run_until(f.way.now() + 4ms));
    REQUIRE(reader.outcome());
    f.run(10ms);

    writer.what = redis::command::verb::release;
    REQUIRE(late.execute(writer, f.world.now()).what == quorum::answer::kind::applied);
    writer.what = redis::command::verb::acquire;
    CHECK(late.execute(writer, f.world.now()).what == quorum::answer::kind::applied);
}

TEST_CASE("a waiter that a server refuses after the others have let it in does not stay in the queue there")
{
    fixture f;
    auto const held = fixture::acquire(f.other_way);
    REQUIRE(held);
    REQUIRE(fixture::acquire(f.way).code() == errc::timed_out);  // now the servers can call it
    fixture::release(f.other_way, *held);

    auto& late = f.servers[4];
    late.set(key->lock, "another's", 1s, f.world.now());
    f.servers.hang(4, 5ms);
    redis::acquire_operation operation{f.way, key, {.ttl = 300ms}};
    sim::call call{f.one};
    operation.start(call);
    REQUIRE(call.run_until(f.way.now() + 4ms));
    REQUIRE(operation.outcome());
    f.run(10ms);
    CHECK(late.get(key->lock, f.world.now()) == "another's");
    CHECK(late.waiting(key->lock) == 0);
}

TEST_CASE("a connection that breaks is made again, and the question put again")
{
    fixture f;
    auto const got = fixture::acquire(f.way);
    REQUIRE(got);
    for (unsigned node = 0; node < 5; ++node) f.servers.hang(node, 35ms);
    redis::extend_operation extend{f.way, key, got->token, 300ms};
    sim::call extending{f.one};
    extend.start(extending);
    redis::extend_operation overdue{f.way, key, got->token, 300ms};
    sim::call waiting{f.one};
    overdue.start(waiting);
    f.run(30ms);  // nothing has been answered for more than half of the time that there is
    for (unsigned node = 0; node < 5; ++node) f.way.give_up(node, &overdue);
    CHECK_FALSE(f.way.connected());
    REQUIRE(extending.run_until(f.way.now() + 1s));
    CHECK(extend.outcome());
    CHECK(f.way.connected());
}

TEST_CASE("a late answer to one question does not end a connection that has answered others")
{
    fixture f;
    auto const got = fixture::acquire(f.way);
    REQUIRE(got);
    redis::extend_operation late{f.way, key, got->token, 300ms};
    redis::extend_operation other{f.way, key, got->token, 300ms};
    f.world.become({.shortest_delay = 100us, .longest_delay = 100us});
    sim::call asking{f.one};
    other.start(asking);
    f.run(150us);
    for (unsigned node = 0; node < 5; ++node) f.servers.hang(node, 100ms);
    sim::call waiting{f.one};
    late.start(waiting);  // the answers to the other one are on their way
    f.run(150us);
    REQUIRE(asking.ended());
    CHECK_FALSE(waiting.ended());
    for (unsigned node = 0; node < 5; ++node) f.way.give_up(node, &late);
    CHECK(f.way.connected());
    f.run(150ms);
    CHECK(f.way.connected());
    redis::release_operation release{f.way, key};  // after all of that
    release.bind(got->token);
    sim::call releasing{f.one};
    release.start(releasing);
    REQUIRE(releasing.run_until(f.way.now() + 1s));
    CHECK_FALSE(release.outcome().code);
    for (unsigned node = 0; node < 5; ++node) CHECK_FALSE(f.servers[node].get(key->lock, f.world.now()));
}

namespace {

/// One who waits on the only server for what another holds, and would look again by itself only after a long time.
struct waiting_fixture {
    static constexpr acquire_request patient{.ttl = 1h, .retry = {.first = 1ms, .most = 1h}};

    sim::world world{1};
    std::array<sim::clock, 1> clocks{};
    sim::network servers{world, clocks};
    sim::host one{world, 0, {}};
    sim::host other{world, 1, {}};
    sim::transport way{one, servers, options()};
    sim::transport other_way{other, servers, options()};
    result<grant> held = fixture::acquire(other_way);
    redis::acquire_operation operation{way, key, patient};
    sim::call waiting{one};

    waiting_fixture()
    {
        REQUIRE(held);
        redis::extend_operation extend{other_way, key, held->token, 1h};
        sim::call extending{other};
        extend.start(extending);
        REQUIRE(extending.run_until(other_way.now() + 1s));
        operation.start(waiting);
        run(100ms);
        REQUIRE_FALSE(waiting.ended());
    }

    static sim::transport_options options()
    {
        return {.connect_timeout = 50ms, .restart_guard = 0ms, .longest_ttl = 0ms};
    }

    void run(boot_clock::duration d) { world.run_until(world.now() + d); }

    /// Returns: how long after the lock is given back the other one has it.
    boot_clock::duration handed_over()
    {
        redis::release_operation release{other_way, key};
        release.bind(held->token);
        sim::call releasing{other};
        auto const begun = world.now();
        release.start(releasing);
        REQUIRE(waiting.run_until(way.now() + 2h));
        CHECK(operation.outcome());
        return world.now() - begun;
    }
};

}  // namespace

TEST_CASE("one who waits is told of a release over a connection of its own")
{
    waiting_fixture f;
    CHECK(f.handed_over() < 5ms);
}

TEST_CASE("one whose subscription broke looks by the clock, and subscribes again")
{
    waiting_fixture f;
    f.servers.crash(0, 10ms, sim::node::memory::kept);
    f.run(1s);
    CHECK(f.way.connected());
    f.run(20min);  // it has looked since
    CHECK(f.handed_over() < 5ms);
}
