// SPDX-License-Identifier: MIT
//
// Servers that cannot be masters, and redundancy that is lost: what becomes of the lock, what is told, what status()
// says.
#include "masters.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redlock.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::code_of;
using holdfast::test::containing;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::redis_fleet;
using holdfast::test::redis_server;
namespace redis = holdfast::redis;

namespace {

/// What on_error was told, by any thread.
class told {
public:
    [[nodiscard]] holdfast::lock_options options()
    {
        return {.unavailable_after = 300ms, .on_error = [this](holdfast::error const& e) {
                    std::scoped_lock const guard{mutex_};
                    all_.push_back(e);
                }};
    }

    [[nodiscard]] std::size_t begun(redis::errc code) const { return times(code, false); }
    [[nodiscard]] std::size_t over(redis::errc code) const { return times(code, true); }

private:
    /// Returns: how many times it was told that `code` began, or is over, of a server and of no lock.
    [[nodiscard]] std::size_t times(std::error_code code, bool over) const
    {
        std::scoped_lock const guard{mutex_};
        return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), [&](auto const& e) {
            bool const names_it =
                !e.server().empty() && std::string_view{e.what()}.find(e.server()) != std::string_view::npos;
            return e.code() == code && e.over() == over && e.lock_name().empty() && names_it;
        }));
    }

    mutable std::mutex mutex_;
    std::vector<holdfast::error> all_;
};

[[nodiscard]] holdfast::redlock::masters_options patient()
{
    return {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms};
}

[[nodiscard]] std::string by_name(redis_server const& one) { return "redis://localhost:" + std::to_string(one.port()); }

/// Effects: has `m` locked and unlocked until `done()`, for a minute at most. Returns: whether it was done.
template <class F>
bool use_until(mutex& m, F&& done)
{
    return eventually([&] {
        if (m.try_lock_for(1min)) m.unlock();
        return done();
    });
}

}  // namespace

TEST_CASE("a server that two URLs name has one vote")
{
    redis_fleet servers{2};
    told news;
    masters client{{servers[0].url(), by_name(servers[0]), servers[1].url()}, patient()};
    mutex m{client, "orders", news.options()};
    CHECK(use_until(m, [&] { return news.begun(redis::errc::same_server) != 0; }));
    CHECK(use_until(m, [&] { return true; }));
    CHECK(news.begun(redis::errc::same_server) == 1);
    auto const known = client.status();
    REQUIRE(known.size() == 3);
    CHECK(known[2].votes);
    CHECK(known[0].votes != known[1].votes);
    auto const& second = known[0].votes ? known[1] : known[0];
    CHECK(second.why_not == redis::errc::same_server);
    CHECK_THAT(second.detail, contains("the same server as redis://") && contains(std::to_string(servers[0].port())));
    servers.kill(1);
    CHECK(eventually([&] { return static_cast<bool>(code_of([&] { (void)m.try_lock(); })); }));
    CHECK(servers[0].command({"EXISTS", "orders"}).integer == 0);
}

TEST_CASE("masters that are all one server are misconfigured, and that is said at once")
{
    redis_server server;
    masters client{{server.url(), by_name(server), server.unix_url()}, patient()};
    mutex m{client, "orders", {.unavailable_after = 1h}};
    std::string what;
    CHECK(eventually([&] { return code_of([&] { m.lock(); }, &what) == redis::errc::same_server; }));
    CHECK_THAT(what, contains("orders") && contains("the same server as"));
}

TEST_CASE("a replica is no master, though it would take writes")
{
    redis_fleet servers{3};
    servers[2].command({"REPLICAOF", "127.0.0.1", std::to_string(servers[0].port())});
    servers[2].command({"CONFIG", "SET", "replica-read-only", "no"});
    REQUIRE(eventually([&] {
        return servers[2].command({"INFO", "replication"}).text.find("master_link_status:up") != std::string::npos;
    }));
    told news;
    masters client{servers.urls(), patient()};
    mutex m{client, "orders", news.options()};
    CHECK(use_until(m, [&] { return news.begun(redis::errc::read_only) != 0; }));
    CHECK(use_until(m, [&] { return true; }));
    CHECK(news.begun(redis::errc::read_only) == 1);
    CHECK(client.status()[2].why_not == redis::errc::read_only);
    CHECK_FALSE(client.status()[2].votes);
    servers.kill(1);
    CHECK(code_of([&] { (void)m.try_lock(); }) == errc::unavailable);
    servers.restart(1);
    servers[2].command({"REPLICAOF", "NO", "ONE"});
    CHECK(use_until(m, [&] { return news.over(redis::errc::read_only) != 0; }));
    CHECK(client.status()[2].votes);
}

TEST_CASE("a wrong password of one master is told once, and once when it is right again")
{
    redis_fleet servers{3};
    servers[1].command({"CONFIG", "SET", "requirepass", "right-secret"});
    told news;
    masters client{servers.urls("", "wrong-secret"), patient()};  // the others have no password, and refuse none
    for (std::size_t const i : {0U, 2U}) servers[i].command({"CONFIG", "SET", "requirepass", "wrong-secret"});
    mutex m{client, "orders", news.options()};
    mutex n{client, "invoices", news.options()};
    CHECK(use_until(m, [&] { return news.begun(redis::errc::authentication_failed) != 0; }));
    for (int i = 0; i < 5; ++i) CHECK((use_until(m, [] { return true; }) && use_until(n, [] { return true; })));
    CHECK(news.begun(redis::errc::authentication_failed) == 1);
    CHECK(news.over(redis::errc::authentication_failed) == 0);
    CHECK(client.status()[1].why_not == redis::errc::authentication_failed);
    CHECK_FALSE(client.status()[1].reached);
    CHECK_THAT(client.status()[1].describe(), contains("no vote") && !contains("secret"));
    servers[1].command({"CONFIG", "SET", "requirepass", "wrong-secret"});
    CHECK(use_until(n, [&] { return news.over(redis::errc::authentication_failed) != 0; }));
    CHECK(news.over(redis::errc::authentication_failed) == 1);
    CHECK(client.status()[1].votes);
}

TEST_CASE("a master that is down is told once, and once when it is back")
{
    redis_fleet servers{3};
    told news;
    masters client{servers.urls(), patient()};
    mutex m{client, "orders", news.options()};
    CHECK(use_until(m, [&] { return client.status()[2].votes; }));
    servers.kill(2);
    CHECK(use_until(m, [&] { return news.begun(redis::errc::cannot_connect) != 0; }));
    for (int i = 0; i < 5; ++i) CHECK(use_until(m, [] { return true; }));
    CHECK(news.begun(redis::errc::cannot_connect) == 1);
    CHECK_FALSE(client.status()[2].reached);
    CHECK_THAT(client.status()[2].detail, contains("refused"));
    servers.restart(2);
    CHECK(use_until(m, [&] { return news.over(redis::errc::cannot_connect) != 0; }));
    CHECK(news.over(redis::errc::cannot_connect) == 1);
    CHECK(client.status()[2].reached);
}

TEST_CASE("a master that goes down while a lock is held is told when the lease is renewed")
{
    redis_fleet servers{3};
    told news;
    masters client{servers.urls(), {.node_timeout = 2s, .connect_timeout = 1min, .restart_guard = 0ms}};
    auto options = news.options();
    options.ttl = 15s;
    mutex m{client, "orders", options};
    CHECK(use_until(m, [&] { return client.status()[2].votes; }));
    m.lock();
    servers.kill(2);
    CHECK(eventually([&] { return news.begun(redis::errc::cannot_connect) == 1; }));
}

TEST_CASE("renewals tell, too, that a master which was not reached is well again")
{
    redis_fleet servers{3};
    holdfast::test::proxy way{servers[2].port()};
    told news;
    masters client{{servers[0].url(), servers[1].url(), way.url()},
                   {.node_timeout = 2s, .connect_timeout = 1min, .restart_guard = 0ms}};
    auto options = news.options();
    options.ttl = 15s;
    mutex m{client, "orders", options};
    CHECK(use_until(m, [&] { return client.status()[2].votes; }));
    m.lock();
    way.refuse();
    way.cut_all();
    CHECK(eventually(
        [&] { return news.begun(redis::errc::cannot_connect) + news.begun(redis::errc::connection_lost) != 0; }));
    way.pass();
    CHECK(eventually([&] { return client.status()[2].votes; }));
    m.unlock();
}

TEST_CASE("a master whose clock is out of line is told once, and has no vote")
{
    redis_fleet servers{3};
    holdfast::test::proxy way{servers[1].port()};
    way.spoil_next_reply("*2\r\n$10\r\n1000000000\r\n$1\r\n0\r\n",
                         {.matches = containing("TIME"), .times = 1000});  // in 2001
    told news;
    masters client{{servers[0].url(), way.url(), servers[2].url()},
                   {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 2s}};
    auto options = news.options();
    options.ttl = 2s;
    options.unavailable_after = 1min;
    CHECK_THROWS_AS((mutex{client, "orders", options}), holdfast::error);  // less than twice node_timeout
    masters quick{{servers[0].url(), way.url(), servers[2].url()},
                  {.node_timeout = 1s, .connect_timeout = 1min, .restart_guard = 2s}};
    mutex m{quick, "orders", options};
    CHECK(eventually([&] {
        try {
            if (m.try_lock_for(1min)) m.unlock();
        } catch (holdfast::error const&) {  // the machine is busy
        }
        return news.begun(redis::errc::clock_out_of_line) != 0;
    }));
    CHECK(news.begun(redis::errc::clock_out_of_line) == 1);
    auto const known = quick.status();
    CHECK(known[1].why_not == redis::errc::clock_out_of_line);
    REQUIRE(known[1].clock_ahead);
    CHECK(*known[1].clock_ahead < -std::chrono::hours{24 * 365});
    CHECK(known[0].clock_ahead);
}

TEST_CASE("masters whose clocks cannot be compared say so, and not that they do not answer")
{
    redis_fleet servers{3};
    holdfast::test::proxy way{servers[1].port()};
    way.spoil_next_reply("*2\r\n$10\r\n1000000000\r\n$1\r\n0\r\n", {.matches = containing("TIME"), .times = 1000});
    servers.kill(2);
    masters client{{servers[0].url(), way.url(), servers[2].url()},
                   {.node_timeout = 2s, .connect_timeout = 1min, .restart_guard = 4s}};
    mutex m{client, "orders", {.ttl = 4s, .unavailable_after = 100ms}};
    std::string what;
    CHECK(eventually([&] { return code_of([&] { m.lock(); }, &what) == redis::errc::clock_not_compared; }, 3min));
    CHECK_THAT(what, contains("compare"));
    CHECK(eventually([&] {
        (void)code_of([&] { (void)m.try_lock(); });
        return client.status()[0].why_not == redis::errc::clock_not_compared;
    }));
}

TEST_CASE("masters that were not asked yet say so, and those that were tell their clock and round trip")
{
    redis_fleet servers{3, {.password = "canary-secret"}};
    masters client{servers.urls(), patient()};
    for (auto const& one : client.status()) {
        CHECK_FALSE(one.asked);
        CHECK_FALSE(one.reached);
        CHECK_FALSE(one.votes);
        CHECK_THAT(one.describe(), contains("redis://127.0.0.1:") && contains("not asked yet") && !contains("canary"));
    }
    mutex m{client, "orders"};
    CHECK(use_until(m, [&] {
        auto const all = client.status();
        return std::all_of(all.begin(), all.end(), [](auto const& one) { return one.votes; });
    }));
    for (auto const& one : client.status()) {
        CHECK(one.reached);
        CHECK_FALSE(one.why_not);
        CHECK_FALSE(one.last_error);
        CHECK_FALSE(one.may_evict);
        REQUIRE(one.round_trip);
        CHECK(*one.round_trip > 0us);
        REQUIRE(one.clock_ahead);
        CHECK(std::chrono::abs(*one.clock_ahead) <= one.clock_doubt + 1s);  // this machine's
        CHECK_THAT(one.describe(), contains(": votes, answers in ") && !contains("canary"));
    }
}

TEST_CASE("masters that were just started say for how long they have no vote")
{
    redis_fleet servers{3};
    told news;
    masters client{servers.urls(), {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 1h}};
    mutex m{client, "orders", news.options()};
    CHECK(code_of([&] { m.lock(); }) == redis::errc::restarted_recently);
    auto const known = client.status();
    auto const guarded = [](auto const& one) {
        return one.why_not == redis::errc::restarted_recently && one.guarded_for > 50min && one.guarded_for <= 1h + 1min;
    };
    CHECK(std::count_if(known.begin(), known.end(), guarded) >= 2);
    CHECK(news.begun(redis::errc::restarted_recently) >= 2);
}
