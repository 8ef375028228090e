// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/core/announcer.hpp>
#include <holdfast/core/clock.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::detail::announcer;
using holdfast::test::eventually;

TEST_CASE(
    "calls are made in the order in which they were posted, in one thread while none takes long, and all before the end")
{
    std::vector<int> order;
    std::set<std::thread::id> threads;
    {
        announcer calls;
        for (int i = 0; i < 1000; ++i) {
            calls.make(announcer::kind::stop, [&, i] {
                order.push_back(i);  // by one thread at a time: nobody tends
                threads.insert(std::this_thread::get_id());
            });
        }
    }
    REQUIRE(order.size() == 1000);
    for (int i = 0; i < 1000; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
    CHECK(threads.count(std::this_thread::get_id()) == 0);
}

TEST_CASE("behind a call that takes long further threads go on, as many as there may be")
{
    std::atomic<bool> go{false};
    std::atomic<std::size_t> begun{0};
    std::atomic<std::size_t> done{0};
    announcer calls;
    constexpr auto all = 2 * announcer::most_threads;
    for (std::size_t i = 0; i < all; ++i) {
        calls.make(announcer::kind::stop, [&] {
            ++begun;
            while (!go) std::this_thread::sleep_for(1ms);
            ++done;
        });
    }
    CHECK(eventually([&] {
        calls.tend(boot_clock::now());
        return begun == announcer::most_threads;
    }));
    CHECK(calls.tend(boot_clock::now()) == boot_clock::time_point::max());  // there may be no more
    go = true;
    CHECK(eventually([&] { return done == all; }));
    calls.make(announcer::kind::stop, [&] { ++done; });  // when all threads have ended, or not yet
    calls.end();
    CHECK(done == all + 1);
}

TEST_CASE("a further thread is begun only when a call has taken its time while others wait")
{
    std::atomic<bool> go{false};
    std::atomic<int> begun{0};
    announcer calls;
    auto const wait = [&] {
        ++begun;
        while (!go) std::this_thread::sleep_for(1ms);
    };
    calls.make(announcer::kind::stop, wait);
    REQUIRE(eventually([&] { return begun == 1; }));
    CHECK(calls.tend(boot_clock::now() + 1h) == boot_clock::time_point::max());  // nobody waits
    calls.make(announcer::kind::stop, wait);
    auto const now = boot_clock::now();
    auto const next = calls.tend(now - 1h);
    CHECK(next <= now + announcer::patience);
    CHECK(begun == 1);
    calls.tend(next);
    CHECK(eventually([&] { return begun == 2; }));
    go = true;
}

TEST_CASE("an announcer may be destroyed by what it calls, and the calls behind it are made all the same")
{
    auto calls = std::make_shared<announcer>();
    std::weak_ptr<announcer> const seen = calls;
    std::atomic<bool> destroyed{false};
    std::atomic<bool> behind{false};
    std::atomic<bool> go{false};
    calls->make(announcer::kind::stop, [&, mine = calls]() mutable {
        while (!go) std::this_thread::yield();
        mine.reset();
        destroyed = seen.expired();
    });
    calls->make(announcer::kind::stop, [&] { behind = true; });
    calls.reset();
    go = true;
    CHECK(eventually([&] { return behind.load(); }));
    CHECK(destroyed);
}

TEST_CASE("every stop is made before the second report, however slow the first is, and reports are made one at a time")
{
    constexpr int locks = 1000;
    std::atomic<int> stopped{0};
    std::atomic<int> reporting{0};
    std::atomic<int> most_at_once{0};
    std::atomic<bool> go{false};
    std::vector<int> stopped_before;  // of one thread at a time
    announcer calls;
    for (int i = 0; i < locks; ++i) {
        calls.make(announcer::kind::stop, [&] { ++stopped; });
        calls.report([&] {
            most_at_once = std::max(most_at_once.load(), ++reporting);
            stopped_before.push_back(stopped);
            while (!go) std::this_thread::sleep_for(1ms);
            --reporting;
        });
    }
    CHECK(eventually([&] {
        calls.tend(boot_clock::now());
        return stopped == locks;
    }));
    go = true;
    calls.end();
    REQUIRE(stopped_before.size() == locks);
    CHECK(stopped_before[1] == locks);
    CHECK(most_at_once == 1);
}

TEST_CASE("a stop is made although more warnings and reports are slow than there are threads")
{
    std::atomic<bool> go{false};
    std::atomic<std::size_t> begun{0};
    std::atomic<bool> stopped{false};
    announcer calls;
    for (std::size_t i = 0; i < 2 * announcer::most_threads; ++i) {
        auto const slow = [&] {
            ++begun;
            while (!go) std::this_thread::sleep_for(1ms);
        };
        calls.tell(slow);
        calls.report(slow);
    }
    CHECK(eventually([&] {
        calls.tend(boot_clock::now());
        return begun == announcer::most_telling + 1;
    }));
    CHECK(calls.tend(boot_clock::now()) == boot_clock::time_point::max());  // no more of them at once
    CHECK(begun == announcer::most_telling + 1);
    calls.make(announcer::kind::stop, [&] { stopped = true; });
    CHECK(eventually([&] {
        calls.tend(boot_clock::now());
        return stopped.load();
    }));
    go = true;
    calls.end();
    CHECK(begun == 4 * announcer::most_threads);
}

TEST_CASE("a call of the user's is known to be one")
{
    std::atomic<bool> inside{false};
    announcer calls;
    calls.report([&] { inside = announcer::here(); });
    CHECK_FALSE(announcer::here());
    calls.end();
    CHECK(inside);
}

TEST_CASE("two calls that end each other's announcer do not wait for each other")
{
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
    auto one = std::make_unique<announcer>();
    auto other = std::make_unique<announcer>();
    auto const end = [&](std::unique_ptr<announcer>& another) {
        ++begun;
        static_cast<void>(eventually([&] { return begun == 2; }));
        another->end();
        ++ended;
    };
    one->report([&] { end(other); });
    other->report([&] { end(one); });
    CHECK(eventually([&] { return ended == 2; }));
}

TEST_CASE("whoever looks after it is told of each call that a thread is to make, whichever thread posts it")
{
    std::atomic<int> told{0};
    std::atomic<bool> go{false};
    announcer calls{[&] { ++told; }};
    calls.report([&] {
        while (!go) std::this_thread::sleep_for(1ms);
    });
    auto const before = told.load();
    calls.make(announcer::kind::stop, [] {});  // it waits until a further thread is begun
    CHECK(told > before);
    go = true;
    calls.end();
}

namespace {

/// What a user's function made for its thread, and takes long to be destroyed.
struct slow_to_end {
    std::atomic<bool>* begun = nullptr;
    std::atomic<bool>* may_end = nullptr;

    ~slow_to_end()
    {
        if (!begun) return;
        *begun = true;
        begun->notify_all();
        may_end->wait(false);
    }
};

thread_local slow_to_end of_this_thread;

}  // namespace

TEST_CASE("a thread that takes long to end, for an object of the user's, keeps neither the next call nor its caller")
{
    std::atomic<bool> ending{false};
    std::atomic<bool> may_end{false};
    std::atomic<bool> called{false};
    announcer calls;
    calls.make(announcer::kind::stop, [&] {
        of_this_thread.begun = &ending;
        of_this_thread.may_end = &may_end;
    });
    ending.wait(false);
    calls.make(announcer::kind::stop, [&] { called = true; });  // returns, although that thread cannot end
    CHECK(eventually([&] {
        calls.tend(boot_clock::now());
        return called.load();
    }));
    may_end = true;
    may_end.notify_all();
    calls.end();
}

TEST_CASE("an event is dropped while too many wait; reports do not wait for a slow one")
{
    std::atomic<bool> go{false};
    std::atomic<std::size_t> begun{0};
    std::atomic<std::size_t> told{0};
    std::atomic<std::size_t> made{0};
    announcer calls;
    calls.tell_event([&] {
        ++begun;
        while (!go) std::this_thread::sleep_for(1ms);
    });
    REQUIRE(eventually([&] { return begun == 1; }));
    auto const waiting = std::make_shared<int>();
    for (std::size_t i = 0; i < 2 * announcer::most_events; ++i) calls.tell_event([&, waiting] { ++told; });
    CHECK(static_cast<std::size_t>(waiting.use_count()) == announcer::most_events + 1);
    calls.report([&] { ++made; });
    announcer::call one{[&] { ++made; }};
    CHECK(calls.try_report(one));
    CHECK(eventually([&] {
        calls.tend(boot_clock::now());
        return made == 2;
    }));
    CHECK(told == 0);
    go = true;
    CHECK(eventually([&] { return told == announcer::most_events; }));
    calls.tell_event([&] { ++told; });
    CHECK(eventually([&] { return told == announcer::most_events + 1; }));
}

TEST_CASE("the end makes the reports that wait, and drops the events")
{
    std::atomic<bool> go{false};
    std::atomic<std::size_t> begun{0};
    std::vector<int> made;  // by one thread at a time
    auto const waiting = std::make_shared<int>();
    announcer calls;
    auto const block = [&] {
        ++begun;
        while (!go) std::this_thread::sleep_for(1ms);
    };
    calls.report(block);
    calls.tell_event(block);
    CHECK(eventually([&] {
        calls.tend(boot_clock::now());
        return begun == 2;
    }));
    for (int i = 1; i < 5; ++i) calls.report([&, i, waiting] { made.push_back(i); });
    for (int i = 0; i < 95; ++i) calls.tell_event([waiting] {});
    CHECK(waiting.use_count() == 100);
    std::thread ends{[&] { calls.end(); }};
    CHECK(eventually([&] { return waiting.use_count() == 5; }));  // while both are made
    go = true;
    ends.join();
    CHECK(made == std::vector{1, 2, 3, 4});
}
