// SPDX-License-Identifier: MIT
//
// Who was told of a hold keeps the lock for its `min_hold`; a hold that no user was told of is free at once.
#include "stores.hpp"
#include "support/catch.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/asio.hpp>
#include <holdfast/semaphore.hpp>

#include <asio/bind_executor.hpp>
#include <asio/error.hpp>
#include <asio/io_context.hpp>

#include <chrono>
#include <optional>
#include <system_error>

using namespace std::chrono_literals;
using holdfast::async_acquire;
using holdfast::async_acquire_guard;
using holdfast::async_guard;
using holdfast::async_lock;
using holdfast::async_lock_guard;
using holdfast::async_unlock;
using holdfast::multi_mutex;
using holdfast::mutex;
using holdfast::semaphore;
using holdfast::test::code_of;
using holdfast::test::comes_free;
using holdfast::test::eventually;

namespace {

/// Returns: what sets `said`, in `io`.
auto into(std::optional<std::error_code>& said, asio::io_context& io)
{
    return asio::bind_executor(io, [&](std::error_code ec, auto&&...) { said = ec; });
}

/// Returns: whether another client finds `name` locked.
template <class Locks>
[[nodiscard]] bool is_kept(Locks& locks, std::string_view name)
{
    return !mutex{*locks.other, name}.try_lock();
}

}  // namespace

TEMPLATE_TEST_CASE("a mutex is destroyed before its handler was told of the grant: it is free at once", "",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    std::optional<mutex> m{std::in_place, *locks.one, "orders", holdfast::lock_options{.min_hold = 1h}};
    asio::io_context io;
    std::optional<std::error_code> said;
    GENERATE(true, false) ? async_lock(*m, into(said, io)) : async_lock_guard(*m, into(said, io));
    REQUIRE(eventually([&] { return m->lease().still_held(); }));
    m.reset();
    CHECK(comes_free(locks, "orders"));
    io.run();
    CHECK(said == asio::error::operation_aborted);
}

TEMPLATE_TEST_CASE("a mutex is destroyed while a call that has it waits for another: it is free at once", "",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    mutex holder{*locks.other, "b"};
    holder.lock();
    std::optional<mutex> a{std::in_place, *locks.one, "a", holdfast::lock_options{.min_hold = 1h}};
    mutex b{*locks.one, "b", {.min_hold = 1h}};
    std::optional<multi_mutex> both{std::in_place, *a, b};
    asio::io_context io;
    std::optional<std::error_code> said;
    async_lock(*both, into(said, io));
    REQUIRE(eventually([&] { return a->lease().still_held(); }));
    a.reset();
    CHECK(comes_free(locks, "a"));
    both.reset();
    io.run();
    CHECK(said == asio::error::operation_aborted);
    holder.unlock();
    CHECK(comes_free(locks, "b"));
}

TEMPLATE_TEST_CASE("a semaphore is destroyed before a handler was told of its permits: they are free at once", "",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    semaphore others{*locks.other, "jobs", 2};
    auto const some = GENERATE(1, 2);
    if (some == 2) others.acquire();  // so that a call for two has one, and waits
    std::optional<semaphore> jobs{std::in_place, *locks.one, "jobs", 2, holdfast::lock_options{.min_hold = 1h}};
    asio::io_context io;
    std::optional<std::error_code> said;
    GENERATE(true, false) ? async_acquire(*jobs, some, into(said, io))
                          : async_acquire_guard(*jobs, some, into(said, io));
    REQUIRE(eventually([&] { return jobs->permits_in_use() == some; }));
    jobs.reset();
    if (some == 2) others.release();
    CHECK(others.try_acquire_for(1min));
    CHECK(others.try_acquire_for(1min));
    io.run();
    CHECK(said == asio::error::operation_aborted);
}

TEMPLATE_TEST_CASE("a lock that a handler was told of is kept for its min_hold", "", HOLDFAST_LOCKS)
{
    TestType locks;
    mutex m{*locks.one, "orders", {.min_hold = 1h}};
    auto const form = GENERATE(0, 1, 2);
    if (form == 0) {
        CHECK_FALSE(code_of([&](auto f) { async_lock(m, f); }));
        m.unlock();
    } else if (form == 1) {
        CHECK_FALSE(code_of([&](auto f) { m.async_lock(f); }));
        CHECK_FALSE(code_of([&](auto f) { async_unlock(m, f); }));
    } else {
        asio::io_context io;
        async_lock_guard(m, asio::bind_executor(io, [&](std::error_code ec, async_guard hold) {
                             CHECK_FALSE(ec);
                             CHECK(hold);
                         }));
        io.run();
    }
    CHECK_FALSE(m.lease().still_held());
    CHECK(is_kept(locks, "orders"));
}

TEMPLATE_TEST_CASE("several locks that a handler was told of are kept for their min_hold", "", HOLDFAST_LOCKS)
{
    TestType locks;
    mutex a{*locks.one, "a", {.min_hold = 1h}};
    mutex b{*locks.one, "b", {.min_hold = 1h}};
    multi_mutex both{a, b};
    auto const form = GENERATE(0, 1, 2);
    if (form == 0) {
        CHECK_FALSE(code_of([&](auto f) { async_lock(both, f); }));
        both.unlock();
    } else if (form == 1) {
        CHECK_FALSE(code_of([&](auto f) { both.async_lock(f); }));
        both.unlock();
    } else {
        asio::io_context io;
        async_lock_guard(both, asio::bind_executor(io, [&](std::error_code, async_guard hold) { CHECK(hold); }));
        io.run();
    }
    CHECK_FALSE(both.lease().still_held());
    CHECK(is_kept(locks, "a"));
    CHECK(is_kept(locks, "b"));
}

TEMPLATE_TEST_CASE("permits that a handler was told of are kept for their min_hold", "", HOLDFAST_LOCKS)
{
    TestType locks;
    semaphore jobs{*locks.one, "jobs", 2, {.min_hold = 1h}};
    semaphore others{*locks.other, "jobs", 2};
    auto const some = GENERATE(1, 2);
    auto const form = GENERATE(0, 1, 2);
    if (form == 0) {
        CHECK_FALSE(code_of([&](auto f) { async_acquire(jobs, some, f); }));
        jobs.release(some);
    } else if (form == 1) {
        CHECK_FALSE(code_of([&](auto f) { jobs.async_acquire(some, f); }));
        jobs.release(some);
    } else {
        asio::io_context io;
        async_acquire_guard(jobs, some,
                            asio::bind_executor(io, [&](std::error_code, async_guard hold) { CHECK(hold); }));
        io.run();
    }
    CHECK(others.try_acquire() == (some == 1));
    CHECK_FALSE(others.try_acquire());
}
