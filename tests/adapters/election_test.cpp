// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/goes_on.hpp"
#include "support/signals.hpp"

#include <holdfast/adapters/recursive_mutex.hpp>
#include <holdfast/election.hpp>
#include <holdfast/memory.hpp>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::election;
using holdfast::election_options;
using holdfast::errc;
using holdfast::mutex;
using holdfast::term;
using holdfast::test::blocked_signals;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::goes_on;

namespace {

/// What was called, in order.
class diary {
public:
    void add(std::string what)
    {
        std::scoped_lock guard{mutex_};
        lines_.push_back(std::move(what));
    }
    [[nodiscard]] std::vector<std::string> lines() const
    {
        std::scoped_lock guard{mutex_};
        return lines_;
    }
    [[nodiscard]] bool reaches(std::size_t n) const
    {
        return eventually([&] { return lines().size() >= n; });
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

/// Effects: waits for `condition` in one of the election's functions, where nothing may be checked, as the test does so
/// meanwhile; writes to `d` if it does not come true.
template <std::predicate Condition>
void await(diary& d, Condition condition)
{
    if (!eventually(condition)) d.add("?");
}

/// Returns: options that write to `d` what is called, and do not pause.
[[nodiscard]] election_options noting(diary& d)
{
    return {.on_elected = [&d](term const&) { d.add("elected"); },
            .on_deposed = [&d] { d.add("deposed"); },
            .on_error = [&d](holdfast::error const& e) { d.add(e.what()); },
            .pause = 0ms,
            .retry = {.first = 1ms, .most = 2ms}};
}

using lines = std::vector<std::string>;

/// Orders of one client, and another client's lock of the same name.
struct shop {
    holdfast::memory::store here;
    holdfast::memory::store there = here.another_client();
    mutex orders{here, "orders"};
    mutex theirs{there, "orders"};
};

[[nodiscard]] bool free(mutex& rival)
{
    bool const got = eventually([&] { return rival.try_lock(); });
    if (got) rival.unlock();
    return got;
}

/// A lock whose first attempts fail.
struct failing_mutex : mutex {
    using mutex::lock;
    using mutex::mutex;

    [[nodiscard]] bool lock(std::stop_token const& stop)
    {
        if (++attempts == 1) throw holdfast::error{errc::unavailable, "first"};
        if (attempts == 2) throw holdfast::error{errc::misconfigured, "second"};
        if (attempts == 3) throw std::bad_alloc{};
        return mutex::lock(stop);
    }

    std::atomic<int> attempts{0};
};

}  // namespace

TEST_CASE("a candidate is elected, and deposed at the end of its election; nothing is called after that")
{
    shop s;
    diary d;
    std::optional<election<mutex>> leader{std::in_place, s.orders, noting(d)};
    CHECK(d.reaches(1));
    CHECK(leader->still_leader());
    auto const t = leader->term();
    CHECK(t == leader->term());
    CHECK(t.still_held());
    CHECK(t.remaining() > 1s);
    CHECK(t.fencing_token() == s.orders.lease().fencing_token());
    CHECK(t.lease() == s.orders.lease());
    CHECK_FALSE(t.stop_token().stop_requested());
    CHECK_FALSE(s.theirs.try_lock());
    CHECK(d.lines() == lines{"elected"});
    leader.reset();
    CHECK(d.lines() == lines{"elected", "deposed"});
    CHECK_FALSE(t.still_held());
    CHECK(t.remaining() == 0s);
    CHECK(t.stop_token().stop_requested());
    CHECK(t.fencing_token() > 0);
    CHECK(s.theirs.try_lock());
    CHECK(d.lines() == lines{"elected", "deposed"});
}

TEST_CASE("a term that is of no election is over")
{
    term const none;
    CHECK_FALSE(none.still_held());
    CHECK(none.remaining() == 0s);
    CHECK(none.fencing_token() == 0);
    CHECK_FALSE(none.lease().still_held());
    CHECK(none.stop_token().stop_requested());
    CHECK(none == term{});
}

TEST_CASE("a candidate that waits is not the leader, and its election ends at once")
{
    shop s;
    diary d;
    s.theirs.lock();
    {
        election waits{s.orders, noting(d)};
        CHECK_FALSE(waits.still_leader());
        CHECK_FALSE(waits.resign());
        CHECK(waits.term() == term{});
    }
    CHECK(d.lines().empty());
    CHECK(s.theirs.lease().still_held());
}

TEST_CASE("an election needs no functions")
{
    shop s;
    election leader{s.orders, {.pause = 1h}};
    CHECK(eventually([&] { return leader.still_leader(); }));
    CHECK(leader.resign());
    CHECK_FALSE(leader.still_leader());
    CHECK_FALSE(leader.resign());
    CHECK(free(s.theirs));
}

TEST_CASE("a leader that resigns is deposed before another is elected, and campaigns again")
{
    shop s;
    diary d;
    election one{s.orders, noting(d)};
    CHECK(d.reaches(1));
    auto const first = one.term();
    election two{s.theirs,
                 {.on_elected =
                      [&](term const& t) {
                          d.add(t.fencing_token() > first.fencing_token() && !one.still_leader() ? "next" : "?");
                      },
                  .pause = 1h}};
    CHECK(one.resign());
    CHECK_FALSE(first.still_held());
    CHECK(eventually([&] { return first.stop_token().stop_requested(); }));
    CHECK(eventually([&] {
        static_cast<void>(one.resign());  // it may be faster than the other once more
        return two.still_leader();
    }));
    auto const terms_of_one = [&] {
        auto all = d.lines();
        std::erase(all, "next");
        return all;
    };
    auto const before = terms_of_one();
    CHECK(before.size() % 2 == 0);
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(before[i] == (i % 2 == 0 ? "elected" : "deposed"));
    CHECK(two.resign());
    CHECK(eventually([&] { return one.still_leader() && terms_of_one().back() == "elected"; }));
    CHECK(one.term().fencing_token() > two.term().fencing_token());
    auto const all = d.lines();
    CHECK(std::count(all.begin(), all.end(), "next") == 1);
}

TEST_CASE("after a term a candidate pauses")
{
    shop s;
    diary d;
    auto options = noting(d);
    options.pause = 1h;
    {
        election leader{s.orders, options};
        CHECK(d.reaches(1));
        CHECK(leader.resign());
        CHECK(d.reaches(2));
        CHECK(free(s.theirs));
        CHECK(free(s.theirs));
        CHECK_FALSE(leader.still_leader());
    }  // without a wait for its end
    CHECK(d.lines() == lines{"elected", "deposed"});
}

TEST_CASE("a term lasts over renewals, with a margin as well")
{
    shop s;
    mutex orders{s.here, "orders", {.ttl = 12s}};
    diary d;
    auto options = noting(d);
    options.stop_margin = 1s;
    election leader{orders, options};
    CHECK(d.reaches(1));
    auto const t = leader.term();
    auto const left = t.remaining();
    CHECK(left <= 11s);
    auto const begun = boot_clock::now();
    CHECK(goes_on(t.lease()));
    CHECK(t.still_held());
    CHECK(begun + left < boot_clock::now() + t.remaining());
    CHECK(d.lines() == lines{"elected"});
}

TEST_CASE("a term ends by the clock, earlier than its lease by the margin, also while on_elected runs")
{
    shop s;
    mutex orders{s.here, "orders", {.ttl = 20s, .renew = false}};
    diary d;
    std::atomic<bool> stopped{false};
    std::atomic<bool> go_on{false};
    boot_clock::duration left{};
    auto options = noting(d);
    options.stop_margin = 15s;
    options.pause = 1h;
    options.on_elected = [&](term const& t) {
        d.add("elected");
        std::stop_callback const at_end{t.stop_token(), [&] {
                                            left = t.lease().remaining();
                                            d.add(t.still_held() ? "?" : "stopped");
                                            stopped = true;
                                        }};
        await(d, [&] { return go_on.load(); });
        d.add("returns");
    };
    election leader{orders, options};
    CHECK(eventually([&] { return stopped.load(); }));
    CHECK(left <= 15s);
    CHECK(left > 0s);
    CHECK_FALSE(leader.still_leader());
    CHECK_FALSE(s.theirs.try_lock());  // its function still runs
    CHECK(d.lines() == lines{"elected", "stopped"});
    go_on = true;
    CHECK(d.reaches(4));
    CHECK(d.lines() == lines{"elected", "stopped", "returns", "deposed"});
    CHECK(free(s.theirs));
}

TEST_CASE("the first question after the end of a term gets the right answer, and no renewal revives it")
{
    shop s;
    mutex orders{s.here, "orders", {.ttl = 20s}};
    orders.lock();
    holdfast::detail::term_state state{orders.lease(), 15s};
    CHECK(state.still_held());
    CHECK(eventually([&] { return state.remaining() == 0s; }));
    CHECK_FALSE(state.still_held());
    orders.extend(1min);
    CHECK(state.lease().still_held());
    CHECK_FALSE(state.still_held());
    CHECK(state.remaining() == 0s);
}

TEST_CASE("a margin that is not shorter than the lease is reported, and the lock given back")
{
    shop s;
    mutex orders{s.here, "orders", {.ttl = 10s}};
    diary d;
    auto options = noting(d);
    options.stop_margin = 10s;
    options.retry = {.first = 1h, .most = 1h};
    election never{orders, options};
    CHECK(d.reaches(1));
    CHECK(d.lines().front().find("stop_margin is 10000 ms") != std::string::npos);
    CHECK(d.lines().front().find("orders") != std::string::npos);
    CHECK(free(s.theirs));
    CHECK_FALSE(never.still_leader());
}

TEST_CASE("a leader whose lock is deleted is deposed, and campaigns again")
{
    shop s;
    mutex orders{s.here, "orders", {.ttl = 6s}};
    diary d;
    election leader{orders, noting(d)};
    for (std::size_t n = 1; n < 4; ++n) {
        CHECK(d.reaches(2 * n - 1));
        auto const t = leader.term();
        s.here.erase("orders");
        CHECK(eventually([&] { return t.stop_token().stop_requested(); }));
        CHECK(d.reaches(2 * n));
        CHECK_FALSE(t.still_held());
        CHECK(eventually([&] { return leader.still_leader(); }));
        CHECK(leader.term().fencing_token() > t.fencing_token());
    }
    auto const all = d.lines();
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == (i % 2 == 0 ? "elected" : "deposed"));
}

TEST_CASE("on_deposed waits for on_elected, whatever ends the term")
{
    shop s;
    diary d;
    auto options = noting(d);
    options.on_elected = [&](term const& t) {
        d.add("elected");
        await(d, [&] { return t.stop_token().stop_requested(); });
        d.add("returns");
    };
    {
        election leader{s.orders, options};
        CHECK(d.reaches(1));
        CHECK(leader.resign());
        CHECK(d.reaches(4));
    }
    CHECK(d.lines() == lines{"elected", "returns", "deposed", "elected", "returns", "deposed"});
}

TEST_CASE("a leader may resign in on_elected")
{
    shop s;
    diary d;
    std::optional<election<mutex>> leader;
    std::atomic<bool> made{false};
    auto options = noting(d);
    options.pause = 1h;
    options.on_elected = [&](term const& t) {
        await(d, [&] { return made.load(); });
        d.add(leader->resign() && !t.still_held() ? "elected" : "?");
    };
    leader.emplace(s.orders, options);
    made = true;
    CHECK(d.reaches(2));
    CHECK(d.lines() == lines{"elected", "deposed"});
}

TEST_CASE("a failed campaign is reported, and the candidate goes on")
{
    shop s;
    failing_mutex orders{s.here, "orders"};
    diary d;
    election leader{orders, noting(d)};
    CHECK(d.reaches(4));
    auto const all = d.lines();
    CHECK(all[0].find("first") != std::string::npos);
    CHECK(all[1].find("second") != std::string::npos);
    CHECK(all[2].find("lock \"orders\": election") != std::string::npos);
    CHECK(all[3] == "elected");
}

TEST_CASE("what on_error throws is dropped; without on_error a candidate goes on as well")
{
    shop s;
    failing_mutex orders{s.here, "orders"};
    diary d;
    auto options = noting(d);
    if (GENERATE(true, false))
        options.on_error = [](auto const&) { throw 7; };
    else
        options.on_error = nullptr;
    election leader{orders, options};
    CHECK(d.reaches(1));
    CHECK(d.lines() == lines{"elected"});
}

namespace {

/// A lock and the election over it, which end together.
struct service {
    service(holdfast::store const& in, holdfast::election_options options)
        : orders{in, "orders"}, leader{orders, std::move(options)}
    {
    }

    failing_mutex orders;
    election<failing_mutex> leader;
};

/// A service that one of the election's functions ends.
class ended_by_itself {
public:
    explicit ended_by_itself(shop& s) : shop_{s} {}

    void begin(election_options options)
    {
        service_ = std::make_unique<service>(shop_.here, std::move(options));
        ready_ = true;
    }

    void end()
    {
        if (!eventually([&] { return ready_.load(); })) return;
        service_.reset();
        ended_ = true;
    }

    [[nodiscard]] election<failing_mutex>& leader() { return service_->leader; }

    /// Returns: whether it ends, and the lock is free then.
    [[nodiscard]] bool ends()
    {
        return eventually([&] { return ended_.load(); }) && free(shop_.theirs);
    }

private:
    shop& shop_;
    std::unique_ptr<service> service_;
    std::atomic<bool> ready_{false};
    std::atomic<bool> ended_{false};
};

}  // namespace

TEST_CASE("on_elected may destroy the election and the lock; on_deposed is not called then")
{
    shop s;
    diary d;
    ended_by_itself one{s};
    auto options = noting(d);
    options.on_error = nullptr;
    options.on_elected = [&, here = std::make_shared<int>(7)](term const& t) {
        std::weak_ptr<int> const function = here;
        one.end();
        d.add(t.stop_token().stop_requested() && !function.expired() ? "elected" : "?");
    };
    one.begin(std::move(options));
    CHECK(one.ends());
    CHECK(d.reaches(1));
    CHECK(d.lines() == lines{"elected"});
}

TEST_CASE("on_deposed may destroy the election and the lock")
{
    shop s;
    diary d;
    ended_by_itself one{s};
    auto options = noting(d);
    options.on_error = nullptr;
    options.on_deposed = [&] {
        d.add("deposed");
        one.end();
    };
    one.begin(std::move(options));
    CHECK(d.reaches(1));
    CHECK(one.leader().resign());
    CHECK(one.ends());
    CHECK(d.lines() == lines{"elected", "deposed"});
}

TEST_CASE("on_error may destroy the election and the lock")
{
    shop s;
    diary d;
    ended_by_itself one{s};
    auto options = noting(d);
    options.on_error = [&](auto const&) { one.end(); };
    one.begin(std::move(options));
    CHECK(one.ends());
    CHECK(d.lines().empty());
}

TEST_CASE("a callback of the term's stop token may destroy the election and the lock, while on_elected runs")
{
    shop s;
    diary d;
    ended_by_itself one{s};
    std::atomic<bool> go_on{false};
    auto options = noting(d);
    options.on_error = nullptr;
    options.on_elected = [&](term const& t) {
        std::stop_callback const at_end{t.stop_token(), [&] { one.end(); }};
        d.add("elected");
        await(d, [&] { return go_on.load(); });
        d.add("returns");
    };
    one.begin(std::move(options));
    CHECK(d.reaches(1));
    CHECK(one.leader().resign());
    CHECK(one.ends());
    CHECK(d.lines() == lines{"elected"});
    go_on = true;
    CHECK(d.reaches(2));
    CHECK(d.lines() == lines{"elected", "returns"});
}

namespace {

/// Keeps threads from their work until it is opened.
class gate {
public:
    explicit gate(bool refusing) : refuses{refusing} {}

    bool const refuses;  ///< no thread is begun

    void pass()
    {
        open_.wait(false);
        ++passed_;
    }
    void open()
    {
        open_ = true;
        open_.notify_all();
    }
    [[nodiscard]] int passed() const { return passed_; }

private:
    std::atomic<bool> open_{false};
    std::atomic<int> passed_{0};
};

/// The thread of an election that is begun in the thread of another one works when `gate_of_elected` is open.
gate* gate_of_elected = nullptr;
thread_local bool campaigns = false;

/// Returns: whether a thread that is begun now works late.
[[nodiscard]] bool is_late()
{
    if (!campaigns || !gate_of_elected->refuses) return campaigns;
    gate_of_elected->pass();
    throw std::system_error{std::make_error_code(std::errc::resource_unavailable_try_again)};
}

struct late_thread : std::thread {
    late_thread() = default;
    template <class F>
    explicit late_thread(F f)
        : std::thread{[f = std::move(f), late = is_late()] {
              campaigns = true;
              if (late) gate_of_elected->pass();
              f();
          }}
    {
    }
};

/// A lock whose elections call `on_elected` late.
struct slow_mutex : mutex {
    using mutex::mutex;
    struct threads {
        using thread = late_thread;
        [[nodiscard]] static thread::id here() noexcept { return std::this_thread::get_id(); }
    };
};

}  // namespace

TEST_CASE("nothing is called after the end of an election, if the thread of on_elected begins late or not at all")
{
    shop s;
    diary d;
    gate late{GENERATE(false, true)};
    gate_of_elected = &late;
    auto const mine = std::make_shared<int>(7);
    std::atomic<bool> ended{false};
    {
        auto options = noting(d);
        options.on_elected = [&d, mine](term const&) { d.add("elected"); };
        auto orders = std::make_unique<slow_mutex>(s.here, "orders");
        auto leader = std::make_unique<election<slow_mutex>>(*orders, std::move(options));
        CHECK(eventually([&] { return leader->still_leader(); }));
        auto const t = leader->term();
        std::stop_callback const at_end{t.stop_token(), [&] {
                                            leader.reset();
                                            orders.reset();
                                            ended = true;
                                        }};
        late.refuses ? late.open() : static_cast<void>(leader->resign());
        CHECK(eventually([&] { return ended.load(); }));
    }
    CHECK(free(s.theirs));
    late.open();
    CHECK(eventually([&] { return late.passed() == 1 && mine.use_count() == 1; }));
    CHECK(d.lines().empty());
}

TEST_CASE("the end of an election waits for the function that runs")
{
    shop s;
    diary d;
    auto options = noting(d);
    options.on_deposed = [&] {
        d.add(s.theirs.try_lock() ? "?" : "deposed");
        std::this_thread::sleep_for(20ms);
        d.add("returns");
    };
    {
        election leader{s.orders, options};
        CHECK(d.reaches(1));
    }
    CHECK(d.lines() == lines{"elected", "deposed", "returns"});
}

TEST_CASE("candidates of one client and of several take turns, and never lead at the same time")
{
    bool const of_one_client = GENERATE(true, false);
    holdfast::memory::store store;
    std::atomic<int> leaders{0};
    std::atomic<bool> alone{true};
    std::vector<std::unique_ptr<mutex>> locks;
    std::vector<std::atomic<int>> terms(3);
    std::atomic<std::uint64_t> last{0};
    {
        std::vector<std::unique_ptr<election<mutex>>> candidates;
        for (std::size_t i = 0; i < terms.size(); ++i) {
            auto const client = of_one_client ? store : store.another_client();
            locks.push_back(std::make_unique<mutex>(client, "orders"));
            election_options options{.on_elected =
                                         [&, i](term const& t) {
                                             if (++leaders != 1 || t.fencing_token() <= last) alone = false;
                                             last = t.fencing_token();
                                             ++terms[i];
                                         },
                                     .on_deposed = [&] { --leaders; },
                                     .pause = 1ms};
            candidates.push_back(std::make_unique<election<mutex>>(*locks.back(), std::move(options)));
        }
        CHECK(eventually([&] {
            bool all = true;
            for (std::size_t i = 0; i < terms.size(); ++i) {
                static_cast<void>(candidates[i]->resign());
                all = all && terms[i] >= 3;
            }
            return all;
        }));
    }
    CHECK(alone);
    CHECK(leaders == 0);
}

TEST_CASE("an election is over any lock")
{
    shop s;
    mutex stock{s.here, "stock"};
    holdfast::multi_mutex both{s.orders, stock};
    diary d;
    {
        election leader{both, noting(d)};
        CHECK(d.reaches(1));
        CHECK(leader.term().fencing_token() == 0);
        CHECK(both.lease_of(stock).fencing_token() > 0);
        CHECK_FALSE(s.theirs.try_lock());
    }
    CHECK(free(s.theirs));
    holdfast::recursive_mutex<mutex> again{s.here, "orders", {}};
    {
        election leader{again, noting(d)};
        CHECK(d.reaches(3));
        CHECK_FALSE(s.theirs.try_lock());
    }
    CHECK(free(s.theirs));
    CHECK(d.lines() == lines{"elected", "deposed", "elected", "deposed"});
}

TEST_CASE("options of an election that cannot be used are refused by name")
{
    shop s;
    auto const refused = [&](election_options const& options, std::string const& field) {
        std::string what;
        CHECK(code_of([&] { election const none{s.orders, options}; }, &what) == errc::misconfigured);
        return what.find(field) != std::string::npos && what.find("orders") != std::string::npos;
    };
    CHECK(refused({.stop_margin = -1ms}, "stop_margin"));
    CHECK(refused({.pause = -1ms}, "pause"));
    CHECK(refused({.pause = 48h}, "pause"));
    CHECK(refused({.retry = {.first = 0us}}, "retry.first"));
    CHECK(refused({.retry = {.first = 2ms, .most = 1ms}}, "retry.most"));
    CHECK(refused({.retry = {.first = 2ms, .most = 48h}}, "retry.most"));
    CHECK(refused({.retry = {.first = 2ms, .most = std::chrono::milliseconds::max()}}, "at most a day"));
}

TEST_CASE("on_elected gets the signals that the maker of the election gets; the election's own thread only its faults")
{
    sigset_t usual;
    sigset_t blocked;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &usual);
    shop s;
    std::optional<blocked_signals> elected;
    std::optional<blocked_signals> deposed;
    std::atomic<bool> led{false};
    {
        election<mutex> const leader{s.orders,
                                     {.on_elected =
                                          [&](term const&) {
                                              elected.emplace();
                                              led = true;
                                          },
                                      .on_deposed = [&] { deposed.emplace(); }}};
        CHECK(eventually([&] { return led.load(); }));
    }
    ::pthread_sigmask(SIG_SETMASK, &usual, nullptr);
    REQUIRE(elected);
    CHECK(elected->has(SIGUSR1));
    CHECK_FALSE(elected->has(SIGTERM));
    CHECK_FALSE(elected->has_fault());
    REQUIRE(deposed);
    CHECK(deposed->has(SIGTERM));
    CHECK_FALSE(deposed->has_fault());
}
