// SPDX-License-Identifier: MIT
#include "sweep/machine.hpp"
#include "sweep/replay.hpp"
#include "sweep/scenario.hpp"
#include "sweep/shrink.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace holdfast;
using kind = sim::decision::kind;

TEST_CASE("every lock that is shipped is simulated")
{
    std::set<std::string_view> names;
    for (auto const& m : test::machines()) names.insert(m.name);
    CHECK(names == std::set<std::string_view>{"election", "late", "line", "multi", "operators", "redis", "redlock",
                                              "semaphore", "shared", "zookeeper", "zookeeper-election",
                                              "zookeeper-multi", "zookeeper-plain", "zookeeper-semaphore",
                                              "zookeeper-shared"});
}

TEST_CASE("a seed replays to the same trace hash, and another one does not")
{
    for (auto const& m : test::machines()) {
        INFO(m.name);
        std::set<std::uint64_t> hashes;
        for (std::uint64_t seed = 1; seed <= 30; ++seed) {
            auto const first = m.run(seed, {});
            auto const second = m.run(seed, {});
            CHECK(first.hash == second.hash);
            CHECK(first.acquired == second.acquired);
            hashes.insert(first.hash);
        }
        CHECK(hashes.size() == 30);
    }
}

TEST_CASE("being watched, or remembered, does not change what happens")
{
    for (auto const& m : test::machines()) {
        std::uint64_t events = 0;
        auto const watched = m.run(8, {.observer = [&](sim::event const&) { ++events; }, .remember = true});
        CHECK(watched.hash == m.run(8, {}).hash);
        CHECK(events > 100);
        CHECK(watched.decisions.size() > 10);
    }
}

TEST_CASE("a seed with all of its decisions is the seed, and with fewer of them something else")
{
    for (auto const& m : test::machines()) {
        INFO(m.name);
        auto const whole = m.run(11, {.remember = true});
        CHECK(m.run(11, {.keep = whole.decisions}).hash == whole.hash);
        auto const half = std::vector(
            whole.decisions.begin(), whole.decisions.begin() + static_cast<std::ptrdiff_t>(whole.decisions.size() / 2));
        CHECK(m.run(11, {.keep = half}).hash != whole.hash);
        CHECK(m.run(11, {.keep = half}).hash == m.run(11, {.keep = half}).hash);
    }
}

TEST_CASE("what is left out does not change whether the rest comes true")
{
    auto const without_pauses = [](std::vector<sim::decision> all) {
        std::erase_if(all, [](auto const& d) { return d.what == kind::pause; });
        return all;
    };
    std::uint64_t kept = 0;
    std::uint64_t tried = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        auto const some = without_pauses(test::run_schedule(seed, 5, {.remember = true}).decisions);
        tried += some.size();
        kept += test::run_schedule(seed, 5, {.keep = some, .remember = true}).decisions.size();
    }
    CHECK(kept > tried * 3 / 4);
}

TEST_CASE("decisions have names that can be read back")
{
    for (auto const& d : test::run_schedule(3, 5, {.remember = true}).decisions) {
        auto const again = sim::decision::from(d.text());
        REQUIRE(again);
        CHECK(*again == d);
    }
    CHECK(sim::decision{kind::late, 1, 3, 5}.text() == "late.c1.n3.5");
    for (auto const* const wrong :
         {"", "late", "late.c1", "late.c1.n3.", "late.c1.n3.5.6", "soon.c1.n3.5", "late.c999.1", "late.x1.5"})
        CHECK_FALSE(sim::decision::from(wrong));
    CHECK(test::decisions_from("none")->empty());
    CHECK(test::decisions_from("late.c1.n3.5,pause.c2.17")->size() == 2);
    CHECK_FALSE(test::decisions_from("late.c1.n3.5,"));
}

TEST_CASE("a failing list of decisions is cut down to those that it needs")
{
    std::vector<sim::decision> all;
    for (std::uint32_t n = 0; n < 200; ++n) all.push_back({kind::late, 0, 0, n});
    std::size_t trials = 0;
    auto const needs = [&](std::set<std::uint32_t> wanted) {
        return [&trials, wanted](test::shrinking::list const& some) -> std::optional<test::shrinking::list> {
            ++trials;
            auto const has = [&](std::uint32_t n) {
                return std::any_of(some.begin(), some.end(), [n](auto const& d) { return d.number == n; });
            };
            return std::all_of(wanted.begin(), wanted.end(), has) ? std::optional{some} : std::nullopt;
        };
    };
    auto const left = test::shrinking::shortest(all, needs({17, 18, 150}));
    REQUIRE(left.size() == 3);
    CHECK(left[0].number == 17);
    CHECK(left[2].number == 150);
    CHECK(trials < 500);
    CHECK(test::shrinking::shortest(all, needs({})).empty());
    trials = 0;
    CHECK(test::shrinking::shortest(all, needs({17, 18, 150}), 10).size() > 3);
    CHECK(trials == 10);
}

TEST_CASE("a machine that fails is cut down to what it fails by, which fails again")
{
    test::machine const broken{"broken",
                               "cannot bear a pause of the second client",
                               [](std::uint64_t seed, test::run_options const& o) {
                                   auto options = o;
                                   options.remember = true;
                                   auto v = test::run_schedule(seed, 3, options);
                                   for (auto const& d : v.decisions)
                                       if (d.what == kind::pause && d.client == 1) {
                                           v.breaches.push_back({"test", "paused"});
                                           break;
                                       }
                                   return v;
                               },
                               {}};
    std::uint64_t seed = 1;
    while (broken.run(seed, {}).breaches.empty()) ++seed;
    auto const left = test::shortest_failure(broken, seed);
    REQUIRE(left);
    CHECK(left->size() <= 3);  // the client, the pause, and at most what brought it there
    CHECK_FALSE(broken.run(seed, {.keep = *left}).breaches.empty());
    CHECK(broken.run(seed, {.keep = std::vector<sim::decision>{}}).breaches.empty());
    CHECK_FALSE(test::shortest_failure(test::machines().front(), 1));
}
