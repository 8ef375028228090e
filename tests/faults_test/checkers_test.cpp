// SPDX-License-Identifier: MIT
//
// Every checker is shown histories that it must take, and histories that it must refuse.
#include "history.hpp"

#include "faults/check/announced.hpp"
#include "faults/check/at_once.hpp"
#include "faults/check/counter.hpp"
#include "faults/check/deposed.hpp"
#include "faults/check/exclusion.hpp"
#include "faults/check/fenced_writes.hpp"
#include "faults/check/fencing.hpp"
#include "faults/check/leftovers.hpp"
#include "faults/check/service.hpp"
#include "faults/check/takeover.hpp"
#include "support/catch.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

using namespace holdfast::faults;
using holdfast::test::contains;
using holdfast::test::history;

namespace {

auto of(history const& h) { return h.sorted(); }

}  // namespace

TEST_CASE("K1 takes holds one after the other, however they end")
{
    CHECK(check_exclusion(of(history{}.granted(1, 1, 0, 1, 100).released(1, 1, 50, 52).granted(2, 1, 10, 51, 150)))
              .empty());
    CHECK(check_exclusion(of(history{}.granted(1, 1, 0, 1, 100).granted(2, 1, 10, 100, 150))).empty());
    CHECK(check_exclusion(
              of(history{}.granted(1, 1, 0, 1, 100).add(event::loss_announced, 1, 1, 90).granted(2, 1, 10, 91, 150)))
              .empty());
    CHECK(check_exclusion(of(history{}.granted(1, 1, 0, 1, 100).granted(2, 1, 30, 50, 40)))
              .empty());  // 2 found its lease over
}

TEST_CASE("K1 refuses holds that overlap")
{
    CHECK_FALSE(check_exclusion(of(history{}.granted(1, 1, 0, 1, 100).granted(2, 1, 10, 99, 150))).empty());
    CHECK_FALSE(
        check_exclusion(of(history{}.granted(1, 1, 0, 1, 100).renewed(1, 1, 30, 130).granted(2, 1, 10, 110, 250)))
            .empty());
    CHECK_FALSE(
        check_exclusion(of(history{}.granted(1, 1, 0, 1, 100).granted(2, 1, 10, 60, 150).released(1, 1, 61, 62)))
            .empty());
    CHECK_FALSE(check_exclusion(of(history{}.granted(1, 1, 0, 1, 100).granted(1, 2, 10, 60, 150))).empty());
    // The one that lasts longest is not the last one granted.
    CHECK(check_exclusion(of(history{}.granted(1, 1, 0, 1, 100).granted(2, 1, 10, 20, 30).granted(3, 1, 40, 50, 90)))
              .size() == 2);
}

TEST_CASE("K1 tells locks apart")
{
    auto two = of(history{}.granted(1, 1, 0, 1, 100).granted(2, 1, 10, 60, 150));
    for (auto& r : two) r.lock = r.client;
    CHECK(check_exclusion(two).empty());
}

TEST_CASE("K1 lets shared holds overlap")
{
    auto const readers = history{}.shared(1, 1, 0, 1, 100).shared(2, 1, 10, 50, 150);
    CHECK(check_exclusion(of(readers)).empty());
    auto after = readers;
    CHECK(check_exclusion(of(after.granted(3, 1, 20, 150, 200).shared(1, 2, 110, 200, 300))).empty());
}

TEST_CASE("K1 refuses a hold beside a shared one, and a shared one beside it")
{
    CHECK_FALSE(check_exclusion(of(history{}.shared(1, 1, 0, 1, 100).granted(2, 1, 10, 99, 150))).empty());
    CHECK_FALSE(check_exclusion(of(history{}.granted(1, 1, 0, 1, 100).shared(2, 1, 10, 99, 150))).empty());
    CHECK_FALSE(check_exclusion(of(history{}.shared(1, 1, 0, 1, 50).renewed(1, 1, 30, 130).granted(2, 1, 10, 110, 250)))
                    .empty());
    // The reader that lasts longest is not the last one granted.
    CHECK(check_exclusion(of(history{}.shared(1, 1, 0, 1, 100).shared(2, 1, 5, 6, 20).granted(3, 1, 10, 50, 90)))
              .size() == 1);
    // A writer that lasts longer than a reader is in the way of the next reader.
    CHECK(check_exclusion(of(history{}.granted(1, 1, 0, 1, 100).shared(2, 1, 5, 6, 20).shared(3, 1, 10, 50, 90)))
              .size() == 2);
}

TEST_CASE("K1 lets others share a lock when its holder becomes one of them, and no other have it alone")
{
    auto const reader = history{}.granted(1, 1, 0, 1, 100).add(event::shared_on, 1, 1, 30);
    auto const becomes = history{reader}.released(1, 1, 40, 40).shared(1, 2, 30, 40, 140);
    auto const others = history{becomes}.shared(2, 1, 10, 35, 60);
    CHECK(check_exclusion(of(history{others}.granted(3, 1, 20, 140, 200))).empty());
    CHECK_FALSE(check_exclusion(of(history{becomes}.shared(2, 1, 10, 29, 60))).empty());
    CHECK_FALSE(check_exclusion(of(history{becomes}.granted(2, 1, 10, 35, 37))).empty());  // in between
    CHECK_FALSE(check_exclusion(of(history{becomes}.granted(2, 1, 10, 139, 200))).empty());
    // It is killed before it knows: the lease that it had lasts.
    auto const killed = history{reader}.shared(2, 1, 10, 35, 60);
    CHECK(check_exclusion(of(history{killed}.granted(3, 1, 20, 100, 200))).empty());
    CHECK(check_exclusion(of(history{killed}.granted(3, 1, 20, 99, 200))).size() == 1);
}

TEST_CASE("K1 lets a reader become a writer, and no other have the lock in between")
{
    auto const becomes =
        history{}.shared(1, 1, 0, 1, 100).released(1, 1, 40, 40).granted(1, 2, 30, 40, 140).shared(2, 1, 5, 20, 30);
    CHECK(check_exclusion(of(becomes)).empty());
    CHECK_FALSE(check_exclusion(of(history{becomes}.granted(3, 1, 10, 35, 37))).empty());
    CHECK_FALSE(check_exclusion(of(history{becomes}.shared(3, 1, 10, 41, 60))).empty());
}

TEST_CASE("K1 lets another have a lock that was broken, not one that was not, and not before")
{
    auto const broken = history{}.granted(1, 1, 0, 1, 100).broken(40, 50);
    CHECK(check_exclusion(of(history{broken}.granted(2, 1, 10, 45, 150))).empty());
    CHECK_FALSE(check_exclusion(of(history{broken}.granted(2, 1, 10, 39, 150))).empty());
    // It takes one hold, not the next one, too.
    CHECK_FALSE(check_exclusion(of(history{broken}.granted(2, 1, 10, 45, 150).granted(3, 1, 10, 48, 160))).empty());
    CHECK(check_exclusion(of(history{broken}.granted(2, 1, 10, 45, 150).broken(51, 52).granted(3, 1, 10, 53, 160)))
              .empty());
    // What was over is not taken.
    auto const over = history{}.granted(1, 1, 0, 1, 30).granted(2, 1, 10, 35, 150).broken(40, 50);
    CHECK(check_exclusion(of(history{over}.granted(3, 1, 20, 45, 160))).empty());
}

TEST_CASE("K1 refuses another hold while a lock is kept that was given up")
{
    auto const kept = history{}.granted(1, 1, 0, 1, 100).kept(1, 1, 20, 21, 500);
    CHECK(check_exclusion(of(history{kept}.granted(2, 1, 10, 500, 600))).empty());
    CHECK_FALSE(check_exclusion(of(history{kept}.granted(2, 1, 10, 499, 600))).empty());
}

TEST_CASE("a leader that resigns is deposed before the next one is elected")
{
    auto const term = history{}.granted(1, 1, 1, 1, 100);
    CHECK(check_deposed(of(history{term}.released(1, 1, 50, 60).granted(2, 1, 61, 61, 200))).empty());
    CHECK(check_deposed(of(history{term}.released(1, 1, 50, 62).granted(2, 1, 61, 61, 200))).size() == 1);
    // Its lease was over before it was deposed, or it never was: it was killed, or had stood still.
    CHECK(check_deposed(of(history{term}.released(1, 1, 50, 120).granted(2, 1, 101, 101, 200))).empty());
    CHECK(check_deposed(of(history{term}.add(event::release_begun, 1, 1, 50).granted(2, 1, 101, 101, 200))).empty());
    CHECK(check_deposed(of(history{term}.released(1, 1, 50, 70, release_result::lost).granted(2, 1, 61, 61, 200)))
              .empty());
}

TEST_CASE("K2 takes tokens that increase in real time, and does not compare what overlaps")
{
    CHECK(check_fencing(of(history{}.granted(1, 1, 0, 10, 100, 5).granted(2, 1, 20, 30, 100, 6))).empty());
    CHECK(check_fencing(of(history{}.granted(1, 1, 0, 10, 100, 6).granted(2, 1, 5, 30, 100, 5))).empty());
}

TEST_CASE("K2 refuses tokens that go back, are there twice, or are not there")
{
    CHECK_FALSE(check_fencing(of(history{}.granted(1, 1, 0, 10, 100, 6).granted(2, 1, 20, 30, 100, 5))).empty());
    CHECK_FALSE(check_fencing(of(history{}.granted(1, 1, 0, 10, 100, 6).granted(2, 1, 5, 30, 100, 6))).empty());
    CHECK_FALSE(check_fencing(of(history{}.granted(1, 1, 0, 10, 100, 0))).empty());
    // The greatest before it, not the last one.
    CHECK_FALSE(
        check_fencing(
            of(history{}.granted(1, 1, 0, 10, 100, 9).granted(2, 1, 5, 12, 100, 7).granted(3, 1, 20, 30, 100, 8)))
            .empty());
}

TEST_CASE("K2 does not compare the tokens of shared holds")
{
    CHECK(check_fencing(of(history{}.shared(1, 1, 0, 10, 100, 6).shared(2, 1, 20, 30, 100, 5))).empty());
    CHECK(check_fencing(of(history{}.shared(1, 1, 0, 10, 100, 5).shared(2, 1, 20, 30, 100, 5))).empty());
    CHECK(
        check_fencing(of(history{}.granted(1, 1, 0, 1, 9, 4).shared(2, 1, 10, 11, 20, 5).granted(3, 1, 21, 22, 30, 6)))
            .empty());
}

TEST_CASE("K2 refuses a token that is not greater than those of the other side before it")
{
    for (std::uint64_t const token : {4U, 5U}) {
        CHECK_FALSE(check_fencing(of(history{}.shared(1, 1, 0, 10, 100, 5).granted(2, 1, 20, 30, 100, token))).empty());
        CHECK_FALSE(check_fencing(of(history{}.granted(1, 1, 0, 10, 100, 5).shared(2, 1, 20, 30, 100, token))).empty());
    }
    CHECK_FALSE(check_fencing(of(history{}.shared(1, 1, 0, 10, 100, 0))).empty());
    // The greatest of all readers, and of all writers, not the last one.
    CHECK_FALSE(
        check_fencing(of(history{}.shared(1, 1, 0, 1, 100, 9).shared(2, 1, 0, 2, 100, 7).granted(3, 1, 20, 30, 100, 8)))
            .empty());
    CHECK_FALSE(
        check_fencing(of(history{}.granted(1, 1, 0, 1, 5, 9).shared(2, 1, 6, 7, 100, 10).shared(3, 1, 20, 30, 100, 8)))
            .empty());
}

TEST_CASE("K3 takes a register that refused a stale write, and counts it")
{
    auto const records = of(history{}
                                .granted(1, 1, 0, 1, 50, 1)
                                .granted(2, 1, 10, 60, 150, 2)
                                .add(event::write_taken, 2, 1, 70, 1)
                                .add(event::write_refused, 1, 1, 80));
    auto const k3 = check_fenced_writes(records, 1);
    CHECK(k3.found.empty());
    CHECK(k3.stale_refused == 1);
    CHECK(k3.taken == 1);
}

TEST_CASE(
    "K3 refuses a stale write that was taken, a good one that was refused, and a run in which nothing was refused")
{
    auto const base = history{}.granted(1, 1, 0, 1, 50, 1).granted(2, 1, 10, 60, 150, 2);
    auto stale = base;
    stale.add(event::write_taken, 2, 1, 70, 1).add(event::write_taken, 1, 1, 80, 2);
    CHECK(check_fenced_writes(of(stale)).stale_taken == 1);
    CHECK_FALSE(check_fenced_writes(of(stale)).found.empty());
    auto good = base;
    good.add(event::write_refused, 2, 1, 70);
    CHECK(check_fenced_writes(of(good)).good_refused == 1);
    CHECK_FALSE(check_fenced_writes(of(good)).found.empty());
    CHECK_FALSE(check_fenced_writes(of(base), 1).found.empty());
    // A late write that came before the next holder's is in order.
    auto early = base;
    early.add(event::write_taken, 1, 1, 65, 1).add(event::write_taken, 2, 1, 70, 2);
    CHECK(check_fenced_writes(of(early)).found.empty());
}

TEST_CASE("K3 has readers in any order, and refuses a stale read after a write, and a stale write after a read")
{
    auto const readers = history{}.shared(1, 1, 0, 1, 50, 1).shared(2, 1, 10, 60, 150, 2);
    auto fine = readers;
    fine.add(event::write_taken, 2, 1, 70, 1).add(event::write_taken, 1, 1, 80, 2);
    CHECK(check_fenced_writes(of(fine)).found.empty());
    auto read = history{}.shared(1, 1, 0, 1, 50, 1).granted(2, 1, 10, 60, 150, 2);
    read.add(event::write_taken, 2, 1, 70, 1).add(event::write_taken, 1, 1, 80, 2);
    CHECK(check_fenced_writes(of(read)).stale_taken == 1);
    auto write = history{}.granted(1, 1, 0, 1, 50, 1).shared(2, 1, 10, 60, 150, 2);
    write.add(event::write_taken, 2, 1, 70, 1).add(event::write_taken, 1, 1, 80, 2);
    CHECK(check_fenced_writes(of(write)).stale_taken == 1);
}

TEST_CASE("K4 compares the counter with what was written down")
{
    auto const records = of(history{}.add(event::counter_written, 1, 1, 1).add(event::counter_written, 2, 1, 2));
    CHECK(check_counter(records, 1, 2).empty());
    CHECK_FALSE(check_counter(records, 1, 1).empty());
    CHECK_FALSE(check_counter(records, 1, 3).empty());
    CHECK(check_counter(records, 1, 3, 1).empty());
    CHECK_FALSE(check_counter(records, 1, 4, 1).empty());
    CHECK_FALSE(check_counter(records, 1, 1, 1).empty());
}

TEST_CASE("a counter that was written after the hold says nothing")
{
    auto const in_time = history{}.granted(1, 1, 0, 1, 100).add(event::counter_written, 1, 1, 99);
    CHECK(spoilt_counters(of(in_time)).empty());
    auto const late = history{}.granted(1, 1, 0, 1, 100).add(event::counter_written, 1, 1, 101);
    CHECK(spoilt_counters(of(late)) == std::set<std::uint32_t>{1});
}

TEST_CASE("K6 measures from a death to the next grant")
{
    constexpr std::int64_t ms = 1'000'000;
    auto const h = history{}.granted(1, 1, 0, 1, 100).add(event::killed, 1, 0, 40).granted(2, 1, 10, 120, 300);
    auto const fine = check_takeover(of(h), 80 * ms);
    CHECK(fine.found.empty());
    CHECK(fine.times == std::vector{80 * ms});
    CHECK_FALSE(check_takeover(of(h), 79 * ms).found.empty());
}

TEST_CASE("K6 refuses a lock that nobody gets, and does not look at clients that had none")
{
    constexpr std::int64_t ms = 1'000'000;
    auto const stuck = history{}.granted(1, 1, 0, 1, 100).add(event::killed, 1, 0, 40).refused(2, 1, 10, 500);
    CHECK_FALSE(check_takeover(of(stuck), 300 * ms).found.empty());
    auto const idle =
        history{}.granted(1, 1, 0, 1, 100).released(1, 1, 20, 21).add(event::killed, 1, 0, 40).refused(2, 1, 10, 500);
    CHECK(check_takeover(of(idle), 300 * ms).found.empty());
    CHECK(check_takeover(of(idle), 300 * ms).times.empty());
}

TEST_CASE("K6 measures from the death of a reader to the next writer, and from that of a writer to anybody")
{
    constexpr std::int64_t ms = 1'000'000;
    auto const reader = history{}
                            .shared(1, 1, 0, 1, 100)
                            .add(event::killed, 1, 0, 40)
                            .shared(2, 1, 10, 50, 300)
                            .granted(3, 1, 10, 310, 500);
    CHECK(check_takeover(of(reader), 270 * ms).found.empty());
    CHECK(check_takeover(of(reader), 270 * ms).times == std::vector{270 * ms});
    CHECK_FALSE(check_takeover(of(reader), 269 * ms).found.empty());
    auto const writer = history{}.granted(1, 1, 0, 1, 100).add(event::killed, 1, 0, 40).shared(2, 1, 10, 120, 300);
    CHECK(check_takeover(of(writer), 80 * ms).times == std::vector{80 * ms});
    CHECK_FALSE(check_takeover(of(writer), 79 * ms).found.empty());
    auto stuck = history{}.shared(1, 1, 0, 1, 100).add(event::killed, 1, 0, 40).shared(2, 1, 10, 50, 300);
    CHECK_FALSE(check_takeover(of(stuck.refused(3, 1, 10, 500)), 300 * ms).found.empty());
}

TEST_CASE("K6 measures from a stop to the next grant, too")
{
    constexpr std::int64_t ms = 1'000'000;
    auto const h = history{}
                       .granted(1, 1, 0, 1, 100)
                       .add(event::paused, 1, 0, 40)
                       .granted(2, 1, 10, 120, 300)
                       .add(event::continued, 1, 0, 150)
                       .released(1, 1, 151, 152, release_result::lost);
    CHECK(check_takeover(of(h), 0).times.empty());
    auto const stopped = check_takeover(of(h), 80 * ms, event::paused);
    CHECK(stopped.found.empty());
    CHECK(stopped.times == std::vector{80 * ms});
    CHECK_FALSE(check_takeover(of(h), 79 * ms, event::paused).found.empty());
    auto const idle = history{}
                          .granted(1, 1, 0, 1, 100)
                          .released(1, 1, 20, 21)
                          .add(event::paused, 1, 0, 40)
                          .granted(2, 1, 10, 120, 300);
    CHECK(check_takeover(of(idle), 0, event::paused).times.empty());
}

TEST_CASE("the most holds at a time are counted, not those that came late")
{
    CHECK(most_at_once({}) == 0);
    CHECK(most_at_once(of(history{}.shared(1, 1, 0, 1, 50).shared(2, 1, 0, 50, 60))) == 1);
    CHECK(most_at_once(of(history{}.shared(1, 1, 0, 1, 51).shared(2, 1, 0, 50, 60).shared(3, 1, 0, 52, 60))) == 2);
    CHECK(most_at_once(of(history{}.shared(1, 1, 0, 1, 50).shared(2, 1, 0, 30, 20))) == 1);
}

TEST_CASE("a loss that is announced before the next grant is in order, and so is a release before it")
{
    constexpr std::int64_t ms = 1'000'000;
    auto const announced = check_announced(
        of(history{}.granted(1, 1, 0, 1, 100).add(event::loss_announced, 1, 1, 90).granted(2, 1, 10, 101, 200)), 0);
    CHECK(announced.found.empty());
    CHECK(announced.late == std::vector<std::int64_t>{0});
    auto const released =
        check_announced(of(history{}.granted(1, 1, 0, 1, 100).released(1, 1, 50, 60).granted(2, 1, 10, 55, 200)), 0);
    CHECK(released.found.empty());
    CHECK(released.late.empty());
    // The second one had it before, and heard of that late.
    auto const before =
        check_announced(of(history{}.granted(1, 1, 0, 1, 100).granted(2, 1, 0, 50, 0).released(1, 1, 60, 61)), 0);
    CHECK(before.found.empty());
    CHECK(before.late.empty());
    // How late it may be is for the row to say.
    auto const late = check_announced(
        of(history{}.granted(1, 1, 0, 1, 100).granted(2, 1, 10, 101, 200).add(event::loss_announced, 1, 1, 103)),
        2 * ms);
    CHECK(late.found.empty());
    CHECK(late.late == std::vector<std::int64_t>{2 * ms});
}

TEST_CASE("a holder is told soon that its lock was broken")
{
    constexpr std::int64_t ms = 1'000'000;
    auto const broken = history{}.granted(1, 1, 0, 1, 100).broken(40, 41);
    auto const next = history{broken}.granted(2, 1, 10, 42, 300);
    auto const told = check_announced(of(history{next}.add(event::loss_announced, 1, 1, 60)), 20 * ms);
    CHECK(told.found.empty());
    CHECK(told.late.empty());
    CHECK(told.broken == std::vector<std::int64_t>{20 * ms});
    CHECK_FALSE(check_announced(of(history{next}.add(event::loss_announced, 1, 1, 61)), 20 * ms).found.empty());
    CHECK_FALSE(check_announced(of(history{next}.released(2, 1, 200, 201)), 20 * ms).found.empty());
    CHECK_FALSE(check_announced(of(history{broken}.refused(2, 1, 200, 201)), 20 * ms).found.empty());
    CHECK(check_announced(of(history{broken}.add(event::killed, 1, 0, 50).refused(2, 1, 200, 201)), 0).found.empty());
}

TEST_CASE("a writer that becomes a reader need not tell readers that come then of a loss, but the next writer")
{
    auto const becomes = history{}
                             .granted(1, 1, 0, 1, 100)
                             .add(event::shared_on, 1, 1, 30)
                             .released(1, 1, 40, 40)
                             .shared(1, 2, 30, 40, 140)
                             .shared(2, 1, 10, 35, 60);
    CHECK(check_announced(of(becomes), 0).found.empty());
    CHECK_FALSE(
        check_announced(of(history{becomes}.granted(3, 1, 20, 120, 200).refused(2, 2, 300, 301)), 0).found.empty());
}

TEST_CASE("a loss that is announced after the next grant, or never, is refused")
{
    constexpr std::int64_t ms = 1'000'000;
    auto const overtaken = history{}.granted(1, 1, 0, 1, 100).granted(2, 1, 10, 101, 300);
    auto late = overtaken;
    CHECK_FALSE(check_announced(of(late.add(event::loss_announced, 1, 1, 103)), ms).found.empty());
    auto never_told = overtaken;
    CHECK_FALSE(check_announced(of(never_told.released(2, 1, 200, 201)), 50 * ms).found.empty());
    auto late_release = overtaken;
    CHECK_FALSE(
        check_announced(of(late_release.released(1, 1, 180, 181, release_result::lost)), 50 * ms).found.empty());
    // A reader's, before a writer; not before another reader.
    auto reader = history{}.shared(1, 1, 0, 1, 100).shared(2, 1, 10, 101, 300);
    CHECK(check_announced(of(reader), 50 * ms).found.empty());
    CHECK_FALSE(check_announced(of(reader.released(2, 1, 110, 112).granted(3, 1, 20, 111, 300).refused(4, 1, 150, 250)),
                                50 * ms)
                    .found.empty());
    // The hold in the middle, and that of a lock of its own.
    auto three = history{}
                     .granted(1, 1, 0, 1, 100)
                     .released(1, 1, 10, 11)
                     .granted(2, 1, 5, 12, 110)
                     .granted(3, 1, 20, 115, 300)
                     .released(3, 1, 250, 251);
    CHECK(check_announced(of(three), 50 * ms).found.size() == 1);
}

TEST_CASE("a loss that its holder found, and was not announced before the release, is refused")
{
    auto const lost = history{}.granted(1, 1, 0, 1, 100).add(event::answered, 1, 1, 110, 0);
    auto silent = lost;
    CHECK(check_announced(of(silent.released(1, 1, 120, 121, release_result::lost)), 0).found.size() == 1);
    auto told = lost;
    told.add(event::loss_announced, 1, 1, 111);
    CHECK(check_announced(of(told.released(1, 1, 120, 121, release_result::lost)), 0).found.empty());
    CHECK(check_announced(of(lost), 0).found.empty());  // it waits for the announcement
    auto had = history{}.granted(1, 1, 0, 1, 100).add(event::answered, 1, 1, 50, 1).released(1, 1, 51, 52);
    CHECK(check_announced(of(had), 0).found.empty());
}

TEST_CASE("who was stopped or killed meanwhile need not have announced anything")
{
    constexpr std::uint64_t ms = 1'000'000;
    auto const overtaken = history{}.granted(1, 1, 0, 1, 100).granted(2, 1, 10, 101, 300).released(2, 1, 200, 201);
    auto paused = overtaken;
    CHECK(check_announced(of(paused.add(event::paused, 1, 0, 50).add(event::continued, 1, 0, 150)), 0).found.empty());
    auto killed = overtaken;
    CHECK(check_announced(of(killed.add(event::killed, 1, 0, 50)), 0).found.empty());
    auto noted_late = overtaken;
    CHECK(check_announced(of(noted_late.add(event::killed, 1, 0, 150, 50 * ms)), 0).found.empty());
    auto killed_late = overtaken;
    CHECK_FALSE(check_announced(of(killed_late.add(event::killed, 1, 0, 150, 140 * ms)), 0).found.empty());
    // Somebody else, or at another time.
    auto other = overtaken;
    CHECK_FALSE(
        check_announced(of(other.add(event::paused, 2, 0, 50).add(event::continued, 2, 0, 60)), 0).found.empty());
    auto earlier = history{}
                       .add(event::paused, 1, 0, 1)
                       .add(event::continued, 1, 0, 2)
                       .granted(1, 1, 5, 6, 100)
                       .granted(2, 1, 10, 101, 300);
    CHECK_FALSE(check_announced(of(earlier.released(2, 1, 200, 201)), 0).found.empty());
    auto later = overtaken;
    CHECK_FALSE(
        check_announced(of(later.add(event::paused, 1, 0, 120).add(event::continued, 1, 0, 130)), 0).found.empty());
}

TEST_CASE("the longest wait of a client spans attempts that failed, and ends with its death or the run")
{
    constexpr std::int64_t ms = 1'000'000;
    auto const served = [](history const& h) { return service_of(of(h), 0, 1000 * ms); };
    auto const granted = served(history{}.granted(1, 1, 10, 30, 100).released(1, 1, 40, 41).granted(1, 2, 50, 90, 200));
    CHECK(granted.at(1).grants == 2);
    CHECK(granted.at(1).longest == 40 * ms);
    CHECK(served(history{}.refused(1, 1, 10, 30).granted(1, 2, 31, 90, 200)).at(1).longest == 80 * ms);
    CHECK(served(history{}.refused(1, 1, 10, 30).add(event::killed, 1, 0, 60)).at(1).longest == 50 * ms);
    CHECK(served(history{}.refused(1, 1, 10, 30)).at(1).longest == 990 * ms);
    CHECK(served(history{}.refused(1, 1, 10, 30)).at(1).grants == 0);
}

TEST_CASE("a client does not wait while it is stopped, nor while it has the lock")
{
    constexpr std::int64_t ms = 1'000'000;
    auto const served = [](history const& h) { return service_of(of(h), 0, 1000 * ms); };
    auto const stop = [](history h, std::int64_t from, std::int64_t until) {
        return h.add(event::paused, 1, 0, from).add(event::continued, 1, 0, until);
    };
    CHECK(served(stop(history{}.granted(1, 1, 10, 90, 200), 30, 80)).at(1).longest == 20 * ms);
    CHECK(served(stop(history{}.granted(1, 1, 10, 20, 200), 30, 80)).at(1).longest == 10 * ms);
    CHECK(served(history{}.refused(1, 1, 10, 999).add(event::paused, 1, 0, 30)).at(1).longest == 20 * ms);
}

TEST_CASE("of the waits of a client those count that end in the time asked for")
{
    constexpr std::int64_t ms = 1'000'000;
    auto const records = of(history{}.granted(1, 1, 0, 90, 200).released(1, 1, 91, 92).granted(1, 2, 93, 120, 300));
    CHECK(service_of(records, 0, 100 * ms).at(1).grants == 1);
    CHECK(service_of(records, 0, 100 * ms).at(1).longest == 90 * ms);
    CHECK(service_of(records, 100 * ms, 200 * ms).at(1).grants == 1);
    CHECK(service_of(records, 100 * ms, 200 * ms).at(1).longest == 27 * ms);
}

TEST_CASE("fairness is 1 for equal shares, and 1/n if one of n has everything")
{
    CHECK(fairness({5, 5, 5, 5}) == 1.0);
    CHECK(fairness({0, 20, 0, 0}) == 0.25);
    CHECK(fairness({0, 0}) == 1.0);
}

TEST_CASE("K7 lets fences stay, and a queue if waiters were killed, as long as they expire")
{
    for (auto const w : {waiters::ended, waiters::killed}) {
        CHECK(may_stay("holdfast:fence:{orders}", 1000, w));
        CHECK_FALSE(may_stay("holdfast:fence:{orders}", -1, w));
        CHECK_FALSE(may_stay("orders", 1000, w));
        CHECK_FALSE(may_stay("holdfast:next:{orders}", 50, w));
        CHECK_FALSE(may_stay("holdfast:queue:{orders}", -1, w));
    }
    CHECK(may_stay("holdfast:queue:{orders}", 1000, waiters::killed));
    CHECK_FALSE(may_stay("holdfast:queue:{orders}", 1000, waiters::ended));
    CHECK_FALSE(may_stay("holdfast:phase:{orders}", 1000, waiters::killed));
}

TEST_CASE("K7 refuses keys and channels that are left")
{
    CHECK(check_remains({}).empty());
    CHECK_FALSE(check_remains({.keys = {"orders"}}).empty());
    CHECK_FALSE(check_remains({.channels = 1}).empty());
}

TEST_CASE("K7 sees a descriptor, a thread and memory that are left")
{
    auto const before = own_footprint();
    CHECK(before.descriptors > 2);
    CHECK(before.threads > 0);
    CHECK(check_footprint("this", before, before).empty());

    int const fd = ::dup(0);
    CHECK_FALSE(check_footprint("this", before, own_footprint()).empty());
    ::close(fd);
    CHECK(check_footprint("this", before, own_footprint()).empty());

    {
        std::jthread const rests{[](std::stop_token const& stop) {
            while (!stop.stop_requested()) std::this_thread::yield();
        }};
        CHECK_FALSE(check_footprint("this", before, own_footprint()).empty());
    }
    std::vector<char> much(std::size_t{64} << 20U, 'x');
    CHECK_FALSE(check_footprint("this", before, own_footprint()).empty());
    CHECK(much[1000] == 'x');
}
