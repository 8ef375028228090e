// SPDX-License-Identifier: MIT
//
// Several locks together, by callbacks, futures and coroutines.
#include "stores.hpp"
#include "support/async_outcome.hpp"
#include "support/catch.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/asio.hpp>

#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/experimental/deferred.hpp>
#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using asio::use_awaitable;
using asio::use_future;
using holdfast::async_lock;
using holdfast::async_lock_guard;
using holdfast::async_try_lock_for;
using holdfast::async_unlock;
using holdfast::multi_mutex;
using holdfast::mutex;
using holdfast::test::async_outcome;
using holdfast::test::code_of;
using holdfast::test::comes_free;

namespace {

/// Two locks of one client, and what takes them together.
struct pair {
    explicit pair(holdfast::store const& in) : a{in, "a"}, b{in, "b"} {}

    mutex a;
    mutex b;
    std::optional<multi_mutex> both{std::in_place, b, a};
};

template <class Locks>
[[nodiscard]] bool both_come_free(Locks& locks)
{
    return comes_free(locks, "a") && comes_free(locks, "b");
}

}  // namespace

TEMPLATE_TEST_CASE("several locks are taken together asynchronously, or none", "", HOLDFAST_LOCKS)
{
    TestType locks;
    pair mine{*locks.one};
    mutex rival{*locks.other, "b"};
    async_lock(*mine.both, use_future).get();
    CHECK(mine.both->lease().still_held());
    CHECK(mine.a.lease().still_held());
    CHECK_FALSE(rival.try_lock());
    async_unlock(*mine.both, use_future).get();
    CHECK_FALSE(mine.both->lease().still_held());
    CHECK(code_of([&](auto f) { async_unlock(*mine.both, f); }) == holdfast::errc::not_owner);

    rival.lock();
    CHECK_FALSE(async_try_lock_for(*mine.both, 20ms, use_future).get());
    CHECK(comes_free(locks, "a"));
    auto waits = async_lock_guard(*mine.both, use_future);
    CHECK(waits.wait_for(20ms) == std::future_status::timeout);
    rival.unlock();
    auto hold = waits.get();
    CHECK(hold.still_held());
    async_unlock(hold, use_future).get();
    CHECK_FALSE(hold);
    {
        auto const dropped = async_lock_guard(*mine.both, 1min, use_future).get();
        CHECK(dropped.owns_lock());
    }
    CHECK(both_come_free(locks));
    hold = async_lock_guard(*mine.both, use_future).get();
    hold.release();
    CHECK(mine.both->lease().still_held());
    mine.both->unlock();
    CHECK(both_come_free(locks));
}

TEMPLATE_TEST_CASE("coroutines take several locks in turn, on one thread and on four", "", HOLDFAST_LOCKS)
{
    TestType locks;
    auto const threads = GENERATE(std::size_t{1}, std::size_t{4});
    int sections = 0;  // guarded by the locks
    std::atomic<int> wrong{0};
    {
        pair one{*locks.one};
        pair other{*locks.other};
        asio::thread_pool pool{threads};
        auto const work = [&](multi_mutex& both) -> asio::awaitable<void> {
            for (int i = 0; i < 3; ++i) {
                co_await async_lock(both, use_awaitable);
                ++sections;
                co_await async_unlock(both, use_awaitable);
                auto const hold = co_await async_lock_guard(both, use_awaitable);
                if (!hold.still_held()) ++wrong;
                ++sections;
            }
        };
        for (auto* const both : {&*one.both, &*other.both, &*one.both})
            asio::co_spawn(pool, work(*both), [&](std::exception_ptr e) {
                if (e) ++wrong;
            });
        pool.join();
    }
    CHECK(wrong == 0);
    CHECK(sections == 18);
    CHECK(both_come_free(locks));
}

TEMPLATE_TEST_CASE("a wait for several locks is cancelled, at the first, at the last and as it is granted", "",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    pair mine{*locks.one};
    auto const* const held = GENERATE("a", "b", "none of them");
    mutex rival{*locks.other, held};
    rival.lock();
    for (int i = 0; i < 20; ++i) {
        asio::io_context io;
        asio::cancellation_signal by;
        std::optional<std::error_code> said;
        async_lock(*mine.both, asio::bind_cancellation_slot(
                                   by.slot(), asio::bind_executor(io, [&](std::error_code ec) { said = ec; })));
        if (i % 2 == 0) io.run_for(std::chrono::microseconds{100 * i});
        by.emit(asio::cancellation_type::total);
        io.run();
        REQUIRE(said);
        CHECK(mine.both->lease().still_held() == !*said);
        CHECK(mine.a.lease().still_held() == !*said);
        if (*said) CHECK(*said == asio::error::operation_aborted);
        mine.both->unlock();
    }
    rival.unlock();
    CHECK(both_come_free(locks));
}

TEMPLATE_TEST_CASE("several locks, or a context, are destroyed while a call is pending, or granted and not told", "",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    pair mine{*locks.one};
    mutex rival{*locks.other, GENERATE("b", "none of them")};
    rival.lock();
    auto later = async_lock(*mine.both, asio::experimental::deferred);
    {
        asio::io_context dies;
        async_lock(*mine.both,
                   asio::bind_executor(dies, [](std::error_code) { FAIL("a handler of a context that was not run"); }));
        std::this_thread::sleep_for(GENERATE(0ms, 20ms));
    }
    asio::io_context io;
    std::optional<std::error_code> said;
    async_lock(*mine.both, asio::bind_executor(io, [&](std::error_code ec) { said = ec; }));
    std::this_thread::sleep_for(GENERATE(0ms, 20ms));
    mine.both.reset();
    io.run();
    CHECK(said == asio::error::operation_aborted);
    CHECK(code_of(std::move(later)) == asio::error::operation_aborted);
    rival.unlock();
    CHECK(both_come_free(locks));
}

TEMPLATE_TEST_CASE("a function is told of several locks", "", HOLDFAST_LOCKS)
{
    TestType locks;
    pair mine{*locks.one};
    async_outcome taken;
    mine.both->async_lock(taken.hears());
    REQUIRE(taken.comes());
    CHECK_FALSE(taken.code());
    CHECK(mine.both->lease().still_held());
    async_outcome late;
    mine.both->async_try_lock_for(1ms, late.hears());
    REQUIRE(late.comes());
    CHECK_FALSE(late.code());
    CHECK_FALSE(late.held());
    std::stop_source stop;
    async_outcome stopped;
    mine.both->async_lock(stopped.hears(), stop.get_token());
    stop.request_stop();
    REQUIRE(stopped.comes());
    CHECK(stopped.code() == std::errc::operation_canceled);
    CHECK(mine.both->lease().still_held());
    async_outcome released;
    mine.both->async_unlock(released.hears());
    REQUIRE(released.comes());
    CHECK_FALSE(released.code());
    async_outcome none;
    mine.both->async_unlock(none.hears());
    REQUIRE(none.comes());
    CHECK(none.code() == holdfast::errc::not_owner);
    CHECK(both_come_free(locks));
}

TEST_CASE("a loss that the release of several locks finds is told beside the client's own thread")
{
    holdfast::test::memory_locks locks;
    pair mine{*locks.one};
    mutex other{*locks.one, "other"};
    mine.both->lock();
    std::atomic<bool> served{false};
    auto const callback = [&] {  // needs the client's own thread
        async_outcome taken;
        other.async_try_lock_for(1min, taken.hears());
        served = taken.comes() && taken.held();
    };
    std::stop_callback const on_loss{mine.both->lease().lost_token(), callback};
    locks.one->erase("a");
    CHECK(code_of([&](auto f) { async_unlock(*mine.both, f); }) == holdfast::errc::lease_lost);
    CHECK(holdfast::test::eventually([&] { return served.load(); }));
}

TEST_CASE("a guard adopts several locks, which are its own then")
{
    holdfast::test::memory_locks locks;
    pair mine{*locks.one};
    mine.both->lock();
    {
        holdfast::async_guard const hold{*mine.both, std::adopt_lock};
        CHECK(hold.owns_lock());
        CHECK(hold.still_held());
        CHECK(mine.a.lease().still_held());
        std::error_code ec;
        mine.both->unlock(ec);
        CHECK(ec == holdfast::errc::not_owner);
    }
    CHECK(both_come_free(locks));
}

TEST_CASE("a lock that is lost while the others are waited for is taken anew")
{
    holdfast::test::memory_locks locks;
    pair mine{*locks.one};
    mutex rival{*locks.other, "b"};
    rival.lock();
    auto waits = async_lock_guard(*mine.both, use_future);
    REQUIRE(holdfast::test::eventually([&] { return mine.a.lease().still_held(); }));
    auto const first = mine.a.lease();
    locks.one->erase("a");
    std::error_code ec;
    CHECK_FALSE(mine.a.extend(1min, ec));  // finds the loss
    rival.unlock();
    auto const hold = waits.get();
    CHECK(hold.still_held());
    CHECK(mine.a.lease().still_held());
    CHECK_FALSE(mine.a.lease() == first);
}
