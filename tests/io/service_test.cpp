// SPDX-License-Identifier: MIT
//
// The client's own thread serves what no caller waits for.
#include "conformance/sleeper.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/core/operation.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/io/reactor.hpp>
#include <holdfast/io/running.hpp>
#include <holdfast/io/service.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::io::reactor;
using holdfast::test::eventually;
using holdfast::test::sleeper;

namespace {

/// An operation that ends when its time comes.
class timed final : public holdfast::io::running, private holdfast::completion {
public:
    timed(reactor& r, boot_clock::time_point due) : reactor_{r}, due_{due}
    {
        std::scoped_lock const guard{r};
        r.begin(*this, *this);
        r.updated(*this);
    }
    timed(timed const&) = delete;
    timed& operator=(timed const&) = delete;
    /// Effects: stops it, or waits until its completion, which has begun, is over.
    ~timed()
    {
        {
            std::scoped_lock const guard{reactor_};
            reactor_.abandon(*this);
        }
        while (ended_ && !completed) std::this_thread::yield();
    }

    /// Requires: the lock of its reactor is held.
    void end() noexcept
    {
        ended_ = true;
        reactor_.ended(*this);
    }

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return due_; }
    void on_time(boot_clock::time_point) noexcept override
    {
        due_ = boot_clock::time_point::max();
        timed_by = std::this_thread::get_id();
        end();
    }

    std::atomic<std::thread::id> timed_by{};
    std::atomic<bool> completed{false};
    holdfast::detail::parker who;

private:
    void complete() noexcept override
    {
        who.unpark();
        completed = true;  // the last: it may be destroyed now
    }

    reactor& reactor_;
    bool ended_ = false;  // its completion is called, or will be
    boot_clock::time_point due_;
};

/// Two reactors of a client, and its own thread, which serves them.
struct client {
    int alarm = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    holdfast::io::service service;
    reactor one{1, service.orphaned()};
    reactor other{1, service.orphaned()};
    std::atomic<bool> stops{false};
    std::atomic<int> turns{0};
    std::thread thread;

    client()
    {
        service.add(one);
        service.add(other);
    }
    client(client const&) = delete;
    client& operator=(client const&) = delete;
    ~client()
    {
        stops = true;
        ring();
        if (thread.joinable()) thread.join();
        ::close(alarm);
    }

    void begin()
    {
        thread = std::thread{[this] {
            while (!stops) {
                service.serve(alarm);
                ++turns;
            }
        }};
    }

    void ring() const
    {
        std::uint64_t const one_more = 1;
        CHECK(::write(alarm, &one_more, sizeof one_more) == sizeof one_more);
    }
};

}  // namespace

TEST_CASE("the timers of all reactors of a client are served by its thread, also those that begin while it sleeps")
{
    client c;
    auto const now = boot_clock::now();
    timed const first{c.one, now + 20ms};
    timed const second{c.other, now + 10ms};
    c.begin();
    CHECK(eventually([&] { return first.completed && second.completed; }));
    CHECK(first.timed_by.load() == c.thread.get_id());
    CHECK(second.timed_by.load() == c.thread.get_id());
    std::this_thread::sleep_for(5ms);
    timed const third{c.other, boot_clock::now() + 1ms};
    CHECK(eventually([&] { return third.completed.load(); }));
}

TEST_CASE("the thread of a client looks up when the alarm is readable")
{
    client c;
    c.begin();
    std::this_thread::sleep_for(5ms);
    auto const before = c.turns.load();
    c.ring();
    CHECK(eventually([&] { return c.turns > before; }));
}

TEST_CASE("a caller that waits serves its reactor, and the thread of the client does so when it has gone")
{
    client c;
    timed ends{c.one, boot_clock::now() + 1h};
    sleeper caller{[&] { return c.one.drive(ends.who, boot_clock::time_point::max()) != 0; }};
    CHECK(caller.sleeps());
    c.begin();
    {
        timed const by_caller{c.one, boot_clock::now()};
        timed const by_thread{c.other, boot_clock::now()};
        CHECK(eventually([&] { return by_caller.completed && by_thread.completed; }));
        CHECK(by_caller.timed_by.load() != c.thread.get_id());
        CHECK(by_thread.timed_by.load() == c.thread.get_id());
    }
    {
        std::scoped_lock const guard{c.one};
        ends.end();
    }
    CHECK(caller.join());
    timed const later{c.one, boot_clock::now()};
    CHECK(eventually([&] { return later.completed.load(); }));
    CHECK(later.timed_by.load() == c.thread.get_id());
}

TEST_CASE("the thread of a client gives way to a caller that waits, when its turn is over")
{
    client c;
    std::vector<pollfd> polled;
    auto until = boot_clock::time_point::max();
    REQUIRE(c.one.begin_turn(polled, until));
    timed never{c.one, boot_clock::now() + 1h};
    sleeper caller{[&] { return c.one.drive(never.who, boot_clock::time_point::max()) != 0; }};
    CHECK(caller.sleeps());
    c.one.end_turn(polled.data());
    polled.clear();
    CHECK_FALSE(c.one.begin_turn(polled, until));
    {
        std::scoped_lock const guard{c.one};
        never.end();
    }
    CHECK(caller.join());
    CHECK(eventually([&] { return polled.clear(), c.one.begin_turn(polled, until); }));
    c.one.end_turn(polled.data());
}

TEST_CASE("a caller that comes while the thread of the client serves takes over soon")
{
    client c;
    c.begin();
    timed never{c.one, boot_clock::now() + 1h};
    sleeper caller{[&] { return c.one.drive(never.who, boot_clock::time_point::max()) != 0; }};
    CHECK(caller.sleeps());
    CHECK(eventually([&] {
        timed const one{c.one, boot_clock::now()};
        CHECK(eventually([&] { return one.completed.load(); }));
        return one.timed_by.load() != c.thread.get_id();
    }));
    {
        std::scoped_lock const guard{c.one};
        never.end();
    }
    CHECK(caller.join());
}
