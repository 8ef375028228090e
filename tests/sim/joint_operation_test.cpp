// SPDX-License-Identifier: MIT
//
// Several locks of one simulated server by one request.
#include <holdfast/core/lock_store.hpp>
#include <holdfast/redis/acquire_operation.hpp>
#include <holdfast/redis/joint_operation.hpp>
#include <holdfast/redis/quorum_operation.hpp>
#include <holdfast/sim/call.hpp>
#include <holdfast/sim/transport.hpp>

#include "support/catch.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

using taking = redis::joint_operation;

/// A server and two clients.
struct fixture {
    explicit fixture(std::uint64_t seed = 1) : world{seed}
    {
        way.connect();
        other_way.connect();
        run(2ms);
    }

    sim::world world;
    std::array<sim::clock, 1> clocks{};
    sim::network servers{world, clocks};
    sim::host one{world, 0, {.ahead = 3h}};
    sim::host other{world, 1, {.ahead = 70h}};
    sim::transport way{one, servers, {}};
    sim::transport other_way{other, servers, {}};
    std::array<redis::shared_keys, 3> keys{std::make_shared<redis::lock_keys const>("orders"),
                                           std::make_shared<redis::lock_keys const>("parcels"),
                                           std::make_shared<redis::lock_keys const>("stock")};

    void run(boot_clock::duration d) { world.run_until(world.now() + d); }

    [[nodiscard]] std::vector<acquire_claim> claims() const
    {
        std::vector<acquire_claim> all;
        for (auto const& one_of : keys) all.emplace_back(one_of, acquire_request{.ttl = 300ms, .fences = 3});
        return all;
    }

    /// Returns: how many of the keys are there.
    [[nodiscard]] int held()
    {
        int n = 0;
        for (auto const& one_of : keys) n += servers[0].get(one_of->lock, world.now()) ? 1 : 0;
        return n;
    }

    void release(sim::transport& t, redis::shared_keys const& key, owner_token const& token)
    {
        redis::release_operation giving{t, key};
        giving.bind(token);
        sim::call call{t.client()};
        giving.start(call);
        REQUIRE(call.run_until(t.now() + 1s));
    }
};

}  // namespace

TEST_CASE("several locks of a simulated server are taken all or none")
{
    fixture f;
    taking first{f.way, f.claims()};
    sim::call call{f.one};
    auto const before = f.way.now();
    first.start(call);
    REQUIRE(call.run_until(f.way.now() + 1s));
    REQUIRE_FALSE(first.outcome().code);
    CHECK(f.held() == 3);
    for (std::size_t k = 0; k < f.keys.size(); ++k) {
        CHECK(first.granted(k).fence > 0);
        CHECK(first.granted(k).valid_until <= before + 300ms);
    }
    f.release(f.way, f.keys[0], first.granted(0).token);
    taking second{f.other_way, f.claims()};
    sim::call again{f.other};
    second.start(again);
    REQUIRE(again.run_until(f.other_way.now() + 1s));
    CHECK(second.outcome().code == errc::timed_out);
    CHECK(second.blocker() == 1);
    CHECK(f.held() == 2);
}

TEST_CASE("whenever an attempt at several locks is given up, nothing of it is left")
{
    bool granted = false;
    bool lost = false;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        fixture f{seed};
        f.world.become({.late = 50, .very_late = 200ms, .lost_request = 100, .lost_reply = 100, .cut = 50});
        for (int i = 0; i < 5; ++i) {
            std::optional<taking> attempt{std::in_place, f.way, f.claims()};
            sim::call call{f.one};
            attempt->start(call);
            bool ended = call.run_until(f.way.now() + std::chrono::microseconds{200 * (seed % 20)});
            if (!ended && seed % 2 == 0) {
                attempt->cancel();
                REQUIRE(call.run_until(f.way.now() + 1s));
                ended = true;
            }
            bool const got = ended && !attempt->outcome().code;
            std::vector<grant> grants;
            for (std::size_t k = 0; got && k < f.keys.size(); ++k) grants.push_back(attempt->granted(k));
            attempt.reset();
            if (got && f.way.now() < grants.front().valid_until) CHECK(f.held() == 3);
            for (std::size_t k = 0; k < grants.size(); ++k) f.release(f.way, f.keys[k], grants[k].token);
            granted = granted || got;
            f.run(2s);  // longer than the ttl: what could not be given back has expired
            CHECK(f.held() == 0);
            lost = lost || !got;
        }
    }
    CHECK(granted);
    CHECK(lost);
}
