// SPDX-License-Identifier: MIT
//
// A crowd at one lock: many processes with several threads each, whose options are those that let a process keep the
// lock longest or go on soonest, and somebody with another library who only tries now and then. Nobody waits much
// longer than the others.
//
// What is judged is the mean wait of each, and not the longest: who gets a lock that was released is a matter of
// chance, so that among thousands of waits there is always a long one. A mean that is five times that of all is no
// chance, on a busy machine either: that makes all wait. Where a process hands the lock on within itself it is 25
// times: turns are long then, and few, and Redis tells the one that came last first. Who is shut out waits hundreds of
// times as long as the others.
#include "rows.hpp"

#include "../place.hpp"
#include "../site.hpp"

#include <support/connection.hpp>
#include <support/eventually.hpp>
#include <support/process.hpp>
#include <support/shared.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::faults::crowds {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr char const* name = "crowd";
constexpr std::size_t threads_of_each = 4;
constexpr std::size_t most_seats = 256;
constexpr std::uint64_t attempts_for_a_turn = 300;  ///< of who only polls

std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

/// What one thread had of the lock.
struct seat {
    std::atomic<std::uint64_t> turns{0};
    std::atomic<std::int64_t> waited{0};   ///< for these turns, in ns
    std::atomic<std::int64_t> longest{0};  ///< of them
    std::atomic<std::int64_t> since{0};    ///< when it began to wait; 0 while it does not
};

/// Memory that all processes share.
struct hall {
    std::array<seat, most_seats> seats;
    std::atomic<std::size_t> here{0};
    std::atomic<bool> begun{false};
    std::atomic<bool> over{false};
    std::atomic<int> inside{0};
    std::atomic<std::int64_t> foreign_until{0};  ///< who only polls is inside, and has the lock until then
    std::atomic<std::uint64_t> together{0};      ///< how often one was inside with another one
    std::atomic<std::uint64_t> failed{0};        ///< attempts that threw
};

void enter(hall& in)
{
    if (in.inside.fetch_add(1) != 0 || now() < in.foreign_until) ++in.together;
    std::this_thread::yield();  // time for another one to be inside, too
    in.inside.fetch_sub(1);
}

void sit(mutex& lock, hall& in, seat& mine)
{
    while (!in.over) {
        auto const begun = now();
        mine.since = begun;
        try {
            lock.lock();
        } catch (error const&) {
            ++in.failed;
            continue;
        }
        auto const waited = now() - begun;
        mine.waited += waited;
        mine.longest = std::max<std::int64_t>(mine.longest, waited);
        mine.since = 0;
        ++mine.turns;
        enter(in);
        std::error_code ec;
        lock.unlock(ec);
    }
}

/// Effects: what a process of the crowd does. Returns: its exit status.
int work(place const& where, lock_options const& options, hall& in, std::size_t first)
{
    auto const client = connect(where);
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < threads_of_each; ++i)
        threads.emplace_back([&, i] {
            mutex lock{client, name, options};
            ++in.here;
            while (!in.begun) std::this_thread::sleep_for(1ms);
            sit(lock, in, in.seats.at(first + i));
        });
    return 0;
}

/// Somebody who takes the lock by `SET NX PX` where it is free, of most servers, and never waits.
class poller {
public:
    poller(std::vector<std::uint16_t> const& ports, hall& in) : in_{in}
    {
        for (auto const port : ports) servers_.push_back(std::make_unique<test::connection>(port));
        thread_ = std::jthread{[this](std::stop_token const& stop) { poll(stop); }};
    }

    [[nodiscard]] std::uint64_t attempts() const noexcept { return attempts_; }
    [[nodiscard]] std::uint64_t turns() const noexcept { return turns_; }

private:
    void poll(std::stop_token const& stop)
    {
        for (; !stop.stop_requested(); std::this_thread::sleep_for(1ms)) {
            ++attempts_;
            std::size_t votes = 0;
            auto const until = now() + valid;
            for (auto const& one : servers_)
                votes += (*one)({"SET", name, "another library's", "NX", "PX", "50"}).text == "OK" ? 1U : 0U;
            bool const taken = votes > servers_.size() / 2;
            if (taken) {
                ++turns_;
                enter(until);
            }
            for (auto const& one : servers_)
                (*one)({"EVAL",
                        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
                        "1", name, "another library's"});
            if (taken) std::this_thread::sleep_for(20ms);
        }
    }

    /// Its lock may be over before it comes to run: then another one may be inside.
    void enter(std::int64_t until)
    {
        in_.foreign_until = until;
        std::this_thread::yield();
        if (in_.inside != 0 && now() < until) ++in_.together;
        in_.foreign_until = 0;
    }

    static constexpr std::int64_t valid = 45'000'000;  // ns: 50 ms, but for what clocks differ by

    hall& in_;
    std::vector<std::unique_ptr<test::connection>> servers_;
    std::atomic<std::uint64_t> attempts_{0};
    std::atomic<std::uint64_t> turns_{0};
    std::jthread thread_;  // last: it uses the others
};

struct kind_of_crowd {
    std::string what;
    lock_options options;

    /// Returns: how many times as long as all one may wait on average.
    [[nodiscard]] double most() const noexcept { return options.max_local_handoffs == 0 ? 5 : 25; }
};

std::vector<kind_of_crowd> kinds(place const& where)
{
    lock_options common{.ttl = where.ttl, .unavailable_after = 10min};
    auto const with = [&](auto const& change) {
        auto options = common;
        change(options);
        return options;
    };
    return {
        {"defaults", common},
        {"deferred release", with([](lock_options& o) { o.deferred_release = true; })},
        {"no hand-overs", with([](lock_options& o) { o.max_local_handoffs = 0; })},
        {"no hand-overs, deferred release, no tokens", with([](lock_options& o) {
             o.max_local_handoffs = 0;
             o.deferred_release = true;
             o.fencing = false;
         })},
    };
}

/// What all had when it was over.
struct outcome {
    std::vector<double> means;  ///< of the waits of each, in ms, with the one that has not ended
    double of_all = 0;
    double longest = 0;  ///< of one
    std::uint64_t turns = 0;
    std::uint64_t fewest = 0;
};

outcome look(hall const& in, std::size_t seats)
{
    outcome all;
    auto const at = now();
    double waited = 0;
    double waits = 0;
    for (std::size_t i = 0; i < seats; ++i) {
        auto const& one = in.seats.at(i);
        auto const since = one.since.load();
        auto const turns = one.turns.load();
        auto const ms = static_cast<double>(one.waited + (since == 0 ? 0 : at - since)) / 1e6;
        auto const count = static_cast<double>(turns + (since == 0 ? 0 : 1));
        all.means.push_back(ms / std::max(count, 1.0));
        waited += ms;
        waits += count;
        all.turns += turns;
        all.longest =
            std::max(all.longest, static_cast<double>(std::max(one.longest.load(), since == 0 ? 0 : at - since)) / 1e6);
        all.fewest = i == 0 ? turns : std::min(all.fewest, turns);
    }
    all.of_all = waited / std::max(waits, 1.0);
    return all;
}

void gather(run_options const& run, findings& to, site& servers, place const& where, kind_of_crowd const& kind)
{
    auto const seats = run.count(6, 64) * threads_of_each;
    // As many as it takes for each process to have its turn a hundred times: who has fewer for a while may have been
    // unlucky.
    std::uint64_t const needed =
        100 * std::max<std::uint64_t>(1, (kind.options.max_local_handoffs + 1) / threads_of_each);
    test::shared<hall> in;
    std::vector<test::child> processes;
    for (std::size_t first = 0; first < seats; first += threads_of_each)
        processes.push_back(test::child::fork([&, first] { return work(where, kind.options, *in, first); }));
    if (!eventually([&] { return in->here == seats; }, 5min)) throw std::runtime_error{"a process does not come"};

    std::optional<store> client;
    std::unique_ptr<mutex> kept;
    std::unique_ptr<poller> foreign;
    if (run.control) {
        client = connect(where);
        kept = std::make_unique<mutex>(*client, name, kind.options);
        kept->lock();
    } else if (where.what != place::store::zookeeper) {
        foreign = std::make_unique<poller>(servers.ports(), *in);
    }
    in->begun = true;
    auto const limit = run.control ? 2s : run.full ? std::chrono::seconds{20min} : std::chrono::seconds{1min};
    static_cast<void>(eventually(
        [&] {
            auto const so_far = look(*in, seats);
            return so_far.fewest >= needed &&
                   (!foreign || (foreign->turns() >= 5 && foreign->attempts() >= 2 * attempts_for_a_turn));
        },
        limit));
    auto const all = look(*in, seats);
    in->over = true;
    std::error_code ec;
    if (kept) kept->unlock(ec);

    breaches found;
    if (all.fewest < 3) found.push_back(kind.what + ": a thread had " + std::to_string(all.fewest) + " turns");
    auto const worst = *std::max_element(all.means.begin(), all.means.end());
    auto const times = worst / std::max(all.of_all, 1e-9);
    for (std::size_t i = 0; i < seats; ++i)
        if (all.means[i] > kind.most() * all.of_all)
            found.push_back(kind.what + ": thread " + std::to_string(i) + " waited " + std::to_string(all.means[i]) +
                            " ms on average, all " + std::to_string(all.of_all) + " ms");
    if (foreign && foreign->attempts() > attempts_for_a_turn * (foreign->turns() + 1))
        found.push_back(kind.what + ": who only polls had " + std::to_string(foreign->turns()) + " turns in " +
                        std::to_string(foreign->attempts()) + " attempts");
    to.figure(kind.what, std::to_string(seats) + " threads, " + std::to_string(all.turns) + " turns, mean wait " +
                             std::to_string(all.of_all) + " ms, the longest mean " + std::to_string(times) +
                             " times that, the longest " + std::to_string(all.longest) + " ms" +
                             (foreign ? "; who polls: " + std::to_string(foreign->turns()) + " of " +
                                            std::to_string(foreign->attempts())
                                      : ""));
    foreign.reset();
    for (auto& one : processes)
        if (one.wait_for(2min) != 0) found.push_back(kind.what + ": a process did not end well");
    to.check("K6", found);
    to.check("K1", in->together == 0 ? breaches{} : breaches{kind.what + ": two were inside at one time"});
    to.require(in->failed == 0, kind.what + ": an attempt failed");
}

}  // namespace

void go(run_options const& run, findings& to)
{
    auto const servers = open_site(run.on);
    auto where = servers->where();
    if (where.what != place::store::zookeeper) where.ttl = 1min;
    where.operation_timeout =
        where.what == place::store::redlock ? 2s : 10s;  // what is late on a busy machine is not lost
    where.connect_timeout = 1min;
    for (auto const& kind : kinds(where)) gather(run, to, *servers, where, kind);
    to.check("K7", check_remains(servers->left(2 * where.ttl + 10s, waiters::ended)));
}

}  // namespace holdfast::faults::crowds
