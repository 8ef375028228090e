// SPDX-License-Identifier: MIT
//
// Stores lend releases: a hold has none of its own if a thread waits when it is given back.
#include "conformance/sleeper.hpp"
#include "fake_store.hpp"
#include "support/async_outcome.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"

#include <holdfast/lock/client_context.hpp>
#include <holdfast/mutex.hpp>

#include <chrono>
#include <memory>
#include <system_error>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lock_options;
using holdfast::mutex;
using holdfast::owner_token;
using holdfast::test::async_outcome;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::fake_client;
using holdfast::test::fake_store;
using holdfast::test::sleeper;

namespace {

struct lending : fake_client {
    lending() = default;
    lending(lending const&) = delete;
    lending& operator=(lending const&) = delete;
    ~lending() { CHECK(store->broken == 0); }

    /// Returns: the token of the `n`th grant; that of the `n`th release.
    [[nodiscard]] owner_token granted(std::size_t n) const { return (*store->acquires.at(n)->outcome())->token; }
    [[nodiscard]] owner_token released(std::size_t n) const { return store->releases.at(n)->token; }
};

}  // namespace

TEST_CASE("an unlock that waits is lent its release")
{
    lending f;
    mutex m{f.locks, "orders", lock_options{}};
    for (std::size_t n = 0; n < 3; ++n) {
        m.lock();
        m.unlock();
        REQUIRE(f.store->releases.size() == n + 1);
        CHECK(f.released(n) == f.granted(n));
    }
    CHECK(f.store->releases_made == 0);
}

TEST_CASE("a hold that nobody may wait for has a release from its beginning")
{
    lending f;
    mutex m{f.locks, "orders", GENERATE(lock_options{.deferred_release = true}, lock_options{.min_hold = 1ms})};
    m.lock();
    CHECK(f.store->releases_made == 1);
    m.unlock();
    CHECK(eventually([&] { return f.store->releases.size() == 1; }));
    CHECK(f.released(0) == f.granted(0));
    CHECK(f.store->releases_made == 1);
}

TEST_CASE("an asynchronous unlock does not wait, whoever has taken the lock")
{
    lending f;
    mutex m{f.locks, "orders", lock_options{}};
    if (GENERATE(true, false)) {
        m.lock();
    } else {
        async_outcome locked;
        m.async_lock(locked.hears());
        CHECK(locked.comes());
    }
    f.store->releases.answered_at_once = false;
    async_outcome unlocked;
    m.async_unlock(unlocked.hears());
    REQUIRE(f.store->releases.size() == 1);
    CHECK(f.released(0) == f.granted(0));
    CHECK_FALSE(unlocked.told());
    f.store->answer_releases();
    CHECK(unlocked.comes());
    CHECK_FALSE(unlocked.code());
    CHECK(f.store->releases_made == 1);
}

TEST_CASE("a late unlock of a lost lock gives back the lease that was lost, not that of the next holder")
{
    lending f;
    mutex m{f.locks, "orders", lock_options{.ttl = 1h}};
    mutex next{f.locks, "orders", lock_options{.ttl = 1h}};
    m.lock();
    f.store->ends_lease = true;
    f.store->alarm();
    CHECK(eventually([&] { return !m.lease().still_held(); }));
    next.lock();
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == errc::lease_lost);
    REQUIRE(f.store->releases.size() == 1);
    CHECK(f.released(0) == f.granted(0));
    CHECK(next.lease().still_held());
    next.unlock();
    CHECK(f.released(1) == f.granted(1));
}

TEST_CASE("a lease that is handed on is given back as its last holder needs")
{
    lending f;
    bool const to_async = GENERATE(true, false);
    mutex one{f.locks, "orders", lock_options{}};
    mutex other{f.locks, "orders", lock_options{}};
    async_outcome locked;
    async_outcome unlocked;
    if (to_async) {
        one.lock();
        other.async_lock(locked.hears());
        one.unlock();
        CHECK(locked.comes());
        other.async_unlock(unlocked.hears());
    } else {
        one.async_lock(locked.hears());
        CHECK(locked.comes());
        sleeper next{[&] { other.lock(); }};
        CHECK(next.sleeps());
        one.async_unlock(unlocked.hears());
        next.join();
        other.unlock();
    }
    CHECK(unlocked.comes());
    CHECK(f.store->acquires.size() == 1);
    REQUIRE(f.store->releases.size() == 1);
    CHECK(f.released(0) == f.granted(0));
    CHECK(f.store->releases_made == 1);
}

TEST_CASE("a grant whose lock is closed meanwhile is given back by the thread that asked")
{
    auto const store = std::make_shared<fake_store>();
    store->cancel_ends = false;
    store->acquires.answered_at_once = false;
    auto const client = std::make_shared<holdfast::detail::client_context>(store);
    std::shared_ptr<holdfast::detail::lock_object> const object = client->make_mutex("orders", lock_options{});
    std::error_code why;
    sleeper locks{[&] { why = code_of([&] { static_cast<void>(object->lock({}, {})); }); }};
    CHECK(eventually([&] { return store->acquires.size() == 1; }));
    object->close();
    store->grant_to(0);
    locks.join();
    CHECK(why == std::errc::operation_canceled);
    REQUIRE(store->releases.size() == 1);
    CHECK(store->releases.at(0)->token == (*store->acquires.at(0)->outcome())->token);
    CHECK(store->releases_made == 0);
    CHECK(store->broken == 0);
}
