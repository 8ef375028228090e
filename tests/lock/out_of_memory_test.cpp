// SPDX-License-Identifier: MIT
//
// Memory that runs out in one thread of a line, which is not to harm the others.
#include "conformance/sleeper.hpp"
#include "fake_store.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/refused_memory.hpp"
#include "support/refusing_new.hpp"

#ifndef HOLDFAST_SANITIZED

#include <holdfast/mutex.hpp>

#include <atomic>
#include <chrono>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::failure;
using holdfast::lock_options;
using holdfast::mutex;
using holdfast::test::eventually;
using holdfast::test::fake_client;
using holdfast::test::sleeper;

TEST_CASE("a thread that cannot say why it failed, as there is no memory, gives up its turn once")
{
    fake_client f;
    f.store->acquires.answered_at_once = false;
    lock_options const options{.ttl = 12s};
    mutex failing{f.locks, "orders", options};
    mutex next{f.locks, "orders", options};
    mutex last{f.locks, "orders", options};
    std::atomic<bool> out_of_memory{false};
    sleeper fails{[&] {
        try {
            failing.lock();
        } catch (std::bad_alloc const&) {
            out_of_memory = holdfast::test::spare_all();
        }
    }};
    CHECK(eventually([&] { return f.store->acquires.size() == 1; }));
    sleeper waits{[&] { next.lock(); }};
    CHECK(waits.sleeps());
    sleeper waits_longer{[&] { last.lock(); }};
    CHECK(waits_longer.sleeps());
    f.store->when_asked = [&, first = true]() mutable {  // in the thread that looks at the answer
        if (std::exchange(first, false)) holdfast::test::refuse(0, 1, holdfast::test::whose::this_threads);
    };
    f.store->acquires.at(0)->answer(failure{make_error_code(errc::unavailable), std::string(100, 'x')});
    fails.join();
    CHECK(out_of_memory);
    CHECK(eventually([&] { return f.store->acquires.size() == 2; }));
    f.store->grant_to(1);
    waits.join();
    CHECK(waits_longer.sleeps());
    CHECK(f.store->acquires.size() == 2);
    auto const lease = next.lease();
    auto const end = lease.expires_at();
    CHECK(eventually([&] { return lease.expires_at() > end; }));
    CHECK(lease.still_held());
    next.unlock();
    waits_longer.join();
    CHECK(last.lease().still_held());
    last.unlock();
}

TEST_CASE("an extension for which there is no memory says so, and the lease runs on")
{
    fake_client f;
    mutex m{f.locks, "orders", {.ttl = 1h}};
    m.lock();
    std::error_code ec;
    bool extended = false;
    bool said = false;
    CHECK(holdfast::test::refuse_each_request(
              holdfast::test::whose::this_threads, 1,
              [&] {
                  extended = m.extend(2h, ec);
                  said = said || ec == std::errc::not_enough_memory;
              },
              [&] { CHECK(m.lease().still_held()); }) > 0);
    CHECK(said);
    CHECK(extended);
    CHECK(m.lease().remaining() > 1h);
    m.unlock();
}

TEST_CASE("a lock that cannot be kept for its min_hold without memory says so")
{
    fake_client f;
    mutex m{f.locks, "orders", {.ttl = 1h, .min_hold = 1h}};
    std::error_code ec;
    long unkept = 0;
    long kept = 0;
    for (long n = 0; kept == 0; ++n) {
        m.lock();
        holdfast::test::refuse(n, 1, holdfast::test::whose::this_threads);
        m.unlock(ec);
        bool const struck = holdfast::test::spare_all();
        CHECK_FALSE(m.lease().still_held());
        if (ec) {
            CHECK(struck);
            CHECK(ec == std::errc::not_enough_memory);
            ++unkept;
        } else {
            ++kept;
        }
    }
    CHECK(unkept > 0);
}

TEST_CASE(
    "an asynchronous call for which there is no memory throws, and its function is not called; or it ends as any other")
{
    fake_client f;
    mutex m{f.locks, "orders", {.ttl = 1h}};
    bool const locks = GENERATE(true, false);
    long failed = 0;
    std::atomic<int> calls{0};
    int begun = 0;
    bool went = false;
    std::atomic<bool> without_memory{false};
    auto const tried = holdfast::test::refuse_each_request(
        holdfast::test::whose::this_threads, 1,
        [&] {
            if (!locks && !m.lease().still_held()) {
                holdfast::test::spare_this_thread const spared;
                m.lock();
            }
            went = false;
            ++failed;
            if (locks)
                m.async_lock([&](std::error_code ec) {
                    without_memory = ec == std::errc::not_enough_memory;
                    ++calls;
                });
            else
                m.async_unlock([&](std::error_code) { ++calls; });
            --failed;
            ++begun;
            went = true;
        },
        [&] {
            CHECK(eventually([&] { return calls == begun; }));
            bool const done = went && !without_memory.exchange(false);
            CHECK(m.lease().still_held() == (done ? locks : !locks));
            if (locks && m.lease().still_held()) m.unlock();
        });
    CHECK(tried > (locks ? 2 : 1));
    CHECK(failed > 0);
    CHECK(begun >= 1);
    CHECK(m.try_lock_for(1min));
    CHECK(f.store->broken == 0);
}

TEST_CASE("a function is called also if there is no memory when the lock is had")
{
    fake_client f;
    mutex m{f.locks, "orders", {.ttl = 1h}};
    f.store->acquires.answered_at_once = f.store->releases.answered_at_once = false;
    bool const locks = GENERATE(true, false);
    std::atomic<int> calls{0};
    if (locks) {
        m.async_lock([&](std::error_code) { ++calls; });
    } else {
        f.store->acquires.answered_at_once = true;
        m.lock();
        m.async_unlock([&](std::error_code) { ++calls; });
    }
    {
        holdfast::test::spare_this_thread const spared;
        auto const granted = locks ? std::optional{f.store->granted(*f.store->acquires.at(0)->request)} : std::nullopt;
        holdfast::test::refuse(0, 1'000'000);
        if (locks)
            f.store->acquires.at(0)->answer(*granted);
        else
            f.store->releases.at(0)->answer({});
        CHECK(eventually([&] { return calls == 1; }));
        holdfast::test::spare_all();
    }
    CHECK(m.lease().still_held() == locks);
    f.store->answer_releases();
    if (locks) m.unlock();
    CHECK(f.store->broken == 0);
}

#endif
