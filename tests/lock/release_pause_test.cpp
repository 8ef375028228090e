// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/lock/release_pause.hpp>

#include <chrono>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::detail::release_pause;

namespace {

constexpr boot_clock::time_point t0{1h};

/// Returns: for how long a client that has used a lock for `used` leaves it free.
boot_clock::duration pause_after(boot_clock::duration used)
{
    release_pause pause;
    pause.granted(t0, t0);
    pause.released(t0 + used);
    return pause.ask_at() - (t0 + used);
}

}  // namespace

TEST_CASE("a lock that was never asked for may be asked for at once")
{
    CHECK(release_pause{}.ask_at() == boot_clock::time_point{});
}

TEST_CASE("a client that has used a lock for long leaves it free for those who poll")
{
    CHECK(pause_after(1ms) == 0ms);
    CHECK(pause_after(99ms) == 0ms);
    CHECK(pause_after(100ms) == 5ms);
    CHECK(pause_after(400ms) == 20ms);
    CHECK(pause_after(1s) == 50ms);
    CHECK(pause_after(1h) == 50ms);
}

TEST_CASE("the time that a grant takes is no use, and no time in which the lock is left free")
{
    release_pause pause;
    pause.granted(t0, t0 + 1s);  // the connection was made meanwhile
    pause.released(t0 + 1s);
    CHECK(pause.ask_at() == t0 + 1s);
    pause.granted(t0 + 1s, t0 + 1s + 10ms);
    pause.released(t0 + 1s + 100ms);
    CHECK(pause.ask_at() == t0 + 1s + 105ms);
}

TEST_CASE("a client that uses a lock again and again leaves it free now and then")
{
    release_pause pause;
    auto now = t0;
    auto last_pause = t0;
    int pauses = 0;
    for (int i = 0; i < 1000; ++i) {
        pause.granted(now, now);
        now += 1ms;
        pause.released(now);
        if (pause.ask_at() <= now) continue;
        CHECK(pause.ask_at() == now + 5ms);
        CHECK(now - last_pause <= 101ms);
        now = last_pause = pause.ask_at();
        ++pauses;
    }
    CHECK(pauses == 10);
}

TEST_CASE("a lock that was free, or another client's, for long enough needs no pause")
{
    release_pause pause;
    pause.granted(t0, t0);
    pause.released(t0 + 1s);
    pause.granted(t0 + 2s, t0 + 2s);
    pause.released(t0 + 2s + 1ms);
    CHECK(pause.ask_at() == t0 + 2s + 1ms);
}

TEST_CASE("a client that takes turns with others needs no pause for those who poll")
{
    release_pause pause;
    auto now = t0;
    for (int i = 0; i < 1000; ++i) {
        pause.taken_over(now);
        now += 1ms;
        pause.released(now);
        CHECK(pause.ask_at() <= now);
        now += 200us;
    }
    pause.taken_over(now);
    pause.released(now + 100ms);  // by then there may be none but those who poll
    CHECK(pause.ask_at() == now + 105ms);
}

TEST_CASE("a client that takes turns with others, and holds the lock for long, leaves it free about once a second")
{
    release_pause pause;
    auto now = t0;
    int pauses = 0;
    for (int i = 0; i < 100; ++i) {
        auto const left_free = pause.when_called();
        CHECK((left_free == 0ms || left_free == 20ms));
        pauses += left_free == 20ms ? 1 : 0;
        now += left_free;
        pause.taken_over(now);
        CHECK(pause.when_called() == 0ms);
        now += 50ms;
        pause.released(now);
        now += 1ms;
    }
    CHECK(pauses == 4);  // in 5 s of use: before the 21st, 41st, 61st and 81st time
}

TEST_CASE("a client that holds the lock for a short time each time leaves it free to no one when it is called")
{
    release_pause pause;
    for (auto now = t0; now < t0 + 10s; now += 10ms) {
        pause.taken_over(now);
        pause.released(now + 9ms);
        CHECK(pause.when_called() == 0ms);
    }
}

TEST_CASE("a listener that never asks changes nothing about the pause for those who poll")
{
    release_pause pause;
    auto now = t0;
    for (; now < t0 + 100ms; now += 1ms) {
        pause.granted(now, now);
        pause.released(now + 1ms);
        pause.others_wait(now + 900us, now + 1ms);
    }
    CHECK(pause.ask_at() == now + 5ms);
}

TEST_CASE("who did not keep the pause, as a single attempt does not, owes it")
{
    release_pause pause;
    pause.granted(t0, t0);
    pause.released(t0 + 1s);
    pause.granted(t0 + 1s + 1ms, t0 + 1s + 1ms);
    pause.released(t0 + 1s + 2ms);
    CHECK(pause.ask_at() == t0 + 1s + 52ms);
}

TEST_CASE("who has no time for the pause puts it off once, and then keeps it")
{
    release_pause pause;
    pause.granted(t0, t0);
    auto now = t0 + 1s;
    for (int i = 0; i < 3; ++i) {
        pause.released(now);
        CHECK(pause.may_ask(now));
        pause.granted(now, now);
        now += 1s;
        pause.released(now);
        CHECK_FALSE(pause.may_ask(now));
        CHECK_FALSE(pause.may_ask(now + 4ms));
        CHECK(pause.may_ask(now + 5ms));  // they had a chance
        pause.granted(now + 5ms, now + 5ms);
        now += 1s;
    }
}

TEST_CASE("five milliseconds are a chance for those who poll, not for those who are known to wait")
{
    release_pause pause;
    pause.granted(t0, t0);
    pause.released(t0 + 1s + 50ms);
    pause.others_wait(t0 + 1s, t0 + 1s + 50ms);
    CHECK(pause.may_ask(t0 + 1s + 50ms));
    CHECK_FALSE(pause.may_ask(t0 + 1s + 149ms));
    CHECK(pause.may_ask(t0 + 1s + 150ms));
    CHECK(pause.may_ask(t0 + 1s + 150ms));
}

TEST_CASE("a client that owes no pause may always ask")
{
    release_pause pause;
    for (auto now = t0; now < t0 + 1min; now += 1s) {
        CHECK(pause.may_ask(now));
        pause.granted(now, now);
        pause.released(now + 99ms);
        CHECK(pause.may_ask(now + 99ms));
    }
}

TEST_CASE("others who are known to wait have twice the time of the release to ask")
{
    release_pause pause;
    pause.granted(t0, t0);
    pause.released(t0 + 3ms);
    pause.others_wait(t0 + 1ms, t0 + 3ms);
    CHECK(pause.ask_at() == t0 + 7ms);
    pause.released(t0 + 10s);
    pause.others_wait(t0 + 10ms, t0 + 10s);
    CHECK(pause.ask_at() == t0 + 10s + 100ms);
}
