// SPDX-License-Identifier: MIT
//
// What a section costs the servers when many clients want one lock: counts, no times.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/shared.hpp"
#include "support/sleeps.hpp"

#include <holdfast/fair_mutex.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::test::calls;
using holdfast::test::eventually;
using holdfast::test::lock_requests;
using holdfast::test::reads;
using holdfast::test::redis_fleet;
using holdfast::test::redis_server;
using holdfast::test::sleeps_of;

namespace {

holdfast::redlock::masters_options unhurried_masters()
{
    return {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms};
}

/// How many clients want a lock, and how often each.
struct crowd {
    int clients = 8;
    int sections_of_each = 40;

    [[nodiscard]] int sections() const noexcept { return clients * sections_of_each; }
};

/// What was done for a section, on the average.
struct work {
    double scripts = 0;   ///< by each of the servers
    double messages = 0;  ///< that it was asked to publish: who is called, and who hears of releases
    double sleeps = 0;    ///< how often a thread of the clients went to sleep, and was woken
    double looks = 0;     ///< how often those that wait may have looked without being called, four times a second
};

/// Effects: the clients, each of its own making, have the lock so often each.
template <class Lock = holdfast::mutex, class Make>
work work_for_a_section(redis_fleet& servers, Make const& make, crowd const& of = {})
{
    std::atomic<int> inside{0};
    std::atomic<bool> alone{true};
    std::atomic<long> sleeps{0};
    std::optional<std::chrono::steady_clock::time_point> begun;
    std::chrono::duration<double> taken{};
    std::barrier all{of.clients, [&]() noexcept {
                         taken = std::chrono::steady_clock::now() - begun.value_or(std::chrono::steady_clock::now());
                         if (begun) return;
                         for (auto& server : servers) server.command({"CONFIG", "RESETSTAT"});
                         begun = std::chrono::steady_clock::now();
                     }};
    std::vector<std::jthread> threads;
    for (int i = 0; i < of.clients; ++i)
        threads.emplace_back([&] {
            auto const client = make();
            Lock m{*client, "orders", {.ttl = 1h, .unavailable_after = 5min}};
            m.lock();  // it knows the scripts, and where it is called
            m.unlock();
            all.arrive_and_wait();
            auto const before = sleeps_of(RUSAGE_THREAD);
            for (int n = 0; n < of.sections_of_each; ++n) {
                m.lock();
                if (++inside != 1) alone = false;
                std::this_thread::yield();
                --inside;
                m.unlock();
            }
            sleeps += sleeps_of(RUSAGE_THREAD) - before;
            all.arrive_and_wait();
        });
    threads.clear();
    CHECK(alone);
    double const sections = of.sections() * static_cast<double>(servers.size());
    work all_work{.sleeps = static_cast<double>(sleeps) / of.sections(),
                  .looks = 4 * taken.count() * (of.clients - 1) / of.sections()};
    for (auto& server : servers) {
        all_work.scripts += static_cast<double>(lock_requests(server)) / sections;
        all_work.messages += static_cast<double>(calls(server, "publish")) / sections;
    }
    return all_work;
}

/// Returns: as many locks, which are held.
std::deque<holdfast::mutex> held(holdfast::store const& in, std::string const& prefix, int count,
                                 std::chrono::milliseconds ttl)
{
    std::deque<holdfast::mutex> all;
    for (int n = 0; n < count; ++n)
        all.emplace_back(in, prefix + std::to_string(n), holdfast::lock_options{.ttl = ttl});
    for (auto& one : all) one.lock();
    return all;
}

}  // namespace

TEST_CASE("in a crowd one Redis runs a few scripts for a section")
{
    redis_fleet servers{1};
    auto const did = work_for_a_section(servers, [&] {
        return std::make_shared<holdfast::redis::client>(servers[0].url(), holdfast::test::unhurried());
    });
    CAPTURE(did.scripts, did.messages, did.sleeps, did.looks);
    CHECK(did.scripts <= 6 + did.looks);
    CHECK(did.messages <= 4 + did.looks);
    CHECK(did.sleeps <= 2 + 2 * did.scripts);  // not each of those that wait
}

TEMPLATE_TEST_CASE("a section costs one Redis at most six scripts, of one client, of ten and of a hundred", "",
                   holdfast::mutex, holdfast::fair_mutex)
{
    auto const of = GENERATE(crowd{1, 200}, crowd{10, 40}, crowd{100, 10});
    redis_fleet servers{1};
    auto const did = work_for_a_section<TestType>(
        servers,
        [&] { return std::make_shared<holdfast::redis::client>(servers[0].url(), holdfast::test::unhurried()); }, of);
    CAPTURE(of.clients, did.scripts, did.messages, did.looks);
    if (of.clients == 1) CHECK(did.scripts == 2);
    CHECK(did.scripts <= 6 + did.looks);
    CHECK(did.messages <= 4 + did.looks);
}

TEST_CASE("in a crowd each of five masters runs a few scripts for a section")
{
    redis_fleet servers{5};
    auto const did = work_for_a_section(
        servers, [&] { return std::make_shared<holdfast::redlock::masters>(servers.urls(), unhurried_masters()); });
    CAPTURE(did.scripts, did.messages, did.sleeps, did.looks);
    CHECK(did.scripts <= 5 + did.looks);
    CHECK(did.messages <= 4 + did.looks);
    CHECK(did.sleeps <= 5 + 5 * did.scripts);
}

TEST_CASE("a lock that one client alone uses costs each of five masters two scripts for a section, and no queue")
{
    redis_fleet servers{5};
    auto const client = std::make_shared<holdfast::redlock::masters>(servers.urls(), unhurried_masters());
    auto const make = [&] { return client; };
    // Those whose answers come last know the scripts then, and count fences as the others do.
    work_for_a_section(servers, make, {1, 50});
    auto const did = work_for_a_section(servers, make, {1, 200});
    // A majority decides: the others may still run the last of before, and not yet run the last of all.
    CHECK(std::abs(did.scripts - 2) <= 0.02);
    for (auto& server : servers) {
        CHECK(calls(server, "zadd") == 0);
        CHECK(server.command({"EXISTS", "holdfast:queue:{orders}", "holdfast:next:{orders}"}).integer == 0);
        CHECK(holdfast::test::subscriptions(server) == 0);
    }
}

TEST_CASE("locks that are due at the same time are renewed by few scripts, in few writes")
{
    constexpr int locks = 128;
    constexpr std::chrono::milliseconds ttl = 1min;
    redis_fleet servers{GENERATE(1U, 3U)};
    struct told {
        std::atomic<bool> has_all{false};
        std::atomic<bool> asked{false};
    };
    holdfast::test::shared<told> const both;
    auto holder = holdfast::test::child::fork([&] {
        holdfast::store const in = [&]() -> holdfast::store {
            if (servers.size() == 1) return holdfast::redis::client{servers[0].url(), holdfast::test::unhurried()};
            return holdfast::redlock::masters{servers.urls(), unhurried_masters()};
        }();
        auto all = held(in, "stock", locks, ttl);
        both->has_all = true;
        if (!eventually([&] { return both->asked.load(); }, 5min)) return 1;
        bool kept = true;
        for (auto& one : all) {
            kept = kept && one.lease().still_held();
            one.unlock();
        }
        return kept ? 0 : 2;
    });
    REQUIRE(eventually([&] { return both->has_all.load(); }, 5min));
    // Asleep until each is due, a third of the time after it was asked for.
    holder.pause();
    constexpr auto left = ttl * 2 / 3 - 1s;
    auto const due = [&](redis_server& one) {
        return one.command({"PTTL", "stock" + std::to_string(locks - 1)}).integer <= left.count();
    };
    REQUIRE(eventually([&] { return std::all_of(servers.begin(), servers.end(), due); }, 5min));
    for (auto& server : servers) server.command({"CONFIG", "RESETSTAT"});
    holder.resume();
    // A renewal asks once how long the key has.
    auto const renewed = [](redis_server& one) { return calls(one, "pttl") >= locks; };
    REQUIRE(eventually([&] { return std::all_of(servers.begin(), servers.end(), renewed); }, 5min));
    for (auto& server : servers) {
        auto const requests = lock_requests(server);
        auto const read = reads(server);
        CAPTURE(requests, read, calls(server, "pttl"));
        CHECK(requests * 8 <= calls(server, "pttl"));
        CHECK(read <= requests + 8);  // each in one write
    }
    both->asked = true;
    CHECK(holder.wait() == 0);
}

TEST_CASE("a right to one key that is missing keeps no other lock from being renewed, with its record")
{
    redis_server server{{.config = {"user app on >secret ~* &* +@all"}}};
    holdfast::redis::client const client{server.url("app", "secret"), holdfast::test::unhurried()};
    auto kept = held(client, "kept", 16, 20s);
    auto lost = held(client, "lost", 1, 20s);
    REQUIRE(server.command({"ACL", "SETUSER", "app", "resetkeys", "~kept*", "~holdfast:*"}).text == "OK");
    // Those were taken before: not renewed, they were over by then.
    CHECK(eventually([&] { return !lost.front().lease().still_held(); }, 5min));
    for (auto& one : kept) {
        CHECK(one.lease().still_held());
        CHECK(server.command({"PTTL", one.name()}).integer > 0);
        CHECK(client.holder(one.name()).has_value());
        one.unlock();
    }
}
