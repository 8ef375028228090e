// SPDX-License-Identifier: MIT
#include "conformance/sleeper.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/orders.hpp"

#include <holdfast/adapters/recursive_mutex.hpp>
#include <holdfast/memory.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::test::code_of;
using holdfast::test::eventually;
using recursive = holdfast::recursive_mutex<holdfast::memory::mutex>;
using fixture = holdfast::test::orders<recursive>;

namespace {

/// Returns: what `f` returns in a thread of its own.
template <class F>
auto elsewhere(F f)
{
    decltype(f()) got{};
    std::jthread{[&] { got = f(); }}.join();
    return got;
}

std::error_code released(recursive& m)
{
    std::error_code ec = make_error_code(errc::contended);
    m.unlock(ec);
    return ec;
}

}  // namespace

TEST_CASE("a recursive mutex is a Lock")
{
    STATIC_REQUIRE(holdfast::Lock<recursive>);
    STATIC_REQUIRE(noexcept(std::declval<recursive&>().unlock()));
}

TEST_CASE("it is free when it was unlocked as often as it was locked")
{
    fixture f;
    CHECK(f.m.depth() == 0);
    for (std::size_t depth = 1; depth <= 3; ++depth) {
        f.m.lock();
        CHECK(f.m.depth() == depth);
    }
    for (std::size_t depth = 3; depth > 0; --depth) {
        CHECK_FALSE(f.free());
        CHECK(f.m.depth() == depth);
        f.m.unlock();
    }
    CHECK(f.m.depth() == 0);
    CHECK(f.free());
}

TEST_CASE("every member that locks takes it first, and again")
{
    fixture f;
    std::stop_token const never;
    auto const lock_again = [&](auto lock) {
        CHECK(lock());
        CHECK(lock());
        CHECK(f.m.depth() == 2);
        CHECK_FALSE(f.free());
        f.m.unlock();
        f.m.unlock();
        CHECK(f.free());
    };
    lock_again([&] { return f.m.lock(), true; });
    lock_again([&] { return f.m.lock(never); });
    lock_again([&] { return f.m.try_lock(); });
    lock_again([&] { return f.m.try_lock_for(1h); });
    lock_again([&] { return f.m.try_lock_for(never, 1h); });
    lock_again([&] { return f.m.try_lock_until(boot_clock::now() + 1h); });
    lock_again([&] { return f.m.try_lock_until(never, std::chrono::steady_clock::now() + 1h); });
}

TEST_CASE("what others hold is not locked, and leaves no level behind")
{
    fixture f;
    f.rival.lock();
    std::stop_source stop;
    stop.request_stop();
    CHECK_FALSE(f.m.try_lock());
    CHECK_FALSE(f.m.try_lock_for(1ms));
    CHECK_FALSE(f.m.try_lock_until(boot_clock::now() - 1h));
    CHECK_FALSE(f.m.lock(stop.get_token()));
    CHECK_FALSE(f.m.try_lock_for(stop.get_token(), 1h));
    CHECK_FALSE(f.m.try_lock_until(stop.get_token(), boot_clock::now() + 1h));
    CHECK(f.m.depth() == 0);
    f.m.unlock();
    CHECK(f.rival.lease().still_held());
}

TEST_CASE("locking again asks nobody: fencing token and lease stay the same")
{
    fixture f;
    f.m.lock();
    auto const first = f.m.lease();
    f.m.lock();
    CHECK(f.m.lease().fencing_token() == first.fencing_token());
    CHECK(f.m.lease().expires_at() == first.expires_at());
    f.m.unlock();
    CHECK(first.still_held());
    f.m.unlock();
    CHECK_FALSE(first.still_held());
}

TEST_CASE("another thread neither locks nor unlocks what this one has")
{
    fixture f;
    f.m.lock();
    CHECK_FALSE(elsewhere([&] { return f.m.try_lock(); }));
    CHECK(elsewhere([&] { return f.m.depth(); }) == 0);
    CHECK(elsewhere([&] { return released(f.m); }) == errc::not_owner);
    CHECK(elsewhere([&] {
        std::error_code ec;
        return !f.m.extend(std::chrono::minutes{1}, ec) && ec == errc::not_owner;
    }));
    CHECK(elsewhere([&] {
        f.m.unlock();
        return true;
    }));
    CHECK(f.m.depth() == 1);
    CHECK(f.m.lease().still_held());
    f.m.unlock();
    CHECK(elsewhere([&] {
        bool const got = f.m.try_lock();
        f.m.unlock();
        return got;
    }));
}

TEST_CASE("release says nothing of inner levels, and of the last one what the lock says")
{
    fixture f;
    CHECK(released(f.m) == errc::not_owner);
    f.m.lock();
    f.m.lock();
    CHECK_FALSE(released(f.m));
    CHECK_FALSE(f.free());
    CHECK_FALSE(released(f.m));
    CHECK(f.free());
    f.m.lock();
    f.here.erase("orders");
    CHECK(released(f.m) == errc::lease_lost);
    CHECK(f.m.depth() == 0);
}

TEST_CASE("a lease that was lost is lost for every level, locking again is refused until it was unlocked")
{
    fixture f;
    f.m.lock();
    f.m.lock();
    f.here.erase("orders");
    std::error_code ec;
    CHECK_FALSE(f.m.extend(1h, ec));
    CHECK(ec == errc::lease_lost);
    try {
        f.m.lock();
        FAIL("locked a section that is not exclusive");
    } catch (holdfast::error const& e) {
        CHECK(e.code() == errc::lease_lost);
        CHECK(std::string{e.what()} ==
              "lock \"orders\": it cannot be locked again before it is unlocked: the lease was lost");
        CHECK(e.lock_name() == "orders");
    }
    CHECK_THROWS_AS(f.m.try_lock(), holdfast::error);
    CHECK_THROWS_AS(f.m.try_lock_for(1h), holdfast::error);
    CHECK(f.m.depth() == 2);
    f.m.unlock();
    CHECK(released(f.m) == errc::lease_lost);
    CHECK(f.m.try_lock());
    CHECK(f.m.lease().still_held());
}

TEST_CASE("guards of the standard nest")
{
    fixture f;
    {
        std::scoped_lock const outer{f.m};
        std::unique_lock const inner{f.m, 1h};
        holdfast::leased_lock const innermost{f.m};
        CHECK(inner);
        CHECK(innermost.still_held());
        CHECK(f.m.depth() == 3);
    }
    CHECK(f.free());
}

TEST_CASE("extend is for all levels")
{
    fixture f;
    f.m.lock();
    f.m.lock();
    std::error_code ec;
    CHECK(f.m.extend(2h, ec));
    f.m.unlock();
    CHECK(f.m.lease().remaining() > 1h);
    f.m.extend(4h);
    CHECK(f.m.lease().remaining() > 3h);
    CHECK(elsewhere([&] { return code_of([&] { f.m.extend(4h); }); }) == errc::not_owner);
    f.m.unlock();
    CHECK(code_of([&] { f.m.extend(4h); }) == errc::not_owner);
}

TEST_CASE("the standard's guards take a recursive mutex, also inside each other")
{
    fixture f;
    {
        std::lock_guard const outer{f.m};
        std::unique_lock inner{f.m, std::try_to_lock};
        CHECK(inner.owns_lock());
        std::unique_lock within{f.m, 1min};
        CHECK(within.owns_lock());
        std::scoped_lock const innermost{f.m};
        CHECK(f.m.depth() == 4);
        within.unlock();
        CHECK(f.m.depth() == 3);
        CHECK_FALSE(f.free());
    }
    CHECK(f.m.depth() == 0);
    CHECK(f.free());
}

TEST_CASE("std::lock, std::try_lock and std::scoped_lock take several recursive mutexes, or none")
{
    fixture f;
    recursive other{f.here, "invoices"};
    holdfast::memory::mutex rival{f.there, "invoices"};
    {
        std::scoped_lock const both{f.m, other};
        std::scoped_lock const again{other, f.m};
        CHECK(f.m.depth() == 2);
        CHECK(other.depth() == 2);
        CHECK_FALSE(rival.try_lock());
    }
    CHECK(f.free());
    std::lock(f.m, other);
    CHECK(std::try_lock(f.m, other) == -1);
    CHECK(f.m.depth() == 2);
    for (int i = 0; i < 2; ++i) f.m.unlock(), other.unlock();

    REQUIRE(rival.try_lock());
    CHECK(std::try_lock(f.m, other) == 1);
    CHECK(f.m.depth() == 0);
    CHECK(f.free());
}

TEST_CASE("std::condition_variable_any gives a recursive mutex back while it waits, also by a stop")
{
    fixture f;
    std::condition_variable_any changed;
    std::stop_source stop;
    bool ready = false;
    holdfast::test::sleeper waiter{[&] {
        std::unique_lock hold{f.m};
        changed.wait(hold, [&] { return ready; });
        bool const met = changed.wait(hold, stop.get_token(), [] { return false; });
        return !met && hold.owns_lock() && f.m.depth() == 1;
    }};
    CHECK(eventually([&] { return f.free(); }));
    {
        std::scoped_lock const hold{f.m};
        ready = true;
    }
    changed.notify_all();
    stop.request_stop();
    CHECK(waiter.join());
    CHECK(f.free());
}
