// SPDX-License-Identifier: MIT
#include "machines.hpp"

#include <holdfast/redis/fence_upkeep.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::redis::answer;
using holdfast::redis::command;
using holdfast::redis::counts_plainly;
using holdfast::redis::fence_source;
using holdfast::redis::fence_upkeep;
using holdfast::redis::lock_keys;
using holdfast::redis::seeds;
using verb = command::verb;

namespace {

constexpr std::chrono::microseconds clock_at_start = 1'700'000'000s;
constexpr std::chrono::milliseconds hour = 1h;

/// A connection to a server, and a lock that is new to its client.
struct scene {
    scene() { connect(clock_at_start); }

    /// Effects: a connection was made, and has run a script.
    void connect(std::chrono::microseconds clock)
    {
        upkeep.connected(t0, clock);
        static_cast<void>(upkeep.note({.what = verb::release, .keys = keys, .token = {}, .ttl = 30s}, yes(), t0));
    }

    /// Returns: an acquire as it is sent, when the client takes the server's clock for `ahead` ahead of what it was when the connection was made.
    command acquire(std::chrono::microseconds ahead = 1s, std::chrono::microseconds max_lead = 15s)
    {
        command c{.what = verb::acquire, .fence = fence_source::counter, .keys = keys, .token = {}, .ttl = 30s, .batch = 33,
                  .value = static_cast<std::uint64_t>((clock_at_start + ahead).count()), .max_lead = max_lead, .first = true,
                  .floor = static_cast<std::uint64_t>((clock_at_start - 1h).count())};
        upkeep.prepare(c, t0, hour);
        return c;
    }

    bool counts(command const& c, answer a)
    {
        a.kept = !not_kept;
        return upkeep.note(c, a, t0);
    }

    bool not_kept = false;

    std::shared_ptr<lock_keys const> keys = std::make_shared<lock_keys const>("orders", 1);
    fence_upkeep upkeep{0};
};

}  // namespace

TEST_CASE("the first acquire of a lock of several masters goes plainly, and its fence begins with the proposal")
{
    scene s;
    auto const c = s.acquire();
    CHECK(c.what == verb::take);
    CHECK(seeds(c));
    CHECK(counts_plainly(c));
    CHECK_FALSE(c.looks);
    CHECK(s.counts(c, yes(c.value + c.batch)));
}

TEST_CASE("a proposal that is too old for a fence to begin with ends before it begins")
{
    scene s;
    auto const c = s.acquire();
    auto const proposed = std::chrono::microseconds{c.value};
    // A fence that the server has forgotten was used for the last time an hour ago at least, and was no more than the guard, which is twice the
    // lead, ahead of its clock then. Whatever becomes the beginning of a new one, at the latest then, is ahead of it by half an hour.
    auto const forgotten = c.seed_until - hour + 2 * c.max_lead;
    CHECK(proposed > forgotten + hour / 2);
    CHECK(c.seed_until - proposed > 2 * c.max_lead);  // and one that comes in time is taken
    CHECK(c.fence_lifetime >= hour);
}

TEST_CASE("it goes by the script where the proposal is ahead of what the server is known to show by more than the lead")
{
    scene s;
    auto const lead = GENERATE(100ms, 15s);
    CHECK(seeds(s.acquire(lead, lead)));
    s.keys = std::make_shared<lock_keys const>("stock", 1);
    CHECK(s.acquire(lead + 1us, lead).what == verb::acquire);
}

TEST_CASE("the server's clock is asked for again in time for the next proposal")
{
    scene s;
    auto next_name = [&, n = 0]() mutable { s.keys = std::make_shared<lock_keys const>("orders/" + std::to_string(++n), 1); };
    CHECK_FALSE(s.acquire(11s).looks);
    CHECK_FALSE(s.acquire(12s).looks);  // not for the first time
    next_name();
    auto const late = s.acquire(12s);
    CHECK(late.looks);
    auto told = yes(late.value + 33);
    told.clock = clock_at_start + 11s;
    CHECK(s.counts(late, told));
    next_name();
    CHECK_FALSE(s.acquire(12s).looks);
    next_name();
    CHECK(seeds(s.acquire(26s)));
    next_name();
    auto refused = failed(holdfast::redis::errc::read_only);  // it tells its clock all the same
    refused.clock = clock_at_start + 60s;
    s.counts(s.acquire(60s), refused);
    next_name();
    CHECK(seeds(s.acquire(75s)));
}

TEST_CASE("a server of which no clock is known makes fences by the script, and so does one whose clock was known over another connection")
{
    scene s;
    bool const known = GENERATE(false, true);
    s.connect(known ? clock_at_start - 20s : 0s);
    auto const c = s.acquire();
    CHECK(c.what == verb::acquire);
    CHECK(c.looks == known);
}

TEST_CASE("only the first acquire of a lock makes a fence plainly, whatever came of it")
{
    scene s;
    auto const c = s.acquire();
    REQUIRE(seeds(c));
    auto const heard = GENERATE(0, 1, 2, 3);  // nothing; no; an error; that the connection broke
    if (heard == 1) s.counts(c, no());
    if (heard == 2) s.counts(c, failed(holdfast::redis::errc::no_answer));
    if (heard == 3) s.connect(clock_at_start);
    CHECK(s.acquire().what == verb::acquire);
}

TEST_CASE("a lock whose fence was made plainly, and is kept, is taken plainly the next time")
{
    scene s;
    auto const c = s.acquire();
    REQUIRE(seeds(c));
    CHECK(s.counts(c, yes(c.value + c.batch)));
    auto const next = s.acquire();
    CHECK_FALSE(seeds(next));
    CHECK(counts_plainly(next));
}

TEST_CASE("a fence that was gone when it was to be kept does not count")
{
    scene s;
    auto const c = s.acquire();
    REQUIRE(seeds(c));
    s.not_kept = true;
    CHECK_FALSE(s.counts(c, yes(c.value + c.batch)));
}

TEST_CASE("who has made a fence too late, or whose clock stands still, looks at the server's clock before the next one")
{
    scene s;
    auto const c = s.acquire();
    REQUIRE(seeds(c));
    CHECK_FALSE(s.counts(c, yes(c.batch)));
    s.keys = std::make_shared<lock_keys const>("stock", 1);
    auto const next = s.acquire();
    CHECK(next.what == verb::acquire);
    CHECK(next.looks);
    auto told = yes(next.value + 33);
    told.clock = clock_at_start + 1h;
    CHECK(s.counts(next, told));
    s.keys = std::make_shared<lock_keys const>("bikes", 1);
    CHECK(s.acquire().what == verb::acquire);
    s.keys = std::make_shared<lock_keys const>("tyres", 1);
    CHECK(seeds(s.acquire(1h)));
}

TEST_CASE("who may not run scripts is not given a lock that he could not give back")
{
    scene s;
    s.upkeep.connected(t0, clock_at_start);
    CHECK(s.acquire().what == verb::acquire);
    s.keys = std::make_shared<lock_keys const>("stock", 1);
    s.counts(s.acquire(), failed(holdfast::redis::errc::server_error));
    s.keys = std::make_shared<lock_keys const>("bikes", 1);
    auto const c = s.acquire();
    CHECK(c.what == verb::acquire);
    s.counts(c, no());
    s.keys = std::make_shared<lock_keys const>("tyres", 1);
    CHECK(seeds(s.acquire()));
}

TEST_CASE("a fence that is less than it has to be does not count, and the lock is acquired by the script for the same token")
{
    scene s;
    auto c = s.acquire();
    REQUIRE(seeds(c));
    CHECK_FALSE(s.counts(c, yes(c.floor + c.batch - 1)));
    c.what = verb::acquire;
    s.upkeep.prepare(c, t0, hour);
    CHECK(c.what == verb::acquire);
    CHECK_FALSE(seeds(c));
    CHECK(s.counts(c, yes(c.floor + c.batch)));
}

TEST_CASE("a proposal below the floor, none at all, and a guard of hours make no fence plainly")
{
    scene s;
    auto const which = GENERATE(0, 1, 2);
    if (which == 0) CHECK(s.acquire(-1h - 1us).what == verb::acquire);
    if (which == 1) CHECK(s.acquire(-clock_at_start).what == verb::acquire);
    if (which == 2) CHECK(s.acquire(1s, 1h / 2).what == verb::acquire);
}

TEST_CASE("a server that does not know PXAT is not asked for it again, until the next connection")
{
    scene s;
    auto const c = s.acquire();
    REQUIRE(seeds(c));
    auto a = yes(c.batch);
    a.seed_refused = true;
    CHECK_FALSE(s.counts(c, a));
    s.keys = std::make_shared<lock_keys const>("stock", 1);
    CHECK(s.acquire().what == verb::acquire);
    s.connect(clock_at_start);
    s.keys = std::make_shared<lock_keys const>("bikes", 1);
    CHECK(seeds(s.acquire()));
}

TEST_CASE("one master makes its fences by the script, which compares them with the clock")
{
    scene s;
    command c{.what = verb::acquire, .fence = fence_source::clock, .keys = s.keys, .token = {}, .ttl = 30s, .batch = 33, .first = true};
    s.upkeep.prepare(c, t0, hour);
    CHECK(c.what == verb::acquire);
    CHECK_FALSE(c.looks);
}
