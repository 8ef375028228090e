// SPDX-License-Identifier: MIT
//
// A majority of the masters is missing, or a round fails: nothing is left behind.
#include "masters.hpp"
#include "redis/observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::code_of;
using holdfast::test::containing;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::five_masters;
using holdfast::test::proxied_masters;
using holdfast::test::redis_fleet;

namespace {

constexpr auto slack = 1min;  // of a busy machine: what is not bounded at all takes longer

void check_unavailable(five_masters& five, masters& client)
{
    mutex m{client, "orders", {.unavailable_after = 200ms}};
    CHECK(code_of([&] { (void)m.try_lock(); }) == errc::unavailable);
    CHECK(eventually([&] { return five.copies("orders") == 0; }));

    auto begun = boot_clock::now();
    CHECK(code_of([&] { (void)m.try_lock_for(300ms); }) == errc::unavailable);
    CHECK(boot_clock::now() - begun < 300ms + 100ms + slack);
    CHECK(eventually([&] { return five.copies("orders") == 0; }));

    begun = boot_clock::now();
    CHECK(code_of([&] { m.lock(); }) == errc::unavailable);
    CHECK(boot_clock::now() - begun < 200ms + 100ms + slack);
    CHECK(eventually([&] { return five.copies("orders") == 0; }));
}

}  // namespace

TEST_CASE("with three of five masters down or hung a lock is unavailable and the others are rolled back")
{
    bool const used_before = GENERATE(true, false);
    bool const hung = GENERATE(false, true);
    five_masters five;
    auto client = five.impatient();
    if (used_before) {
        mutex before{client, "before", {.unavailable_after = 1min}};
        before.lock();
    }
    for (std::size_t i : {0U, 2U, 4U}) hung ? five.servers.pause(i) : five.servers.kill(i);
    check_unavailable(five, client);
    for (std::size_t i : {0U, 2U, 4U}) hung ? five.servers.resume(i) : five.servers.restart(i);
    mutex m{client, "orders"};
    CHECK(m.try_lock_for(20s));
    m.unlock();
    CHECK(eventually([&] {  // what was left on a master that hung is rolled back when the client next talks to it
        if (!code_of([&] { (void)m.try_lock(); })) m.unlock();
        return five.copies("orders") == 0;
    }));
}

TEST_CASE("a lease that a majority can no longer confirm is lost in time", "[lesson-20]")
{
    five_masters five;
    std::atomic<int> losses{0};
    auto client = five.impatient();
    auto const count = [&](holdfast::error const& e) { losses += e.code() == errc::lease_lost ? 1 : 0; };
    mutex m{client, "orders", {.ttl = 1s, .unavailable_after = 1min, .on_error = count}};
    m.lock();
    auto const begun = boot_clock::now();
    auto const lease = m.lease();
    for (std::size_t i : {0U, 1U, 2U}) five.servers.pause(i);
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK(boot_clock::now() - begun < 1s + slack);
    CHECK(eventually([&] { return losses == 1; }));
}

TEST_CASE("a lease that the masters have forgotten is found lost by the renewal", "[lesson-20]")
{
    five_masters five;
    mutex m{five.client, "orders"};
    m.lock();
    auto const lease = m.lease();
    for (auto& server : five.servers) server.command({"DEL", "orders"});  // three at least are known to have had it
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    m.unlock();
    CHECK(eventually([&] { return five.copies("orders") == 0; }));
}

TEST_CASE("a wrong password on a majority is reported at once")
{
    redis_fleet good{2};
    redis_fleet bad{3, {.password = "right-secret"}};
    auto urls = good.urls();
    for (auto& server : bad) urls.push_back(server.url("", "wrong-secret"));
    masters client{urls, five_masters::options()};
    mutex m{client, "orders"};
    std::string what;
    auto const begun = boot_clock::now();
    CHECK(code_of([&] { m.lock(); }, &what) == errc::misconfigured);
    CHECK(boot_clock::now() - begun < slack);
    CHECK_THAT(what, contains("orders"));
    CHECK_THAT(what, contains("redis://127.0.0.1:"));
    CHECK_THAT(what, !contains("secret"));
    for (auto& server : good) CHECK(eventually([&] { return server.command({"EXISTS", "orders"}).integer == 0; }));
}

TEST_CASE("an outage is seen by all threads that queue, also if a minority refuses the password")
{
    redis_fleet two{2};
    redis_fleet locked{1, {.password = "right"}};
    two.kill(0);
    masters client{{two[0].url(), locked[0].url("", "wrong"), two[1].url()}, five_masters::options()};
    mutex m{client, "orders", {.unavailable_after = 1s}};
    constexpr std::size_t in_line = 100;
    std::vector<std::future<std::error_code>> all;
    auto const begun = boot_clock::now();
    for (std::size_t i = 0; i < in_line; ++i)
        all.push_back(std::async(std::launch::async, [&] { return code_of([&] { m.lock(); }); }));
    CHECK(std::all_of(all.begin(), all.end(), [](auto& one) { return one.get() == errc::unavailable; }));
    CHECK(boot_clock::now() - begun < slack);  // if each waited it out, it would take longer
    CHECK(code_of([&] { (void)m.try_lock(); }) == errc::unavailable);
    CHECK(code_of([&] { (void)m.try_lock_for(100ms); }) == errc::unavailable);
    two.restart(0);
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("a failed round leaves no key of ours and touches no key of others", "[lesson-4]")
{
    five_masters five;
    for (std::size_t i : {0U, 2U, 4U}) five.servers[i].command({"SET", "orders", "theirs", "PX", "3600000"});
    mutex m{five.client, "orders"};
    CHECK_FALSE(m.try_lock());
    CHECK_FALSE(m.try_lock_for(100ms));
    CHECK(eventually([&] { return five.copies("orders") == 3; }));
    for (std::size_t i : {0U, 2U, 4U}) CHECK(five.servers[i].command({"GET", "orders"}).text == "theirs");

    five.servers[0].command({"DEL", "orders"});
    CHECK(m.try_lock_for(20s));
    CHECK(five.copies("orders") == 5);
    m.unlock();
    CHECK(eventually([&] { return five.copies("orders") == 2; }));
}

TEST_CASE("a vote is rolled back over the next connection where its own broke before the others refused", "[lesson-4]")
{
    proxied_masters three;
    auto& servers = three.servers;
    auto& ways = three.ways;
    auto const on_first = [&] { return three.exists(0, "orders"); };
    for (std::size_t i : {1U, 2U}) {
        servers[i].command({"SET", "orders", "theirs"});
        ways[i].hold(containing("orders"));
    }
    mutex m{three.client, "orders", {.ttl = 1h}};
    auto attempt = std::async(std::launch::async, [&] { return m.try_lock(); });
    CHECK(eventually(on_first));
    std::this_thread::sleep_for(100ms);  // its answer arrives,
    ways[0].cut_all();
    std::this_thread::sleep_for(
        100ms);  // and the client learns of this; where either is late, the vote is lost in another way
    for (std::size_t i : {1U, 2U}) ways[i].let_go();
    CHECK_FALSE(attempt.get());
    CHECK(eventually([&] {
        if (three.probe.try_lock()) three.probe.unlock();
        return !on_first();
    }));
}

TEST_CASE("the ttl is the same after many rounds", "[lesson-13]")
{
    five_masters five;
    for (std::size_t i : {0U, 1U, 2U}) five.servers[i].command({"SET", "orders", "theirs", "PX", "3600000"});
    mutex m{five.client, "orders", {.ttl = 60s, .renew = false, .retry = {.most = 50ms}, .unavailable_after = 5min}};
    std::jthread holder{[&] { m.lock(); }};
    CHECK(eventually([&] { return holdfast::test::lock_requests(five.servers[0]) >= 10; }));
    for (std::size_t i : {0U, 1U, 2U}) five.servers[i].command({"DEL", "orders"});
    holder.join();
    CHECK(m.lease().remaining() > 0s);
    CHECK(m.lease().remaining() <= 60s);
    int granted = 0;
    for (auto& server : five.servers) {
        auto const pttl = std::chrono::milliseconds{server.command({"PTTL", "orders"}).integer};
        CHECK(pttl <= 60s);
        granted += pttl > m.lease().remaining() ? 1 : 0;  // it can grant the lock to nobody else before the lease ends
    }
    CHECK(granted >= 3);
}

TEST_CASE("contenders do not split the vote for ever", "[lesson-11]")
{
    five_masters five;
    std::atomic<int> sections{0};
    std::atomic<int> inside{0};
    std::atomic<bool> alone{true};
    {
        std::vector<std::jthread> all;
        for (int i = 0; i < 4; ++i)
            all.emplace_back([&] {
                masters mine{five.servers.urls(), five_masters::options()};
                mutex m{mine, "orders", {.unavailable_after = 5min}};  // nothing can be thrown out of a thread
                for (int n = 0; n < 10; ++n) {
                    m.lock();
                    if (++inside != 1) alone = false;
                    std::this_thread::yield();
                    ++sections;
                    --inside;
                    m.unlock();
                }
            });
    }
    CHECK(sections == 40);
    CHECK(alone);
    CHECK(eventually([&] { return five.copies("orders") == 0; }));
    for (auto& server : five.servers)
        CHECK(eventually([&] { return server.command({"PUBSUB", "CHANNELS"}).elements.empty(); }));
}

TEST_CASE("a release wakes the waiter of another client without polling")
{
    five_masters five;
    auto other = masters{five.servers.urls(), five_masters::options()};
    holdfast::lock_options const patient{.ttl = 1h, .retry = {.most = 1h}};
    mutex m{five.client, "orders", patient};
    mutex there{other, "orders", patient};
    m.lock();
    std::atomic<bool> done{false};
    std::jthread waiter{[&] { done = there.try_lock_for(60s); }};
    for (auto& server : five.servers)
        CHECK(eventually([&] { return server.command({"PUBSUB", "CHANNELS"}).elements.size() == 1; }));
    m.unlock();
    CHECK(eventually([&] { return done.load(); }));
}
