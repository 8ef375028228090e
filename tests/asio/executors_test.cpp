// SPDX-License-Identifier: MIT
//
// What belongs to a handler: its executor, its allocator, and that its executor has work while it is pending.
#include "stores.hpp"
#include "support/catch.hpp"

#include <holdfast/asio.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/bind_executor.hpp>
#include <asio/io_context.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::async_lock;
using holdfast::async_unlock;

TEMPLATE_TEST_CASE("a pending call is work of its executor", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex holder{*locks.other, "orders"};
    holdfast::mutex m{*locks.one, "orders"};
    holder.lock();
    asio::io_context io;
    bool told = false;
    async_lock(m, asio::bind_executor(io, [&](std::error_code ec) { told = !ec; }));
    CHECK(io.run_for(50ms) == 0);
    CHECK_FALSE(io.stopped());  // it would be, had it nothing to wait for
    holder.unlock();
    io.run();
    CHECK(told);
}

TEST_CASE("a handler without an executor is called by a thread of the system's, not by the caller")
{
    holdfast::memory::store store;
    holdfast::mutex m{store, "orders"};
    std::atomic<bool> elsewhere{false};
    std::atomic<bool> told{false};
    async_lock(m, [&, caller = std::this_thread::get_id()](std::error_code ec) {
        elsewhere = !ec && std::this_thread::get_id() != caller;
        told = true;
    });
    CHECK(holdfast::test::eventually([&] { return told.load(); }));
    CHECK(elsewhere);
}

TEMPLATE_TEST_CASE("handlers of a strand are called one at a time, also through a polymorphic executor", "",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    constexpr int count = 40;
    std::vector<std::unique_ptr<holdfast::mutex>> mutexes;
    asio::thread_pool pool{4};
    asio::any_io_executor const strand = asio::make_strand(pool);
    std::atomic<int> inside{0};
    int told = 0;  // guarded by the strand
    bool alone = true;
    auto const enter = [&] {
        alone = alone && inside.fetch_add(1) == 0;
        std::this_thread::sleep_for(100us);
        ++told;
        inside.fetch_sub(1);
    };
    for (int i = 0; i < count; ++i) {
        mutexes.push_back(std::make_unique<holdfast::mutex>(*locks.one, "orders/" + std::to_string(i % 8)));
        async_lock(*mutexes.back(), asio::bind_executor(strand, [&, m = mutexes.back().get()](std::error_code ec) {
            CHECK_FALSE(ec);
            enter();
            async_unlock(*m, asio::bind_executor(strand, [&](std::error_code) { enter(); }));
        }));
    }
    pool.join();
    CHECK(told == 2 * count);
    CHECK(alone);
}

namespace {

/// Counts what is allocated, for all that are copied from one.
template <class T>
class counting_allocator {
public:
    using value_type = T;

    explicit counting_allocator(std::atomic<int>& made, std::atomic<int>& left) : made_{&made}, left_{&left} {}
    template <class U>
    counting_allocator(counting_allocator<U> const& from) : made_{from.made_}, left_{from.left_}
    {
    }

    T* allocate(std::size_t n)
    {
        ++*made_;
        ++*left_;
        return std::allocator<T>{}.allocate(n);
    }
    void deallocate(T* p, std::size_t n)
    {
        --*left_;
        std::allocator<T>{}.deallocate(p, n);
    }
    friend bool operator==(counting_allocator const&, counting_allocator const&) noexcept = default;

    std::atomic<int>* made_;
    std::atomic<int>* left_;
};

struct counting_handler {
    using allocator_type = counting_allocator<std::byte>;
    using executor_type = asio::io_context::executor_type;

    [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type{*made, *left}; }
    [[nodiscard]] executor_type get_executor() const noexcept { return io->get_executor(); }
    void operator()(std::error_code ec)
    {
        CHECK_FALSE(ec);
        *left_when_called = left->load();
    }

    asio::io_context* io;
    std::atomic<int>* made;
    std::atomic<int>* left;
    int* left_when_called;
};

}  // namespace

TEST_CASE("a handler waits in memory of its allocator, which is given back before it is called")
{
    holdfast::memory::store store;
    holdfast::mutex m{store, "orders"};
    std::atomic<int> made{0};
    std::atomic<int> left{0};
    int left_when_called = -1;
    asio::io_context io;
    async_lock(m, counting_handler{&io, &made, &left, &left_when_called});
    CHECK(made >= 1);
    io.run();
    CHECK(made >= 2);  // the executor's, too
    CHECK(left_when_called == 0);
    CHECK(left == 0);
}

TEST_CASE("a handler that can only be moved is as good as another")
{
    holdfast::memory::store store;
    holdfast::mutex m{store, "orders"};
    asio::io_context io;
    bool told = false;
    async_lock(m, asio::bind_executor(
                      io, [&, own = std::make_unique<int>(1)](std::error_code ec) { told = !ec && *own == 1; }));
    io.run();
    CHECK(told);
}

TEST_CASE("a handler that is given by name is copied")
{
    holdfast::memory::store store;
    holdfast::mutex m{store, "orders"};
    asio::io_context io;
    auto const kept = std::make_shared<int>(0);
    auto handler = asio::bind_executor(io, [kept](std::error_code) { ++*kept; });
    async_lock(m, handler);
    io.run();
    CHECK(*kept == 1);
    handler(std::error_code{});
    CHECK(*kept == 2);
}
