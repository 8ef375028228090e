// SPDX-License-Identifier: MIT
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/network.hpp>
#include <holdfast/sim/wire.hpp>
#include <holdfast/sim/world.hpp>

#include "support/catch.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace holdfast;
using namespace std::chrono_literals;
using verb = redis::command::verb;

namespace {

using names = std::vector<std::string>;

/// One server, and a client that is connected to it. A message takes a millisecond.
struct fixture {
    sim::world world;
    std::array<sim::clock, 1> clocks{};
    sim::network servers{world, clocks};
    sim::host client{world, 0, {}};
    std::shared_ptr<sim::wire> way = std::make_shared<sim::wire>(client, servers, 0);
    names done{};  ///< what the server has executed

    explicit fixture(std::uint64_t seed = 1, sim::faults wrong = {}) : world{seed, always_a_millisecond(wrong)}
    {
        way->on_cut([] {});
        way->open([](auto const&) {});
        run(10ms);
        world.observe([this](sim::event const& e) {
            for (auto const* const verb : {"acquire", "extend", "release"})
                if (e.what.starts_with(verb)) done.emplace_back(e.what);
        });
    }

    static sim::faults always_a_millisecond(sim::faults f)
    {
        f.shortest_delay = f.longest_delay = 1ms;
        return f;
    }

    void run(boot_clock::duration d) { world.run_until(world.now() + d); }
    void hang(boot_clock::duration d) { servers.hang(0, d); }

    void send(
        verb what, std::function<void(redis::answer const&)> told = [](auto const&) {})
    {
        static auto const key = std::make_shared<redis::lock_keys const>("orders");
        way->send({.what = what, .keys = key, .token = owner_token::from_bits(1, 1), .ttl = 1h, .batch = 1},
                  std::move(told));
    }
};

names const in_order{"acquire: yes, fence", "extend: yes", "release: yes"};

}  // namespace

TEST_CASE("what waits for a server that hangs is not overtaken when the hang becomes longer")
{
    fixture f;
    f.hang(10ms);
    f.send(verb::acquire);
    f.run(5ms);
    f.hang(10ms);
    f.send(verb::extend);
    f.run(6ms);
    f.hang(10ms);
    f.send(verb::release);
    f.run(9ms);
    CHECK(f.done.empty());
    f.run(1ms);
    CHECK(f.done == in_order);
}

TEST_CASE("what arrives just when a hang ends stays behind what waits for that")
{
    fixture f;
    f.hang(5ms);
    f.send(verb::acquire);
    f.client.pause(2ms);
    f.send(verb::extend);
    f.client.pause(2ms);
    f.send(verb::release);
    f.run(5ms);
    CHECK(f.done == in_order);
}

TEST_CASE("of what waits for a server that hangs the last is dropped when the connection breaks")
{
    std::set<std::size_t> arrived;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        fixture f{seed};
        f.hang(10ms);
        for (auto const what : {verb::acquire, verb::extend, verb::release}) f.send(what);
        f.run(5ms);
        f.way->cut();
        f.run(1s);
        REQUIRE(f.done.size() <= in_order.size());
        CHECK(f.done == names(in_order.begin(), in_order.begin() + static_cast<std::ptrdiff_t>(f.done.size())));
        arrived.insert(f.done.size());
    }
    CHECK(arrived == std::set<std::size_t>{0, 1, 2, 3});
}

TEST_CASE("what waits for a server that hangs gets no answer from the one that is started in its place")
{
    fixture f;
    f.hang(10ms);
    f.send(verb::acquire);
    f.run(5ms);
    f.servers.crash(0, 1ms, sim::node::memory::kept);
    f.run(1s);
    CHECK(f.done.empty());
    CHECK(f.servers[0].grants() == 0);
}

TEST_CASE("a request that is repeated comes behind what was sent after it, and waits for a server that hangs")
{
    fixture f{1, {.very_late = 100ms, .repeated_request = 1000}};
    f.send(verb::acquire);
    f.send(verb::release);
    f.run(1ms);
    REQUIRE(f.done == names{"acquire: yes, fence", "release: yes"});
    f.hang(1s);
    f.run(999ms);
    CHECK(f.done.size() == 2);
    f.run(1ms);
    CHECK(f.done.size() == 4);
    CHECK(f.servers[0].grants() == 2);
}

TEST_CASE("a request is executed before its copy, also where both wait for a server whose hang grows longer")
{
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        fixture f{seed, {.very_late = 8ms, .repeated_request = 1000}};
        f.send(verb::acquire);
        f.run(50ms);
        bool released = false;
        f.hang(10ms);
        f.send(verb::release, [&](redis::answer const& a) { released = a.what == redis::answer::kind::applied; });
        f.run(2ms);
        f.hang(30ms);
        f.run(100ms);
        CHECK(released);
    }
}

namespace {

/// One who asked for what is published about a lock, and one that takes it and gives it back.
struct subscribed_fixture : fixture {
    std::shared_ptr<sim::wire> subscription = std::make_shared<sim::wire>(client, servers, 0);
    std::string channel = redis::lock_keys{"orders"}.channel().text();
    int confirmed = 0;
    int told = 0;
    int breaks = 0;

    explicit subscribed_fixture(sim::faults wrong = {}) : fixture{1, wrong}
    {
        subscription->on_cut([this] { ++breaks; });
        subscription->on_message(
            [this](std::string const& of, std::string const&) { told += of == channel ? 1 : 100; });
        subscription->open([](auto const&) {});
        run(10ms);
    }

    void ask(redis::subscriptions::verb what)
    {
        subscription->ask(what, channel, [this] { ++confirmed; });
        run(10ms);
    }

    void release()
    {
        send(verb::acquire);
        send(verb::release);
        run(10ms);
    }
};

using subscription = redis::subscriptions::verb;

}  // namespace

TEST_CASE("a simulated server reports releases from the confirmation on, until the end is confirmed")
{
    subscribed_fixture f;
    f.release();
    CHECK(f.told == 0);
    f.ask(subscription::subscribe);
    CHECK(f.confirmed == 1);
    f.release();
    f.release();
    CHECK(f.told == 2);
    f.ask(subscription::unsubscribe);
    CHECK(f.confirmed == 2);
    f.release();
    CHECK(f.told == 2);
}

TEST_CASE("a report can be lost, and takes its time")
{
    subscribed_fixture f;
    f.ask(subscription::subscribe);
    f.world.become(fixture::always_a_millisecond({.lost_report = 1000}));
    f.release();
    CHECK(f.told == 0);
    f.world.become(fixture::always_a_millisecond({.late = 1000, .very_late = 10s}));
    f.servers.publish(0, f.channel);
    f.run(1ms);
    CHECK(f.told == 0);
    f.run(10s);
    CHECK(f.told == 1);
}

TEST_CASE("the connection of a subscription can break, without a request over it, and reports nothing after that")
{
    subscribed_fixture f;
    f.ask(subscription::subscribe);
    bool const crashes = GENERATE(true, false);
    crashes ? f.servers.crash(0, 1ms, sim::node::memory::kept) : f.subscription->cut();
    f.run(10ms);
    CHECK(f.breaks == 1);
    f.servers.publish(0, f.channel);
    f.run(10ms);
    CHECK(f.told == 0);
}

TEST_CASE("a server that lost a reply on the way to a subscriber reports nothing to it any more")
{
    subscribed_fixture f;
    f.world.become(fixture::always_a_millisecond({.lost_reply = 1000}));
    f.ask(subscription::subscribe);
    f.world.become(fixture::always_a_millisecond({}));
    CHECK(f.confirmed == 0);
    f.release();
    CHECK((f.told == 0 && f.breaks == 0));
}
