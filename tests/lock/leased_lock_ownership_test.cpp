// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/orders.hpp"

#include <holdfast/memory.hpp>

#include <chrono>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <utility>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::test::code_of;
using guard = holdfast::leased_lock<holdfast::memory::mutex>;
using fixture = holdfast::test::orders<>;

namespace {

/// Effects: calls every member that locks, and `check` with the code that it throws.
template <class Check>
void each_lock_member(guard& g, Check check)
{
    std::stop_token const never;
    check(code_of([&] { g.lock(); }));
    check(code_of([&] { (void)g.lock(never); }));
    check(code_of([&] { (void)g.try_lock(); }));
    check(code_of([&] { (void)g.try_lock_for(1h); }));
    check(code_of([&] { (void)g.try_lock_for(never, 1h); }));
    check(code_of([&] { (void)g.try_lock_until(boot_clock::now() + 1h); }));
    check(code_of([&] { (void)g.try_lock_until(never, std::chrono::steady_clock::now() + 1h); }));
}

}  // namespace

TEST_CASE("locking without a mutex is not permitted, as with std::unique_lock")
{
    guard g;
    each_lock_member(g, [](std::error_code code) { CHECK(code == std::errc::operation_not_permitted); });
    fixture f;
    guard left{f.m, std::defer_lock};
    CHECK(left.release() == &f.m);
    each_lock_member(left, [](std::error_code code) { CHECK(code == std::errc::operation_not_permitted); });
}

TEST_CASE("locking what is owned already would be a deadlock, as with std::unique_lock")
{
    fixture f;
    guard g{f.m};
    each_lock_member(g, [](std::error_code code) { CHECK(code == std::errc::resource_deadlock_would_occur); });
    CHECK(g.owns_lock());
    CHECK(g.still_held());
}

TEST_CASE("unlocking what is not owned is not permitted")
{
    fixture f;
    guard g{f.m, std::defer_lock};
    CHECK(code_of([&] { g.unlock(); }) == std::errc::operation_not_permitted);
    CHECK(code_of([] { guard{}.unlock(); }) == std::errc::operation_not_permitted);
    std::error_code ec;
    g.unlock(ec);
    CHECK(ec == errc::not_owner);
}

TEST_CASE("unlocking with a code says what became of the lease")
{
    fixture f;
    guard g{f.m};
    std::error_code ec = make_error_code(errc::contended);
    g.unlock(ec);
    CHECK_FALSE(ec);
    CHECK_FALSE(g);
    CHECK(f.free());

    g.lock();
    f.here.erase("orders");
    g.unlock(ec);
    CHECK(ec == errc::lease_lost);
    CHECK_FALSE(g);
}

TEST_CASE("after the unlock a guard answers for a hold that has ended, and for the next one when it locks again")
{
    fixture f;
    guard g{f.m};
    auto const first = g.fencing_token();
    g.unlock();
    CHECK_FALSE(g.still_held());
    CHECK(g.remaining() == 0ns);
    CHECK(g.fencing_token() == first);
    CHECK_FALSE(g.lost_token().stop_requested());
    g.lock();
    CHECK(g.still_held());
    CHECK(g.fencing_token() > first);
}

TEST_CASE("a release forgets the mutex, which stays locked")
{
    fixture f;
    holdfast::memory::mutex* left = nullptr;
    {
        guard g{f.m};
        left = g.release();
        CHECK_FALSE(g);
        CHECK(g.mutex() == nullptr);
    }
    CHECK(left == &f.m);
    CHECK_FALSE(f.free());
    f.m.unlock();
    CHECK(guard{}.release() == nullptr);
}

TEST_CASE("a guard that is moved from owns nothing, the other has all of it")
{
    fixture f;
    guard one{f.m};
    auto const token = one.fencing_token();
    guard other{std::move(one)};
    CHECK_FALSE(one);                     // NOLINT(bugprone-use-after-move)
    CHECK(one.mutex() == nullptr);        // NOLINT(bugprone-use-after-move)
    CHECK(one.fencing_token() == 0);      // NOLINT(bugprone-use-after-move)
    CHECK(other);
    CHECK(other.mutex() == &f.m);
    CHECK(other.fencing_token() == token);
    CHECK(other.still_held());
}

TEST_CASE("a guard that is assigned to unlocks what it had")
{
    fixture f;
    holdfast::memory::mutex bills{f.here, "bills"};
    guard g{f.m};
    g = guard{bills};
    CHECK(f.free());
    CHECK(g.mutex() == &bills);
    CHECK(g.still_held());
    g = guard{};
    CHECK(g.mutex() == nullptr);
    CHECK(bills.try_lock());
}

TEST_CASE("guards are swapped with what they own")
{
    fixture f;
    holdfast::memory::mutex bills{f.here, "bills"};
    guard one{f.m};
    guard other{bills, std::defer_lock};
    auto const token = one.fencing_token();
    swap(one, other);
    CHECK_FALSE(one);
    CHECK(one.mutex() == &bills);
    CHECK(other);
    CHECK(other.mutex() == &f.m);
    CHECK(other.fencing_token() == token);
    one.swap(other);
    CHECK(one);
    CHECK(one.mutex() == &f.m);
}

TEST_CASE("extend asks the mutex, and only where it is owned")
{
    fixture f;
    guard g{f.m};
    std::error_code ec = make_error_code(errc::contended);
    CHECK(g.extend(2h, ec));
    CHECK_FALSE(ec);
    CHECK(g.remaining() > 1h);
    CHECK_NOTHROW(g.extend(4h));
    CHECK(g.remaining() > 3h);
    CHECK(code_of([&] { g.extend(0ms); }) == errc::misconfigured);
    g.unlock();
    CHECK_FALSE(g.extend(1h, ec));
    CHECK(ec == errc::not_owner);
    CHECK(code_of([&] { g.extend(1h); }) == errc::not_owner);
    CHECK(code_of([] { guard{}.extend(1h); }) == errc::not_owner);
}

TEST_CASE("a guard learns that its lease is lost, and still owns the lock until it unlocks")
{
    fixture f;
    guard g{f.m};
    f.here.erase("orders");
    std::error_code ec;
    CHECK_FALSE(g.extend(1h, ec));
    CHECK(ec == errc::lease_lost);
    CHECK_FALSE(g.still_held());
    CHECK(g.lost_token().stop_requested());
    CHECK(g.owns_lock());
    g.unlock();
    CHECK_FALSE(g.owns_lock());
}
