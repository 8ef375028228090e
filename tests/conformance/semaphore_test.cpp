// SPDX-License-Identifier: MIT
//
// A semaphore is the same on every store.
#include "stores.hpp"
#include "support/async_outcome.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"

#include <holdfast/semaphore.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::leased_permit;
using holdfast::leased_permits;
using holdfast::semaphore;
using holdfast::test::async_outcome;
using holdfast::test::child;
using holdfast::test::code_of;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::renewed;

TEMPLATE_TEST_CASE("never more permits are held than there are, and a release wakes one that waits", "",
                   HOLDFAST_STORES)
{
    TestType store;
    semaphore ours{store.one, "orders", 2, renewed<TestType>()};
    semaphore theirs{store.other, "orders", 2, renewed<TestType>()};
    std::atomic<int> inside{0};
    std::atomic<bool> good{true};
    std::array<std::atomic<std::uint64_t>, 2> last{};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i)
        threads.emplace_back([&, i] {
            for (int n = 0; n < 8; ++n) {
                leased_permit const permit{i % 2 == 0 ? ours : theirs};
                if (++inside > 2) good = false;
                if (last.at(permit.slot()).exchange(permit.fencing_token()) >= permit.fencing_token()) good = false;
                std::this_thread::sleep_for(1ms);
                --inside;
            }
        });
    threads.clear();
    CHECK(good);
    std::array<leased_permit, 2> held{leased_permit{theirs, 1min}, leased_permit{theirs, 1min}};
    CHECK(held[0].slot() != held[1].slot());
    CHECK_FALSE(ours.try_acquire());
    CHECK_FALSE(ours.try_acquire_for(50ms));
    auto const slot = held[1].slot();
    bool still_held = false;
    std::optional<std::size_t> got_slot;
    std::jthread waiter{[&] {
        leased_permit const permit{ours, 2min};
        if (!permit) return;
        still_held = permit.still_held();
        got_slot = permit.slot();
    }};
    CHECK(eventually([&] { return store.one.stats().waiting == 2; }, 1min));  // for both
    held[1].release();
    waiter.join();
    CHECK(still_held);
    CHECK(got_slot == slot);
    std::stop_source stop;
    ours.acquire();
    bool got = true;
    std::jthread stopped{[&] { got = ours.acquire(stop.get_token()); }};
    CHECK(eventually([&] { return store.one.stats().waiting == 2; }, 1min));
    stop.request_stop();
    stopped.join();
    CHECK_FALSE(got);
    held[0].release();
    CHECK(theirs.try_acquire_for(1min));
    CHECK_FALSE(theirs.try_acquire());
}

TEMPLATE_TEST_CASE("the loss of a permit is announced, and its slot is taken by another", "", HOLDFAST_STORES)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    semaphore ours{client, "orders", 2, holdfast::test::brief<TestType>()};
    leased_permit const one{ours, 1min};
    leased_permit lost{ours, 1min};
    auto const token = lost.fencing_token();
    auto const told = lost.lost_token();
    store.break_lock("orders#" + std::to_string(lost.slot()));
    CHECK(eventually([&] { return told.stop_requested(); }, 2min));
    CHECK_FALSE(lost.still_held());
    semaphore theirs{store.other, "orders", 2, renewed<TestType>()};
    leased_permit const next{theirs, 2min};
    CHECK(next);
    if (one.still_held()) {  // the session of a store may have ended with the lease
        CHECK(next.slot() == lost.slot());
        CHECK(next.fencing_token() > token);
    }
    std::error_code ec;
    lost.release(ec);
    CHECK(ec == errc::lease_lost);
    CHECK(next.still_held());
}

TEMPLATE_TEST_CASE("a forked child can neither use nor harm the permits of its parent", "[lesson-7]", HOLDFAST_STORES)
{
    TestType store;
    auto ours = std::make_optional<semaphore>(store.one, "orders", 2, renewed<TestType>());
    auto permit = std::make_optional<leased_permit>(*ours);
    ours->acquire();
    auto born = child::fork([&] {
        int wrong = permit->still_held() || !permit->lost_token().stop_requested() ? 1 : 0;
        std::error_code ec;
        ours->release(ec);
        wrong += ec == errc::not_owner ? 0 : 2;
        ours->release();
        try {
            ours->acquire();
            wrong += 4;
        } catch (holdfast::error const& e) {
            wrong += e.code() == errc::misconfigured ? 0 : 8;
        }
        permit->release(ec);
        wrong += ec == errc::not_owner ? 0 : 16;
        permit.reset();
        ours.reset();
        return wrong;
    });
    CHECK(born.wait_for(2min) == 0);
    CHECK(permit->still_held());
    semaphore theirs{store.other, "orders", 2, renewed<TestType>()};
    CHECK_FALSE(theirs.try_acquire());
    std::error_code ec;
    ours->release(ec);
    CHECK_FALSE(ec);
}

namespace {

/// Returns: whether `s` has `n` permits in use, or soon.
[[nodiscard]] bool comes_to(semaphore const& s, std::ptrdiff_t n)
{
    return eventually([&] { return s.permits_in_use() == n; }, 2min);
}

/// Returns: whether a permit of `s` is held now; false while another number of permits is in use.
[[nodiscard]] bool taken_unless_told(semaphore& s)
try {
    return s.try_acquire_for(1min);
} catch (holdfast::error const& e) {
    CHECK(e.code() == errc::misconfigured);
    return false;
}

}  // namespace

TEMPLATE_TEST_CASE("a client that says another number of permits is told each time, and takes none", "",
                   HOLDFAST_STORES)
{
    TestType store;
    semaphore ours{store.one, "orders", 2, renewed<TestType>()};
    leased_permit const held{ours, 1min};
    semaphore others{store.other, "orders", 3, renewed<TestType>()};
    semaphore beside{store.one, "orders", 1, renewed<TestType>()};
    std::string what;
    CHECK(code_of([&] { others.acquire(); }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("is 2"));
    CHECK_THAT(what, contains("says 3"));
    CHECK(code_of([&] { static_cast<void>(others.try_acquire_for(1min)); }) == errc::misconfigured);
    CHECK(code_of([&] { static_cast<void>(others.try_acquire()); }) == errc::misconfigured);
    CHECK(code_of([&] { others.acquire(2); }) == errc::misconfigured);
    CHECK(code_of([&] { beside.acquire(); }) == errc::misconfigured);
    CHECK(held.still_held());
    CHECK(ours.permits_in_use() == 1);
    semaphore theirs{store.other, "orders", 2, renewed<TestType>()};
    CHECK(theirs.try_acquire_for(1min));
    CHECK(code_of([&] { others.acquire(); }) == errc::misconfigured);
}

TEMPLATE_TEST_CASE("a number of permits is forgotten when the last permit is over, and not before", "", HOLDFAST_STORES)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    auto ours = std::make_optional<semaphore>(client, "orders", 2, holdfast::test::brief<TestType>());
    auto held = std::make_optional<leased_permit>(*ours, 1min);
    semaphore others{store.other, "orders", 3, renewed<TestType>()};
    auto const since = boot_clock::now();
    while (boot_clock::now() - since < 3 * TestType::ttl && held->still_held()) {  // it is renewed meanwhile
        auto const code = code_of([&] {
            if (others.try_acquire()) others.release();
        });
        CHECK((code == errc::misconfigured || !held->still_held()));
        std::this_thread::sleep_for(TestType::ttl / 8);
    }
    held.reset();
    ours.reset();
    CHECK(eventually([&] { return taken_unless_told(others); }, 2min));
    CHECK(others.try_acquire_for(2, 1min));
    semaphore again{store.one, "orders", 2, renewed<TestType>()};
    CHECK(code_of([&] { again.acquire(); }) == errc::misconfigured);
}

TEMPLATE_TEST_CASE("when all holders have crashed, their permits are free and their number is forgotten", "",
                   HOLDFAST_STORES)
{
    TestType store;
    if constexpr (TestType::crosses_processes) {
        auto born = child::fork([&] {
            auto client = store.another(TestType::ttl);
            semaphore theirs{client, "orders", 2, holdfast::test::brief<TestType>()};
            theirs.acquire(2);
            static_cast<void>(std::raise(SIGKILL));
            return 0;
        });
        CHECK(born.wait_for(2min) == 128 + SIGKILL);
    } else {
        auto client = store.another(TestType::ttl);
        semaphore theirs{client, "orders", 2, holdfast::test::not_renewed<TestType>()};
        theirs.acquire(2);
        CHECK(comes_to(theirs, 0));  // it goes on, and its leases have ended
    }
    semaphore next{store.other, "orders", 3, renewed<TestType>()};
    CHECK(eventually([&] { return taken_unless_told(next); }, 2min));
    CHECK(next.try_acquire_for(2, 2min));
    CHECK(next.permits_in_use() == 3);
}

TEMPLATE_TEST_CASE("the permits in use are counted over all clients, also as they lapse", "", HOLDFAST_STORES)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    semaphore ours{store.one, "orders", 3, renewed<TestType>()};
    semaphore theirs{client, "orders", 3, holdfast::test::not_renewed<TestType>()};
    CHECK(ours.permits_in_use() == 0);
    leased_permit first{ours, 1min};
    CHECK(ours.permits_in_use() == 1);
    CHECK(theirs.permits_in_use() == 1);
    leased_permits lapsing{theirs, 2, 1min};
    auto const in_use = ours.permits_in_use();
    CHECK((in_use == 3 || !lapsing.still_held()));
    CHECK(comes_to(ours, 1));
    CHECK_FALSE(lapsing.still_held());
    first.release();
    std::error_code ec = make_error_code(errc::contended);
    CHECK(eventually([&] { return ours.permits_in_use(ec) == 0 && !ec; }));
}

TEMPLATE_TEST_CASE("the permits in use are counted whatever bytes the name has", "", HOLDFAST_STORES)
{
    TestType store;
    std::string const name = TestType::any_name ? std::string{"order\0%d", 8} : "order%d";
    semaphore ours{store.one, name, 3, renewed<TestType>()};
    semaphore theirs{store.other, name, 3, renewed<TestType>()};
    leased_permit const permit{ours, 1min};
    CHECK(ours.permits_in_use() == 1);
    CHECK(theirs.permits_in_use() == 1);
}

TEMPLATE_TEST_CASE("several permits are taken all or none, and given back all or none", "", HOLDFAST_STORES)
{
    TestType store;
    semaphore ours{store.one, "orders", 3, renewed<TestType>()};
    semaphore theirs{store.other, "orders", 3, renewed<TestType>()};
    CHECK(code_of([&] { ours.acquire(4); }) == errc::misconfigured);
    CHECK(code_of([&] { static_cast<void>(ours.try_acquire(0)); }) == errc::misconfigured);
    leased_permit one{theirs, 1min};
    CHECK_FALSE(ours.try_acquire(3));
    CHECK(comes_to(ours, 1));  // what it had taken is given back
    CHECK_FALSE(ours.try_acquire_for(3, 100ms));
    CHECK(comes_to(ours, 1));
    std::stop_source stop;
    bool got = true;
    std::jthread waiter{[&] { got = ours.acquire(3, stop.get_token()); }};
    CHECK(comes_to(theirs, 3));  // it collects what there is
    stop.request_stop();
    waiter.join();
    CHECK_FALSE(got);
    CHECK(comes_to(ours, 1));
    one.release();
    ours.acquire(3);
    CHECK(theirs.permits_in_use() == 3);
    CHECK_FALSE(theirs.try_acquire());
    std::error_code ec;
    ours.release(2, ec);
    CHECK_FALSE(ec);
    CHECK(theirs.permits_in_use() == 1);
    ours.release(2, ec);
    CHECK(ec == errc::not_owner);
    CHECK(theirs.permits_in_use() == 1);
    leased_permits two{theirs, 2, 1min};
    CHECK(two.slots().size() == 2);
    CHECK(two.still_held());
    CHECK(two.lease_of(0).fencing_token() > 0);
    two.release(ec);
    CHECK_FALSE(ec);
    CHECK_FALSE(two);
    ours.release(1, ec);
    CHECK_FALSE(ec);
    CHECK(theirs.permits_in_use() == 0);
}

TEMPLATE_TEST_CASE("an asynchronous acquire is told of another number of permits, also one that waits", "",
                   HOLDFAST_STORES)
{
    TestType store;
    auto ours = std::make_optional<semaphore>(store.one, "orders", 1, renewed<TestType>());
    auto held = std::make_optional<leased_permit>(*ours, 1min);
    semaphore others{store.other, "orders", 2, renewed<TestType>()};
    async_outcome refused;
    async_outcome timed;
    others.async_acquire(refused.hears());
    REQUIRE(refused.comes());
    CHECK(refused.code() == errc::misconfigured);
    others.async_try_acquire_for(1min, timed.hears());
    REQUIRE(timed.comes());
    CHECK(timed.code() == errc::misconfigured);
    CHECK_FALSE(timed.held());
    CHECK(held->still_held());
    CHECK(ours->permits_in_use() == 1);
    async_outcome none;
    others.async_release(none.hears());
    REQUIRE(none.comes());
    CHECK(none.code() == errc::not_owner);

    semaphore same{store.other, "orders", 1, renewed<TestType>()};
    async_outcome waits;
    same.async_acquire(waits.hears());
    held.reset();
    REQUIRE(waits.comes());
    CHECK_FALSE(waits.code());
    CHECK(ours->permits_in_use() == 1);
}

TEMPLATE_TEST_CASE("the members that wait and those that do not give back each other's permits", "", HOLDFAST_STORES)
{
    TestType store;
    auto ours = std::make_optional<semaphore>(store.one, "orders", 4, renewed<TestType>());
    semaphore theirs{store.other, "orders", 4, renewed<TestType>()};
    async_outcome third;
    ours->acquire(2);
    ours->async_acquire(third.hears());
    REQUIRE(third.comes());
    REQUIRE_FALSE(third.code());
    CHECK(theirs.permits_in_use() == 3);
    std::error_code ec;
    ours->release(4, ec);
    CHECK(ec == errc::not_owner);
    async_outcome given_back;
    ours->async_release(given_back.hears());
    REQUIRE(given_back.comes());
    CHECK_FALSE(given_back.code());
    CHECK(theirs.permits_in_use() == 2);
    ours->release(3, ec);
    CHECK(ec == errc::not_owner);
    ours->release(2, ec);
    CHECK_FALSE(ec);
    CHECK(theirs.permits_in_use() == 0);
    async_outcome none;
    ours->async_release(none.hears());
    REQUIRE(none.comes());
    CHECK(none.code() == errc::not_owner);

    leased_permits two{*ours, 2, 1min};
    ours->acquire();
    async_outcome last;
    async_outcome more;
    ours->async_acquire(last.hears());
    REQUIRE(last.comes());
    ours->async_acquire(more.hears());
    CHECK(theirs.permits_in_use() == 4);
    ours.reset();  // all are given back, and what waits is cancelled
    REQUIRE(more.comes());
    CHECK(more.code() == std::errc::operation_canceled);
    CHECK(theirs.try_acquire_for(4, 1min));
    two.release(ec);
    CHECK(ec);
    CHECK(theirs.permits_in_use() == 4);
}

TEMPLATE_TEST_CASE("callers that each want most of the permits do not wait for each other", "", HOLDFAST_STORES)
{
    TestType store;
    semaphore ours{store.one, "orders", 3, renewed<TestType>()};
    semaphore theirs{store.other, "orders", 3, renewed<TestType>()};
    std::atomic<int> inside{0};
    std::atomic<bool> good{true};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            std::ptrdiff_t const n = i == 3 ? 1 : 2 + i % 2;
            for (int k = 0; k < 4; ++k) {
                leased_permits const some{i % 2 == 0 ? ours : theirs, n};
                if ((inside += static_cast<int>(n)) > 3) good = false;
                std::this_thread::sleep_for(1ms);
                inside -= static_cast<int>(n);
            }
        });
    threads.clear();
    CHECK(good);
    CHECK(comes_to(ours, 0));
}

TEMPLATE_TEST_CASE("of several permits the first that is lost ends the hold, and the others are given back", "",
                   HOLDFAST_STORES)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    semaphore ours{client, "orders", 3, holdfast::test::brief<TestType>()};
    leased_permits two{ours, 2, 1min};
    auto const told = two.lost_token();
    store.break_lock("orders#" + std::to_string(two.slots().front()));
    CHECK(eventually([&] { return told.stop_requested(); }, 2min));
    CHECK_FALSE(two.still_held());
    std::error_code ec;
    two.release(ec);
    CHECK(ec == errc::lease_lost);
    CHECK(comes_to(ours, 0));
    CHECK(ours.try_acquire_for(3, 1min));
    ours.release(3);
    semaphore theirs{store.other, "orders", 3, renewed<TestType>()};  // whose releases have more time for an answer
    CHECK(comes_to(theirs, 0));
    CHECK(theirs.try_acquire_for(3, 1min));
    store.break_lock("orders#1");
    CHECK(eventually([&] { return theirs.permits_in_use() < 3; }));
    theirs.release(3, ec);
    CHECK((ec == errc::lease_lost || !ec));  // the renewal that finds the loss may not have come yet
    CHECK(comes_to(theirs, 0));
}
