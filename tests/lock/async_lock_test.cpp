// SPDX-License-Identifier: MIT
//
// Calls that return at once and tell a function of the result.
#include "conformance/sleeper.hpp"
#include "fake_store.hpp"
#include "support/async_outcome.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/signals.hpp"

#include <holdfast/memory.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::lock_options;
using holdfast::mutex;
using holdfast::test::async_outcome;
using holdfast::test::blocked_signals;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::fake_client;
using holdfast::test::sleeper;

namespace {

std::ptrdiff_t threads_of_this_process()
{
    return std::distance(std::filesystem::directory_iterator{"/proc/self/task"}, std::filesystem::directory_iterator{});
}

/// Where a wait for a lock can be when it is stopped.
enum class place { before, in_line, first, asking };

/// A lock that `m` waits for, at `place`.
struct waiting {
    fake_client f;
    std::optional<mutex> holder{std::in_place, f.locks, "orders", lock_options{}};
    std::optional<mutex> m{std::in_place, f.locks, "orders", lock_options{}};
    std::stop_source stop;
    async_outcome outcome;
    place at;

    explicit waiting(place where) : at{where}
    {
        switch (at) {
        case place::before: stop.request_stop(); break;
        case place::in_line: holder->lock(); break;
        case place::first:  // the store says that others wait: there is a pause of 100 ms
            f.store->others_wait = true;
            holder->lock();
            f.store->releases.answered_at_once = false;
            {
                sleeper unlocks{[&] { holder->unlock(); }};
                CHECK(eventually([&] { return f.store->releases.size() == 1; }));
                std::this_thread::sleep_for(50ms);
                f.store->answer_releases();
                unlocks.join();
            }
            break;
        case place::asking: f.store->acquires.answered_at_once = false; break;
        }
        m->async_lock(outcome.hears(), stop.get_token());
    }
    waiting(waiting const&) = delete;
    waiting& operator=(waiting const&) = delete;
    ~waiting()
    {
        CHECK(outcome.calls() == 1);
        CHECK(f.store->broken == 0);
    }

    /// Effects: checks that the wait was given up, and that the lock can be had. Returns: false if the wait had ended
    /// before: a pause of 100 ms is over soon.
    [[nodiscard]] bool given_up()
    {
        CHECK(outcome.comes());
        if (at == place::first && !outcome.code()) {
            if (m) m->unlock();
            return false;
        }
        CHECK(outcome.code() == std::errc::operation_canceled);
        CHECK_FALSE(outcome.held());
        f.store->acquires.answered_at_once = true;
        if (at == place::in_line) holder->unlock();
        CHECK(holder->try_lock_for(1min));
        holder->unlock();
        return true;
    }
    [[nodiscard]] bool lasts() const { return at == place::in_line || at == place::asking; }
};

}  // namespace

TEST_CASE("an asynchronous lock is held when its function is called, which another thread does than the caller")
{
    holdfast::memory::store here;
    holdfast::memory::mutex m{here, "orders"};
    for (int i = 0; i < 20; ++i) {
        async_outcome locked;
        std::atomic<bool> held{false};
        m.async_lock(locked.hears([&] { held = m.lease().still_held(); }));
        REQUIRE(locked.comes());
        CHECK(held);
        CHECK_FALSE(locked.code());
        CHECK(locked.by() != std::this_thread::get_id());
        CHECK(m.lease().still_held());
        CHECK(m.lease().fencing_token() > 0);

        async_outcome unlocked;
        m.async_unlock(unlocked.hears());
        REQUIRE(unlocked.comes());
        CHECK_FALSE(unlocked.code());
        CHECK(unlocked.by() != std::this_thread::get_id());
        CHECK_FALSE(m.lease().still_held());

        async_outcome tried;
        m.async_try_lock_for(1min, tried.hears());
        REQUIRE(tried.comes());
        CHECK_FALSE(tried.code());
        CHECK(tried.held());
        m.unlock();
        CHECK(locked.calls() + unlocked.calls() + tried.calls() == 3);
    }
}

TEST_CASE("a fault in the function of an asynchronous lock finds the program's handler; other signals are not for it")
{
    holdfast::memory::store here;
    holdfast::memory::mutex m{here, "orders"};
    async_outcome locked;
    std::optional<blocked_signals> seen;
    m.async_lock(locked.hears([&] { seen.emplace(); }));
    REQUIRE(locked.comes());
    CHECK_FALSE(seen->has_fault());
    CHECK(seen->has(SIGTERM));
    m.unlock();
}

TEST_CASE("a function is called from no call of the library: what its caller has locked is free for it")
{
    fake_client f;  // whose operations end in their start
    mutex m{f.locks, "orders"};
    std::mutex callers;
    async_outcome locked;
    async_outcome unlocked;
    {
        std::scoped_lock const guard{callers};
        m.async_lock(locked.hears([&] { std::scoped_lock const its{callers}; }));
        CHECK_FALSE(locked.told());
    }
    REQUIRE(locked.comes());
    {
        std::scoped_lock const guard{callers};
        m.async_unlock(unlocked.hears([&] { std::scoped_lock const its{callers}; }));
        CHECK_FALSE(unlocked.told());
    }
    CHECK(unlocked.comes());
}

TEST_CASE("an asynchronous attempt whose time passes while another one has the lock is told so, and that is no error")
{
    holdfast::memory::store here;
    holdfast::memory::store there = here.another_client();
    bool const elsewhere = GENERATE(false, true);
    holdfast::memory::mutex holder{elsewhere ? there : here, "orders"};
    holdfast::memory::mutex m{here, "orders"};
    holder.lock();
    async_outcome outcome;
    auto const begun = boot_clock::now();
    m.async_try_lock_for(50ms, outcome.hears());
    REQUIRE(outcome.comes());
    CHECK(boot_clock::now() - begun >= 50ms);
    CHECK_FALSE(outcome.code());
    CHECK_FALSE(outcome.held());
    CHECK_FALSE(m.lease().still_held());
    holder.unlock();
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("an asynchronous lock that the store refuses, or cannot be asked for, is told why")
{
    fake_client f;
    mutex m{f.locks, "orders"};
    f.store->acquires.answered_at_once = false;
    auto const why = GENERATE(errc::unavailable, errc::misconfigured);
    async_outcome outcome;
    m.async_lock(outcome.hears());
    CHECK(f.store->acquires.size() == 1);
    f.store->refuse(0, make_error_code(why));
    REQUIRE(outcome.comes());
    CHECK(outcome.code() == why);

    f.store->start_throws = true;
    async_outcome not_started;
    m.async_try_lock_for(1min, not_started.hears());
    REQUIRE(not_started.comes());
    CHECK(not_started.code() == errc::misconfigured);
    CHECK_FALSE(not_started.held());
    f.store->start_throws = false;
    f.store->acquires.answered_at_once = true;
    CHECK(m.try_lock());
}

TEST_CASE("a stop ends an asynchronous wait at every stage")
{
    auto const at = GENERATE(place::before, place::in_line, place::first, place::asking);
    CHECK(eventually([&] {
        waiting one{at};
        if (one.lasts()) CHECK_FALSE(one.outcome.told());
        one.stop.request_stop();
        return one.given_up();
    }));
}

TEST_CASE("the end of its mutex ends an asynchronous wait at every stage")
{
    auto const at = GENERATE(place::in_line, place::first, place::asking);
    CHECK(eventually([&] {
        waiting one{at};
        if (one.lasts()) CHECK_FALSE(one.outcome.told());
        one.m.reset();
        return one.given_up();
    }));
}

TEST_CASE("the end of all that the program has of a lock ends an asynchronous wait")
{
    waiting one{GENERATE(place::in_line, place::asking)};
    one.m.reset();
    one.holder.reset();
    one.f.locks = fake_client{}.locks;
    CHECK(one.outcome.comes());
    CHECK(one.outcome.code() == std::errc::operation_canceled);
}

TEST_CASE("what an asynchronous wait is granted after the end of its mutex is given back")
{
    fake_client f;
    auto m = std::make_optional<mutex>(f.locks, "orders");
    mutex other{f.locks, "orders"};
    f.store->acquires.answered_at_once = f.store->cancel_ends = false;
    async_outcome outcome;
    m->async_lock(outcome.hears());
    m.reset();
    CHECK(f.store->acquires.at(0)->canceled);
    CHECK_FALSE(outcome.told());
    f.store->grant_to(0);
    REQUIRE(outcome.comes());
    CHECK(outcome.code() == std::errc::operation_canceled);
    CHECK(eventually([&] { return f.store->releases.size() == 1; }));
    f.store->acquires.answered_at_once = true;
    CHECK(other.try_lock_for(1min));
    other.unlock();
    CHECK(f.store->broken == 0);
}

TEST_CASE("a function may destroy the mutex, with the lock or without")
{
    holdfast::memory::store here;
    holdfast::memory::mutex other{here, "orders"};
    bool const granted = GENERATE(true, false);
    auto m = std::make_unique<holdfast::memory::mutex>(here, "orders");
    if (!granted) other.lock();
    async_outcome outcome;
    m->async_try_lock_for(granted ? 1min : 10ms, outcome.hears([&] { m.reset(); }));
    REQUIRE(outcome.comes());
    CHECK(outcome.held() == granted);
    CHECK_FALSE(m);
    if (!granted) other.unlock();
    CHECK(other.try_lock_for(1min));  // it was given back
}

TEST_CASE("a function may destroy the last that there is of a client")
{
    enum class call { lock, try_lock, unlock };
    auto const which = GENERATE(call::lock, call::try_lock, call::unlock);
    auto here = std::make_optional<holdfast::memory::store>();
    auto other = here->another_client();
    auto m = std::make_unique<holdfast::memory::mutex>(*here, "orders");
    auto const destroy = [&] {
        here.reset();
        m.reset();
    };
    async_outcome outcome;
    switch (which) {
    case call::lock: m->async_lock(outcome.hears(destroy)); break;
    case call::try_lock: m->async_try_lock_for(1min, outcome.hears(destroy)); break;
    case call::unlock: m->lock(); m->async_unlock(outcome.hears(destroy));
    }
    REQUIRE(outcome.comes());
    CHECK_FALSE(outcome.code());
    CHECK_FALSE(m);
    holdfast::memory::mutex again{other, "orders"};
    CHECK(again.try_lock_for(1min));
}

TEST_CASE("the end of a client waits for a hook that runs, although an asynchronous call has still to end")
{
    auto f = std::make_optional<fake_client>();
    auto const store = f->store;
    std::atomic<bool> called{false};
    std::atomic<bool> go{false};
    std::atomic<bool> returned{false};
    auto lost = std::make_unique<mutex>(f->locks, "invoices", lock_options{.on_error = [&](holdfast::error const&) {
                                            if (called.exchange(true)) return;  // the unlock tells of the loss, too
                                            while (!go) std::this_thread::sleep_for(1ms);
                                            returned = true;
                                        }});
    auto m = std::make_unique<mutex>(f->locks, "orders");
    lost->lock();
    store->ends_lease = true;
    store->alarm();
    REQUIRE(eventually([&] { return called.load(); }));
    store->acquires.answered_at_once = store->cancel_ends = false;
    async_outcome outcome;
    m->async_lock(outcome.hears());
    auto const asking = store->acquires.last();
    sleeper ends{[&] {
        while (!asking->canceled) std::this_thread::sleep_for(1ms);
        std::this_thread::sleep_for(50ms);
        asking->answer(std::make_error_code(std::errc::operation_canceled));
        bool const told = outcome.comes();  // beside the hook
        std::this_thread::sleep_for(50ms);
        go = true;
        return told;
    }};
    lost.reset();
    m.reset();
    f.reset();
    CHECK(returned);
    CHECK(outcome.calls() == 1);
    CHECK(ends.join());
    CHECK(store->broken == 0);
    store->alarm();  // there is no client any more
}

TEST_CASE("a function that was called, or never will be, is destroyed, with what it has")
{
    auto const what = std::make_shared<int>();
    {
        holdfast::memory::store here;
        holdfast::memory::mutex m{here, "orders"};
        std::atomic<int> calls{0};
        m.async_lock([&, what](std::error_code) { ++calls; });
        CHECK(eventually([&] { return calls == 1 && what.use_count() == 1; }));
        m.async_unlock([&, what](std::error_code) { ++calls; });
        CHECK(eventually([&] { return calls == 2 && what.use_count() == 1; }));
        m.lock();
        m.async_lock([&, what](std::error_code) { ++calls; });  // the object has the lock already
        CHECK(what.use_count() > 1);
        m.unlock();
        CHECK(eventually([&] { return calls == 3 && what.use_count() == 1; }));
    }
    CHECK(what.use_count() == 1);
}

TEST_CASE("an asynchronous lock of an object that holds waits until it is unlocked, whichever way")
{
    holdfast::memory::store here;
    holdfast::memory::mutex m{here, "orders"};
    m.lock();
    async_outcome second;
    m.async_lock(second.hears());
    std::this_thread::sleep_for(10ms);
    CHECK_FALSE(second.told());
    async_outcome unlocked;
    if (GENERATE(false, true)) {
        m.unlock();
    } else {
        m.async_unlock(unlocked.hears());
        CHECK(unlocked.comes());
    }
    REQUIRE(second.comes());
    CHECK_FALSE(second.code());
    CHECK(m.lease().still_held());
}

TEST_CASE("many asynchronous waiters of one name have it in the order in which they came, and need no threads")
{
    constexpr std::size_t count = 500;
    holdfast::memory::store here;
    holdfast::memory::mutex holder{here, "orders", {.ttl = 1min}};
    std::deque<holdfast::memory::mutex> all;
    std::vector<std::size_t> order;  // guarded by the lock
    std::atomic<std::size_t> unlocked{0};
    holder.lock();
    for (std::size_t i = 0; i < count; ++i) {
        auto& m = all.emplace_back(here, "orders", lock_options{.ttl = 1min});
        m.async_lock([&, i](std::error_code ec) {
            if (!ec) order.push_back(i);
            m.async_unlock([&](std::error_code) { ++unlocked; });
        });
    }
    CHECK(threads_of_this_process() < 20);
    CHECK(order.empty());
    holder.unlock();
    REQUIRE(eventually([&] { return unlocked == count; }));
    std::vector<std::size_t> expected(count);
    std::iota(expected.begin(), expected.end(), 0U);
    CHECK(order == expected);
}

TEST_CASE("asynchronous and blocked waiters of one name take turns in one line")
{
    holdfast::memory::store here;
    holdfast::memory::mutex one{here, "orders"};
    holdfast::memory::mutex other{here, "orders"};
    holdfast::memory::mutex third{here, "orders"};
    one.lock();
    async_outcome second;
    other.async_lock(second.hears());
    sleeper blocked{[&] { third.lock(); }};
    CHECK(blocked.sleeps());
    CHECK_FALSE(second.told());
    one.unlock();
    REQUIRE(second.comes());
    CHECK_FALSE(second.code());
    CHECK(blocked.sleeps());
    CHECK_FALSE(blocked.done());
    async_outcome again;
    one.async_lock(again.hears());
    other.unlock();
    blocked.join();
    CHECK_FALSE(again.told());
    third.unlock();
    CHECK(again.comes());
    CHECK(one.lease().still_held());
}

TEST_CASE("the loss of a lease that was taken asynchronously is announced, and told by the unlock")
{
    std::atomic<int> told{0};
    holdfast::memory::store here;
    holdfast::memory::mutex m{here, "orders", {.ttl = 15s, .on_error = [&](holdfast::error const& e) {
                                                   if (e.code() == errc::lease_lost) ++told;
                                               }}};
    async_outcome locked;
    m.async_lock(locked.hears());
    REQUIRE(locked.comes());
    auto const lease = m.lease();
    CHECK(lease.still_held());
    here.erase("orders");
    CHECK(eventually([&] { return lease.lost_token().stop_requested() && told == 1; }));
    CHECK_FALSE(lease.still_held());
    async_outcome unlocked;
    m.async_unlock(unlocked.hears());
    REQUIRE(unlocked.comes());
    CHECK(unlocked.code() == errc::lease_lost);
    async_outcome again;
    m.async_unlock(again.hears());
    REQUIRE(again.comes());
    CHECK(again.code() == errc::not_owner);
}

TEST_CASE("a lease that ended unnoticed is found by an asynchronous unlock, which stops its tokens")
{
    fake_client f;
    mutex m{f.locks, "orders", {.ttl = 1h}};
    m.lock();
    auto const token = m.lease().lost_token();
    f.store->releases.answered_at_once = false;
    async_outcome unlocked;
    m.async_unlock(unlocked.hears());
    std::this_thread::sleep_for(5ms);
    CHECK_FALSE(unlocked.told());
    f.store->releases.last()->answer({make_error_code(errc::not_owner), {}});
    REQUIRE(unlocked.comes());
    CHECK(unlocked.code() == errc::lease_lost);
    CHECK(eventually([&] { return token.stop_requested(); }));
}

TEST_CASE("a function that takes its time delays no renewal, no loss and no other function")
{
    holdfast::memory::store here;
    lock_options const options{.ttl = 15s};
    holdfast::memory::mutex slow{here, "slow", options};
    holdfast::memory::mutex held{here, "held", options};
    holdfast::memory::mutex lost{here, "lost", options};
    holdfast::memory::mutex other{here, "other", options};
    held.lock();
    lost.lock();
    auto const lease = held.lease();
    std::atomic<bool> goes_on{false};
    std::atomic<bool> begun{false};
    async_outcome slowly;
    slow.async_lock(slowly.hears([&] {
        begun = true;
        while (!goes_on) std::this_thread::sleep_for(1ms);
    }));
    REQUIRE(eventually([&] { return begun.load(); }));
    auto const end = lease.expires_at();
    here.erase("lost");
    async_outcome soon;
    other.async_lock(soon.hears());
    CHECK(soon.comes());
    CHECK(eventually([&] { return lost.lease().lost_token().stop_requested(); }));
    CHECK(eventually([&] { return lease.expires_at() > end; }));
    CHECK(lease.still_held());
    CHECK(slow.lease().still_held());
    CHECK_FALSE(slowly.told());
    goes_on = true;
    CHECK(slowly.comes());
}

TEST_CASE("asynchronous calls of many threads exclude each other, and each is answered once")
{
    holdfast::memory::store here;
    holdfast::memory::store there = here.another_client();
    constexpr int rounds = 30;
    std::deque<holdfast::memory::mutex> all;
    for (int i = 0; i < 8; ++i)
        all.emplace_back(i % 2 == 0 ? here : there, "orders", lock_options{.max_local_handoffs = 3});
    std::atomic<int> inside{0};
    std::atomic<int> overlaps{0};
    std::atomic<int> answered{0};
    {
        std::vector<std::jthread> crew;
        for (auto& m : all)
            crew.emplace_back([&] {
                for (int i = 0; i < rounds; ++i) {
                    async_outcome locked;
                    m.async_lock(locked.hears([&] { overlaps += inside++; }));
                    if (!locked.comes() || locked.code()) return;
                    --inside;
                    async_outcome unlocked;
                    m.async_unlock(unlocked.hears());
                    if (!unlocked.comes() || unlocked.code()) return;
                    answered += locked.calls() + unlocked.calls();
                }
            });
    }
    CHECK(answered == 2 * rounds * 8);
    CHECK(overlaps == 0);
}

TEST_CASE(
    "a stop, the end of the mutex and the answer may come together: the function is called once, and nothing is left behind")
{
    holdfast::memory::store here;
    holdfast::memory::mutex other{here, "orders"};
    for (int i = 0; i < 200; ++i) {
        auto m = std::make_optional<holdfast::memory::mutex>(here, "orders");
        bool const held = i % 3 == 0;
        if (held) other.lock();
        std::stop_source stop;
        async_outcome outcome;
        m->async_lock(outcome.hears(), stop.get_token());
        {
            std::jthread const stops{[&] { stop.request_stop(); }};
            std::jthread const unlocks{[&] {
                if (held) other.unlock();
            }};
            if (i % 2 == 0) m.reset();
        }
        REQUIRE(outcome.comes());
        if (outcome.code()) CHECK(outcome.code() == std::errc::operation_canceled);
        m.reset();
        CHECK(other.try_lock_for(1min));
        other.unlock();
        CHECK(outcome.calls() == 1);
    }
}

TEST_CASE("whose mutex is destroyed before its function is called is told that it was canceled")
{
    fake_client f;
    std::atomic<bool> go{false};
    std::deque<mutex> busy;
    std::deque<async_outcome> slow(holdfast::detail::announcer::most_threads);
    for (auto const& one : slow) {
        busy.emplace_back(f.locks, "busy/" + std::to_string(busy.size()), lock_options{});
        busy.back().async_lock(one.hears([&] {
            while (!go) std::this_thread::sleep_for(1ms);
        }));
    }
    std::optional<mutex> m{std::in_place, f.locks, "orders", lock_options{}};
    async_outcome outcome;
    m->async_lock(outcome.hears());
    CHECK(eventually([&] { return m->lease().still_held(); }));
    m.reset();
    CHECK(f.store->releases.size() == 1);
    go = true;
    CHECK(outcome.comes());
    CHECK(outcome.code() == std::errc::operation_canceled);
    CHECK_FALSE(outcome.held());
    for (auto const& one : slow) CHECK(one.comes());
}

TEST_CASE("a hook that is told that it is over what had failed keeps no other asynchronous call waiting")
{
    std::atomic<bool> over{false};
    std::atomic<bool> go{false};
    std::atomic<bool> left{false};
    fake_client f;
    mutex m{f.locks, "orders", lock_options{.on_error = [&](holdfast::error const& e) {
                if (!e.over()) return;
                over = true;
                while (!go) std::this_thread::sleep_for(1ms);
                left = true;
            }}};
    m.lock();
    f.store->releases.answered_at_once = false;
    sleeper unlocks{[&] { m.unlock(); }};
    CHECK(eventually([&] { return f.store->releases.size() == 1; }));
    f.store->releases.at(0)->answer({make_error_code(errc::unavailable), "down", "a server"});
    unlocks.join();
    f.store->releases.answered_at_once = true;
    std::this_thread::sleep_for(holdfast::detail::failure_reports::quiet + 10ms);
    async_outcome first;
    m.async_lock(first.hears());
    CHECK(eventually([&] { return over.load(); }));
    mutex other{f.locks, "other", {}};
    async_outcome second;
    other.async_lock(second.hears());
    CHECK(second.comes());
    go = true;
    CHECK(first.comes());
    CHECK(eventually([&] { return left.load(); }));
}
