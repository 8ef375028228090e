// SPDX-License-Identifier: MIT
#include "conformance/sleeper.hpp"
#include "support/catch.hpp"

#include <holdfast/lock/waiting_line.hpp>

#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::detail::hold;
using holdfast::detail::lock_owner;
using holdfast::detail::waiter;
using holdfast::detail::waiting_line;
using holdfast::test::sleeper;
using stage = waiter::stage;

namespace {

constexpr auto for_ever = boot_clock::time_point::max();
constexpr auto passed = boot_clock::time_point{};

/// One who joins the line.
struct guest {
    lock_owner owner;
    std::list<waiter> self;
    waiting_line::place me;

    explicit guest(waiting_line& line) : me{self.emplace(self.end(), owner)} { line.join(self); }
    guest(guest const&) = delete;
    guest& operator=(guest const&) = delete;

    void wait(waiting_line& line, std::mutex& m, boot_clock::time_point deadline, std::stop_token const& stop = {})
    {
        line.wait(m, me, deadline, stop);
    }
};

std::stop_token stopped()
{
    std::stop_source source;
    source.request_stop();
    return source.get_token();
}

}  // namespace

TEST_CASE("the next in line is who came first")
{
    waiting_line line;
    std::mutex m;
    CHECK(line.empty());
    CHECK(line.next() == nullptr);
    guest a{line};
    guest b{line};
    guest c{line};
    CHECK_FALSE(line.empty());
    CHECK(line.next() == &*a.me);
    for (auto* one : {&a, &b, &c}) {
        CHECK(line.next() == &*one->me);
        one->wait(line, m, passed);
    }
    CHECK(line.empty());
}

TEST_CASE("who leaves from the middle does not change the order of the others")
{
    waiting_line line;
    std::mutex m;
    guest a{line};
    guest b{line};
    guest c{line};
    b.wait(line, m, passed);
    CHECK(line.next() == &*a.me);
    a.wait(line, m, passed);
    CHECK(line.next() == &*c.me);
    c.wait(line, m, passed);
}

TEST_CASE("who was chosen, and whose mutex object is occupied, is not the next")
{
    waiting_line line;
    std::mutex m;
    guest a{line};
    guest b{line};
    guest c{line};
    line.choose(*a.me, stage::first);
    b.owner.held = std::make_shared<hold>();
    CHECK(line.next() == &*c.me);
    b.owner.held = nullptr;
    CHECK(line.next() == &*b.me);
    line.choose(*b.me, stage::granted);
    line.choose(*c.me, stage::granted);
    CHECK(line.next() == nullptr);
    CHECK(line.empty());
    for (auto* one : {&a, &b, &c}) {
        CHECK(one->self.size() == 1);
        waiting_line::wake(&*one->me);
        one->wait(line, m, for_ever);
    }
}

TEST_CASE("a deadline that has passed, or a stop, ends the wait outside the line and not chosen")
{
    waiting_line line;
    std::mutex m;
    guest late{line};
    late.wait(line, m, passed);
    CHECK(line.empty());
    CHECK(late.self.size() == 1);
    CHECK(late.me->now == stage::in_line);

    guest called_off{line};
    called_off.wait(line, m, for_ever, stopped());
    CHECK(line.empty());
    CHECK(called_off.me->now == stage::in_line);
}

TEST_CASE("a stop ends a wait that sleeps")
{
    waiting_line line;
    std::mutex m;
    guest a{line};
    std::stop_source stop;
    sleeper waiting{[&] { a.wait(line, m, for_ever, stop.get_token()); }};
    CHECK(waiting.sleeps());
    CHECK_FALSE(waiting.done());
    stop.request_stop();
    waiting.join();
    CHECK(line.empty());
    CHECK(a.me->now == stage::in_line);
}

TEST_CASE("who is chosen and woken goes on, as what it was chosen for")
{
    for (auto const as : {stage::first, stage::granted}) {
        waiting_line line;
        std::mutex m;
        guest a{line};
        sleeper waiting{[&] { a.wait(line, m, for_ever); }};
        CHECK(waiting.sleeps());
        CHECK_FALSE(waiting.done());
        {
            std::scoped_lock guard{m};
            line.choose(*line.next(), as);
        }
        waiting_line::wake(&*a.me);
        waiting.join();
        CHECK(line.empty());
        CHECK(a.me->now == as);
    }
}

TEST_CASE("who was chosen does not go before it was woken, though its time has passed or it was stopped")
{
    for (bool const by_stop : {false, true}) {
        waiting_line line;
        std::mutex m;
        guest a{line};
        line.choose(*a.me, stage::granted);
        sleeper waiting{[&] { a.wait(line, m, by_stop ? for_ever : passed, by_stop ? stopped() : std::stop_token{}); }};
        CHECK(waiting.sleeps());
        CHECK_FALSE(waiting.done());
        waiting_line::wake(&*a.me);
        waiting.join();
        CHECK(a.me->now == stage::granted);
    }
}

TEST_CASE("waking nobody does nothing")
{
    waiting_line line;
    CHECK_NOTHROW(waiting_line::wake(line.next()));
}
