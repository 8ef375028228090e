// SPDX-License-Identifier: MIT
//
// What the library must refuse to compile. For the words in which it does so see messages/.
#include "support/catch.hpp"

#include <holdfast/adapters/recursive_mutex.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/memory.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

using namespace std::chrono_literals;

namespace {

using mutex = holdfast::memory::mutex;
using guard = holdfast::leased_lock<mutex>;

struct throws_on_unlock : mutex {
    using mutex::mutex;
    using mutex::unlock;
    void unlock() noexcept(false) { mutex::unlock(); }
};

struct has_no_code : mutex {
    using mutex::mutex;
    void unlock() noexcept { mutex::unlock(); }
};

struct has_no_extend : mutex {
    using mutex::mutex;
    void extend(std::chrono::milliseconds, std::error_code&) = delete;
};

struct has_no_lease : mutex {
    using mutex::mutex;
    void lease() const {}
};

template <class M>
constexpr bool can_be_leased = requires { typename holdfast::leased_lock<M>; };

template <class M>
constexpr bool can_be_recursive = requires { typename holdfast::recursive_mutex<M>; };

template <class M, class F>
constexpr bool can_be_locked_for =
    requires(M& m, F f) { holdfast::with_lock(m, f); } && requires(M& m, F f) { holdfast::with_lock(m, 1s, f); };

template <class M, class F>
constexpr bool can_be_shared_for = requires(M& m, F f) { holdfast::with_shared_lock(m, f); } &&
                                   requires(M& m, F f) { holdfast::with_shared_lock(m, 1s, f); };

using shared_mutex = holdfast::memory::shared_mutex;
using semaphore = holdfast::memory::semaphore;

struct throws_on_unlock_shared : shared_mutex {
    using shared_mutex::shared_mutex;
    using shared_mutex::unlock_shared;
    void unlock_shared() noexcept(false) { shared_mutex::unlock_shared(); }
};

struct has_no_lease_shared : shared_mutex {
    using shared_mutex::shared_mutex;
    void lease_shared() const {}
};

struct has_no_code_shared : shared_mutex {
    using shared_mutex::shared_mutex;
    void unlock_shared() noexcept { shared_mutex::unlock_shared(); }
};

struct throws_on_release : semaphore {
    using semaphore::release;
    using semaphore::semaphore;
    void release() noexcept(false) { semaphore::release(); }
};

constexpr auto nothing = [] {};
constexpr auto takes_lease = [](holdfast::lease const&) {};
constexpr auto takes_int = [](int) {};
constexpr auto changes_lease = [](holdfast::lease&) {};

}  // namespace

TEST_CASE("a lock of the standard is no Lock: it cannot be lost")
{
    STATIC_REQUIRE(holdfast::Lock<mutex>);
    STATIC_REQUIRE_FALSE(holdfast::Lock<std::mutex>);
    STATIC_REQUIRE_FALSE(holdfast::Lock<std::timed_mutex>);
    STATIC_REQUIRE_FALSE(holdfast::Lock<std::shared_timed_mutex>);
    STATIC_REQUIRE_FALSE(holdfast::Lock<int>);
    STATIC_REQUIRE_FALSE(holdfast::Lock<guard>);
    STATIC_REQUIRE_FALSE(holdfast::Lock<mutex const>);
}

TEST_CASE("a lock that lacks one member, or may throw from unlock, is no Lock", "[lesson-6]")
{
    STATIC_REQUIRE_FALSE(holdfast::Lock<throws_on_unlock>);
    STATIC_REQUIRE_FALSE(holdfast::Lock<has_no_code>);
    STATIC_REQUIRE_FALSE(holdfast::Lock<has_no_extend>);
    STATIC_REQUIRE_FALSE(holdfast::Lock<has_no_lease>);
}

TEST_CASE("a read-write lock and a semaphore of the standard are none of ours, nor what lacks a member")
{
    STATIC_REQUIRE(holdfast::SharedLock<shared_mutex>);
    STATIC_REQUIRE_FALSE(holdfast::SharedLock<mutex>);
    STATIC_REQUIRE_FALSE(holdfast::SharedLock<std::shared_mutex>);
    STATIC_REQUIRE_FALSE(holdfast::SharedLock<std::shared_timed_mutex>);
    STATIC_REQUIRE_FALSE(holdfast::SharedLock<shared_mutex const>);
    STATIC_REQUIRE_FALSE(holdfast::SharedLock<throws_on_unlock_shared>);
    STATIC_REQUIRE_FALSE(holdfast::SharedLock<has_no_lease_shared>);
    STATIC_REQUIRE_FALSE(holdfast::SharedLock<has_no_code_shared>);
    STATIC_REQUIRE(holdfast::Lock<has_no_code_shared>);
    STATIC_REQUIRE(holdfast::Semaphore<semaphore>);
    STATIC_REQUIRE_FALSE(holdfast::Semaphore<std::counting_semaphore<3>>);
    STATIC_REQUIRE_FALSE(holdfast::Semaphore<throws_on_release>);
    STATIC_REQUIRE_FALSE(holdfast::Semaphore<semaphore const>);
}

TEST_CASE("with_shared_lock takes a SharedLock, and a function of a lease or of nothing")
{
    STATIC_REQUIRE(can_be_shared_for<shared_mutex, decltype(nothing)>);
    STATIC_REQUIRE(can_be_shared_for<shared_mutex, decltype(takes_lease)>);
    STATIC_REQUIRE_FALSE(can_be_shared_for<shared_mutex, decltype(takes_int)>);
    STATIC_REQUIRE_FALSE(can_be_shared_for<shared_mutex, int>);
    STATIC_REQUIRE_FALSE(can_be_shared_for<mutex, decltype(nothing)>);
    STATIC_REQUIRE_FALSE(can_be_shared_for<std::shared_timed_mutex, decltype(nothing)>);
}

TEST_CASE("guards and adapters take a Lock and nothing else")
{
    STATIC_REQUIRE(can_be_leased<mutex>);
    STATIC_REQUIRE_FALSE(can_be_leased<std::mutex>);
    STATIC_REQUIRE_FALSE(can_be_leased<std::timed_mutex>);
    STATIC_REQUIRE(can_be_recursive<mutex>);
    STATIC_REQUIRE(can_be_recursive<holdfast::recursive_mutex<mutex>>);
    STATIC_REQUIRE_FALSE(can_be_recursive<std::mutex>);
    STATIC_REQUIRE_FALSE(can_be_recursive<guard>);
}

TEST_CASE("with_lock takes a Lock, and a function of a lease or of nothing")
{
    STATIC_REQUIRE(can_be_locked_for<mutex, decltype(nothing)>);
    STATIC_REQUIRE(can_be_locked_for<mutex, decltype(takes_lease)>);
    STATIC_REQUIRE_FALSE(can_be_locked_for<mutex, decltype(takes_int)>);
    STATIC_REQUIRE_FALSE(can_be_locked_for<mutex, decltype(changes_lease)>);
    STATIC_REQUIRE_FALSE(can_be_locked_for<mutex, int>);
    STATIC_REQUIRE_FALSE(can_be_locked_for<std::mutex, decltype(nothing)>);
}

TEST_CASE("locks are neither copied nor moved, guards are moved and not copied")
{
    STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<mutex> || std::is_move_constructible_v<mutex>);
    STATIC_REQUIRE_FALSE(std::is_copy_assignable_v<mutex> || std::is_move_assignable_v<mutex>);
    STATIC_REQUIRE(std::is_nothrow_move_constructible_v<guard> && std::is_nothrow_move_assignable_v<guard>);
    STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<guard> || std::is_copy_assignable_v<guard>);
    STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<holdfast::recursive_mutex<mutex>>);
    STATIC_REQUIRE_FALSE(std::is_move_constructible_v<holdfast::recursive_mutex<mutex>>);
}

TEST_CASE("a guard is made from a lock only where somebody says so, and is a bool only in a condition")
{
    STATIC_REQUIRE(std::is_constructible_v<guard, mutex&>);
    STATIC_REQUIRE_FALSE(std::is_convertible_v<mutex&, guard>);
    STATIC_REQUIRE_FALSE(std::is_constructible_v<guard, mutex>);
    STATIC_REQUIRE_FALSE(std::is_constructible_v<guard, mutex const&>);
    STATIC_REQUIRE_FALSE(std::is_constructible_v<guard, mutex&, int>);
    STATIC_REQUIRE_FALSE(std::is_convertible_v<guard, bool>);
}

TEST_CASE("a store that lacks an operation cannot be made")
{
    struct has_no_release : holdfast::lock_store {
        [[nodiscard]] holdfast::shared_key make_key(std::string_view) const override { return nullptr; }
        [[nodiscard]] std::unique_ptr<holdfast::pending_acquire> acquire(holdfast::shared_key const&,
                                                                         holdfast::acquire_request const&) override
        {
            return nullptr;
        }
        [[nodiscard]] std::unique_ptr<holdfast::pending_extend>
        extend(holdfast::shared_key const&, holdfast::owner_token const&, std::chrono::milliseconds) override
        {
            return nullptr;
        }
    };
    struct has_all : has_no_release {
        [[nodiscard]] std::unique_ptr<holdfast::pending_release> release(holdfast::shared_key const&) override
        {
            return nullptr;
        }
        void lend_release(holdfast::shared_key const&, holdfast::release_user&) noexcept override {}
    };
    STATIC_REQUIRE(std::is_abstract_v<has_no_release>);
    STATIC_REQUIRE_FALSE(std::is_abstract_v<has_all>);
}

TEST_CASE("a lock is made of a store, whatever is behind it; that of one kind of store of none of another kind")
{
    STATIC_REQUIRE(std::is_constructible_v<holdfast::mutex, holdfast::memory::store, char const*>);
    STATIC_REQUIRE(std::is_constructible_v<holdfast::mutex, holdfast::store, char const*, holdfast::lock_options>);
    STATIC_REQUIRE(std::is_constructible_v<mutex, holdfast::memory::store, char const*>);
    STATIC_REQUIRE_FALSE(std::is_constructible_v<mutex, holdfast::store, char const*>);
    STATIC_REQUIRE_FALSE(std::is_constructible_v<holdfast::mutex, holdfast::store>);
    STATIC_REQUIRE(std::is_nothrow_copy_constructible_v<holdfast::store> && std::is_copy_assignable_v<holdfast::store>);
}
