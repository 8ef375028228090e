// SPDX-License-Identifier: MIT
//
// What a client counts of its locks, and tells its observer.
#include "conformance/sleeper.hpp"
#include "fake_store.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"

#include <holdfast/memory.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lock_event;
using holdfast::memory::mutex;
using holdfast::memory::store;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::sleeper;
using kind = holdfast::lock_event::kind;

namespace {

/// Keeps what it is told.
class notebook {
public:
    explicit notebook(holdfast::store& of)
    {
        of.observe([this](lock_event const& e) {
            std::scoped_lock guard{mutex_};
            all_.push_back(e);
        });
    }

    [[nodiscard]] std::vector<lock_event> all() const
    {
        std::scoped_lock guard{mutex_};
        return all_;
    }

    [[nodiscard]] std::vector<lock_event> all(kind what) const
    {
        auto some = all();
        std::erase_if(some, [&](auto const& e) { return e.what != what; });
        return some;
    }

private:
    mutable std::mutex mutex_;
    std::vector<lock_event> all_;
};

std::uint64_t total(holdfast::duration_histogram const& h)
{
    return std::accumulate(h.counts.begin(), h.counts.end(), std::uint64_t{0});
}

}  // namespace

TEST_CASE("a client counts what is acquired, held and released")
{
    store here;
    mutex a{here, "a"};
    mutex b{here, "b"};
    CHECK(here.stats().acquired == 0);
    a.lock();
    b.lock();
    auto s = here.stats();
    CHECK(s.acquired == 2);
    CHECK(s.held == 2);
    CHECK(s.released == 0);
    CHECK(total(s.waits) == 2);
    a.unlock();
    s = here.stats();
    CHECK(s.held == 1);
    CHECK(s.released == 1);
    CHECK(total(s.holds) == 1);
    CHECK(s.holds.sum > 0ns);
    a.unlock();  // it does not have it
    CHECK(here.stats().released == 1);
    CHECK(here.another_client().stats().acquired == 0);
}

TEST_CASE("a client counts those that wait, and how their waits end")
{
    store here;
    store there = here.another_client();
    mutex holder{there, "orders"};
    mutex m{here, "orders"};
    holder.lock();
    CHECK_FALSE(m.try_lock());
    CHECK_FALSE(m.try_lock_for(1ms));
    CHECK(here.stats().timed_out == 2);

    std::stop_source stop;
    sleeper waits{[&] { return m.lock(stop.get_token()); }};
    CHECK(waits.sleeps());
    std::promise<void> told;
    m.async_lock([&](std::error_code) { told.set_value(); }, stop.get_token());
    CHECK(eventually([&] { return here.stats().waiting == 2; }));
    stop.request_stop();
    CHECK_FALSE(waits.join());
    told.get_future().wait();
    CHECK(here.stats().waiting == 0);
    CHECK(here.stats().canceled == 2);

    here.set_faults({.unavailable = true});
    CHECK_THROWS_AS(m.try_lock(), holdfast::error);
    CHECK(here.stats().failed == 1);
    CHECK(here.stats().acquired == 0);
}

TEST_CASE("a client counts how often a lock passes from thread to thread, and each hold of it")
{
    store here;
    mutex m{here, "orders"};
    m.lock();
    sleeper waits{[&] {
        m.lock();
        m.unlock();
    }};
    CHECK(waits.sleeps());
    m.unlock();
    waits.join();
    auto const s = here.stats();
    CHECK(s.acquired == 2);
    CHECK(s.handed_over == 1);
    CHECK(s.released == 2);
    CHECK(s.held == 0);
    CHECK(total(s.waits) == 2);
    CHECK(total(s.holds) == 2);
}

TEST_CASE("a client counts renewals, and leases that are lost, by their cause")
{
    store here;
    mutex renewed{here, "renewed", {.ttl = 15s}};
    mutex over{here, "over", {.ttl = 60ms, .renew = false}};
    renewed.lock();
    over.lock();
    CHECK(eventually([&] { return here.stats().lost_by_deadline == 1 && here.stats().renewed >= 2; }));
    CHECK(here.stats().held == 1);
    over.unlock();
    CHECK(here.stats().released == 0);
    here.erase("renewed");
    CHECK(eventually([&] { return here.stats().lost_in_store == 1; }));
    auto const s = here.stats();
    CHECK(s.held == 0);
    CHECK(total(s.holds) == 2);
}

TEST_CASE("a client counts renewals that fail while the lease goes on")
{
    store here;
    mutex m{here, "orders", {.ttl = 15s}};
    m.lock();
    here.set_faults({.unavailable = true});
    CHECK(eventually([&] { return here.stats().renewals_failed > 0; }));
}

TEST_CASE("durations are sorted into buckets that grow by four")
{
    store here;
    mutex m{here, "orders"};
    m.lock();
    std::this_thread::sleep_for(2ms);
    m.unlock();
    auto const holds = here.stats().holds;
    auto const bounds = holdfast::duration_histogram::bounds;
    CHECK(bounds.front() == 100us);
    CHECK(bounds[1] == 400us);
    std::size_t const at =
        static_cast<std::size_t>(std::lower_bound(bounds.begin(), bounds.end(), holds.sum) - bounds.begin());
    CHECK(holds.counts.at(at) == 1);
    CHECK(holds.sum >= 2ms);
}

TEST_CASE("the time that many locks were held for together is counted, however much that is")
{
    holdfast::detail::activity all;
    constexpr std::uint64_t holds = 400;
    auto const each = std::chrono::hours{24} * 365;
    for (std::uint64_t i = 0; i < holds; ++i) all.ended(each);
    CHECK(all.stats().holds.sum == holds * std::chrono::microseconds{each});
}

TEST_CASE("an observer is told what its client's locks do, with names and durations")
{
    store here;
    store there = here.another_client();
    notebook told{here};
    {
        mutex m{here, "orders"};
        m.lock();
        sleeper waits{[&] {
            m.lock();
            m.unlock();
        }};
        CHECK(waits.sleeps());
        m.unlock();
        waits.join();
    }
    auto const got = told.all(kind::acquired);
    REQUIRE(got.size() == 2);
    CHECK(got[0].lock_name == "orders");
    CHECK(std::count_if(got.begin(), got.end(), [](auto const& e) { return e.handed_over; }) == 1);
    auto const back = told.all(kind::released);
    REQUIRE(back.size() == 2);
    CHECK(back[0].duration > 0ns);
    CHECK_FALSE(back[0].code);

    mutex rival{there, "orders"};
    mutex m{here, "orders"};
    rival.lock();
    std::size_t tries = 0;
    CHECK(eventually([&] {
        ++tries;
        CHECK_FALSE(m.try_lock_for(20ms));
        auto const not_got = told.all(kind::not_acquired);
        REQUIRE(not_got.size() == tries);
        CHECK(not_got.back().code == errc::timed_out);
        return not_got.back().duration >= 20ms;  // less if the thread paused before its wait began
    }));
    CHECK(told.all().size() == 7 + 3 * tries);  // nothing of the other client's
}

TEST_CASE("an observer is told of renewals, of a lease at risk, and of its loss, by a thread of the client")
{
    store here;
    notebook told{here};
    mutex m{here, "orders", {.ttl = 9s}};
    m.lock();
    CHECK(eventually([&] { return !told.all(kind::renewed).empty(); }));
    here.set_faults({.unavailable = true});
    CHECK(eventually([&] { return !told.all(kind::lost).empty(); }));
    auto const risk = told.all(kind::at_risk);
    REQUIRE_FALSE(risk.empty());
    CHECK(risk[0].code == errc::unavailable);
    auto const lost = told.all(kind::lost);
    CHECK(lost[0].code == errc::lease_lost);
    CHECK(lost[0].duration >= 8s);
    here.set_faults({});
    m.unlock();
    CHECK(told.all(kind::released).empty());
    CHECK(told.all(kind::lost).size() == 1);
}

TEST_CASE("an observer is told nothing of a lock that is kept for its min_hold, whose release it was told of")
{
    store here;
    notebook told{here};
    bool const fails = GENERATE(false, true);
    mutex m{here, "orders", {.ttl = 6s, .min_hold = 1h}};
    m.lock();
    if (fails) here.set_faults({.unavailable = true});
    m.unlock();
    CHECK(told.all(kind::released).size() == 1);
    CHECK(eventually([&] { return (fails ? here.stats().renewals_failed : here.stats().renewed) > 0; }));
    CHECK_FALSE(eventually([&] { return told.all().size() > 3; }, 100ms));
}

TEST_CASE("a loss that is found when the lock is given back is counted and told as one")
{
    store here;
    notebook told{here};
    mutex m{here, "orders", {.ttl = 1h}};
    m.lock();
    here.erase("orders");
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == errc::lease_lost);
    CHECK(told.all(kind::lost).size() == 1);
    CHECK(told.all(kind::released).empty());
    auto const s = here.stats();
    CHECK(s.lost_in_store == 1);
    CHECK(s.lost_by_deadline == 0);
    CHECK(s.released == 0);
    CHECK(s.held == 0);
    CHECK(total(s.holds) == 1);
}

TEST_CASE("an observer may use locks of the client, and is not told any more when it was replaced")
{
    store here;
    mutex other{here, "other"};
    int nested = 0;
    here.observe([&](lock_event const& e) {
        if (e.lock_name != "orders" || e.what != kind::acquired) return;
        ++nested;
        std::scoped_lock hold{other};
    });
    mutex m{here, "orders"};
    m.lock();
    CHECK(nested == 1);
    m.unlock();
    here.observe(nullptr);
    m.lock();
    CHECK(nested == 1);
}

TEST_CASE("an observer may use locks of the client when it is told that a call begins, or waits")
{
    store here;
    store there = here.another_client();
    mutex other{here, "other"};
    mutex holder{there, "orders"};
    std::atomic<int> nested{0};
    here.observe([&](lock_event const& e) {
        if (e.lock_name != "orders" || (e.what != kind::attempted && e.what != kind::waiting)) return;
        std::scoped_lock hold{other};
        ++nested;
    });
    mutex m{here, "orders"};
    holder.lock();
    sleeper waits{[&] { m.lock(); }};
    CHECK(eventually([&] { return nested == 2; }));
    holder.unlock();
    waits.join();
    CHECK(nested == 2);
    m.unlock();
}

TEST_CASE("an observer may use locks of the client, and its counts, whatever it is told")
{
    store here;
    store there = here.another_client();
    mutex other{here, "other"};
    mutex holder{there, "orders"};
    mutex m{here, "orders", {.ttl = 15s}};
    std::mutex guards;
    std::set<kind> seen;
    here.observe([&](lock_event const& e) {
        if (e.lock_name != "orders") return;
        if (e.what == kind::at_risk) here.set_faults({});
        std::scoped_lock hold{other};
        bool const counted = here.stats().held >= 1;  // the other lock
        std::scoped_lock guard{guards};
        if (counted) seen.insert(e.what);
    });
    auto const told = [&](kind what) {
        return eventually([&] {
            std::scoped_lock guard{guards};
            return seen.contains(what);
        });
    };
    holder.lock();
    CHECK_FALSE(m.try_lock_for(50ms));
    holder.unlock();
    m.lock();
    m.unlock();
    for (auto const what : {kind::attempted, kind::waiting, kind::not_acquired, kind::acquired, kind::released})
        CHECK(told(what));
    m.lock();
    holder.request_release();
    CHECK(told(kind::release_requested));
    CHECK(told(kind::renewed));
    here.set_faults({.unavailable = true});
    CHECK(told(kind::at_risk));
    here.erase("orders");
    CHECK(told(kind::lost));
    here.observe(nullptr);
}

TEST_CASE("an observer is told of permits and shared holds as of locks")
{
    store here;
    holdfast::memory::semaphore jobs{here, "jobs", 1};
    holdfast::memory::shared_mutex table{here, "table"};
    notebook told{here};
    auto const kinds = [&] {
        std::vector<kind> some;
        for (auto const& e : told.all()) some.push_back(e.what);
        return some;
    };
    jobs.acquire();
    CHECK(kinds() == std::vector{kind::attempted, kind::acquired});
    CHECK(told.all().front().lock_name == "jobs#0");
    CHECK_FALSE(jobs.try_acquire());
    CHECK(kinds() == std::vector{kind::attempted, kind::acquired, kind::attempted, kind::not_acquired});
    table.lock_shared();
    CHECK(told.all(kind::attempted).size() == 3);
    CHECK(told.all(kind::attempted).back().lock_name == "table");
    CHECK(told.all(kind::acquired).size() == 2);
    CHECK(told.all(kind::waiting).empty());
    table.unlock_shared();
    jobs.release();
}

TEST_CASE("an observer that comes while a call waits is told of its end only")
{
    store here;
    store there = here.another_client();
    mutex holder{there, "orders"};
    mutex m{here, "orders"};
    holder.lock();
    sleeper waits{[&] { m.lock(); }};
    CHECK(eventually([&] { return here.stats().waiting == 1; }));
    CHECK(waits.sleeps());
    notebook told{here};
    holder.unlock();
    waits.join();
    auto const got = told.all();
    REQUIRE(got.size() == 1);
    CHECK(got[0].what == kind::acquired);
    m.unlock();
}

TEST_CASE("an observer is told what asynchronous calls did")
{
    store here;
    notebook told{here};
    mutex m{here, "orders"};
    std::promise<void> locked;
    m.async_lock([&](std::error_code) { locked.set_value(); });
    locked.get_future().wait();
    std::promise<void> unlocked;
    m.async_unlock([&](std::error_code) { unlocked.set_value(); });
    unlocked.get_future().wait();
    CHECK(eventually([&] { return told.all(kind::acquired).size() == 1 && told.all(kind::released).size() == 1; }));
}

TEST_CASE("an observer is told at which server a call, a release or a lease failed")
{
    holdfast::test::fake_client client;
    auto& server = *client.store;
    notebook told{client.locks};
    holdfast::mutex m{client.locks, "orders", {.ttl = 1h}};

    server.acquires.answered_at_once = false;
    sleeper asks{[&] {
        auto const ec = code_of([&] { m.lock(); });
        return !ec;
    }};
    CHECK(eventually([&] { return server.acquires.size() == 1; }));
    server.acquires.at(0)->answer(holdfast::failure{make_error_code(errc::unavailable), {}, "redis://a"});
    CHECK_FALSE(asks.join());
    auto const not_got = told.all(kind::not_acquired);
    REQUIRE(not_got.size() == 1);
    CHECK(not_got[0].server == "redis://a");

    server.acquires.answered_at_once = true;
    server.releases.answered_at_once = false;
    m.lock();
    sleeper gives{[&] { m.unlock(); }};
    CHECK(eventually([&] { return server.releases.size() == 1; }));
    server.releases.at(0)->answer({make_error_code(errc::outcome_unknown), {}, "redis://b"});
    gives.join();
    auto const back = told.all(kind::released);
    REQUIRE(back.size() == 1);
    CHECK(back[0].code == errc::outcome_unknown);
    CHECK(back[0].server == "redis://b");
    server.answer_releases();

    server.extends.answered_at_once = false;
    m.lock();
    sleeper extends{[&] {
        std::error_code ec;
        return m.extend(1h, ec);
    }};
    CHECK(eventually([&] { return server.extends.size() == 1; }));
    server.extends.at(0)->answer(holdfast::failure{make_error_code(errc::unavailable), {}, "redis://c"});
    CHECK_FALSE(extends.join());
    server.ends_lease = true;
    server.alarm();
    CHECK(eventually([&] { return !told.all(kind::lost).empty(); }));
    CHECK(told.all(kind::lost).front().server == "redis://c");
    m.unlock();
}

TEST_CASE("an observer is told of a hold that lasted until it was given back, not until the answer")
{
    holdfast::test::fake_client client;
    auto& server = *client.store;
    notebook told{client.locks};
    server.releases.answered_at_once = false;
    holdfast::mutex m{client.locks, "orders"};
    auto const begun = holdfast::boot_clock::now();
    m.lock();
    sleeper gives{[&] { m.unlock(); }};
    CHECK(eventually([&] { return server.releases.size() == 1; }));
    auto const given = server.releases.at(0)->begun.load();
    std::this_thread::sleep_for(20ms);
    server.releases.at(0)->answer({});
    gives.join();
    auto const back = told.all(kind::released);
    REQUIRE(back.size() == 1);
    CHECK(back[0].duration > 0ns);
    CHECK(back[0].duration <= given - begun);
}

TEST_CASE("an observer that was replaced is told no more of what waits for it")
{
    std::atomic<bool> begun{false};
    std::atomic<bool> go{false};
    std::atomic<int> told{0};
    auto here = std::make_unique<store>();
    mutex m{*here, "orders"};
    here->observe([&, test = std::this_thread::get_id()](lock_event const&) {
        if (std::this_thread::get_id() == test) return;
        begun = true;
        while (!go) std::this_thread::sleep_for(1ms);
        ++told;
    });
    std::promise<std::error_code> held;
    m.async_lock([&](std::error_code ec) { held.set_value(ec); });
    REQUIRE(held.get_future().get() == std::error_code{});
    REQUIRE(eventually([&] { return begun.load(); }));
    std::promise<std::error_code> released;
    m.async_unlock([&](std::error_code ec) { released.set_value(ec); });
    REQUIRE(released.get_future().get() == std::error_code{});
    std::atomic<int> told_next{0};
    here->observe([&, test = std::this_thread::get_id()](lock_event const&) {
        if (std::this_thread::get_id() != test) ++told_next;
    });
    go = true;
    // What happens in the background from now on is told after all that waited.
    std::promise<std::error_code> again;
    m.async_lock([&](std::error_code ec) { again.set_value(ec); });
    REQUIRE(again.get_future().get() == std::error_code{});
    CHECK(eventually([&] { return told_next > 0; }));
    CHECK(told == 1);
    m.unlock();
}

TEST_CASE("events wait for a slow observer up to a bound, and more are dropped; results do not wait for it")
{
    constexpr std::size_t locks = 8'000;  // two events each: that it is asked for, and that it is held
    std::atomic<bool> begun{false};
    std::atomic<bool> go{false};
    std::atomic<std::size_t> told{0};
    std::atomic<std::size_t> held{0};
    auto const here = std::make_unique<store>();
    std::vector<std::unique_ptr<mutex>> all;
    for (std::size_t i = 0; i < locks; ++i)
        all.push_back(std::make_unique<mutex>(*here, "orders/" + std::to_string(i), holdfast::lock_options{.ttl = 1h}));
    here->observe([&, test = std::this_thread::get_id()](lock_event const&) {
        if (std::this_thread::get_id() == test) return;
        begun = true;
        while (!go) std::this_thread::sleep_for(1ms);
        ++told;
    });
    auto const lock = [&](auto const& one) { one->async_lock([&](std::error_code ec) { held += ec ? 0 : 1; }); };
    lock(all.front());
    REQUIRE(eventually([&] { return begun.load(); }));
    std::for_each(all.begin() + 1, all.end(), lock);
    CHECK(eventually([&] { return held == locks; }));
    go = true;
    constexpr auto most = holdfast::detail::announcer::most_events + 1;  // and the one that it was told of first
    CHECK(eventually([&] { return told >= most; }));
    all.clear();
    here->observe(nullptr);
    CHECK(told == most);
}

TEST_CASE("a grant that no call gets is not counted: its lock object is gone, or its lease is too short")
{
    holdfast::test::fake_client client;
    auto& server = *client.store;
    bool const gone = GENERATE(true, false);
    auto m = std::make_unique<holdfast::mutex>(client.locks, "orders",
                                               holdfast::lock_options{.ttl = 1h, .stop_margin = 20min});
    server.acquires.answered_at_once = false;
    server.cancel_ends = false;  // the answer is under way
    std::promise<std::error_code> told;
    m->async_lock([&](std::error_code ec) { told.set_value(ec); });
    REQUIRE(eventually([&] { return server.acquires.size() == 1; }));
    auto granted = server.granted(*server.acquires.at(0)->request);
    if (gone)
        m.reset();
    else
        granted.ttl = 45min;
    server.acquires.at(0)->answer(granted);
    CHECK(told.get_future().get() ==
          (gone ? make_error_code(std::errc::operation_canceled) : make_error_code(errc::misconfigured)));
    CHECK(eventually([&] { return server.releases.size() == 1; }));
    auto const s = client.locks.stats();
    CHECK(s.acquired == 0);
    CHECK(s.canceled == (gone ? 1 : 0));
    CHECK(s.failed == (gone ? 0 : 1));
    CHECK(s.held == 0);
    CHECK(s.released == 0);
    CHECK(total(s.waits) == 0);
    CHECK(total(s.holds) == 0);
    CHECK(s.holds.sum == 0ns);
}

TEST_CASE("a lock that passes to a call whose object is gone is counted as handed over and held, until it is back")
{
    holdfast::test::fake_client client;
    holdfast::mutex holder{client.locks, "orders"};
    auto m = std::make_unique<holdfast::mutex>(client.locks, "orders");
    holder.lock();
    std::promise<void> told;
    m->async_lock([&](std::error_code) { told.set_value(); });
    REQUIRE(eventually([&] { return client.locks.stats().waiting == 1; }));
    std::thread ends{[&] { m.reset(); }};
    holder.unlock();
    ends.join();
    told.get_future().wait();
    CHECK(eventually([&] {
        auto const s = client.locks.stats();
        return s.held == 0 && total(s.holds) == s.acquired;
    }));
}
