// SPDX-License-Identifier: MIT
//
// The line of those who want a lock, and the stages that each of them goes through.
#include "fake_store.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/lock/client_parts.hpp>
#include <holdfast/lock/mutex_state.hpp>
#include <holdfast/lock/wait_queue.hpp>
#include <holdfast/lock/waiter.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::lock_options;
using holdfast::detail::mutex_state;
using holdfast::detail::patience;
using holdfast::detail::wait_queue;
using holdfast::detail::waiter;
using holdfast::test::eventually;
using holdfast::test::fake_store;
using stage = waiter::stage;

namespace {

constexpr auto passed = boot_clock::time_point{};

/// The object of a lock.
struct object : mutex_state {
    explicit object(lock_options o = {})
    {
        options = std::make_shared<lock_options const>(std::move(o));
        client = std::make_shared<int>();
    }
};

/// One that wants a lock, and collects its signals.
struct guest final : waiter {
    explicit guest(mutex_state& of, patience const& p = {}) : waiter{of, p} {}
    void signal(std::uint32_t what) noexcept override { signals |= what; }

    /// Returns: the signals since it was asked last.
    std::uint32_t take() { return signals.exchange(0); }

    std::atomic<std::uint32_t> signals{0};
};

/// Two objects of one lock, and the queue of those that want it.
struct queued {
    std::shared_ptr<fake_store> store = std::make_shared<fake_store>();
    std::shared_ptr<wait_queue> queue = std::make_shared<wait_queue>(
        std::make_shared<holdfast::detail::client_parts>(store), store->make_key("orders"));
    object one;
    object other;

    explicit queued(lock_options o = {}) : one{std::move(o)}
    {
        store->acquires.answered_at_once = store->releases.answered_at_once = false;
    }
    queued(queued const&) = delete;
    queued& operator=(queued const&) = delete;
    ~queued() { CHECK(store->broken == 0); }

    /// Effects: `g` comes, and does what it can.
    void enter(guest& g) const
    {
        queue->enter(g);
        step(g);
    }
    wait_queue::next_step step(guest& g) const { return queue->step(g, g.take()); }

    /// Effects: `g`, whose request is the last one, has the lock.
    void grant(guest& g) const
    {
        store->grant_to(store->acquires.size() - 1);
        CHECK(g.signals == waiter::answered);
        step(g);
        CHECK(g.ended());
        CHECK_FALSE(g.why_not);
    }

    /// Effects: `of` gives the lock up; the store answers at once.
    void release(mutex_state& of) const
    {
        store->releases.answered_at_once = true;
        CHECK(queue->release(of).code == std::error_code{});
    }
};

}  // namespace

TEST_CASE("who was chosen or canceled, and whose mutex object is occupied, is not the next")
{
    object o;
    object occupied;
    holdfast::detail::turns turns;
    guest first{o};
    guest a{o};
    guest b{occupied};
    guest c{o};
    guest d{o};
    turns.enter(first);
    CHECK(first.now == stage::first);
    CHECK(turns.next() == nullptr);
    for (auto* one : {&a, &b, &c, &d}) turns.enter(*one);
    CHECK(a.was_in_line);
    CHECK(turns.next() == &a);
    turns.hand_on(a);
    CHECK(a.now == stage::granted);
    occupied.held = std::make_shared<holdfast::detail::hold_state>();
    CHECK(turns.next() == &c);
    c.canceled = true;
    CHECK(turns.next() == &d);
    occupied.held = nullptr;
    CHECK(turns.pass_on() == &b);
    CHECK(b.now == stage::first);
    turns.hand_on(c);
    turns.hand_on(d);
    CHECK(turns.next() == nullptr);
}

TEST_CASE("who was overtaken on its way into the line is told of an outage as those who came later")
{
    queued q;
    guest overtaken{q.other, {.deadline = passed}};
    overtaken.since -= 1s;
    guest first{q.one};
    q.enter(first);
    q.store->unavailable = 1;
    q.enter(overtaken);
    CHECK(overtaken.ended());
    REQUIRE(overtaken.why_not);
    CHECK(overtaken.why_not->code == errc::unavailable);
    q.store->refuse(0, make_error_code(errc::unavailable));
    q.step(first);
    CHECK(first.ended());
}

TEST_CASE("an outage that one who was cancelled has seen counts for the next")
{
    queued q;
    auto const known = GENERATE(0, 1);
    guest first{q.one};
    guest next{q.other};
    q.enter(first);
    q.enter(next);
    q.store->unavailable = known;
    q.queue->cancel(first);
    q.step(first);
    CHECK(first.ended());
    q.step(next);
    REQUIRE(next.now == stage::asking);
    CHECK((q.store->acquires.last()->request->unavailable_at == next.since + 10s) == (known == 1));
    q.store->refuse(1, make_error_code(errc::unavailable));
    q.step(next);
    CHECK(next.ended());
}

TEST_CASE("a deadline that has passed, or a cancel, ends a wait in line")
{
    queued q;
    guest holder{q.one};
    q.enter(holder);
    q.grant(holder);

    guest late{q.other, {.deadline = passed}};
    q.enter(late);
    CHECK(late.ended());
    CHECK(late.why_not->code == errc::timed_out);

    auto const deadline = boot_clock::now() + 1h;
    guest called_off{q.other, {.deadline = deadline}};
    q.queue->enter(called_off);
    CHECK(q.step(called_off).at == deadline);
    CHECK(called_off.now == stage::in_line);
    q.queue->cancel(called_off);
    CHECK(called_off.signals == waiter::look);
    CHECK(called_off.now == stage::in_line);  // it goes by itself
    q.step(called_off);
    CHECK(called_off.ended());
    CHECK(called_off.why_not->code == std::errc::operation_canceled);
    q.queue->cancel(called_off);
    CHECK(called_off.signals == 0);

    guest single{q.other, {.once = true}};
    q.queue->enter(single);
    CHECK(single.ended());
    CHECK(single.why_not->code == errc::timed_out);
    CHECK(q.store->acquires.size() == 1);
    q.release(q.one);
}

TEST_CASE("who is alone asks at once, looks now and then while it asks, and ends with the answer")
{
    queued q{{.on_error = [](auto const&) {}}};
    guest g{q.one};
    q.queue->enter(g);
    CHECK(g.now == stage::first);
    auto const before = boot_clock::now();
    auto const next = q.step(g);
    CHECK(g.now == stage::asking);
    CHECK(next.asks);
    CHECK(next.at > before);
    CHECK(next.at <= boot_clock::now() + 1s);
    CHECK(q.step(g).asks);
    CHECK_FALSE(g.ended());
    q.grant(g);
    CHECK(q.one.held->still_held());
    q.release(q.one);
    CHECK(q.one.held == nullptr);
}

TEST_CASE("who has no hook does not look while it asks: what it would find is told to nobody")
{
    queued q;
    guest g{q.one};
    q.queue->enter(g);
    for (int n = 0; n < 3; ++n) {
        auto const next = q.step(g);
        CHECK(next.asks);
        CHECK(next.at == boot_clock::time_point::max());
    }
    q.grant(g);
    q.release(q.one);
}

TEST_CASE("who is chosen is signalled, as the first to ask or with the lock")
{
    queued q;
    object third;
    guest holder{q.one};
    q.enter(holder);
    guest next{q.other};
    q.enter(next);
    guest last{third};
    q.enter(last);
    q.store->refuse(0, make_error_code(errc::unavailable));
    q.step(holder);
    CHECK(holder.why_not->code == errc::unavailable);
    CHECK(next.now == stage::first);
    CHECK(next.signals == waiter::its_turn);
    CHECK(last.signals == 0);
    q.step(next);
    CHECK(next.now == stage::asking);
    q.grant(next);
    CHECK(last.now == stage::in_line);
    q.release(q.other);
    CHECK(last.now == stage::granted);
    CHECK(last.signals == waiter::its_turn);
    CHECK(third.held->still_held());
    q.step(last);
    CHECK(last.ended());
    CHECK_FALSE(last.why_not);
    CHECK(q.store->acquires.size() == 2);
    q.release(third);
}

TEST_CASE("who was chosen does not go before it has heard of that, though its time has passed or it was canceled")
{
    bool const granted = GENERATE(false, true);
    bool const by_cancel = GENERATE(false, true);
    queued q;
    guest holder{q.one};
    q.enter(holder);
    guest g{q.other, {.deadline = boot_clock::now() + 1h}};
    q.enter(g);
    if (granted) {
        q.grant(holder);
        q.release(q.one);
    } else {
        q.store->refuse(0, make_error_code(errc::misconfigured));
        q.step(holder);
    }
    if (by_cancel) q.queue->cancel(g);
    g.limit.deadline = boot_clock::now();  // not earlier: it is in line until it is chosen
    CHECK(eventually([&] { return boot_clock::now() > g.limit.deadline; }));
    CHECK(q.queue->step(g, by_cancel ? waiter::look : 0).at == boot_clock::time_point::max());
    CHECK(g.now == (granted ? stage::granted : stage::first));
    CHECK((g.signals & waiter::its_turn) != 0);
    q.step(g);
    CHECK(g.ended());
    if (granted) {
        CHECK_FALSE(g.why_not);
        q.release(q.other);
    } else {
        CHECK(g.why_not->code ==
              (by_cancel ? std::make_error_code(std::errc::operation_canceled) : make_error_code(errc::timed_out)));
        CHECK(q.store->acquires.size() == 1);
    }
}

TEST_CASE(
    "what the object of a lock waits for is canceled when it is destroyed, at every stage, and what it is granted is given back")
{
    queued q;
    q.store->cancel_ends = false;
    auto const at = GENERATE(stage::in_line, stage::first, stage::asking, stage::granted);
    guest holder{q.one};
    q.enter(holder);
    guest g{q.other};
    q.enter(g);
    if (at == stage::granted) {
        q.grant(holder);
        q.release(q.one);
    } else if (at != stage::in_line) {
        q.store->refuse(0, make_error_code(errc::unavailable));
        q.step(holder);
        if (at == stage::asking) q.step(g);
    } else {
        q.grant(holder);
    }
    CHECK(g.now == at);
    q.store->releases.answered_at_once = true;
    CHECK(q.queue->abandon(q.other));
    CHECK(q.queue->destroyed(q.other));
    if (at == stage::asking) {
        CHECK(q.store->acquires.at(1)->canceled);
        q.store->grant_to(1);  // it had been granted before
    }
    q.step(g);
    CHECK(g.ended());
    CHECK(q.queue->hold_of(q.other) == nullptr);
    REQUIRE(g.why_not);
    CHECK(g.why_not->code == std::errc::operation_canceled);
    if (at == stage::granted || at == stage::asking) CHECK(q.store->releases.size() == 1);
    if (at == stage::in_line) {
        CHECK(q.queue->hold_of(q.one)->still_held());
        q.release(q.one);
    }
    guest again{q.one};
    q.enter(again);
    if (again.now == stage::first) {  // after a pause
        CHECK(eventually([&] { return q.step(again).asks; }));
    }
    q.grant(again);
    q.release(q.one);
}
