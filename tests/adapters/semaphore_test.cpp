// SPDX-License-Identifier: MIT
#include "lock/fake_store.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/sleeps.hpp"

#include <holdfast/memory.hpp>
#include <holdfast/semaphore.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::leased_permit;
using holdfast::leased_permits;
using holdfast::lock_options;
using holdfast::semaphore;
using holdfast::test::code_of;
using holdfast::test::eventually;

namespace {

/// Two permits for two clients.
struct yard {
    holdfast::memory::store here;
    holdfast::memory::store there = here.another_client();
    semaphore jobs{here, "jobs", 2};
    semaphore theirs{there, "jobs", 2};
};

[[nodiscard]] std::error_code released(auto& from)
{
    auto ec = make_error_code(errc::contended);
    from.release(ec);
    return ec;
}

/// Returns: how many permits another client can take now. It gives them back.
[[nodiscard]] std::size_t free_permits(semaphore& of)
{
    std::vector<leased_permit> taken;
    for (;;) {
        leased_permit one{of, std::try_to_lock};
        if (!one) return taken.size();
        taken.push_back(std::move(one));
    }
}

[[nodiscard]] bool all_free(semaphore& of)
{
    return eventually([&] { return free_permits(of) == static_cast<std::size_t>(of.max()); });
}

}  // namespace

static_assert(!std::is_copy_constructible_v<semaphore> && !std::is_copy_constructible_v<leased_permit>);
static_assert(std::is_nothrow_move_constructible_v<leased_permit> && std::is_nothrow_move_assignable_v<leased_permit>);
static_assert(std::is_base_of_v<semaphore, holdfast::memory::semaphore>);
static_assert(!std::is_copy_constructible_v<leased_permits> && std::is_nothrow_move_constructible_v<leased_permits>);

TEST_CASE("a semaphore has as many permits as it says, for all clients")
{
    yard y;
    CHECK(y.jobs.max() == 2);
    CHECK(y.jobs.name() == "jobs");
    y.jobs.acquire();
    CHECK(y.theirs.try_acquire());
    CHECK_FALSE(y.jobs.try_acquire());
    CHECK_FALSE(y.theirs.try_acquire());
    CHECK_FALSE(released(y.theirs));
    CHECK(eventually([&] { return y.jobs.try_acquire(); }));
    CHECK_FALSE(y.theirs.try_acquire());
    y.jobs.release();
    y.jobs.release();
    CHECK(all_free(y.theirs));
}

TEST_CASE("a release gives back what acquire has taken, and no more")
{
    yard y;
    CHECK(released(y.jobs) == errc::not_owner);
    leased_permit const permit{y.jobs};
    CHECK(released(y.jobs) == errc::not_owner);  // that one is the permit's
    CHECK(permit.still_held());
    y.jobs.acquire();
    CHECK_FALSE(released(y.jobs));
    CHECK(released(y.jobs) == errc::not_owner);
    CHECK(permit.still_held());
}

TEST_CASE("a guard takes over what acquire has taken, with a lease to ask")
{
    yard y;
    CHECK_FALSE(leased_permit{y.jobs, std::adopt_lock});
    y.jobs.acquire();
    leased_permit one{y.jobs, std::adopt_lock};
    REQUIRE(one);
    CHECK(one.still_held());
    CHECK(one.fencing_token() > 0);
    CHECK(released(y.jobs) == errc::not_owner);  // that one is the guard's
    CHECK(one.still_held());
    one.release();

    std::atomic<bool> told{false};
    std::atomic<bool> asked{false};
    y.jobs.async_acquire([&](std::error_code ec) {
        leased_permit const permit{y.jobs, std::adopt_lock};
        asked = !ec && permit.still_held() && permit.fencing_token() > 0;
        told = true;
    });
    CHECK(eventually([&] { return told.load(); }));
    CHECK(asked);
    CHECK(eventually([&] { return all_free(y.theirs); }));
}

TEST_CASE("a guard of several permits takes over just so many, or none")
{
    holdfast::memory::store store;
    semaphore jobs{store, "jobs", 3};
    jobs.acquire(2);
    CHECK_FALSE(leased_permits(jobs, 3, std::adopt_lock));
    CHECK_FALSE(leased_permits(jobs, 0, std::adopt_lock));
    CHECK_FALSE(leased_permits(jobs, -1, std::adopt_lock));
    {
        leased_permits const two{jobs, 2, std::adopt_lock};
        CHECK(two.slots().size() == 2);
        CHECK(two.still_held());
        CHECK(released(jobs) == errc::not_owner);
        CHECK(jobs.permits_in_use() == 2);
    }
    CHECK(jobs.permits_in_use() == 0);
}

TEST_CASE("the lease of a permit that is not among those held is out of range")
{
    yard y;
    leased_permits const both{y.jobs, 2};
    CHECK(both.lease_of(1).still_held());
    CHECK_THROWS_AS(static_cast<void>(both.lease_of(2)), std::out_of_range);
}

TEST_CASE("a release without a permit is reported")
{
    holdfast::memory::store store;
    std::vector<std::error_code> told;
    semaphore jobs{store, "jobs", 2, {.on_error = [&](holdfast::error const& e) {
                       CHECK(e.lock_name() == "jobs");
                       told.push_back(e.code());
                   }}};
    jobs.release();
    CHECK(told == std::vector{make_error_code(errc::not_owner)});
}

TEST_CASE("a semaphore that cannot be is refused")
{
    holdfast::memory::store store;
    auto const made = [&](std::string const& name, std::ptrdiff_t max, lock_options const& options = {}) {
        return code_of([&] { semaphore const s{store, name, max, options}; });
    };
    CHECK(made("jobs", 0) == errc::misconfigured);
    CHECK(made("jobs", -1) == errc::misconfigured);
    CHECK(made("jobs", 1'001) == errc::misconfigured);
    CHECK(made("", 1) == errc::misconfigured);
    CHECK(made("jobs", 1, {.ttl = -1s}) == errc::misconfigured);
    CHECK_FALSE(made("jobs", 1'000));
}

TEST_CASE("a permit says which it is; no two holders have the same")
{
    yard y;
    leased_permit one{y.jobs};
    leased_permit two{y.theirs};
    CHECK(one);
    CHECK(one.slot() + two.slot() == 1);
    CHECK_FALSE(leased_permit{y.jobs, std::try_to_lock});
    CHECK_FALSE(leased_permit{y.jobs, 20ms}.owns_permit());
    CHECK_FALSE(leased_permit{y.jobs, boot_clock::now() + 20ms});
    std::stop_source stop;
    stop.request_stop();
    CHECK_FALSE(leased_permit{y.jobs, stop.get_token()});
    CHECK_FALSE(leased_permit{y.jobs, stop.get_token(), 1h});
    auto const slot = one.slot();
    CHECK_FALSE(released(one));
    CHECK(one.slot() == slot);
    CHECK_FALSE(one);
    CHECK_FALSE(one.still_held());
    CHECK(one.expires_at() == boot_clock::time_point::min());
    CHECK(released(one) == errc::not_owner);
    CHECK(eventually([&] { return leased_permit{y.theirs, std::try_to_lock}.owns_permit(); }));
}

TEST_CASE("a permit moves with its holder")
{
    yard y;
    leased_permit one{y.jobs};
    leased_permit two{std::move(one)};
    CHECK_FALSE(one);  // NOLINT(bugprone-use-after-move)
    CHECK(two.still_held());
    leased_permit three{y.jobs};
    auto const slot = two.slot();
    three = std::move(two);
    CHECK(three.slot() == slot);
    CHECK(eventually([&] { return free_permits(y.theirs) == 1; }));
    leased_permit none;
    swap(none, three);
    CHECK(none.lease().still_held());
    CHECK_FALSE(three);
    three = std::move(none);
    three.release();
    CHECK(all_free(y.theirs));
}

TEST_CASE("a permit is extended alone")
{
    yard y;
    leased_permit one{y.jobs};
    leased_permit two{y.jobs};
    std::error_code ec;
    CHECK(one.extend(2h, ec));
    CHECK_FALSE(ec);
    CHECK(one.remaining() > 1h);
    CHECK(two.remaining() < 1h);
    two.extend(3h);
    CHECK(two.remaining() > 2h);
    CHECK_FALSE(one.extend(-1s, ec));
    CHECK(ec == errc::misconfigured);
    one.release();
    CHECK_FALSE(one.extend(1h, ec));
    CHECK(ec == errc::not_owner);
    CHECK(code_of([&] { one.extend(1h); }) == errc::not_owner);
}

TEST_CASE("the fencing tokens of each slot increase")
{
    yard y;
    std::array<std::uint64_t, 2> last{};
    for (int i = 0; i < 20; ++i) {
        leased_permit one{i % 2 == 0 ? y.jobs : y.theirs};
        leased_permit two{y.theirs};
        for (auto* const p : {&one, &two}) {
            CHECK(p->fencing_token() > last.at(p->slot()));
            last.at(p->slot()) = p->fencing_token();
        }
    }
}

TEST_CASE("a release wakes one that waits, whichever permit it is")
{
    yard y;
    std::array<leased_permit, 2> held{leased_permit{y.theirs}, leased_permit{y.theirs}};
    auto const which = GENERATE(0U, 1U);
    std::atomic<bool> got{false};
    auto const slot = held.at(which).slot();
    std::optional<std::size_t> got_slot;
    std::jthread waiter{[&] {
        leased_permit const permit{y.jobs};
        got_slot = permit.slot();
        got = true;
    }};
    std::this_thread::sleep_for(50ms);
    CHECK_FALSE(got);
    auto const begun = boot_clock::now();
    held.at(which).release();
    waiter.join();
    CHECK(got_slot == slot);
    CHECK(boot_clock::now() - begun < 10s);  // it does not wait for the lease to end
    held.at(1 - which).release();
    CHECK(all_free(y.theirs));
}

TEST_CASE("what waits for a permit ends by its deadline")
{
    yard y;
    y.theirs.acquire();
    y.theirs.acquire();
    auto const begun = boot_clock::now();
    CHECK_FALSE(y.jobs.try_acquire_for(50ms));
    CHECK(boot_clock::now() - begun >= 50ms);
    CHECK_FALSE(y.jobs.try_acquire_until(std::chrono::steady_clock::now() + 20ms));
    CHECK_FALSE(y.jobs.try_acquire_until(std::chrono::steady_clock::now() - 1h));
    CHECK_FALSE(y.jobs.try_acquire_for(-1h));
    y.theirs.release();
    CHECK(y.jobs.try_acquire_for(1min));
    y.theirs.release();
    CHECK(eventually([&] { return y.jobs.try_acquire_for(0s); }));
    CHECK(free_permits(y.theirs) == 0);
    y.jobs.release();
    y.jobs.release();
    CHECK(all_free(y.theirs));
}

TEST_CASE("a stop ends a wait for a permit")
{
    yard y;
    y.theirs.acquire();
    y.theirs.acquire();
    std::stop_source stop;
    std::atomic<int> stopped{0};
    std::vector<std::jthread> waiters;
    waiters.emplace_back([&] { stopped += y.jobs.acquire(stop.get_token()) ? 0 : 1; });
    waiters.emplace_back([&] { stopped += y.jobs.try_acquire_for(stop.get_token(), 1h) ? 0 : 1; });
    waiters.emplace_back(
        [&] { stopped += y.jobs.try_acquire_until(stop.get_token(), boot_clock::now() + 1h) ? 0 : 1; });
    std::this_thread::sleep_for(30ms);
    CHECK(stopped == 0);
    stop.request_stop();
    waiters.clear();
    CHECK(stopped == 3);
    CHECK_FALSE(y.jobs.acquire(stop.get_token()));
    y.theirs.release();
    y.theirs.release();
    CHECK(all_free(y.jobs));
}

TEST_CASE("permits are leases: those of a holder that is gone are free after the ttl")
{
    holdfast::memory::store here;
    auto const there = here.another_client();
    semaphore brief{here, "jobs", 2, {.ttl = 3s, .renew = false}};
    semaphore theirs{there, "jobs", 2};
    leased_permit const one{brief};
    brief.acquire();
    auto const begun = boot_clock::now();
    bool const early = theirs.try_acquire();
    CHECK((!early || !one.still_held()));
    if (!early) theirs.acquire();
    theirs.acquire();
    CHECK(boot_clock::now() - begun < 20s);
    CHECK_FALSE(one.still_held());
    CHECK(eventually([&] { return one.lost_token().stop_requested(); }));
    CHECK(released(brief) == errc::lease_lost);
    CHECK(free_permits(brief) == 0);  // the late release has not freed theirs
}

TEST_CASE("of several permits a lost one is given back first")
{
    yard y;
    y.jobs.acquire();
    y.jobs.acquire();
    for (auto const* const slot : {"jobs#0", "jobs#1"}) y.here.erase(slot);
    CHECK(released(y.jobs) == errc::lease_lost);
    CHECK(released(y.jobs) == errc::lease_lost);
    CHECK(released(y.jobs) == errc::not_owner);

    holdfast::memory::store store;
    semaphore brief{store, "parcels", 2, {.ttl = 9s}};
    brief.acquire();  // the older one stays
    leased_permit probe{brief};
    auto const newer = probe.slot();
    probe.release();
    brief.acquire();
    store.erase("parcels#" + std::to_string(newer));
    leased_permit again;
    CHECK(eventually([&] {
        again = leased_permit{brief, 5s};  // a renewal comes meanwhile
        return !again;                     // while it is not released, its slot is not free for this object
    }));
    CHECK(eventually([&] { return released(brief) == errc::lease_lost; }));
    CHECK_FALSE(released(brief));
}

TEST_CASE("many threads of several clients never have more permits than there are, and each has its turn")
{
    constexpr int max = 3;
    auto const handoffs = GENERATE(0U, 63U);
    holdfast::memory::store store;
    std::deque<semaphore> objects;
    for (int i = 0; i < 3; ++i)
        objects.emplace_back(i == 0 ? store : store.another_client(), "jobs", max,
                             lock_options{.ttl = 1h, .max_local_handoffs = handoffs, .unavailable_after = 5min});
    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    std::atomic<bool> alone{true};
    std::array<std::atomic<int>, max> in_slot{};
    std::vector<std::jthread> threads;
    threads.reserve(12);
    for (int i = 0; i < 12; ++i)
        threads.emplace_back([&, i] {
            auto& jobs = objects[static_cast<std::size_t>(i) % objects.size()];
            for (int n = 0; n < 40; ++n) {
                leased_permit permit;
                if (n % 3 == 0) {
                    while (!permit) permit = leased_permit{jobs, 2ms};
                } else {
                    permit = leased_permit{jobs};
                }
                auto const now = ++inside;
                for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
                }
                if (++in_slot.at(permit.slot()) != 1) alone = false;
                if (n % 8 == 0) std::this_thread::sleep_for(200us);
                --in_slot.at(permit.slot());
                --inside;
            }
        });
    threads.clear();
    CHECK(most <= max);
    CHECK(most > 1);
    CHECK(alone);
    CHECK(all_free(objects.front()));
}

TEST_CASE("permits of threads that share an object are counted, not owned")
{
    yard y;
    std::jthread{[&] { y.jobs.acquire(); }}.join();
    CHECK_FALSE(released(y.jobs));
    CHECK(released(y.jobs) == errc::not_owner);
}

TEST_CASE("the end of a semaphore gives back its permits, and those of leased_permit")
{
    yard y;
    auto mine = std::make_unique<semaphore>(y.here, "jobs", 2);
    leased_permit permit{*mine};
    mine->acquire();
    CHECK(free_permits(y.theirs) == 0);
    mine.reset();
    CHECK(all_free(y.theirs));
    CHECK_FALSE(permit.still_held());
    y.theirs.acquire();
    y.theirs.acquire();
    CHECK(released(permit) == errc::not_owner);
    CHECK(free_permits(y.jobs) == 0);
}

TEST_CASE("the end of a semaphore does not wait for each permit")
{
    holdfast::memory::store store;
    auto mine = std::make_unique<semaphore>(store, "jobs", 8);
    for (int i = 0; i < 8; ++i) mine->acquire();
    store.set_faults({.delay = 3s, .operation_timeout = 60s});
    auto const begun = boot_clock::now();
    mine.reset();
    CHECK(boot_clock::now() - begun < 12s);
    store.set_faults({});
    semaphore next{store, "jobs", 8};
    CHECK(all_free(next));
}

TEST_CASE("the end of a semaphore gives back all permits before it waits, also those of former numbers")
{
    holdfast::test::fake_client client;
    auto mine = std::make_unique<semaphore>(client.locks, "jobs", 2);
    mine->acquire(2);
    mine->resize(3);
    mine->acquire();
    mine->resize(5);
    mine->acquire(2);
    auto& releases = client.store->releases;
    auto const before = releases.size();
    releases.answered_at_once = false;
    std::atomic<bool> ended{false};
    std::thread ends{[&] {
        mine.reset();
        ended = true;
    }};
    CHECK(eventually([&] { return releases.size() == before + 5; }));
    CHECK_FALSE(eventually([&] { return ended.load(); }, 100ms));  // it waits for the last answer
    client.store->answer_releases();
    ends.join();
}

TEST_CASE("a semaphore of another name has a number of its own")
{
    yard y;
    y.jobs.acquire();
    semaphore parcels{y.there, "parcels", 5};
    parcels.acquire(5);
    semaphore more{y.there, "jobs", 5};
    CHECK(code_of([&] { more.acquire(); }) == errc::misconfigured);
    CHECK(more.permits_in_use() == 1);
    CHECK(parcels.permits_in_use() == 5);
}

TEST_CASE("a lock of the name of a slot is counted, and takes that permit out of use")
{
    yard y;
    holdfast::mutex repairs{y.there, "jobs#1"};
    repairs.lock();
    CHECK(y.jobs.permits_in_use() == 1);
    leased_permit const one{y.jobs};
    CHECK(one.slot() == 0);
    CHECK_FALSE(y.jobs.try_acquire());
    CHECK_FALSE(y.jobs.try_acquire(2));
    CHECK(y.jobs.permits_in_use() == 2);
}

TEST_CASE("permits that are moved are given back once")
{
    yard y;
    leased_permits all{y.jobs, 2};
    CHECK_FALSE(leased_permits{y.theirs, 1, std::try_to_lock});
    CHECK_FALSE(leased_permits{y.theirs, 2, 20ms}.owns_permits());
    CHECK_FALSE(leased_permits{y.theirs, 1, boot_clock::now() + 20ms});
    leased_permits moved{std::move(all)};
    CHECK_FALSE(all);  // NOLINT(bugprone-use-after-move)
    CHECK(moved.still_held());
    CHECK(moved.fencing_token() == 0);
    moved.extend(2h);
    CHECK(moved.remaining() > 1h);
    std::error_code ec;
    CHECK(moved.extend(3h, ec));
    leased_permits none;
    CHECK_FALSE(none.extend(1h, ec));
    CHECK(ec == errc::not_owner);
    CHECK(code_of([&] { none.extend(1h); }) == errc::not_owner);
    swap(none, moved);
    moved = std::move(none);
    moved.release();
    CHECK_FALSE(moved.still_held());
    CHECK(released(moved) == errc::not_owner);
    CHECK(all_free(y.theirs));
}

TEST_CASE("one that collects permits and loses its turn gives all back, and begins again")
{
    holdfast::memory::store here;
    auto const there = here.another_client();
    semaphore jobs{here, "jobs", 3, {.ttl = 900ms}};
    semaphore theirs{there, "jobs", 3};
    leased_permit one{theirs};
    std::atomic<bool> got{false};
    std::jthread collector{[&] {
        leased_permits const all{jobs, 3};
        got = true;
    }};
    CHECK(eventually([&] { return theirs.permits_in_use() == 3; }));
    for (int i = 0; i < 3; ++i) {
        here.erase("jobs#batch");
        std::this_thread::sleep_for(400ms);  // a renewal finds it, or does not yet
    }
    CHECK_FALSE(got);
    one.release();
    collector.join();
    CHECK(got);
    CHECK(all_free(theirs));
}

TEST_CASE("a permit that is lost while others are collected is taken anew")
{
    holdfast::memory::store here;
    auto const there = here.another_client();
    semaphore jobs{here, "jobs", 2, {.ttl = 15s}};
    semaphore theirs{there, "jobs", 2};
    leased_permit one{theirs};
    std::atomic<bool> held{false};
    std::jthread collector{[&] {
        leased_permits const both{jobs, 2};
        held = both.lease_of(0).still_held() && both.lease_of(1).still_held();
    }};
    // Before it has its turn it only tries.
    CHECK(eventually([&] { return here.holder("jobs#batch") && theirs.permits_in_use() == 2; }));
    here.erase("jobs#" + std::to_string(1 - one.slot()));
    CHECK(eventually([&] { return here.stats().lost_in_store == 1; }));  // with the next renewal
    one.release();
    collector.join();
    CHECK(held);
    CHECK(all_free(theirs));
}

TEST_CASE("a store that cannot be asked is told; one that comes back within the time is not")
{
    yard y;
    semaphore jobs{y.here, "jobs", 2, {.unavailable_after = 100ms}};
    y.here.set_faults({.unavailable = true});
    CHECK(code_of([&] { static_cast<void>(jobs.try_acquire()); }) == errc::unavailable);
    CHECK(code_of([&] { static_cast<void>(jobs.try_acquire_for(0s)); }) == errc::unavailable);
    CHECK(code_of([&] { static_cast<void>(jobs.try_acquire_for(2, 0s)); }) == errc::unavailable);
    CHECK(code_of([&] { static_cast<void>(jobs.try_acquire_for(50ms)); }) == errc::unavailable);
    CHECK(code_of([&] { jobs.acquire(); }) == errc::unavailable);
    semaphore patient{y.here, "jobs", 2, {.unavailable_after = 1h}};
    bool held = false;
    std::jthread waiter{[&] {
        leased_permit const permit{patient};
        held = permit.still_held();
    }};
    std::this_thread::sleep_for(50ms);
    y.here.set_faults({});
    waiter.join();
    CHECK(held);
    CHECK(all_free(y.theirs));
}

TEST_CASE("a wait outlasts an outage in which the permits are held")
{
    yard y;
    y.theirs.acquire();
    y.theirs.acquire();
    semaphore jobs{y.here, "jobs", 2, {.unavailable_after = 1h}};
    std::atomic<bool> got{false};
    std::jthread waiter{[&] {
        jobs.acquire();
        got = true;
        jobs.release();
    }};
    std::this_thread::sleep_for(20ms);
    y.here.set_faults({.unavailable = true});
    std::this_thread::sleep_for(20ms);
    y.here.set_faults({});
    CHECK_FALSE(got);
    y.theirs.release();
    waiter.join();
    CHECK(got);
}

TEST_CASE("a thread that was refused a slot does not rest before it waits for a mutex")
{
    yard y;
    holdfast::mutex orders{y.here, "orders"};
    y.theirs.acquire();
    auto const waits = [] { return holdfast::test::sleeps_of(RUSAGE_THREAD); };
    std::vector<long> each;
    for (int i = 0; i < 50; ++i) {
        CHECK(y.jobs.try_acquire());
        CHECK_FALSE(y.jobs.try_acquire());
        y.jobs.release();
        auto const before = waits();
        orders.lock();
        each.push_back(waits() - before);
        orders.unlock();
        std::this_thread::sleep_for(6ms);  // so long that no pause for others is due
    }
    // A rest is a wait. In a few of these it may have waited for a mutex.
    std::nth_element(each.begin(), each.begin() + 25, each.end());
    CHECK(each[25] == 0);
}

TEST_CASE("a thread that asks for several permits is not taken for one that takes two objects of a lock together")
{
    holdfast::memory::store store;
    std::vector<std::string> told;
    semaphore jobs{store, "jobs", 1, {.on_error = [&](holdfast::error const& e) { told.emplace_back(e.what()); }}};
    for (int i = 0; i < 10; ++i) {
        CHECK(jobs.try_acquire());
        CHECK_FALSE(jobs.try_acquire());
        std::jthread{[&] { jobs.release(); }}.join();
        std::this_thread::sleep_for(6ms);  // so long that no pause for others is due
    }
    CHECK(told == std::vector<std::string>{});
}
