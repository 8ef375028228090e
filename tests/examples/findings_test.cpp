// SPDX-License-Identifier: MIT
//
// What the quickstart makes of its workers' journals: what it must call a failure, and what is the stopped worker's
// alone.
#include "../../examples/quickstart/findings.hpp"

#include "support/catch.hpp"

#include <chrono>
#include <cstdint>
#include <memory>

using namespace std::chrono_literals;
using quickstart::board;
using quickstart::findings;
using quickstart::history;
using quickstart::judge;
using quickstart::section;

namespace {

constexpr unsigned stopped_worker = 7;

quickstart::time_point at(int ms) { return quickstart::time_point{} + 1h + std::chrono::milliseconds{ms}; }

/// A run of one fault, after a quarter of a second.
struct run {
    std::unique_ptr<board> shared = std::make_unique<board>();
    history said{
        .begin = at(0), .end = at(1000), .faults = {{at(250)}}, .stopped_worker = stopped_worker, .stopped = at(100)};

    void add(section const& s)
    {
        auto& journal = shared->journals[s.worker];
        auto const n = journal.count.load();
        journal.sections[n] = s;
        journal.count = n + 1;
    }

    /// A section in good time, of 10 ms, that found `seen` in the counter.
    void good(int begin, std::uint64_t seen, std::uint64_t turn, unsigned worker)
    {
        add({.acquired = at(begin),
             .released = at(begin + 10),
             .lease_end = at(begin + 1000),
             .token = turn,
             .seen = seen,
             .register_turn = turn,
             .worker = worker});
        shared->counter = seen + 1;
    }

    /// A section of the stopped worker, whose lease ended after 50 ms, and who wrote after 200.
    void late(int begin, std::uint64_t seen, std::uint64_t turn)
    {
        add({.acquired = at(begin),
             .released = at(begin + 200),
             .lease_end = at(begin + 50),
             .token = 1,
             .seen = seen,
             .register_turn = turn,
             .late = true,
             .worker = stopped_worker});
    }

    [[nodiscard]] findings judged() const { return judge(*shared, said); }
};

}  // namespace

TEST_CASE("sections one after another, each of which finds what the one before it wrote, are good")
{
    run r;
    for (unsigned i = 0; i < 20; ++i) r.good(static_cast<int>(20 * i), i, i + 1, i % 8);
    auto const f = r.judged();
    CHECK(f.good());
    CHECK(f.lost == 0);
    CHECK(f.late == 0);
    CHECK(f.hand_overs.size() == 19);
    CHECK(f.hand_overs.front() == 10ms);
    CHECK(f.longest_gaps.size() == 1);
    CHECK(f.longest_gaps.front() == 10ms);
}

TEST_CASE("an update that a section in good time wrote over is lost, and a failure")
{
    run r;
    r.good(0, 0, 1, 0);
    r.good(20, 1, 2, 1);
    r.good(40, 1, 3, 2);  // has not seen the second one's
    auto const f = r.judged();
    CHECK(f.lost == 1);
    CHECK(f.lost_to_late == 0);
    CHECK_FALSE(f.good());
}

TEST_CASE("an update that nobody finds at the end is lost, and a failure")
{
    run r;
    r.good(0, 0, 1, 0);
    r.good(20, 1, 2, 1);
    r.shared->counter = 1;
    auto const f = r.judged();
    CHECK(f.lost == 1);
    CHECK_FALSE(f.good());
}

TEST_CASE(
    "what the stopped worker writes over is counted apart, and no failure where its write to the register was refused")
{
    run r;
    r.good(0, 0, 1, 0);
    r.late(100, 1, 0);
    r.good(160, 1, 2, 1);
    r.good(180, 2, 3, 2);
    r.good(310, 2, 4, 3);  // finds what the late one wrote: one and one
    auto const f = r.judged();
    CHECK(f.late == 1);
    CHECK(f.stale_refused == 1);
    CHECK(f.lost == 0);
    CHECK(f.lost_to_late == 1);
    CHECK(f.overlapping == 0);
    CHECK(f.lease_left == 50ms);
    CHECK(f.good());
}

TEST_CASE("a late write that the register takes after one of a later holder is a failure")
{
    run r;
    r.good(0, 0, 1, 0);
    r.late(100, 1, 3);
    r.good(160, 1, 2, 1);
    auto const f = r.judged();
    CHECK(f.stale_accepted == 1);
    CHECK_FALSE(f.good());
}

TEST_CASE("a holder in good time whose write is refused is a failure")
{
    run r;
    r.good(0, 0, 1, 0);
    r.add({.acquired = at(20),
           .released = at(30),
           .lease_end = at(1000),
           .token = 1,
           .seen = 1,
           .register_turn = 0,
           .worker = 1});
    r.shared->counter = 2;
    auto const f = r.judged();
    CHECK(f.good_refused == 1);
    CHECK_FALSE(f.good());
}

TEST_CASE("a hold that begins before another has ended is a failure, but not before the end of a late one")
{
    run r;
    r.good(0, 0, 1, 0);
    r.good(5, 1, 2, 1);
    CHECK(r.judged().overlapping == 1);
    CHECK_FALSE(r.judged().good());

    run s;
    s.late(0, 0, 0);
    s.good(60, 0, 1, 1);  // the lease had ended at 50
    CHECK(s.judged().overlapping == 0);
}

TEST_CASE("a gap belongs to the fault that it follows, and a late section does not end it")
{
    run r;
    r.good(200, 0, 1, 0);
    r.good(240, 1, 2, 1);
    r.late(300, 1, 0);
    r.good(560, 2, 3, 2);
    auto const f = r.judged();
    CHECK(f.quiet_gap == 30ms);
    CHECK(f.longest_gaps.front() == 310ms);
}
