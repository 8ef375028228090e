// SPDX-License-Identifier: MIT
//
// An execution context that is destroyed before its calls have ended: handlers are destroyed with it, uncalled, and no
// lock is kept.
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"

#include <holdfast/asio.hpp>

#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>

#include <sys/resource.h>
#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::async_lock;
using holdfast::async_lock_guard;
using holdfast::async_try_lock_for;
using holdfast::async_unlock;
using holdfast::test::child;
using holdfast::test::comes_free;
using holdfast::test::eventually;

namespace {

/// A handler on `io` that must not be called, and keeps `alive`.
auto never_called(asio::io_context& io, std::shared_ptr<int> alive)
{
    return asio::bind_executor(
        io, [alive = std::move(alive)](auto&&...) { FAIL("a handler of a context that was not run"); });
}

/// Returns: for how long this process has computed.
std::chrono::microseconds computed()
{
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    auto const of = [](timeval const& t) {
        return std::chrono::seconds{t.tv_sec} + std::chrono::microseconds{t.tv_usec};
    };
    return of(used.ru_utime) + of(used.ru_stime);
}

/// Returns: for how long this process computes in a second in which the test does nothing.
std::chrono::microseconds computed_in_a_second()
{
    auto const before = computed();
    std::this_thread::sleep_for(1s);
    return computed() - before;
}

/// What another thread than the test's meets: it goes on when `go` says so.
struct obstacle {
    std::thread::id const test = std::this_thread::get_id();
    std::promise<void> met{};
    std::promise<void> go{};
    std::atomic<bool> once{false};
};

/// Has its obstacle before each piece of memory.
template <class T>
struct stuck_allocator {
    using value_type = T;

    explicit stuck_allocator(obstacle& o) : of{&o} {}
    template <class U>
    stuck_allocator(stuck_allocator<U> const& other) : of{other.of}  // NOLINT(google-explicit-constructor)
    {
    }

    [[nodiscard]] T* allocate(std::size_t n)
    {
        if (std::this_thread::get_id() != of->test && !of->once.exchange(true)) {
            of->met.set_value();
            of->go.get_future().wait();
        }
        return std::allocator<T>{}.allocate(n);
    }
    void deallocate(T* p, std::size_t n) { std::allocator<T>{}.deallocate(p, n); }
    friend bool operator==(stuck_allocator const&, stuck_allocator const&) = default;

    obstacle* of;
};

/// A handler that the client's thread cannot give to its context before its obstacle lets it.
struct stuck_handler {
    using allocator_type = stuck_allocator<std::byte>;

    [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type{*of}; }
    void operator()(std::error_code) const {}

    obstacle* of;
};

/// A handler that notes by which thread it is moved or copied.
class watched_handler {
public:
    watched_handler(std::atomic<int>& elsewhere, bool& told) : elsewhere_{&elsewhere}, told_{&told} {}
    watched_handler(watched_handler const& other) : test_{other.test_}, elsewhere_{other.elsewhere_}, told_{other.told_}
    {
        if (std::this_thread::get_id() != test_) ++*elsewhere_;
    }
    watched_handler& operator=(watched_handler const&) = delete;
    ~watched_handler()
    {
        if (std::this_thread::get_id() != test_) ++*elsewhere_;
    }

    void operator()(std::error_code ec) const { *told_ = !ec; }

private:
    std::thread::id test_ = std::this_thread::get_id();
    std::atomic<int>* elsewhere_;
    bool* told_;
};

}  // namespace

TEMPLATE_TEST_CASE("a context is destroyed while calls are pending", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex holder{GENERATE(true, false) ? *locks.one : *locks.other, "orders"};
    holdfast::mutex m{*locks.one, "orders"};
    holdfast::mutex second{*locks.one, "orders"};
    holder.lock();
    auto alive = std::make_shared<int>(0);
    std::weak_ptr<int> const seen = alive;
    {
        asio::io_context io;
        async_lock(m, never_called(io, alive));
        async_try_lock_for(second, 1h, never_called(io, alive));
        async_lock_guard(second, never_called(io, std::move(alive)));
    }
    CHECK(seen.expired());
    holder.unlock();
    CHECK(comes_free(locks, "orders"));
    CHECK_FALSE(m.lease().still_held());
}

TEMPLATE_TEST_CASE("a context is destroyed when a lock was granted and not told", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders"};
    auto alive = std::make_shared<int>(0);
    std::weak_ptr<int> const seen = alive;
    {
        asio::io_context io;
        auto const form = GENERATE(0, 1, 2);
        if (form == 0) async_lock(m, never_called(io, std::move(alive)));
        if (form == 1) async_try_lock_for(m, 1h, never_called(io, std::move(alive)));
        if (form == 2) async_lock_guard(m, never_called(io, std::move(alive)));
        REQUIRE(eventually([&] { return m.lease().still_held(); }));
        std::this_thread::sleep_for(GENERATE(0ms, 5ms));
    }
    CHECK(seen.expired());
    CHECK(eventually([&] { return !m.lease().still_held(); }));  // the client's thread may be about to tell it
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a lock that is granted to a context that is gone is free at once, whatever its min_hold", "",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders", {.min_hold = 30s}};
    auto const form = GENERATE(0, 1, 2);
    {
        asio::io_context io;
        if (form == 0) async_lock(m, never_called(io, {}));
        if (form == 1) async_try_lock_for(m, 1h, never_called(io, {}));
        if (form == 2) async_lock_guard(m, never_called(io, {}));
        REQUIRE(eventually([&] { return m.lease().still_held(); }));
    }
    holdfast::mutex rival{*locks.other, "orders"};
    auto const begun = holdfast::boot_clock::now();
    CHECK(rival.try_lock_for(1min));
    CHECK(holdfast::boot_clock::now() - begun < 25s);
}

TEMPLATE_TEST_CASE("a context is destroyed while a lock is given back", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders"};
    m.lock();
    {
        asio::io_context io;
        async_unlock(m, never_called(io, nullptr));
    }
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a context is destroyed with a coroutine that owns the mutex it waits for", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex holder{*locks.other, "orders"};
    bool const waits = GENERATE(true, false);
    if (waits) holder.lock();
    {
        asio::io_context io;
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                holdfast::mutex own{*locks.one, "orders"};
                co_await async_lock(own, asio::use_awaitable);
                FAIL("a coroutine of a context that was not run");
            },
            asio::detached);
        io.poll_one();
        std::this_thread::sleep_for(5ms);
    }
    holder.unlock();
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a context is destroyed at any moment of a call", "", HOLDFAST_LOCKS)
{
    TestType locks;
    std::mt19937 random{17};
    std::vector<std::unique_ptr<holdfast::mutex>> mutexes;
    for (int i = 0; i < 8; ++i)
        mutexes.push_back(std::make_unique<holdfast::mutex>(i % 2 == 0 ? *locks.one : *locks.other,
                                                            "orders/" + std::to_string(i / 4)));
    std::atomic<int> told{0};
    for (int i = 0; i < 300 || told == 0; ++i) {
        asio::io_context io;
        for (auto& m : mutexes)
            async_lock_guard(*m, asio::bind_executor(io, [&](std::error_code, holdfast::async_guard) { ++told; }));
        auto const pause = std::chrono::microseconds{random() % (i < 300 ? 400 : 100'000)};
        if (i % 3 == 0) {
            io.run_for(pause);
        } else {
            std::this_thread::sleep_for(pause);
        }
    }
    CHECK(told > 0);
    CHECK(comes_free(locks, "orders/0"));
    CHECK(comes_free(locks, "orders/1"));
}

TEMPLATE_TEST_CASE("a pool of threads is stopped and destroyed in the middle of its work", "", HOLDFAST_LOCKS)
{
    TestType locks;
    std::vector<std::unique_ptr<holdfast::mutex>> mutexes;
    for (int i = 0; i < 8; ++i)
        mutexes.push_back(std::make_unique<holdfast::mutex>(i % 2 == 0 ? *locks.one : *locks.other,
                                                            "orders/" + std::to_string(i / 4)));
    std::atomic<int> lost{0};
    for (int i = 0; i < 20; ++i) {
        asio::thread_pool pool{4};
        for (auto& m : mutexes)
            asio::co_spawn(
                pool,
                [&, &m = *m]() -> asio::awaitable<void> {
                    for (;;) {
                        auto hold = co_await async_lock_guard(m, asio::use_awaitable);
                        if (!hold.still_held()) ++lost;
                        co_await async_unlock(hold, asio::use_awaitable);
                    }
                },
                asio::detached);
        std::this_thread::sleep_for(5ms);
        pool.stop();
    }
    CHECK(lost == 0);
    CHECK(comes_free(locks, "orders/0"));
    CHECK(comes_free(locks, "orders/1"));
}

TEMPLATE_TEST_CASE("a forked child that ends its copies of what is pending does not disturb its parent", "",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex holder{*locks.one, "orders"};
    holdfast::mutex elsewhere{*locks.other, "invoices"};
    holdfast::mutex in_line{*locks.one, "orders"};
    holdfast::mutex asking{*locks.one, "invoices"};
    holder.lock();
    elsewhere.lock();
    auto io = std::make_unique<asio::io_context>();
    std::atomic<int> told{0};
    std::stop_source stop;
    bool const with_context = GENERATE(true, false);
    if (with_context) {
        auto const counted = [&] { return asio::bind_executor(*io, [&](std::error_code ec) { told += ec ? 0 : 1; }); };
        async_lock(in_line, counted());
        async_lock(asking, counted());
    } else {
        auto const counted = [&](std::error_code ec) { told += ec ? 0 : 1; };
        in_line.async_lock(counted, stop.get_token());
        asking.async_lock(counted, stop.get_token());
    }
    CHECK(eventually([&] {  // its request was answered: it is in line
        auto const seen = locks.other->holder("invoices");
        return seen && seen->waiting == 1U;
    }));
    auto born = child::fork([&] {
        io.reset();
        stop.request_stop();
        return 0;
    });
    CHECK(born.wait_for(1min) == 0);
    CHECK(computed_in_a_second() <
          250ms);  // a thread that is woken for nothing, again and again, computes all the time
    holder.unlock();
    elsewhere.unlock();
    CHECK(eventually([&] {
        io->restart();
        io->poll();
        return told == 2;
    }));
    in_line.unlock();
    asking.unlock();
}

TEST_CASE("a forked child destroys a context without a wait for the thread that is giving it a handler")
{
    holdfast::test::memory_locks locks;
    holdfast::mutex m{*locks.one, "orders"};
    auto io = std::make_unique<asio::io_context>();
    auto const alive = std::make_shared<int>(0);
    holdfast::mutex holder{*locks.other, "invoices"};
    holdfast::mutex waits{*locks.one, "invoices"};
    holder.lock();
    async_lock(waits, never_called(*io, alive));
    obstacle in_the_way;
    async_lock(m, asio::bind_executor(*io, stuck_handler{&in_the_way}));
    in_the_way.met.get_future().wait();
    auto born = child::fork([&] {
        io.reset();
        return alive.use_count() == 1 ? 0 : 1;
    });
    CHECK(born.wait_for(1min) == 0);
    in_the_way.go.set_value();
    io->run_one();
    CHECK(m.lease().still_held());
    m.unlock();
    io.reset();
    holder.unlock();
}

TEST_CASE("a handler is moved by the thread that calls it, and by no thread of the client")
{
    holdfast::test::memory_locks locks;
    holdfast::mutex holder{*locks.other, "orders"};
    holdfast::mutex m{*locks.one, "orders"};
    holder.lock();
    asio::io_context io;
    std::atomic<int> elsewhere{0};
    bool told = false;
    async_lock(m, asio::bind_executor(io, watched_handler{elsewhere, told}));
    holder.unlock();
    io.run();
    CHECK(told);
    m.unlock();
    async_lock(m, asio::bind_executor(io, watched_handler{elsewhere, told}));  // not told
    CHECK(eventually([&] { return m.lease().still_held(); }));
    CHECK(elsewhere == 0);
}

TEST_CASE("a forked child that goes on with a context is not told that it has what its parent was granted")
{
    holdfast::test::memory_locks locks;
    holdfast::mutex m{*locks.one, "orders"};
    holdfast::mutex guarded{*locks.one, "prices"};
    holdfast::mutex later{*locks.one, "invoices"};
    asio::io_context io;
    std::vector<std::error_code> told;
    bool owned = false;
    async_lock(m, asio::bind_executor(io, [&](std::error_code ec) { told.push_back(ec); }));
    async_lock_guard(guarded, asio::bind_executor(io, [&](std::error_code ec, holdfast::async_guard hold) {
                         told.push_back(ec);
                         owned = hold.owns_lock();
                     }));
    CHECK(eventually([&] { return m.lease().still_held() && guarded.lease().still_held(); }));
    asio::io_context after;
    async_lock(later, asio::bind_executor(after, [](std::error_code) {}));
    after.run();  // the client's thread has told the results before
    io.notify_fork(asio::io_context::fork_prepare);
    auto born = child::fork([&] {
        io.notify_fork(asio::io_context::fork_child);
        io.poll();
        bool const refused = told.size() == 2 && told[0] == holdfast::errc::misconfigured && told[1] == told[0];
        return refused && !owned ? 0 : 1;
    });
    io.notify_fork(asio::io_context::fork_parent);
    CHECK(born.wait_for(1min) == 0);
    io.run();
    CHECK(told == std::vector<std::error_code>(2));
    CHECK(m.lease().still_held());
    m.unlock();
    later.unlock();
}

TEMPLATE_TEST_CASE("a release that begins while its context ends is sent", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders"};
    holdfast::mutex rival{*locks.other, "orders"};
    m.lock();
    {
        asio::io_context io;
        auto releases = std::shared_ptr<void>{
            nullptr, [&](void*) {
                async_unlock(m, asio::bind_executor(io, [](std::error_code) { FAIL("of a context that has ended"); }));
            }};
        async_lock(rival, asio::bind_executor(io, [releases = std::move(releases)](std::error_code) {}));
    }
    CHECK(eventually([&] { return !m.lease().still_held(); }));
    CHECK(comes_free(locks, "orders"));
}
