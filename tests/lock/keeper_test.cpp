// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/lock/keeper.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::detail::keeper;
using holdfast::detail::kept;
using holdfast::test::eventually;

namespace {

/// Something kept, that counts its calls.
struct item final : kept {
    explicit item(keeper& k) : by{&k} {}
    item(item const&) = delete;
    item& operator=(item const&) = delete;
    ~item() override
    {
        if (by) by->cancel(place);
    }

    bool on_due(boot_clock::time_point now) noexcept override
    {
        called_at = now;
        bool const renewing = due && due();
        ++calls;
        return renewing;
    }

    bool finish_renewal(boot_clock::time_point) noexcept override
    {
        bool const ended = !finish || finish();
        ++finishes;
        return ended;
    }

    keeper* by;
    keeper::ticket place;
    std::function<bool()> due{};
    std::function<bool()> finish{};
    std::atomic<int> calls{0};
    std::atomic<int> finishes{0};
    std::atomic<boot_clock::time_point> called_at{};
};

std::shared_ptr<item> keep(keeper& k)
{
    auto one = std::make_shared<item>(k);
    k.prepare(one->place, one);
    return one;
}

/// Effects: has `one` called at `due`.
void call(keeper& k, item& one, boot_clock::time_point due) { k.put(one.place, due, due); }

/// Effects: waits until the keeper has done everything that is due now.
[[nodiscard]] bool caught_up(keeper& k)
{
    auto const last = keep(k);
    call(k, *last, boot_clock::now());
    return eventually([&] { return last->calls == 1; });
}

}  // namespace

TEST_CASE("what is due is called in the order in which it is due, in one thread that is the keeper's")
{
    keeper k;
    std::mutex m;
    std::vector<int> order;
    std::vector<std::thread::id> threads;
    std::vector<std::shared_ptr<item>> items;
    auto const now = boot_clock::now();
    for (int const delay : {30, 10, 50, 20, 40}) {
        auto one = keep(k);
        one->due = [&, delay] {
            std::scoped_lock guard{m};
            order.push_back(delay);
            threads.push_back(std::this_thread::get_id());
            return false;
        };
        call(k, *one, now - 1s + std::chrono::milliseconds{delay});
        items.push_back(std::move(one));
    }
    k.ensure_running();
    k.ensure_running();
    REQUIRE(caught_up(k));
    std::scoped_lock guard{m};
    CHECK(order == std::vector<int>{10, 20, 30, 40, 50});
    CHECK(threads == std::vector<std::thread::id>(5, threads.front()));
    CHECK(threads.front() != std::this_thread::get_id());
}

TEST_CASE("nothing is called before it is due, and once each time it is scheduled")
{
    keeper k;
    k.ensure_running();
    auto const one = keep(k);
    for (int times = 1; times <= 3; ++times) {
        auto const due = boot_clock::now() + 10ms;
        call(k, *one, due);
        REQUIRE(eventually([&] { return one->calls == times; }));
        CHECK(one->called_at.load() >= due);
    }
    REQUIRE(caught_up(k));
    CHECK(one->calls == 3);
}

TEST_CASE("scheduling again replaces the time, to an earlier or a later one")
{
    keeper k;
    k.ensure_running();
    auto const earlier = keep(k);
    auto const later = keep(k);
    call(k, *earlier, boot_clock::now() + 1h);
    call(k, *later, boot_clock::now() + 30min);
    call(k, *later, boot_clock::now() + 1h);
    call(k, *earlier, boot_clock::now());
    REQUIRE(eventually([&] { return earlier->calls == 1; }));
    REQUIRE(caught_up(k));
    CHECK(earlier->calls == 1);
    CHECK(later->calls == 0);
}

TEST_CASE("an alarm has everything called at once, as if it were due, and once")
{
    std::function<void()> alarm;
    {
        keeper k;
        alarm = k.alarm();
        alarm();
        k.ensure_running();
        std::vector<std::shared_ptr<item>> items;
        for (int i = 0; i < 100; ++i) {
            items.push_back(keep(k));
            call(k, *items.back(), boot_clock::now() + 1h);
        }
        REQUIRE(caught_up(k));
        for (auto const& one : items) CHECK(one->calls == 0);
        alarm();
        for (auto const& one : items) REQUIRE(eventually([&] { return one->calls == 1; }));
        CHECK(items.front()->called_at.load() == boot_clock::time_point::max());
        REQUIRE(caught_up(k));
        for (auto const& one : items) CHECK(one->calls == 1);
        call(k, *items.front(), boot_clock::now());
        REQUIRE(eventually([&] { return items.front()->calls == 2; }));
        CHECK(items.front()->called_at.load() != boot_clock::time_point::max());
    }
    alarm();
}

TEST_CASE("what was canceled is not called until it is scheduled again")
{
    keeper k;
    auto const one = keep(k);
    k.cancel(one->place);
    call(k, *one, boot_clock::now());
    k.cancel(one->place);
    k.cancel(one->place);
    k.ensure_running();
    REQUIRE(caught_up(k));
    CHECK(one->calls == 0);
    call(k, *one, boot_clock::now());
    CHECK(eventually([&] { return one->calls == 1; }));
}

TEST_CASE("what is called may schedule itself")
{
    keeper k;
    k.ensure_running();
    auto const one = keep(k);
    auto* const self = one.get();
    one->due = [&k, self] {
        if (self->calls < 4) call(k, *self, boot_clock::now());
        return false;
    };
    call(k, *one, boot_clock::now());
    REQUIRE(eventually([&] { return one->calls == 5; }));
    REQUIRE(caught_up(k));
    CHECK(one->calls == 5);
}

TEST_CASE("what is destroyed is forgotten, and the others are not")
{
    keeper k;
    auto gone = keep(k);
    auto const stays = keep(k);
    call(k, *gone, boot_clock::now() - 1s);
    call(k, *stays, boot_clock::now());
    gone.reset();
    k.ensure_running();
    CHECK(eventually([&] { return stays->calls == 1; }));
}

TEST_CASE("an alarm is not put off by what is scheduled behind it")
{
    bool const scheduled = GENERATE(false, true);
    CAPTURE(scheduled);
    keeper k;
    auto const alarm = k.alarm();
    auto const one = keep(k);
    std::atomic<int> alarmed{0};
    one->due = [&] {
        if (one->called_at.load() != boot_clock::time_point::max()) return true;
        ++alarmed;
        return false;
    };
    one->finish = [&] {
        if (scheduled) call(k, *one, boot_clock::now() + 1h);
        alarm();
        call(k, *one, boot_clock::now() + 1h);  // as a renewal does that has succeeded
        return true;
    };
    call(k, *one, boot_clock::now());
    k.ensure_running();
    CHECK(eventually([&] { return alarmed == 1; }));
}

TEST_CASE("a renewal is waited for until it has ended, and only where one was begun")
{
    keeper k;
    auto const renewing = keep(k);
    auto const idle = keep(k);
    renewing->due = [] { return true; };
    renewing->finish = [&] { return renewing->finishes == 3; };
    call(k, *renewing, boot_clock::now());
    call(k, *idle, boot_clock::now());
    k.ensure_running();
    REQUIRE(eventually([&] { return renewing->finishes == 4; }));
    REQUIRE(caught_up(k));
    CHECK(renewing->finishes == 4);
    CHECK(idle->calls == 1);
    CHECK(idle->finishes == 0);
}

TEST_CASE("what is due is called while a renewal is still waited for")
{
    std::atomic<bool> ended{false};
    keeper k;
    k.ensure_running();
    auto const other = keep(k);
    auto const slow = keep(k);
    slow->due = [] { return true; };
    slow->finish = [&] { return ended = other->calls == 1; };
    call(k, *slow, boot_clock::now());
    REQUIRE(eventually([&] { return slow->finishes > 0; }));
    call(k, *other, boot_clock::now() + 1ms);
    CHECK(eventually([&] { return other->calls == 1; }));
    REQUIRE(eventually([&] { return ended.load(); }));  // it looks at `other` no more
}

TEST_CASE("more than one batch of things that are due are all called")
{
    keeper k;
    std::vector<std::shared_ptr<item>> items;
    for (int i = 0; i < 500; ++i) {
        items.push_back(keep(k));
        call(k, *items.back(), boot_clock::now());
    }
    k.ensure_running();
    REQUIRE(caught_up(k));
    int called = 0;
    for (auto const& one : items) called += one->calls;
    CHECK(called == 500);
}

TEST_CASE(
    "no more renewals are under way than the window holds; the others begin when some have ended, the lease that ends first before the others")
{
    keeper k;
    std::vector<std::shared_ptr<item>> items;
    std::atomic<std::size_t> under_way{0};
    std::atomic<std::size_t> most{0};
    std::atomic<bool> answered{false};
    std::vector<std::size_t> order;  // of the keeper's thread
    auto const now = boot_clock::now();
    constexpr auto count = 4 * keeper::window;
    for (std::size_t i = 0; i < count; ++i) {
        auto one = keep(k);
        one->due = [&, i] {
            order.push_back(i);
            most = std::max<std::size_t>(most, ++under_way);
            return true;
        };
        one->finish = [&] {
            bool const ended = answered;  // it may change meanwhile
            if (ended) --under_way;
            return ended;
        };
        k.put(one->place, now - std::chrono::milliseconds{i}, now + 1h - std::chrono::milliseconds{i});  // the last one ends first
        items.push_back(std::move(one));
    }
    k.ensure_running();
    REQUIRE(eventually([&] { return items.back()->finishes > 0; }));
    CHECK(under_way == keeper::window);
    auto const urgent = keep(k);
    k.put(urgent->place, now, boot_clock::now());
    CHECK(eventually([&] { return urgent->calls == 1; }));  // whose end has come does not wait for room
    answered = true;
    for (auto const& one : items) REQUIRE(eventually([&] { return one->calls == 1; }));
    REQUIRE(eventually([&] { return under_way == 0; }));
    CHECK(most == keeper::window);
    REQUIRE(caught_up(k));
    std::vector<std::size_t> expected;
    for (auto i = count; i-- > 0;) expected.push_back(i);
    CHECK(order == expected);
}

TEST_CASE("destroying a keeper waits for a call that has begun")
{
    auto k = std::make_unique<keeper>();
    auto const one = keep(*k);
    std::atomic<bool> begun{false};
    std::atomic<bool> destroying{false};
    one->due = [&] {
        begun = true;
        while (!destroying) std::this_thread::yield();
        for (int i = 0; i < 100; ++i) std::this_thread::yield();
        return false;
    };
    k->ensure_running();
    call(*k, *one, boot_clock::now());
    REQUIRE(eventually([&] { return begun.load(); }));
    destroying = true;
    k.reset();
    one->by = nullptr;
    CHECK(one->calls == 1);
}

TEST_CASE("a keeper may be destroyed by what it calls, in its own thread")
{
    auto k = std::make_shared<keeper>();
    std::weak_ptr<keeper> const seen = k;
    auto const one = keep(*k);
    std::atomic<bool> destroyed{false};
    std::atomic<bool> went_on{false};
    one->due = [&, mine = k]() mutable {
        while (mine.use_count() > 1) std::this_thread::yield();
        one->by = nullptr;
        mine.reset();
        destroyed = seen.expired();
        went_on = true;
        return false;
    };
    k->ensure_running();
    call(*k, *one, boot_clock::now());
    k.reset();
    CHECK(eventually([&] { return went_on.load() && one->calls == 1; }));
    CHECK(destroyed);
}

TEST_CASE("a keeper that was never started, or has nothing to do yet, is destroyed at once, and calls nothing for it")
{
    std::shared_ptr<item> due;
    std::shared_ptr<item> later;
    auto const begun = boot_clock::now();
    {
        keeper never;
        keeper idle;
        idle.ensure_running();
        due = keep(never);
        call(never, *due, begun);
        later = keep(idle);
        call(idle, *later, begun + 1h);
        REQUIRE(caught_up(idle));
    }
    due->by = nullptr;
    later->by = nullptr;
    CHECK(boot_clock::now() - begun < 2min);
    CHECK(due->calls == 0);
    CHECK(later->calls == 0);
}
