// SPDX-License-Identifier: MIT
#include <holdfast/sim/node.hpp>

#include "support/catch.hpp"

#include <chrono>
#include <memory>

using namespace holdfast;
using namespace std::chrono_literals;
using kind = redis::answer::kind;
using verb = redis::command::verb;

namespace {

auto const key = std::make_shared<redis::lock_keys const>("orders");
auto const mine = owner_token::from_bits(1, 1);
auto const theirs = owner_token::from_bits(2, 2);

boot_clock::time_point at(boot_clock::duration since_begin) { return boot_clock::time_point{} + since_begin; }

redis::command ask(verb what, owner_token const& token, redis::fence_source fence = redis::fence_source::none)
{
    return {.what = what, .fence = fence, .keys = key, .token = token, .ttl = 100ms, .batch = 1};
}

}  // namespace

TEST_CASE("a node grants a free key, knows its owner again, and refuses another with the time left")
{
    sim::node node;
    CHECK(node.execute(ask(verb::acquire, mine), at(0ms)).what == kind::applied);
    CHECK(node.execute(ask(verb::acquire, mine), at(30ms)).what == kind::applied);
    auto const refused = node.execute(ask(verb::acquire, theirs), at(30ms));
    CHECK(refused.what == kind::refused);
    CHECK_FALSE(refused.error);
    CHECK(refused.time_left == 70ms);
    CHECK(node.grants() == 1);
}

TEST_CASE("a key expires by the node's own clock")
{
    sim::node fast{{.drift_ppm = 10'000}};
    CHECK(fast.execute(ask(verb::acquire, mine), at(0ms)).what == kind::applied);
    CHECK(fast.execute(ask(verb::extend, mine), at(99ms)).what == kind::applied);
    CHECK(fast.execute(ask(verb::acquire, theirs), at(197ms)).what == kind::refused);
    CHECK(fast.execute(ask(verb::extend, mine), at(199ms)).what == kind::refused);
    CHECK(fast.execute(ask(verb::acquire, theirs), at(199ms)).what == kind::applied);
}

TEST_CASE("a node extends, confirms and releases for the owner alone")
{
    sim::node node;
    for (auto const what : {verb::extend, verb::confirm, verb::release})
        CHECK(node.execute(ask(what, mine), at(0ms)).what == kind::refused);
    node.execute(ask(verb::acquire, mine), at(0ms));
    for (auto const what : {verb::extend, verb::confirm, verb::release})
        CHECK(node.execute(ask(what, theirs), at(0ms)).what == kind::refused);
    for (auto const what : {verb::extend, verb::confirm, verb::release})
        CHECK(node.execute(ask(what, mine), at(0ms)).what == kind::applied);
    CHECK_FALSE(node.get("orders", at(0ms)));
}

TEST_CASE("a node gives a lost vote back where nobody has it, and extends one that is there")
{
    sim::node node;
    CHECK(node.execute(ask(verb::reacquire, mine), at(0ms)).what == kind::applied);
    CHECK(node.execute(ask(verb::reacquire, theirs), at(60ms)).what == kind::refused);
    CHECK(node.execute(ask(verb::reacquire, mine), at(60ms)).what == kind::applied);
    CHECK(node.execute(ask(verb::acquire, theirs), at(60ms)).time_left == 100ms);
    CHECK(node.fence(key->fence().text()) == 0);
    CHECK(node.execute(ask(verb::reacquire, theirs), at(160ms)).what == kind::applied);
}

TEST_CASE("a key that another client set without a ttl is held and does not expire")
{
    sim::node node;
    node.set("orders", "somebody", {}, at(0ms));
    auto const refused = node.execute(ask(verb::acquire, mine), at(24h));
    CHECK(refused.what == kind::refused);
    CHECK_FALSE(refused.error);
    CHECK(refused.time_left < 0ms);
}

TEST_CASE("fences by the clock never fall behind it")
{
    sim::node node;
    auto const by_clock = ask(verb::acquire, mine, redis::fence_source::clock);
    auto const first = node.execute(by_clock, at(0ms)).fence;
    CHECK(first == static_cast<std::uint64_t>(node.time(at(0ms)).count()));
    CHECK(node.execute(by_clock, at(0ms)).fence == first + 1);
    node.start(at(1s), sim::node::memory::lost);
    CHECK(node.execute(by_clock, at(1s)).fence == first + 1'000'000);
}

TEST_CASE("fences by count begin at the clock, or at a proposal that is little ahead of it")
{
    auto count = ask(verb::acquire, mine, redis::fence_source::counter);
    auto const clock = static_cast<std::uint64_t>(sim::node{}.time(at(0ms)).count());
    count.max_lead = 500us;
    auto const first_with = [&](std::uint64_t proposal) {
        count.value = proposal;
        return sim::node{}.execute(count, at(0ms)).fence;
    };
    CHECK(first_with(0) == clock + 1);
    CHECK(first_with(clock + 500) == clock + 501);
    CHECK(first_with(clock + 501) == clock + 1);

    count.floor = clock + 1000;
    CHECK(first_with(0) == clock + 1001);
    count.floor = 1;

    sim::node node;
    count.batch = 33;
    CHECK(node.execute(count, at(0ms)).fence == clock + 33);
    CHECK(node.execute(count, at(50ms)).fence == clock + 66);
    auto confirm = ask(verb::confirm, mine, redis::fence_source::counter);
    confirm.value = clock + 1000;
    node.execute(confirm, at(50ms));
    CHECK(node.fence(key->fence().text()) == clock + 1000);
    confirm.value = clock + 999;
    node.execute(confirm, at(50ms));
    CHECK(node.fence(key->fence().text()) == clock + 1000);
}

TEST_CASE("a node knows after a restart what its disk knew")
{
    sim::node node;
    node.execute(ask(verb::acquire, mine), at(0ms));
    node.save();
    node.execute(ask(verb::release, mine), at(1ms));
    CHECK(node.uptime(at(1ms)) > 24h);
    node.stop();
    CHECK_FALSE(node.running());
    node.start(at(2ms), sim::node::memory::kept);
    CHECK_FALSE(node.get("orders", at(2ms)));
    CHECK(node.uptime(at(5ms)) == 3ms);
    node.start(at(6ms), sim::node::memory::saved);
    CHECK(node.get("orders", at(6ms)));
    node.start(at(7ms), sim::node::memory::lost);
    CHECK_FALSE(node.get("orders", at(7ms)));
}

TEST_CASE("a node that forgets that a writer went from its side keeps other readers out for that lease, and no longer")
{
    auto const alone = std::make_shared<redis::lock_keys const>("orders", "", access::exclusive);
    auto const together = std::make_shared<redis::lock_keys const>("orders", "", access::shared);
    auto const of = [](redis::shared_keys const& keys, redis::command c) {
        c.keys = keys;
        return c;
    };
    sim::node node;
    CHECK(node.execute(of(alone, ask(verb::acquire, mine)), at(0ms)).what == kind::applied);
    auto beside = of(together, ask(verb::acquire, theirs));
    beside.beside = mine;
    beside.has_beside = true;
    CHECK(node.execute(beside, at(10ms)).what == kind::applied);
    node.save();
    CHECK(node.execute(of(alone, ask(verb::release, mine)), at(11ms)).what == kind::applied);
    node.start(at(12ms), sim::node::memory::saved);
    auto const another = of(together, ask(verb::acquire, owner_token::from_bits(3, 3)));
    for (auto const now : {40ms, 70ms, 99ms}) {
        CHECK(node.execute(of(together, ask(verb::extend, theirs)), at(now)).what == kind::applied);
        CHECK(node.execute(another, at(now)).what == kind::refused);
    }
    CHECK(node.execute(another, at(100ms)).what == kind::applied);
    CHECK(node.execute(of(together, ask(verb::extend, theirs)), at(130ms)).what == kind::applied);
    CHECK(node.execute(of(alone, ask(verb::acquire, mine)), at(131ms)).what == kind::refused);
}

TEST_CASE("a node that has no memory for a while grants nothing, and still extends and releases")
{
    sim::node node;
    CHECK(node.execute(ask(verb::acquire, mine), at(0ms)).what == kind::applied);
    node.refuse_until(at(10ms), redis::errc::out_of_memory);
    CHECK(node.execute(ask(verb::acquire, theirs), at(9ms)).error == redis::errc::out_of_memory);
    CHECK(node.execute(ask(verb::extend, mine), at(9ms)).what == kind::applied);
    CHECK(node.execute(ask(verb::release, mine), at(9ms)).what == kind::applied);
    CHECK(node.execute(ask(verb::acquire, theirs), at(10ms)).what == kind::applied);
}

TEST_CASE("a node that reads its data does nothing until it has, or is started anew")
{
    sim::node node;
    CHECK(node.execute(ask(verb::acquire, mine), at(0ms)).what == kind::applied);
    node.refuse_until(at(10ms), redis::errc::loading);
    for (auto const what : {verb::acquire, verb::extend, verb::release})
        CHECK(node.execute(ask(what, mine), at(9ms)).error == redis::errc::loading);
    node.start(at(9ms), sim::node::memory::kept);
    CHECK(node.execute(ask(verb::extend, mine), at(9ms)).what == kind::applied);
}

TEST_CASE("a node runs a script that it is named only if it was told the text, and has not forgotten it")
{
    sim::node node;
    auto const by_hash = [&](verb what) {
        return node.execute(ask(what, mine), at(0ms), {}, {.form = redis::script_form::by_hash}).error;
    };
    CHECK(by_hash(verb::acquire) == redis::errc::no_script);
    CHECK(node.execute(ask(verb::acquire, mine), at(0ms)).what == kind::applied);
    CHECK_FALSE(by_hash(verb::acquire));
    CHECK(by_hash(verb::extend) == redis::errc::no_script);
    node.forget_scripts();
    CHECK(by_hash(verb::acquire) == redis::errc::no_script);
}

TEST_CASE("a node does not let a client without the rights use the queue, and lets others")
{
    sim::node node;
    node.refuse_queues(1);
    auto const asks = [&](unsigned client) {
        return node.execute(ask(verb::acquire, mine), at(0ms), {}, {.client = client}).error;
    };
    CHECK(asks(1) == redis::errc::not_permitted);
    CHECK_FALSE(asks(0));
    auto without = ask(verb::acquire, mine);
    without.leave_queue_out();
    CHECK(node.execute(without, at(0ms), {}, {.client = 1}).what == kind::applied);
    node.permit_queues(1);
    CHECK_FALSE(asks(1));
}

TEST_CASE("a node whose clock is set has keys that end sooner or later, and another uptime")
{
    sim::node node;
    node.start(at(0ms), sim::node::memory::lost);
    CHECK(node.execute(ask(verb::acquire, mine), at(0ms)).what == kind::applied);
    node.set_clock(-50ms);
    CHECK(node.execute(ask(verb::acquire, theirs), at(149ms)).what == kind::refused);
    node.set_clock(150ms);
    CHECK(node.uptime(at(149ms)) == 249ms);
    CHECK(node.execute(ask(verb::acquire, theirs), at(149ms)).what == kind::applied);
}
