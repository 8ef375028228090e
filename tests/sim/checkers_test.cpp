// SPDX-License-Identifier: MIT
//
// A checker that cannot refuse is no checker: each is shown histories that it must refuse.
#include "sweep/announcements.hpp"
#include "sweep/exclusion.hpp"
#include "sweep/fencing.hpp"
#include "sweep/idleness.hpp"
#include "sweep/linearizability.hpp"
#include "sweep/liveness.hpp"
#include "sweep/min_hold.hpp"
#include "sweep/permit_idleness.hpp"
#include "sweep/permit_limit.hpp"
#include "sweep/phase_fairness.hpp"
#include "sweep/stop_margin.hpp"

#include "support/catch.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

using namespace holdfast;
using namespace std::chrono_literals;
using test::claim;
using test::history;

namespace {

boot_clock::time_point at(boot_clock::duration since_begin) { return boot_clock::time_point{} + since_begin; }

/// A claim that was granted, and released in time.
claim released(unsigned client, boot_clock::duration from, boot_clock::duration to, std::uint64_t fence = 1)
{
    return {.client = client,
            .granted = at(from),
            .valid_until = at(to + 1s),
            .ended = at(to),
            .first_fence = fence,
            .last_fence = fence};
}

/// A claim that nobody ended before its lease did.
claim abandoned(unsigned client, boot_clock::duration from, boot_clock::duration to)
{
    return {.client = client, .granted = at(from), .valid_until = at(to), .first_fence = 1, .last_fence = 1};
}

/// A claim to one of so many permits.
claim permit(claim c, std::size_t permits)
{
    c.permits = permits;
    return c;
}

}  // namespace

TEST_CASE("claims that follow each other exclude each other")
{
    CHECK_FALSE(test::exclusion::breach({}));
    CHECK_FALSE(test::exclusion::breach(
        {released(0, 1ms, 5ms), released(1, 5ms, 9ms), abandoned(2, 10ms, 20ms), released(0, 20ms, 21ms)}));
}

TEST_CASE("claims may be told in any order")
{
    CHECK_FALSE(test::exclusion::breach({released(1, 5ms, 9ms), released(0, 1ms, 5ms)}));
    CHECK(test::exclusion::breach({released(1, 5ms, 9ms), released(0, 1ms, 6ms)}));
}

TEST_CASE("a claim granted before the last one was released is refused")
{
    CHECK(test::exclusion::breach({released(0, 1ms, 5ms), released(1, 5ms - 1ns, 9ms)}));
}

TEST_CASE("a claim granted before the last one's lease ended is refused")
{
    CHECK(test::exclusion::breach({abandoned(0, 1ms, 5ms), released(1, 4ms, 9ms)}));
}

TEST_CASE("a claim within another one is refused, also behind a shorter one")
{
    CHECK(test::exclusion::breach({released(0, 1ms, 50ms), released(1, 2ms, 3ms)}));
    CHECK(test::exclusion::breach(
        {released(0, 1ms, 50ms), released(1, 60ms, 61ms), released(2, 60ms, 70ms), released(3, 65ms, 66ms)}));
}

TEST_CASE("two claims of one client exclude each other, too")
{
    CHECK(test::exclusion::breach({released(0, 1ms, 5ms), released(0, 4ms, 9ms)}));
}

TEST_CASE("shared claims may overlap each other, and nothing else")
{
    auto const shared = [](test::claim one) {
        one.shared = true;
        return one;
    };
    CHECK_FALSE(test::exclusion::breach(
        {shared(released(0, 1ms, 5ms)), shared(released(1, 2ms, 9ms)), released(2, 9ms, 10ms)}));
    CHECK(test::exclusion::breach({shared(released(0, 1ms, 5ms)), released(1, 4ms, 9ms)}));
    CHECK(test::exclusion::breach({released(0, 1ms, 5ms), shared(released(1, 4ms, 9ms))}));
    CHECK(test::exclusion::breach(
        {shared(released(0, 1ms, 20ms)), shared(released(1, 2ms, 3ms)), released(2, 4ms, 9ms)}));
    CHECK(test::exclusion::breach({released(0, 1ms, 20ms), released(1, 20ms, 30ms), shared(released(2, 29ms, 40ms))}));
}

TEST_CASE("a shared fence is greater than those that are not, and they than all")
{
    auto const shared = [](test::claim one) {
        one.shared = true;
        return one;
    };
    CHECK_FALSE(test::fencing::breach({released(0, 1ms, 2ms, 7), shared(released(1, 3ms, 5ms, 9)),
                                       shared(released(2, 4ms, 5ms, 8)), released(0, 5ms, 6ms, 10)}));
    CHECK(test::fencing::breach({released(0, 1ms, 2ms, 7), shared(released(1, 3ms, 4ms, 7))}));
    CHECK(test::fencing::breach(
        {shared(released(1, 3ms, 5ms, 9)), shared(released(2, 4ms, 5ms, 8)), released(0, 5ms, 6ms, 9)}));
}

TEST_CASE("a claim to a lease that was over when it was granted is refused")
{
    CHECK(test::exclusion::breach({abandoned(0, 5ms, 5ms)}));
    CHECK(test::exclusion::breach({abandoned(0, 5ms, 4ms)}));
}

TEST_CASE("fences that rise are in order")
{
    CHECK_FALSE(test::fencing::breach({}));
    CHECK_FALSE(
        test::fencing::breach({released(0, 1ms, 2ms, 7), released(1, 3ms, 4ms, 8), released(0, 5ms, 6ms, 100)}));
}

TEST_CASE("a claim that is granted while one whose lease has ended has time to stop is noticed")
{
    auto lost = abandoned(0, 1ms, 5ms);
    lost.stops_by = at(8ms);
    CHECK_FALSE(test::stop_margin::breach({lost, released(1, 8ms, 9ms)}));
    CHECK(test::stop_margin::breach({lost, released(1, 8ms - 1ns, 9ms)}));
    CHECK(test::stop_margin::breach({released(1, 5ms, 9ms), lost}));
    CHECK_FALSE(test::stop_margin::breach({abandoned(0, 1ms, 5ms), released(1, 5ms, 9ms)}));
    CHECK_FALSE(test::stop_margin::breach({released(1, 0ms, 1ms - 1ns), lost}));
    auto reader = released(1, 6ms, 9ms);
    reader.shared = true;
    CHECK(test::stop_margin::breach({lost, reader}));
    lost.shared = true;
    CHECK_FALSE(test::stop_margin::breach({lost, reader}));
}

TEST_CASE("a claim that is granted before the lock's min_hold is over is noticed")
{
    auto kept = released(0, 1ms, 2ms);
    kept.kept_until = at(8ms);
    CHECK_FALSE(test::min_hold::breach({kept, released(1, 8ms, 9ms)}));
    CHECK(test::min_hold::breach({kept, released(1, 8ms - 1ns, 9ms)}));
    CHECK(test::min_hold::breach({released(1, 3ms, 9ms), kept}));
    CHECK_FALSE(test::min_hold::breach({released(0, 1ms, 2ms), released(1, 2ms, 9ms)}));
}

TEST_CASE("a loss that is not told, or without a warning for which there was time, is noticed")
{
    using test::announcements;
    announcements::loss const told{
        .at = at(100ms), .by_itself = true, .awake_since = at(40ms), .at_risk = at(90ms), .told = at(100ms)};
    CHECK_FALSE(announcements::breach(told, 60ms));
    auto other = told;
    other.told = boot_clock::time_point::max();
    CHECK(announcements::breach(other, 60ms));
    other = told;
    other.at_risk = boot_clock::time_point::max();
    CHECK(announcements::breach(other, 60ms));
    other.at_risk = at(100ms);
    CHECK(announcements::breach(other, 60ms));
    other.awake_since = at(41ms);
    CHECK_FALSE(announcements::breach(other, 60ms));
    other = told;
    other.at_risk = at(100ms);
    other.by_itself = false;
    CHECK_FALSE(announcements::breach(other, 60ms));
}

TEST_CASE("a fence that was granted before is refused")
{
    CHECK(test::fencing::breach({released(0, 1ms, 2ms, 7), released(1, 3ms, 4ms, 7)}));
}

TEST_CASE("a fence below an earlier one is refused, however the history is told")
{
    CHECK(test::fencing::breach({released(0, 1ms, 2ms, 8), released(1, 3ms, 4ms, 7)}));
    CHECK(test::fencing::breach({released(1, 3ms, 4ms, 7), released(0, 1ms, 2ms, 8)}));
}

TEST_CASE("batches of fences that overlap are refused")
{
    auto batch = released(0, 1ms, 2ms, 8);
    batch.last_fence = 40;
    CHECK(test::fencing::breach({batch, released(1, 3ms, 4ms, 40)}));
    CHECK_FALSE(test::fencing::breach({batch, released(1, 3ms, 4ms, 41)}));
}

TEST_CASE("a claim without a fence is refused") { CHECK(test::fencing::breach({released(0, 1ms, 2ms, 0)})); }

TEST_CASE("a lock that lies idle for too long is noticed: at first, between claims, and at last")
{
    history const claims{released(0, 1ms, 5ms), released(1, 6ms, 9ms)};
    CHECK_FALSE(test::idleness::breach(claims, at(0ms), at(10ms), 1ms));
    CHECK(test::idleness::breach(claims, at(0ms), at(10ms), 1ms - 1ns));
    CHECK(test::idleness::breach(claims, at(0ms), at(11ms), 1ms));
    CHECK(test::idleness::breach({released(0, 0ms, 5ms), released(1, 7ms, 10ms)}, at(0ms), at(10ms), 1ms));
    CHECK(test::idleness::breach({}, at(0ms), at(10ms), 9ms));
}

namespace {

enum class mode : bool { alone, together };

/// A claim after a wait from `asked` on.
claim after_wait(unsigned client, mode m, boot_clock::duration asked, boot_clock::duration from,
                 boot_clock::duration to)
{
    auto c = released(client, from, to);
    c.shared = m == mode::together;
    c.asked = at(asked);
    c.waited = c.release_sent = true;
    return c;
}

/// Returns: whether client 9 had to wait too long, from 10 ms until 90 ms.
bool starves(history const& others, mode m, std::size_t passed = 0)
{
    return test::phase_fairness::breach(
               others, {{.client = 9, .shared = m == mode::together, .asked = at(10ms), .over = at(90ms)}},
               {.arrival = 5ms, .turn = 20ms, .passed = passed})
        .has_value();
}

}  // namespace

TEST_CASE("a reader that gets in while a writer waits is noticed, unless it is the turn of readers")
{
    auto const newcomer = after_wait(1, mode::together, 30ms, 40ms, 80ms);
    CHECK(starves({newcomer}, mode::alone));
    CHECK_FALSE(starves({newcomer}, mode::together));
    CHECK_FALSE(starves({after_wait(1, mode::together, 10ms, 14ms, 80ms)}, mode::alone));  // it was not known yet
    CHECK_FALSE(starves({after_wait(1, mode::together, 80ms, 91ms, 95ms)}, mode::alone));
    CHECK_FALSE(starves({after_wait(2, mode::alone, 5ms, 9ms, 30ms), newcomer}, mode::alone));
    CHECK(starves({after_wait(2, mode::alone, 5ms, 9ms, 19ms), newcomer}, mode::alone));
    CHECK(starves({after_wait(2, mode::together, 5ms, 9ms, 30ms), newcomer}, mode::alone));
    auto lost = after_wait(2, mode::alone, 5ms, 9ms, 30ms);
    lost.release_sent = false;
    CHECK(starves({lost, newcomer}, mode::alone));
    auto from_writer = newcomer;
    from_writer.beside = true;
    CHECK_FALSE(starves({from_writer}, mode::alone));
}

TEST_CASE("a writer that passes one that came before it is noticed, unless it is a single attempt")
{
    auto late = after_wait(1, mode::alone, 30ms, 40ms, 80ms);
    CHECK(starves({late}, mode::alone));
    CHECK_FALSE(starves({after_wait(1, mode::alone, 14ms, 40ms, 80ms)}, mode::alone));
    late.waited = false;
    CHECK_FALSE(starves({late}, mode::alone));
}

TEST_CASE("as many may pass one that waits as is said")
{
    history const two{after_wait(1, mode::alone, 30ms, 40ms, 50ms), after_wait(2, mode::alone, 30ms, 60ms, 80ms)};
    CHECK(starves(two, mode::alone, 1));
    CHECK_FALSE(starves(two, mode::alone, 2));
}

TEST_CASE("a second writer that gets the lock while a reader waits is noticed")
{
    auto const second = after_wait(2, mode::alone, 5ms, 60ms, 80ms);
    CHECK(starves({after_wait(1, mode::alone, 5ms, 9ms, 50ms), second}, mode::together));
    CHECK(starves({second, after_wait(1, mode::alone, 5ms, 30ms, 50ms)}, mode::together));
    CHECK_FALSE(starves({second}, mode::together));
    CHECK_FALSE(starves({after_wait(1, mode::alone, 5ms, 9ms, 14ms), second}, mode::together));  // it was not known yet
    CHECK_FALSE(starves({after_wait(1, mode::together, 5ms, 9ms, 50ms), second}, mode::together));
    auto lost = after_wait(1, mode::alone, 5ms, 9ms, 50ms);
    lost.valid_until = lost.ended;
    CHECK_FALSE(starves({lost, second}, mode::together));
    auto from_reader = second;
    from_reader.beside = true;
    CHECK_FALSE(starves({after_wait(1, mode::alone, 5ms, 9ms, 50ms), from_reader}, mode::together));
    auto ends_turn = after_wait(3, mode::alone, 5ms, 52ms, 58ms);  // a reader that became a writer
    ends_turn.beside = true;
    CHECK(starves({after_wait(1, mode::alone, 5ms, 9ms, 50ms), ends_turn, second}, mode::together));
    ends_turn.valid_until = ends_turn.ended;
    CHECK_FALSE(starves({after_wait(1, mode::alone, 5ms, 9ms, 50ms), ends_turn, second}, mode::together));
    auto const earlier = after_wait(2, mode::alone, 5ms, 51ms, 52ms - 1ns);
    CHECK(starves({after_wait(1, mode::alone, 5ms, 9ms, 50ms), earlier, ends_turn}, mode::together));
}

namespace {

using ask = test::call::kind;
using say = test::call::answer;

test::call acquired(unsigned client, std::size_t claim, boot_clock::duration from, boot_clock::duration to,
                    boot_clock::duration until)
{
    return {ask::acquire, say::done, client, claim, at(from), at(to), at(until)};
}
test::call renewed(unsigned client, std::size_t claim, boot_clock::duration from, boot_clock::duration to,
                   boot_clock::duration until)
{
    return {ask::renew, say::done, client, claim, at(from), at(to), at(until)};
}
test::call told(ask what, say answer, unsigned client, std::size_t claim, boot_clock::duration from,
                boot_clock::duration to)
{
    return {what, answer, client, claim, at(from), at(to), {}};
}
test::call never_told(ask what, unsigned client, std::size_t claim, boot_clock::duration from)
{
    return {what, say::unknown, client, claim, at(from)};
}

auto const strict = test::linearizability::rules{};
bool refuses(test::calls const& c, test::linearizability::rules r = strict)
{
    return test::linearizability::breach(c, r).has_value();
}

}  // namespace

TEST_CASE("calls that a mutex could have answered so are linearizable, also where they overlap")
{
    CHECK_FALSE(refuses({}));
    CHECK_FALSE(refuses({acquired(0, 0, 1ms, 2ms, 90ms), told(ask::release, say::done, 0, 0, 5ms, 6ms),
                         acquired(1, 1, 6ms, 7ms, 90ms)}));
    // The second was granted while the first gave it back, and the third while it still tried.
    CHECK_FALSE(refuses({acquired(0, 0, 1ms, 2ms, 90ms), told(ask::release, say::done, 0, 0, 5ms, 9ms),
                         acquired(1, 1, 1ms, 7ms, 90ms)}));
    CHECK_FALSE(refuses({acquired(0, 0, 1ms, 2ms, 5ms), acquired(1, 1, 3ms, 6ms, 90ms),
                         told(ask::renew, say::refused, 0, 0, 3ms, 9ms)}));
}

TEST_CASE("a lock that is granted to two is not linearizable, unless one lease was over")
{
    CHECK(refuses({acquired(0, 0, 1ms, 2ms, 90ms), acquired(1, 1, 3ms, 4ms, 90ms)}));
    CHECK(refuses({acquired(0, 0, 1ms, 2ms, 5ms), acquired(1, 1, 3ms, 5ms - 1ns, 90ms)}));
    CHECK_FALSE(refuses({acquired(0, 0, 1ms, 2ms, 5ms), acquired(1, 1, 3ms, 5ms, 90ms)}));
}

TEST_CASE("a renewal counts: nobody else is granted the lock before the end that it promised")
{
    CHECK(refuses({acquired(0, 0, 1ms, 2ms, 5ms), renewed(0, 0, 3ms, 4ms, 20ms), acquired(1, 1, 6ms, 7ms, 90ms)}));
    CHECK_FALSE(
        refuses({acquired(0, 0, 1ms, 2ms, 5ms), renewed(0, 0, 3ms, 4ms, 20ms), acquired(1, 1, 6ms, 20ms, 90ms)}));
}

TEST_CASE("a lease cannot be renewed that is another's since, or that was given back")
{
    CHECK(refuses({acquired(0, 0, 1ms, 2ms, 5ms), acquired(1, 1, 6ms, 7ms, 90ms), renewed(0, 0, 8ms, 9ms, 30ms)}));
    CHECK(refuses({acquired(0, 0, 1ms, 2ms, 50ms), told(ask::release, say::done, 0, 0, 3ms, 4ms),
                   renewed(0, 0, 5ms, 6ms, 70ms)}));
    // It was over, but nobody had come.
    CHECK_FALSE(refuses({acquired(0, 0, 1ms, 2ms, 5ms), renewed(0, 0, 8ms, 9ms, 30ms)}));
}

TEST_CASE("an owner is not told that the lock is not his before his lease is over, unless servers forget")
{
    CHECK(refuses({acquired(0, 0, 1ms, 2ms, 50ms), told(ask::renew, say::refused, 0, 0, 3ms, 4ms)}));
    CHECK(refuses({acquired(0, 0, 1ms, 2ms, 50ms), told(ask::release, say::refused, 0, 0, 3ms, 4ms)}));
    CHECK_FALSE(refuses({acquired(0, 0, 1ms, 2ms, 50ms), told(ask::release, say::refused, 0, 0, 51ms, 52ms)}));
    test::linearizability::rules const forgetful{.forgetful = true};
    CHECK_FALSE(refuses({acquired(0, 0, 1ms, 2ms, 50ms), told(ask::renew, say::refused, 0, 0, 3ms, 4ms)}, forgetful));
    // What they forgot nobody else can have had before it would have ended.
    CHECK(refuses({acquired(0, 0, 1ms, 2ms, 50ms), told(ask::renew, say::refused, 0, 0, 3ms, 4ms),
                   acquired(1, 1, 5ms, 6ms, 90ms)},
                  forgetful));
}

TEST_CASE("a release that was lost may free the lock at any time since, and not before")
{
    CHECK_FALSE(
        refuses({acquired(0, 0, 1ms, 2ms, 50ms), never_told(ask::release, 0, 0, 5ms), acquired(1, 1, 6ms, 7ms, 90ms)}));
    CHECK_FALSE(refuses({acquired(0, 0, 1ms, 2ms, 50ms), never_told(ask::release, 0, 0, 5ms),
                         told(ask::acquire, say::refused, 1, 1, 30ms, 31ms)}));
    CHECK(
        refuses({acquired(0, 0, 1ms, 2ms, 50ms), acquired(1, 1, 3ms, 4ms, 90ms), never_told(ask::release, 0, 0, 5ms)}));
}

TEST_CASE("nobody is refused a lock that nobody has, wants, or may have taken")
{
    auto const refused = told(ask::acquire, say::refused, 1, 1, 20ms, 21ms);
    CHECK(refuses({refused}));
    CHECK(refuses({acquired(0, 0, 1ms, 2ms, 50ms), told(ask::release, say::done, 0, 0, 3ms, 4ms), refused}));
    CHECK_FALSE(refuses({acquired(0, 0, 1ms, 2ms, 50ms), refused}));
    CHECK_FALSE(refuses({acquired(0, 0, 20ms, 22ms, 50ms), refused}));
    CHECK_FALSE(refuses({never_told(ask::acquire, 0, 0, 1ms), refused}));
    CHECK_FALSE(refuses({refused}, {.ghosts = true}));
}

TEST_CASE("an heir who waits for longer than a dead holder's lease is noticed, and one who is never granted the lock")
{
    auto const dead = abandoned(0, 1ms, 50ms);
    CHECK_FALSE(test::liveness::breach({dead, released(7, 60ms, 61ms)}, 7, at(20ms), at(30ms), 10ms));
    CHECK(test::liveness::breach({dead, released(7, 60ms + 1ns, 61ms)}, 7, at(20ms), at(30ms), 10ms));
    CHECK(test::liveness::breach({dead}, 7, at(20ms), at(30ms), 10ms));
    // Faults went on for longer; or it asked later.
    CHECK_FALSE(test::liveness::breach({dead, released(7, 80ms, 81ms)}, 7, at(20ms), at(70ms), 10ms));
    CHECK_FALSE(test::liveness::breach({dead, released(7, 80ms, 81ms)}, 7, at(70ms), at(30ms), 10ms));
}

TEST_CASE("as many permits may be claimed at a time as there are")
{
    CHECK_FALSE(test::permit_limit::breach({}));
    CHECK_FALSE(test::permit_limit::breach(
        {permit(released(0, 1ms, 9ms), 2), permit(released(1, 2ms, 5ms), 2), permit(released(2, 5ms, 7ms), 2)}));
    CHECK_FALSE(test::permit_limit::breach({permit(released(0, 1ms, 5ms), 2), permit(abandoned(1, 5ms, 9ms), 3)}));
}

TEST_CASE("one permit more than there are is refused, however it ends")
{
    CHECK(test::permit_limit::breach(
        {permit(released(0, 1ms, 9ms), 2), permit(released(1, 2ms, 5ms), 2), permit(released(2, 5ms - 1ns, 7ms), 2)}));
    CHECK(test::permit_limit::breach({permit(abandoned(0, 1ms, 9ms), 1), permit(released(0, 8ms, 20ms), 1)}));
}

TEST_CASE("permits of two numbers at a time are refused")
{
    CHECK(test::permit_limit::breach({permit(released(0, 1ms, 5ms), 3), permit(released(1, 4ms, 9ms), 2)}));
    CHECK(test::permit_limit::breach({permit(released(0, 1ms, 5ms), 2), permit(released(1, 4ms, 9ms), 3)}));
}

TEST_CASE("a permit that is free for long while one waits is refused")
{
    auto const idle = [](history const& claims, test::wait const& one) {
        return test::permit_idleness::breach(claims, {one}, 2, 3ms).has_value();
    };
    history const claims{released(0, 1ms, 9ms), released(1, 2ms, 5ms), released(2, 12ms, 20ms)};
    CHECK_FALSE(idle(claims, {.client = 3, .asked = at(1ms), .over = at(8ms)}));
    CHECK(idle(claims, {.client = 3, .asked = at(1ms), .over = at(8ms + 1ns)}));
    CHECK_FALSE(idle(claims, {.client = 3, .asked = at(5ms), .over = at(8ms)}));
    CHECK_FALSE(idle(claims, {.client = 3, .asked = at(1ms), .over = at(12ms), .permits = 2}));
    CHECK(idle(claims, {.client = 3, .asked = at(21ms), .over = at(25ms)}));
}
