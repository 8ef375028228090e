// SPDX-License-Identifier: MIT
//
// The objects of a lock before it is first asked for: they have no queue yet.
#include "fake_store.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"

#include <holdfast/core/async_object.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/client_context.hpp>
#include <holdfast/mutex.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::mutex;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::fake_client;
using holdfast::test::fake_store;

TEST_CASE("a lock that was never asked for is not held, and its members say so as after an unlock")
{
    fake_client f;
    std::vector<std::error_code> told;
    mutex m{f.locks, "orders", {.on_error = [&](holdfast::error const& e) { told.push_back(e.code()); }}};
    bool const used = GENERATE(false, true);
    if (used) {
        m.lock();
        m.unlock();
    }
    CHECK_FALSE(m.lease().still_held());
    CHECK(m.name() == "orders");
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == errc::not_owner);
    CHECK(told.empty());
    m.unlock();
    CHECK(told == std::vector{make_error_code(errc::not_owner)});
    CHECK_FALSE(m.extend(10s, ec));
    CHECK(ec == errc::not_owner);
    CHECK(code_of([&] { m.extend(10s); }) == errc::not_owner);
    CHECK(code_of([&] { m.extend(0s); }) == errc::misconfigured);
    CHECK(f.store->acquires.size() == (used ? 1 : 0));
    CHECK(f.store->extends.size() == 0);
}

TEST_CASE("two objects of one name, made before either is asked for, take turns in this process")
{
    fake_client f;
    mutex one{f.locks, "orders"};
    mutex other{f.locks, "orders"};
    one.lock();
    CHECK_FALSE(other.try_lock());
    CHECK(f.store->acquires.size() == 1);
    one.unlock();
}

TEST_CASE("an object that ends while threads ask for it for the first time has one queue, or says that it has ended")
{
    auto const store = std::make_shared<fake_store>();
    std::atomic<bool> wrong{false};
    std::atomic<int> under_way{0};
    auto const note = [&](std::error_code ec) {
        if (ec && ec != std::errc::operation_canceled) wrong = true;
        --under_way;
    };
    for (int i = 0; i < 50; ++i) {
        std::shared_ptr<holdfast::detail::lock_object> const object =
            std::make_shared<holdfast::detail::client_context>(store)->make_mutex("orders", {});
        std::atomic<int> ready{0};
        auto const together = [&] {
            ++ready;
            while (ready != 4) std::this_thread::yield();
        };
        auto const asks = [&] {
            ++under_way;
            together();
            try {
                object->begin_lock({}, {}, holdfast::detail::callback_of(holdfast::detail::with_code(note)));
            } catch (holdfast::error const& e) {
                note(e.code());
            }
        };
        std::vector<std::thread> all;
        for (int n = 0; n < 3; ++n) all.emplace_back(asks);
        together();
        object->close();
        for (auto& one : all) one.join();
        CHECK(eventually([&] { return under_way == 0; }));
        CHECK(object->closed());
        CHECK_FALSE(object->lease().still_held());
        CHECK(code_of([&] { static_cast<void>(object->lock({}, {})); }) == std::errc::operation_canceled);
    }
    CHECK_FALSE(wrong);
    CHECK(store->broken == 0);
}
