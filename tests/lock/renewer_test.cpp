// SPDX-License-Identifier: MIT
#include "fake_store.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/lock/renewer.hpp>

#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::detail::renewer;
using holdfast::detail::schedule;
using holdfast::detail::scheduled;
using holdfast::test::eventually;
using holdfast::test::fake_store;

namespace {

/// The thread of a client of a store that has nothing to do with it.
struct thread_of_a_client {
    thread_of_a_client() = default;
    thread_of_a_client(thread_of_a_client const&) = delete;
    thread_of_a_client& operator=(thread_of_a_client const&) = delete;
    ~thread_of_a_client() { of->end(); }

    [[nodiscard]] renewer& operator*() const { return *of; }
    [[nodiscard]] renewer* operator->() const { return of.get(); }

    std::shared_ptr<fake_store> store = std::make_shared<fake_store>();
    std::shared_ptr<renewer> of = std::make_shared<renewer>(store);
};

/// Something scheduled, that counts its calls.
struct item final : scheduled {
    explicit item(renewer& r) : by{&r} {}
    item(item const&) = delete;
    item& operator=(item const&) = delete;
    ~item() override
    {
        if (by) by->remove(timer);
    }

    void on_due(boot_clock::time_point now, bool alarmed) noexcept override
    {
        called_at = now;
        alarms += alarmed ? 1 : 0;
        if (due) due();
        ++calls;
    }

    renewer* by;
    renewer::timer timer;
    std::function<void()> due{};
    std::atomic<int> calls{0};
    std::atomic<int> alarms{0};  // how many of the calls were for one
    std::atomic<boot_clock::time_point> called_at{};
};

std::shared_ptr<item> keep(renewer& r)
{
    auto one = std::make_shared<item>(r);
    r.prepare(one->timer, one);
    return one;
}

/// Effects: has `one` called at `due`.
void call(renewer& r, item& one, boot_clock::time_point due) { r.put(one.timer, due, due); }

/// Effects: waits until the thread has done everything that is due now.
[[nodiscard]] bool caught_up(renewer& k)
{
    auto const last = keep(k);
    call(k, *last, boot_clock::now());
    return eventually([&] { return last->calls == 1; });
}

/// Returns: the timers of this process.
[[nodiscard]] std::vector<int> timers()
{
    std::vector<int> found;
    for (auto const& one : std::filesystem::directory_iterator{"/proc/self/fd"}) {
        std::error_code gone;
        if (std::filesystem::read_symlink(one, gone).string().find("[timerfd]") != std::string::npos)
            found.push_back(std::stoi(one.path().filename().string()));
    }
    return found;
}

[[nodiscard]] bool readable(int descriptor)
{
    pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, 0) == 1;
}

}  // namespace

TEST_CASE("what is due is called in the order in which it is due, in one thread that is the client's")
{
    thread_of_a_client k;
    std::mutex m;
    std::vector<int> order;
    std::vector<std::thread::id> threads;
    std::vector<std::shared_ptr<item>> items;
    auto const now = boot_clock::now();
    for (int const delay : {30, 10, 50, 20, 40}) {
        auto one = keep(*k);
        one->due = [&, delay] {
            std::scoped_lock guard{m};
            order.push_back(delay);
            threads.push_back(std::this_thread::get_id());
        };
        call(*k, *one, now - 1s + std::chrono::milliseconds{delay});
        items.push_back(std::move(one));
    }
    k->ensure_running();
    k->ensure_running();
    REQUIRE(caught_up(*k));
    std::scoped_lock guard{m};
    CHECK(order == std::vector<int>{10, 20, 30, 40, 50});
    CHECK(threads == std::vector<std::thread::id>(5, threads.front()));
    CHECK(threads.front() != std::this_thread::get_id());
}

TEST_CASE("nothing is called before it is due, and once each time it is scheduled")
{
    thread_of_a_client k;
    k->ensure_running();
    auto const one = keep(*k);
    for (int times = 1; times <= 3; ++times) {
        auto const due = boot_clock::now() + 10ms;
        call(*k, *one, due);
        REQUIRE(eventually([&] { return one->calls == times; }));
        CHECK(one->called_at.load() >= due);
    }
    REQUIRE(caught_up(*k));
    CHECK(one->calls == 3);
}

TEST_CASE("scheduling again replaces the time, to an earlier or a later one")
{
    thread_of_a_client k;
    k->ensure_running();
    auto const earlier = keep(*k);
    auto const later = keep(*k);
    call(*k, *earlier, boot_clock::now() + 1h);
    call(*k, *later, boot_clock::now() + 30min);
    call(*k, *later, boot_clock::now() + 1h);
    call(*k, *earlier, boot_clock::now());
    REQUIRE(eventually([&] { return earlier->calls == 1; }));
    REQUIRE(caught_up(*k));
    CHECK(earlier->calls == 1);
    CHECK(later->calls == 0);
}

TEST_CASE("an alarm has everything called at once, as if it were due, and once")
{
    thread_of_a_client k;
    k->alarm();
    k->ensure_running();
    std::vector<std::shared_ptr<item>> items;
    for (int i = 0; i < 100; ++i) {
        items.push_back(keep(*k));
        call(*k, *items.back(), boot_clock::now() + 1h);
    }
    REQUIRE(caught_up(*k));
    for (auto const& one : items) CHECK(one->calls == 0);
    k->alarm();
    for (auto const& one : items) REQUIRE(eventually([&] { return one->calls == 1; }));
    CHECK(items.front()->alarms == 1);
    REQUIRE(caught_up(*k));
    for (auto const& one : items) CHECK(one->calls == 1);
    call(*k, *items.front(), boot_clock::now());
    REQUIRE(eventually([&] { return items.front()->calls == 2; }));
    CHECK(items.front()->alarms == 1);
}

TEST_CASE("what was canceled is not called until it is scheduled again")
{
    thread_of_a_client k;
    auto const one = keep(*k);
    k->cancel(one->timer);
    call(*k, *one, boot_clock::now());
    k->cancel(one->timer);
    k->cancel(one->timer);
    k->ensure_running();
    REQUIRE(caught_up(*k));
    CHECK(one->calls == 0);
    call(*k, *one, boot_clock::now());
    CHECK(eventually([&] { return one->calls == 1; }));
}

TEST_CASE("what is called may schedule itself")
{
    thread_of_a_client k;
    k->ensure_running();
    auto const one = keep(*k);
    auto* const self = one.get();
    one->due = [&k, self] {
        if (self->calls < 4) call(*k, *self, boot_clock::now());
    };
    call(*k, *one, boot_clock::now());
    REQUIRE(eventually([&] { return one->calls == 5; }));
    REQUIRE(caught_up(*k));
    CHECK(one->calls == 5);
}

TEST_CASE("what is destroyed is forgotten, and the others are not")
{
    thread_of_a_client k;
    auto gone = keep(*k);
    auto const stays = keep(*k);
    call(*k, *gone, boot_clock::now() - 1s);
    call(*k, *stays, boot_clock::now());
    gone.reset();
    k->ensure_running();
    CHECK(eventually([&] { return stays->calls == 1; }));
}

TEST_CASE("an alarm is not put off by what is scheduled after it")
{
    bool const was_scheduled = GENERATE(false, true);
    CAPTURE(was_scheduled);
    thread_of_a_client k;
    auto const one = keep(*k);
    std::atomic<int> alarmed{0};
    one->due = [&] {
        if (one->alarms > alarmed) {
            ++alarmed;
            return;
        }
        if (was_scheduled) call(*k, *one, boot_clock::now() + 1h);
        k->alarm();
        call(*k, *one, boot_clock::now() + 1h);  // as a renewal does that has succeeded
    };
    call(*k, *one, boot_clock::now());
    k->ensure_running();
    CHECK(eventually([&] { return alarmed == 1; }));
}

TEST_CASE("who is poked is called at once, by whichever thread, once, and whatever is scheduled or canceled then")
{
    thread_of_a_client k;
    k->ensure_running();
    auto const one = keep(*k);
    for (int times = 1; times <= 3; ++times) {
        if (times == 2) call(*k, *one, boot_clock::now() + 1h);
        k->poke(one->timer);
        if (times == 3) k->cancel(one->timer);
        REQUIRE(eventually([&] { return one->calls == times; }));
        CHECK(one->alarms == 0);
    }
    std::atomic<bool> poked{false};
    one->due = [&] {
        if (!poked.exchange(true)) k->poke(one->timer);
    };
    k->poke(one->timer);
    REQUIRE(eventually([&] { return one->calls == 5; }));
    REQUIRE(caught_up(*k));
    CHECK(one->calls == 5);
}

TEST_CASE(
    "the store is served while operations are under way for which no thread waits, and what is due is called meanwhile",
    "[lesson-19]")
{
    thread_of_a_client k;
    k.store->serves = true;
    k->ensure_running();
    REQUIRE(caught_up(*k));
    CHECK(k.store->served == 0);
    k->begin_service();
    CHECK(eventually([&] { return k.store->served > 0; }));
    k->begin_service();
    k->end_service();
    auto const before = k.store->served.load();
    REQUIRE(caught_up(*k));
    CHECK(eventually([&] { return k.store->served > before; }));
    k->end_service();
    REQUIRE(caught_up(*k));
    auto const when_ended = k.store->served.load();
    REQUIRE(caught_up(*k));
    CHECK(k.store->served == when_ended);
}

TEST_CASE("a store that needs no service does not keep the thread from its sleep")
{
    thread_of_a_client k;
    k->ensure_running();
    k->begin_service();
    REQUIRE(caught_up(*k));
    CHECK(k.store->served == 0);
    k->end_service();
}

TEST_CASE("an operation that may wait is served after a moment, unless it has ended")
{
    thread_of_a_client k;
    k.store->serves = true;
    k->ensure_running();
    k->begin_late_service();
    k->end_late_service();
    REQUIRE(caught_up(*k));
    auto const before = k.store->served.load();
    auto const begun = boot_clock::now();
    k->begin_late_service();
    CHECK(eventually([&] { return k.store->served > before; }));
    CHECK(boot_clock::now() - begun >= 40ms);
    k->end_late_service();
    REQUIRE(caught_up(*k));
    auto const when_ended = k.store->served.load();
    CHECK_FALSE(eventually([&] { return k.store->served > when_ended; }, 150ms));
}

TEST_CASE("what is left to the store is finished step by step, with pauses, and served meanwhile")
{
    thread_of_a_client k;
    k.store->serves = true;
    k.store->unfinished = 3;
    bool const started = GENERATE(true, false);
    if (started) k->ensure_running();
    auto const begun = boot_clock::now();
    for (int i = 0; i < 5; ++i) k->finish_later();
    k->ensure_running();
    CHECK(eventually([&] { return k.store->finished >= 1; }));
    CHECK(boot_clock::now() - begun >= 400ms);
    CHECK(eventually([&] { return k.store->served > 0; }));
    CHECK(eventually([&] { return k.store->finished == 3; }));
    CHECK(boot_clock::now() - begun >= 1200ms);
    REQUIRE(caught_up(*k));
    auto const when_done = k.store->served.load();
    CHECK_FALSE(eventually([&] { return k.store->finished > 3 || k.store->served > when_done; }, 1s));
    k->finish_later();  // something new
    CHECK(eventually([&] { return k.store->finished == 4; }));
}

TEST_CASE("the end of a renewer does not wait until the store has nothing left to finish")
{
    auto k = std::make_unique<thread_of_a_client>();
    auto const store = k->store;
    store->serves = GENERATE(true, false);
    store->unfinished = 1'000'000;
    (*k)->ensure_running();
    (*k)->finish_later();
    CHECK(eventually([&] { return store->finished > 0; }));
    k.reset();
    CHECK(store->unfinished > 0);
}

TEST_CASE("more than one batch of things that are due are all called")
{
    thread_of_a_client k;
    std::vector<std::shared_ptr<item>> items;
    for (int i = 0; i < 500; ++i) {
        items.push_back(keep(*k));
        call(*k, *items.back(), boot_clock::now());
    }
    k->ensure_running();
    REQUIRE(caught_up(*k));
    int called = 0;
    for (auto const& one : items) called += one->calls;
    CHECK(called == 500);
}

TEST_CASE(
    "no more renewals are under way than the window holds; the others begin when some have ended, the lease that ends first before the others")
{
    thread_of_a_client k;
    std::vector<std::shared_ptr<item>> items;
    std::atomic<std::size_t> under_way{0};
    std::atomic<std::size_t> most{0};
    std::vector<std::size_t> order;  // of the client's thread
    auto const now = boot_clock::now();
    constexpr auto count = 4 * schedule::window;
    for (std::size_t i = 0; i < count; ++i) {
        auto one = keep(*k);
        one->due = [&, i, self = one.get()] {
            if (self->calls == 1) {  // it was answered
                --under_way;
                return;
            }
            k->begin_renewal();
            order.push_back(i);
            most = std::max<std::size_t>(most, ++under_way);
        };
        k->put(one->timer, now - std::chrono::milliseconds{i},
               now + 1h - std::chrono::milliseconds{i});  // the last one ends first
        items.push_back(std::move(one));
    }
    k->ensure_running();
    REQUIRE(eventually([&] { return under_way == schedule::window; }));
    auto const urgent = keep(*k);
    k->put(urgent->timer, now, boot_clock::now());
    CHECK(eventually([&] { return urgent->calls == 1; }));  // whose end has come does not wait for room
    CHECK(under_way == schedule::window);
    for (auto i = count; i-- > 0;) {
        REQUIRE(eventually([&] { return items[i]->calls == 1; }));
        k->end_renewal(items[i]->timer);
    }
    for (auto const& one : items) REQUIRE(eventually([&] { return one->calls == 2; }));
    CHECK(under_way == 0);
    CHECK(most == schedule::window);
    REQUIRE(caught_up(*k));
    std::vector<std::size_t> expected;
    for (auto i = count; i-- > 0;) expected.push_back(i);
    CHECK(order == expected);
}

TEST_CASE(
    "more renewals begin than the window holds where half of the time to their end has passed, but not all at once")
{
    thread_of_a_client k;
    std::vector<std::shared_ptr<item>> items;
    std::atomic<std::size_t> under_way{0};
    auto const now = boot_clock::now();
    constexpr auto count = 2 * schedule::urgent_window;
    for (std::size_t i = 0; i < count; ++i) {
        auto one = keep(*k);
        one->due = [&, self = one.get()] {
            if (self->calls == 1) return;  // it was answered
            k->begin_renewal();
            ++under_way;
        };
        k->put(one->timer, now - 1h, now + 30min);
        items.push_back(std::move(one));
    }
    k->ensure_running();
    CHECK(eventually([&] { return under_way == schedule::urgent_window; }));
    REQUIRE(caught_up(*k));
    CHECK(under_way == schedule::urgent_window);
    std::vector<bool> answered(count);
    CHECK(eventually([&] {
        for (std::size_t i = 0; i < count; ++i)
            if (!answered[i] && items[i]->calls == 1) {
                answered[i] = true;
                k->end_renewal(items[i]->timer);
            }
        return std::all_of(items.begin(), items.end(), [](auto const& one) { return one->calls == 2; });
    }));
    CHECK(under_way == count);
}

TEST_CASE("the end of a renewer waits for a call that has begun")
{
    auto k = std::make_unique<thread_of_a_client>();
    auto const one = keep(**k);
    std::atomic<bool> begun{false};
    std::atomic<bool> ending{false};
    one->due = [&] {
        begun = true;
        while (!ending) std::this_thread::yield();
        for (int i = 0; i < 100; ++i) std::this_thread::yield();
    };
    (*k)->ensure_running();
    call(**k, *one, boot_clock::now());
    REQUIRE(eventually([&] { return begun.load(); }));
    ending = true;
    k.reset();
    one->by = nullptr;
    CHECK(one->calls == 1);
}

TEST_CASE("the end of a renewer waits for what is under way, also for what may wait, and serves the store for it")
{
    bool const serves = GENERATE(true, false);
    bool const may_wait = GENERATE(true, false);
    CAPTURE(serves, may_wait);
    auto k = std::make_unique<thread_of_a_client>();
    k->store->serves = serves;
    (*k)->ensure_running();
    may_wait ? (*k)->begin_late_service() : (*k)->begin_service();
    std::atomic<bool> over{false};
    std::thread ends{[&, of = k->of, store = k->store] {
        if (serves) static_cast<void>(eventually([&] { return store->served > 0; }));
        std::this_thread::sleep_for(20ms);
        over = true;
        may_wait ? of->end_late_service() : of->end_service();
    }};
    k.reset();
    CHECK(over);
    ends.join();
}

TEST_CASE("the end of a renewer waits for a renewal that is under way, and calls whose it was when that has ended")
{
    auto k = std::make_unique<thread_of_a_client>();
    auto const one = keep(**k);
    one->due = [&, of = k->of.get()] {
        if (one->calls == 0) of->begin_renewal();
    };
    (*k)->ensure_running();
    call(**k, *one, boot_clock::now());
    REQUIRE(eventually([&] { return one->calls == 1; }));
    std::thread ends{[&, of = k->of] { of->end_renewal(one->timer); }};
    k.reset();
    one->by = nullptr;
    CHECK(one->calls == 2);
    ends.join();
}

TEST_CASE("a renewer may be ended by what it calls, in its own thread, and then calls what is due", "[lesson-21]")
{
    bool const serves = GENERATE(true, false);  // it had been the store's turn, and a renewal begins
    auto const store = std::make_shared<fake_store>();
    store->serves = serves;
    auto const k = std::make_shared<renewer>(store);
    auto const one = keep(*k);
    auto const behind = keep(*k);
    std::atomic<bool> ended{false};
    if (serves) k->begin_service();
    one->due = [&] {
        if (serves) {
            k->begin_renewal();
            k->end_renewal(behind->timer);
            k->end_service();
        }
        k->poke(behind->timer);
        k->end();
        ended = true;
    };
    k->ensure_running();
    if (serves) CHECK(eventually([&] { return store->served > 0; }));
    call(*k, *one, boot_clock::now());
    CHECK(eventually([&] { return one->calls == 1 && behind->calls == 1; }));
    CHECK(ended);
    CHECK(eventually([&] { return k.use_count() == 1; }));
}

TEST_CASE("a renewer that was never started, or has nothing to do yet, ends at once, and calls nothing for it")
{
    std::shared_ptr<item> due;
    std::shared_ptr<item> later;
    auto const begun = boot_clock::now();
    {
        thread_of_a_client never;
        thread_of_a_client idle;
        idle->ensure_running();
        due = keep(*never);
        call(*never, *due, begun);
        later = keep(*idle);
        call(*idle, *later, begun + 1h);
        REQUIRE(caught_up(*idle));
    }
    due->by = nullptr;
    later->by = nullptr;
    CHECK(boot_clock::now() - begun < 2min);
    CHECK(due->calls == 0);
    CHECK(later->calls == 0);
}

TEST_CASE("a timer that fires although nothing is due wakes the thread once, and the next entry is called in time")
{
    thread_of_a_client k;
    k->ensure_running();
    bool const later = GENERATE(false, true);  // something is due after this test, or nothing
    auto const last = keep(*k);
    REQUIRE(caught_up(*k));
    if (later) call(*k, *last, boot_clock::now() + 1h);
    auto const all = timers();
    REQUIRE(all.size() == 1);
    itimerspec const now{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 1}};
    REQUIRE(::timerfd_settime(all.front(), TFD_TIMER_ABSTIME, &now, nullptr) == 0);
    CHECK(eventually([&] { return !readable(all.front()); }));
    CHECK(last->calls == 0);
    call(*k, *last, boot_clock::now());
    CHECK(eventually([&] { return last->calls == 1; }));
}
