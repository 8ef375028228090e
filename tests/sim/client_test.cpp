// SPDX-License-Identifier: MIT
#include "sweep/exclusion.hpp"
#include "sweep/fencing.hpp"
#include "sweep/history.hpp"

#include <holdfast/sim.hpp>

#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/refusal.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

/// Servers, and two clients of them whose clocks are far apart.
struct fixture {
    sim::world world{1};
    sim::store servers;
    sim::client one{servers, {.ahead = 3h}};
    sim::client other{servers, {.ahead = 70h}};

    explicit fixture(unsigned nodes = 5) : servers{world, nodes} {}

    void run(boot_clock::duration d) { world.run_until(world.now() + d); }
};

}  // namespace

TEST_CASE("a simulated lock is taken, refused to another client, and given back")
{
    auto const nodes = GENERATE(1U, 3U, 5U);
    fixture f{nodes};
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    f.one.run([&](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders"};
        co_await orders.async_lock();
        CHECK(orders.lease().still_held());
        first = orders.lease().fencing_token();
        co_await me.sleep_for(1h);
        CHECK(orders.lease().still_held());
        std::error_code ec;
        co_await orders.async_unlock(ec);
        CHECK_FALSE(ec);
        CHECK_FALSE(orders.lease().still_held());
        co_await orders.async_unlock(ec);
        CHECK(ec == errc::not_owner);
    });
    f.other.run([&](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders"};
        co_await me.sleep_for(1s);
        bool held = co_await orders.async_try_lock();
        CHECK_FALSE(held);
        auto const begun = me.host().now();
        held = co_await orders.async_try_lock_for(10min);
        CHECK_FALSE(held);
        CHECK(me.host().now() - begun >= 10min);
        CHECK(me.host().now() - begun < 10min + 1s);
        held = co_await orders.async_lock();
        CHECK(held);
        second = orders.lease().fencing_token();
        co_await orders.async_unlock();
    });
    f.run(2h);
    CHECK(f.one.done());
    CHECK(f.other.done());
    CHECK(first > 0);
    CHECK(second > first);
}

TEST_CASE("a simulated wait or sleep may be for ever, or be over before it begins")
{
    fixture f;
    bool held = false;
    bool awake = false;
    f.one.run([&](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders"};
        co_await orders.async_lock();
        co_await me.sleep_for(1h);
        co_await orders.async_unlock();
    });
    f.other.run([&](sim::client& me) -> sim::process {
        co_await me.sleep_for(1s);
        co_await me.sleep_for(-1h);
        sim::mutex orders{me, "orders"};
        held = co_await orders.async_try_lock_for(-1h);
        CHECK_FALSE(held);
        held = co_await orders.async_try_lock_for(std::chrono::hours::max());
        co_await me.sleep_for(std::chrono::hours::max());
        awake = true;
    });
    f.run(2h);
    CHECK(held);
    CHECK_FALSE(awake);
}

TEST_CASE("a simulated lease that is not renewed is lost, announced before another is granted it")
{
    fixture f;
    boot_clock::time_point lost_at{};
    boot_clock::time_point granted_at{};
    f.one.run([&](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders", {.ttl = 10s, .renew = false}};
        co_await orders.async_lock();
        std::stop_callback const when_lost{orders.lease().lost_token(), [&] { lost_at = f.world.now(); }};
        co_await me.sleep_for(1min);
        CHECK_FALSE(orders.lease().still_held());
        std::error_code ec;
        co_await orders.async_unlock(ec);
        CHECK(ec == errc::lease_lost);
    });
    f.other.run([&](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders"};
        co_await me.sleep_for(1s);
        co_await orders.async_lock();
        granted_at = f.world.now();
        co_await me.sleep_for(2min);
        CHECK(orders.lease().still_held());
    });
    f.run(5min);
    CHECK(f.one.done());
    CHECK(f.other.done());
    CHECK(lost_at > boot_clock::time_point{} + 9s);
    CHECK(granted_at > lost_at);
    CHECK(granted_at < lost_at + 2s);
}

TEST_CASE("a simulated lease whose renewal fails is at risk until it is renewed")
{
    auto const nodes = GENERATE(1U, 5U);
    fixture f{nodes};
    f.one.run([&](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders", {.ttl = 30s}};
        co_await orders.async_lock();
        auto const hold = orders.lease();
        auto const risk = hold.at_risk();
        int told = 0;
        std::stop_callback const when_told{risk, [&] { ++told; }};
        for (unsigned node = 0; node <= nodes / 2; ++node) f.servers.crash(node, 16s, sim::node::memory::kept);
        co_await me.sleep_for(9s);
        CHECK_FALSE(risk.stop_requested());
        co_await me.sleep_for(4s);
        CHECK(hold.still_held());
        CHECK(told == 1);
        CHECK(hold.at_risk().stop_requested());
        co_await me.sleep_for(12s);
        CHECK(hold.still_held());
        CHECK_FALSE(hold.at_risk().stop_requested());
        CHECK(told == 1);
        CHECK_FALSE(hold.lost_token().stop_requested());
        co_await orders.async_unlock();
    });
    f.run(1min);
    CHECK(f.one.done());
}

TEST_CASE("a simulated holder that stood still finds its lease lost on the first question")
{
    fixture f;
    bool asked = false;
    f.one.run([&](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders", {.ttl = 10s}};
        co_await orders.async_lock();
        me.host().pause(1min);
        CHECK_FALSE(orders.lease().still_held());
        asked = true;
    });
    f.other.run([&](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders"};
        co_await me.sleep_for(1s);
        bool const held = co_await orders.async_try_lock_for(15s);
        CHECK(held);
    });
    f.run(2min);
    CHECK(asked);
    CHECK(f.one.done());
    CHECK(f.other.done());
}

TEST_CASE("the release of a simulated lease that its server forgot says that it is lost, and announces that")
{
    fixture f{1};
    f.one.run([&](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders", {.ttl = 10s, .renew = false}};
        co_await orders.async_lock();
        auto const hold = orders.lease();
        auto const lost = hold.lost_token();
        f.servers.crash(0, 10ms, sim::node::memory::lost);
        co_await me.sleep_for(2s);
        CHECK(hold.still_held());
        CHECK_FALSE(lost.stop_requested());
        std::error_code ec;
        co_await orders.async_unlock(ec);
        CHECK(ec == errc::lease_lost);
        CHECK(lost.stop_requested());
    });
    f.run(1min);
    CHECK(f.one.done());
}

TEST_CASE("a simulated holder that stood still and then unlocks has its loss announced")
{
    fixture f;
    f.one.run([&](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders", {.ttl = 10s}};
        co_await orders.async_lock();
        auto const lost = orders.lease().lost_token();
        me.host().pause(1min);
        std::error_code ec;
        co_await orders.async_unlock(ec);
        CHECK(ec == errc::lease_lost);
        CHECK(lost.stop_requested());
    });
    f.run(2min);
    CHECK(f.one.done());
}

TEST_CASE("a simulated client that dies leaves its lock for no longer than the ttl")
{
    fixture f;
    bool got = false;
    f.one.run([&](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders", {.ttl = 10s}};
        co_await orders.async_lock();
        me.host().pause(24h);
    });
    f.other.run([&](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders"};
        co_await me.sleep_for(1s);
        got = co_await orders.async_try_lock_for(12s);
    });
    f.run(1min);
    CHECK(got);
}

TEST_CASE("with three of five simulated masters down a lock throws, also through those that wait for its process")
{
    fixture f;
    for (unsigned node = 0; node < 3; ++node) f.servers.crash(node, 24h, sim::node::memory::kept);
    std::optional<std::error_code> why;
    auto const take = [](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders", {.unavailable_after = 5s}};
        co_await orders.async_lock();
    };
    f.one.run([&](sim::client& me) -> sim::process {
        try {
            co_await take(me);
        } catch (error const& e) {
            why = e.code();
        }
    });
    f.run(4s);
    CHECK_FALSE(why);
    f.run(4s);
    REQUIRE(why);
    CHECK(*why == errc::unavailable);
}

TEST_CASE("a simulated lock that is destroyed is given back")
{
    fixture f;
    f.one.run([&](sim::client& me) -> sim::process {
        sim::mutex orders{me, "orders"};
        co_await orders.async_lock();
    });
    f.run(1s);
    CHECK(f.one.done());
    for (unsigned node = 0; node < 5; ++node) CHECK_FALSE(f.servers[node].get("orders", f.world.now()));
}

TEST_CASE("a simulated client may be destroyed while a lease is renewed whose lock outlives that coroutine")
{
    sim::world world{1};
    sim::store servers{world, 5};
    servers.options.node_timeout = 3s;
    std::optional<sim::client> one{std::in_place, servers};
    std::shared_ptr<sim::mutex> shared;
    bool held = false;
    one->run([&](sim::client& me) -> sim::process {
        shared = std::make_shared<sim::mutex>(me, "orders", lock_options{.ttl = 30s});
        held = co_await shared->async_lock();
    });
    world.run_until(world.now() + 1s);
    REQUIRE(held);
    one->run([&](sim::client& me) -> sim::process {  // its coroutine ends after that of the renewals
        auto const mine = std::move(shared);
        co_await me.sleep_for(1h);
    });
    for (unsigned node = 0; node < 5; ++node) servers.hang(node, 1h);
    world.run_until(world.now() + 10s);  // a renewal is under way
    one.reset();
    CHECK_FALSE(shared);
}

TEST_CASE("every clock that a simulated client reads is that of its computer")
{
    fixture f;
    auto const before = std::chrono::steady_clock::now();
    f.one.run([](sim::client& me) -> sim::process {
        auto const steady = std::chrono::steady_clock::now();
        auto const system = std::chrono::system_clock::now();
        auto const boot = boot_clock::now();
        me.host().set_wall_clock(24h);
        co_await me.sleep_for(1h);
        CHECK(std::chrono::steady_clock::now() - steady == 1h);
        CHECK(std::chrono::system_clock::now() - system == 25h);
        CHECK(boot_clock::now() - boot == 1h);
    });
    f.run(2h);
    CHECK(f.one.done());
    CHECK(std::chrono::steady_clock::now() - before < 10min);
}

TEST_CASE("a simulated lock says what of its name and options cannot be")
{
    sim::world world{1};
    sim::store five{world, 5};
    sim::client one{five};
    CHECK(test::code_of([&] { sim::mutex{one, ""}; }) == errc::misconfigured);
    CHECK(test::code_of([&] { sim::mutex{one, "orders", {.ttl = 50ms}}; }) == errc::misconfigured);
    CHECK(test::code_of([&] { sim::mutex{one, "orders", {.ttl = 2min}}; }) == errc::misconfigured);
    CHECK(test::code_of([&] { sim::mutex{one, "holdfast:orders"}; }) == errc::misconfigured);
    CHECK(test::refusal([&] { sim::mutex{one, "orders", {.ttl = 2min}}; }, &error::lock_name) == "orders");
}

TEST_CASE("a simulated client says that a restart guard does not cover the longest ttl")
{
    sim::world world{1};
    sim::store masters{world, 5};
    masters.options.restart_guard = 30s;
    CHECK_THAT(test::refusal([&] { sim::client{masters}; }), test::contains("longest_ttl is 60000 ms"));
    masters.options.longest_ttl = 30s;
    CHECK_FALSE(test::code_of([&] { sim::client{masters}; }));
}

TEST_CASE("a simulated message takes the shortest time if the longest is less")
{
    sim::world world{1, {.shortest_delay = 1ms}};
    for (int i = 0; i < 100; ++i) CHECK(world.delay(0, 0) == 1ms);
}

TEST_CASE("time goes on in a simulated world that is disturbed without a pause")
{
    sim::world world{1};
    sim::store servers{world, 5};
    servers.disturb(world.now() + 1s, 0s, 10ms);
    servers.disturb(world.now() + 1s, -1s, 10ms);
    world.run_until(world.now() + 2s);
    CHECK(world.happened()[sim::decision::kind::crash] > 100);
    CHECK(world.happened()[sim::decision::kind::crash] < 4000);
}

namespace {

struct outcome {
    test::history claims;
    std::uint64_t hash = 0;
    std::uint64_t faults = 0;
};

enum class server_memory { sound, lost };

/// What came of ten minutes in which much goes wrong; if memory is lost, also what a lock on one server cannot stand.
outcome disturbed(std::uint64_t seed, unsigned nodes, server_memory m = server_memory::sound)
{
    sim::world world{seed,
                     {.late = 20,
                      .very_late = 15s,
                      .lost_request = 5,
                      .lost_reply = 5,
                      .repeated_request = 5,
                      .cut = 5,
                      .lost_report = 100,
                      .pause = 5,
                      .longest_pause = 15s}};
    sim::store servers{world, nodes};
    std::deque<sim::client> clients;
    outcome o;
    for (unsigned i = 0; i < 4; ++i) {
        clients.emplace_back(servers, sim::clock{.ahead = i * 1h, .drift_ppm = std::int64_t{i} * 1000});
        clients.back().run([&](sim::client& me) -> sim::process {
            sim::mutex orders{me, "orders", {.ttl = 10s, .renew = me.host().index() != 3}};
            for (;;) {
                try {
                    if (!co_await orders.async_try_lock_for(30s)) continue;
                } catch (error const& e) {
                    CHECK(e.code() == errc::unavailable);
                    continue;
                }
                auto const hold = orders.lease();
                if (!hold.still_held()) {  // it stood still between the answer and here
                    co_await orders.async_unlock();
                    continue;
                }
                o.claims.push_back({.client = me.host().index(),
                                    .granted = me.host().present(),
                                    .valid_until = me.host().when(hold.expires_at()),
                                    .first_fence = hold.fencing_token(),
                                    .last_fence = hold.fencing_token()});
                auto const mine = o.claims.size() - 1;
                for (auto left = me.host().below(20); left > 0 && hold.still_held(); --left) {
                    o.claims[mine].valid_until = me.host().when(hold.expires_at());
                    co_await me.sleep_for(1s);
                }
                o.claims[mine].ended = me.host().present();
                co_await orders.async_unlock();
                co_await me.sleep_for(1s);
            }
        });
    }
    servers.disturb(world.now() + 10min, 1min, 30s);
    for (auto t = 1min; m == server_memory::lost && t < 10min; t += 1min)
        world.at(world.now() + t, [&servers] { servers.crash(0, 10ms, sim::node::memory::lost); });
    world.run_until(world.now() + 10min);
    o.hash = world.hash();
    for (auto const n : world.happened().of) o.faults += n;
    return o;
}

}  // namespace

TEST_CASE("holders of a simulated lock exclude each other and have greater and greater tokens, whatever goes wrong")
{
    auto const nodes = GENERATE(1U, 5U);
    std::size_t claims = 0;
    std::uint64_t faults = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        INFO("seed " << seed);
        auto const o = disturbed(seed, nodes);
        claims += o.claims.size();
        faults += o.faults;
        CHECK(test::exclusion::breach(o.claims).value_or("") == "");
        CHECK(test::fencing::breach(o.claims).value_or("") == "");
    }
    CHECK(claims > 1000);
    CHECK(faults > 1000);
}

TEST_CASE("holders of a simulated lock do not exclude each other on one server that forgets them")
{
    unsigned breaches = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed)
        if (test::exclusion::breach(disturbed(seed, 1, server_memory::lost).claims)) ++breaches;
    CHECK(breaches > 0);
}

TEST_CASE("a seed of one's own code replays to the same trace hash, and another one does not")
{
    std::set<std::uint64_t> hashes;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        auto const hash = disturbed(seed, 5).hash;
        CHECK(hash == disturbed(seed, 5).hash);
        hashes.insert(hash);
    }
    CHECK(hashes.size() == 10);
}

TEST_CASE("a master whose clock is set far ahead keeps no client that is connected to it from a name")
{
    fixture f{3};
    f.servers.options.restart_guard = f.servers.options.longest_ttl = 1min;
    sim::faults far;
    far.far = 2;  // so the one whose clock is set is always among the first that grant a lock
    far.farther = 5ms;
    f.world.become(far);
    unsigned held = 0;
    std::set<std::string> errors;
    f.one.run([&](sim::client& me) -> sim::process {
        for (int i = 0; i < 21; ++i) {
            sim::mutex orders{me, "orders/" + std::to_string(i), {.ttl = 10s}};
            try {
                if (co_await orders.async_try_lock_for(5s)) ++held;
            } catch (error const& e) {
                errors.insert(e.what());
            }
            std::error_code ec;
            co_await orders.async_unlock(ec);
            if (i > 0) continue;
            co_await me.sleep_for(1min);  // until the clocks are no longer known just so
            f.servers[0].set_clock(10min);
        }
    });
    f.run(10min);
    CHECK(held == 21);
    CHECK(errors == std::set<std::string>{});
}
