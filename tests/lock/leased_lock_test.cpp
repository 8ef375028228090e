// SPDX-License-Identifier: MIT
//
// How a guard takes a lock. What it does with it: leased_lock_ownership_test.cpp.
#include "support/catch.hpp"
#include "support/orders.hpp"

#include <holdfast/memory.hpp>

#include <chrono>
#include <mutex>
#include <stop_token>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using guard = holdfast::leased_lock<holdfast::memory::mutex>;
using fixture = holdfast::test::orders<>;

namespace {

std::stop_token stopped()
{
    std::stop_source source;
    source.request_stop();
    return source.get_token();
}

}  // namespace

TEST_CASE("a guard without a mutex owns nothing and answers for nothing")
{
    guard const g;
    CHECK_FALSE(g);
    CHECK_FALSE(g.owns_lock());
    CHECK(g.mutex() == nullptr);
    CHECK(g.fencing_token() == 0);
    CHECK_FALSE(g.still_held());
    CHECK(g.remaining() == 0ns);
    CHECK(g.expires_at() == boot_clock::time_point::min());
    CHECK_FALSE(g.lost_token().stop_possible());
}

TEST_CASE("every constructor that locks takes a free lock, and the destructor frees it")
{
    fixture f;
    std::stop_token const never;
    auto const check = [&](guard const& g) {
        CHECK(g);
        CHECK(g.owns_lock());
        CHECK(g.mutex() == &f.m);
        CHECK(g.still_held());
        CHECK(g.fencing_token() > 0);
        CHECK_FALSE(f.free());
    };
    check(guard{f.m});
    CHECK(f.free());
    check(guard{f.m, std::try_to_lock});
    CHECK(f.free());
    check(guard{f.m, 1h});
    CHECK(f.free());
    check(guard{f.m, boot_clock::now() + 1h});
    check(guard{f.m, std::chrono::system_clock::now() + 1h});
    CHECK(f.free());
    check(guard{f.m, never});
    CHECK(f.free());
    check(guard{f.m, never, 1h});
    CHECK(f.free());
    f.m.lock();
    check(guard{f.m, std::adopt_lock});
    CHECK(f.free());
}

TEST_CASE("a guard that is to lock later has not locked")
{
    fixture f;
    guard g{f.m, std::defer_lock};
    CHECK_FALSE(g);
    CHECK(g.mutex() == &f.m);
    CHECK(f.free());
    g.lock();
    CHECK(g);
    CHECK_FALSE(f.free());
}

TEST_CASE("a guard that does not get the lock owns nothing and frees nothing")
{
    fixture f;
    f.rival.lock();
    auto const check = [&](guard const& g) {
        CHECK_FALSE(g);
        CHECK(g.mutex() == &f.m);
        CHECK_FALSE(g.still_held());
        CHECK(g.fencing_token() == 0);
    };
    check(guard{f.m, std::try_to_lock});
    check(guard{f.m, 1ms});
    check(guard{f.m, boot_clock::now() - 1h});
    check(guard{f.m, stopped()});
    check(guard{f.m, stopped(), 1h});
    CHECK(f.rival.lease().still_held());
}

TEST_CASE("every member that locks takes a free lock")
{
    fixture f;
    guard g{f.m, std::defer_lock};
    std::stop_token const never;
    auto const held = [&](bool said) {
        CHECK(said);
        CHECK(g.owns_lock());
        CHECK(g.still_held());
        g.unlock();
        CHECK_FALSE(g.owns_lock());
        CHECK(f.free());
    };
    g.lock();
    held(true);
    held(g.lock(never));
    held(g.try_lock());
    held(g.try_lock_for(1h));
    held(g.try_lock_for(never, 1h));
    held(g.try_lock_until(boot_clock::now() + 1h));
    held(g.try_lock_until(never, std::chrono::steady_clock::now() + 1h));
}

TEST_CASE("a member that does not get the lock says so, and leaves the guard as it was")
{
    fixture f;
    f.rival.lock();
    guard g{f.m, std::defer_lock};
    for (bool const said :
         {g.lock(stopped()), g.try_lock(), g.try_lock_for(1ms), g.try_lock_for(stopped(), 1h),
          g.try_lock_until(boot_clock::now() - 1h), g.try_lock_until(stopped(), boot_clock::now() + 1h)})
        CHECK_FALSE(said);
    CHECK_FALSE(g);
    CHECK(g.mutex() == &f.m);
}

TEST_CASE("what extend throws names the lock, where the guard has one")
{
    auto const thrown = [](guard& g, std::chrono::milliseconds ttl) {
        try {
            g.extend(ttl);
        } catch (holdfast::error const& e) {
            CHECK(e.lock_name() == (g.mutex() ? "orders" : ""));
            return std::string{e.what()};
        }
        return std::string{"(nothing)"};
    };
    fixture f;
    guard unlocked{f.m, std::defer_lock};
    CHECK(thrown(unlocked, 5s) == "lock \"orders\": extend to 5000 ms: the lock is not held by the caller");
    guard held{f.m};
    CHECK(thrown(held, 0ms) ==
          "lock \"orders\": extend to 0 ms, but it must be positive: the lock or its client is misconfigured");
    f.here.erase("orders");
    CHECK(thrown(held, 5s) == "lock \"orders\": extend to 5000 ms: the lease was lost");
    guard none;
    CHECK(thrown(none, 5s) == "extend to 5000 ms: the lock is not held by the caller");
}
