// SPDX-License-Identifier: MIT
#include "history.hpp"

#include "faults/check/linearizable.hpp"
#include "support/catch.hpp"

using namespace holdfast::faults;
using holdfast::test::history;

namespace {

auto check(history const& h, refused_by whom = refused_by::holder, std::int64_t ttl = 0)
{
    return check_linearizable(h.sorted(), whom, ttl);
}

}  // namespace

TEST_CASE("K5 takes a mutex whose operations overlap in time")
{
    CHECK(check(history{}).empty());
    CHECK(check(history{}.granted(1, 1, 0, 10, 100).released(1, 1, 20, 40).granted(2, 1, 5, 25, 120))
              .empty());  // 1 was free before it heard
    CHECK(check(history{}
                    .granted(1, 1, 0, 10, 100)
                    .released(1, 1, 20, 40)
                    .granted(2, 1, 5, 25, 120)
                    .released(2, 1, 26, 30)
                    .granted(3, 1, 1, 27, 200))
              .empty());
}

TEST_CASE("K5 refuses two owners")
{
    CHECK_FALSE(check(history{}.granted(1, 1, 0, 10, 100).released(1, 1, 20, 40).granted(2, 1, 5, 19, 120)).empty());
    CHECK_FALSE(check(history{}.granted(1, 1, 0, 10, 100).granted(2, 1, 5, 50, 120)).empty());
    CHECK_FALSE(check(history{}.granted(1, 1, 0, 10, 100).granted(1, 2, 15, 50, 120)).empty());
}

TEST_CASE("K5 knows that leases expire")
{
    CHECK(check(history{}.granted(1, 1, 0, 10, 100).granted(2, 1, 5, 101, 220)).empty());
    CHECK(check(history{}.granted(1, 1, 0, 10, 100).add(event::loss_announced, 1, 1, 60).granted(2, 1, 5, 61, 220))
              .empty());
    CHECK(check(history{}
                    .granted(1, 1, 0, 10, 100)
                    .granted(2, 1, 5, 101, 220)
                    .released(1, 1, 150, 160, release_result::lost))
              .empty());
    CHECK_FALSE(check(history{}.granted(1, 1, 0, 10, 100).renewed(1, 1, 50, 160).granted(2, 1, 5, 101, 220)).empty());
}

TEST_CASE("K5 does not know when one that was stopped before it heard of its grant had the lock")
{
    // The second one had it first, until 15.
    auto const stopped = history{}.granted(1, 1, 0, 20, 150).granted(2, 1, 1, 60, 15);
    auto released = stopped;
    CHECK(check(released.released(1, 1, 100, 101)).empty());
    auto twice = stopped;
    CHECK_FALSE(check(twice.granted(3, 1, 70, 80, 250).released(1, 1, 100, 101)).empty());
}

TEST_CASE("K5 knows that a release may take from some masters what others had forgotten")
{
    auto const forgotten = [](std::int64_t rival) {
        return history{}
            .granted(1, 1, 0, 10, 100)
            .released(1, 1, 50, 70, release_result::lost)
            .granted(2, 1, 40, rival, 220);
    };
    CHECK(check(forgotten(60), refused_by::holder_or_contender).empty());
    CHECK_FALSE(check(forgotten(49), refused_by::holder_or_contender).empty());
    CHECK_FALSE(check(forgotten(60), refused_by::holder).empty());  // one server has it, or not
}

TEST_CASE("K5 refuses a release that claims to have freed what another already had")
{
    // K1 has nothing against it: the first lease was over.
    CHECK_FALSE(check(history{}.granted(1, 1, 0, 10, 100).granted(2, 1, 5, 110, 220).released(1, 1, 150, 160)).empty());
}

TEST_CASE("K5 leaves unknown outcomes open")
{
    auto const unknown = history{}.add(event::acquire_begun, 1, 1, 0).add(event::acquire_unknown, 1, 1, 20);
    auto granted = unknown;
    CHECK(check(granted.granted(2, 1, 5, 10, 100)).empty());
    auto refused = unknown;
    CHECK(check(refused.refused(2, 1, 30, 40)).empty());
    CHECK(check(history{}
                    .granted(1, 1, 0, 10, 500)
                    .released(1, 1, 20, 30, release_result::unknown)
                    .granted(2, 1, 15, 21, 300))
              .empty());
    CHECK(
        check(history{}.granted(1, 1, 0, 10, 500).released(1, 1, 20, 30, release_result::unknown).refused(2, 1, 40, 50))
            .empty());
}

TEST_CASE("K5 refuses a refusal when nobody can have had the lock")
{
    CHECK_FALSE(check(history{}.refused(1, 1, 0, 10)).empty());
    CHECK_FALSE(check(history{}.granted(1, 1, 0, 10, 100).released(1, 1, 20, 40).refused(2, 1, 41, 50)).empty());
    CHECK_FALSE(check(history{}.refused(2, 1, 0, 5).granted(1, 1, 6, 10, 100)).empty());
    CHECK(check(history{}.granted(1, 1, 0, 10, 100).released(1, 1, 20, 40).refused(2, 1, 39, 50)).empty());
    // What has expired may be gone, or may not.
    CHECK(check(history{}.granted(1, 1, 0, 10, 100).refused(2, 1, 150, 160)).empty());
    CHECK_FALSE(check(history{}
                          .granted(1, 1, 0, 10, 100)
                          .granted(2, 1, 120, 130, 300)
                          .released(2, 1, 135, 140)
                          .refused(3, 1, 150, 160))
                    .empty());
}

TEST_CASE("K5 has contenders refuse each other only where they can split the votes")
{
    auto const split = history{}.refused(1, 1, 0, 10).refused(2, 1, 5, 15);
    CHECK_FALSE(check(split).empty());
    CHECK(check(split, refused_by::holder_or_contender).empty());
    CHECK_FALSE(check(history{}.refused(1, 1, 0, 10).refused(2, 1, 11, 15), refused_by::holder_or_contender).empty());
}

TEST_CASE("K5 leaves open what an attempt under way in a fault had before it was refused, for a ttl")
{
    constexpr std::int64_t ttl = 50'000'000;
    auto const stopped = [] {
        return history{}
            .refused(1, 1, 0, 100)
            .add(event::fault_begun, director, 0, 5)
            .add(event::fault_ended, director, 0, 95);
    };
    CHECK(check(stopped().refused(2, 1, 10, 90), refused_by::holder, ttl).empty());
    CHECK(check(stopped().refused(2, 1, 145, 160), refused_by::holder, ttl).empty());
    CHECK_FALSE(check(stopped().refused(2, 1, 151, 160), refused_by::holder, ttl).empty());
    CHECK_FALSE(check(stopped().refused(2, 1, 10, 90)).empty());
    auto const before = history{}
                            .add(event::fault_begun, director, 0, 5)
                            .add(event::fault_ended, director, 0, 95)
                            .refused(1, 1, 96, 100)
                            .refused(2, 1, 97, 110);
    CHECK_FALSE(check(before, refused_by::holder, ttl).empty());
    auto const after = history{}
                           .refused(1, 1, 0, 4)
                           .refused(2, 1, 3, 4)
                           .add(event::fault_begun, director, 0, 5)
                           .add(event::fault_ended, director, 0, 95);
    CHECK_FALSE(check(after, refused_by::holder, ttl).empty());
}

TEST_CASE("K5 takes a read-write lock whose readers overlap")
{
    CHECK(check(history{}.shared(1, 1, 0, 10, 100).shared(2, 1, 5, 20, 120)).empty());
    CHECK(check(history{}
                    .shared(1, 1, 0, 10, 100)
                    .shared(2, 1, 5, 20, 120)
                    .released(1, 1, 30, 40)
                    .released(2, 1, 32, 50)
                    .granted(3, 1, 6, 33, 200)
                    .released(3, 1, 40, 60)
                    .shared(1, 2, 45, 46, 300))
              .empty());
}

TEST_CASE("K5 refuses a writer beside a reader, and a reader beside a writer")
{
    CHECK_FALSE(check(history{}.shared(1, 1, 0, 10, 100).granted(2, 1, 5, 50, 120)).empty());
    CHECK_FALSE(check(history{}.granted(1, 1, 0, 10, 100).shared(2, 1, 5, 50, 120)).empty());
    // Of two readers, one has not left yet.
    CHECK_FALSE(check(history{}
                          .shared(1, 1, 0, 10, 100)
                          .shared(2, 1, 5, 20, 120)
                          .released(1, 1, 30, 40)
                          .granted(3, 1, 6, 33, 200)
                          .released(2, 1, 50, 60))
                    .empty());
    // A writer has not left yet, though a reader whose lease was short has been here.
    CHECK(check(history{}.granted(1, 1, 0, 10, 100).shared(2, 1, 5, 20, 30).shared(3, 1, 6, 40, 200)).size() == 2);
}

TEST_CASE("K5 refuses a reader's release that claims to have freed what a writer already had")
{
    CHECK_FALSE(check(history{}.shared(1, 1, 0, 10, 100).granted(2, 1, 5, 110, 220).released(1, 1, 150, 160)).empty());
    CHECK(check(history{}.shared(1, 1, 0, 10, 100).shared(2, 1, 5, 110, 220).released(1, 1, 150, 160)).empty());
}

TEST_CASE("K5 refuses a reader that was refused beside readers, not one that was refused beside a writer")
{
    auto const read = history{}.shared(1, 1, 0, 10, 100);
    auto reader = read;
    CHECK_FALSE(check(reader.shared_refused(2, 1, 20, 30), refused_by::holder_or_contender).empty());
    auto writer = read;
    CHECK(check(writer.refused(2, 1, 20, 30)).empty());
    auto two = read;  // the first one stays
    CHECK(check(two.shared(2, 1, 15, 20, 120).released(2, 1, 30, 40).refused(3, 1, 50, 60)).empty());
    CHECK(check(history{}.granted(1, 1, 0, 10, 100).shared_refused(2, 1, 20, 30)).empty());
    // A writer that waits keeps readers out.
    auto waits = read;
    waits.refused(3, 1, 15, 40).shared_refused(2, 1, 20, 30);
    CHECK(check(waits, refused_by::holder_or_contender).empty());
    // The writer has left, whatever readers there are.
    auto left = history{}.granted(1, 1, 0, 10, 100).released(1, 1, 20, 30).shared(2, 1, 25, 35, 200);
    CHECK_FALSE(check(left.shared_refused(3, 1, 40, 50), refused_by::holder_or_contender).empty());
}

TEST_CASE("K5 does not end a hold by the grant of one that came late")
{
    auto const late = history{}.granted(1, 1, 0, 20, 150).granted(2, 1, 1, 60, 15).released(2, 1, 61, 62);
    auto refused = late;
    CHECK(check(refused.refused(3, 1, 80, 90)).empty());
}

TEST_CASE("K5 lets others share a lock when its writer becomes one of them, and refuses those who come before")
{
    auto const becomes = history{}
                             .granted(1, 1, 0, 10, 100)
                             .add(event::shared_on, 1, 1, 30)
                             .released(1, 1, 40, 40, release_result::unknown)
                             .shared(1, 2, 30, 40, 140);
    CHECK(check(history{becomes}.shared(2, 1, 5, 35, 60).granted(3, 1, 20, 140, 200)).empty());
    CHECK_FALSE(check(history{becomes}.shared(2, 1, 5, 29, 60)).empty());
    CHECK_FALSE(check(history{becomes}.granted(3, 1, 20, 35, 200)).empty());
}

TEST_CASE("K5 lets another have a lock that was broken, whatever the release of its holder says, and not before")
{
    for (auto const how : {release_result::freed, release_result::lost, release_result::unknown}) {
        auto const broken = history{}.granted(1, 1, 0, 10, 100).broken(40, 50).released(1, 1, 90, 91, how);
        CHECK(check(history{broken}.granted(2, 1, 5, 45, 150)).empty());
        CHECK_FALSE(check(history{broken}.granted(2, 1, 5, 39, 150)).empty());
    }
}
