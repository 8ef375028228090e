// SPDX-License-Identifier: MIT
//
// What the hooks of many locks are told of an outage, and with which words.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/redis.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::redis_server;

namespace {

/// What a hook was told.
class told_errors {
public:
    [[nodiscard]] auto hook()
    {
        return [this](holdfast::error const& e) {
            std::scoped_lock const guard{mutex_};
            all_.push_back(e);
        };
    }

    [[nodiscard]] std::vector<holdfast::error> all() const
    {
        std::scoped_lock const guard{mutex_};
        return all_;
    }

    /// Returns: those that are no losses, nor of the server alone.
    [[nodiscard]] std::vector<holdfast::error> causes() const
    {
        auto some = all();
        std::erase_if(some, [](auto const& e) { return e.code() == errc::lease_lost || e.lock_name().empty(); });
        return some;
    }

private:
    mutable std::mutex mutex_;
    std::vector<holdfast::error> all_;
};

std::string address_of(redis_server const& server) { return "redis://127.0.0.1:" + std::to_string(server.port()); }

}  // namespace

TEST_CASE("an outage that many locks meet is told once for each cause, and once when it is over")
{
    redis_server server;
    told_errors told;
    client redis{server.url(), {.operation_timeout = 1s}};
    holdfast::lock_options const options{.ttl = 20s, .on_error = told.hook()};
    std::vector<std::unique_ptr<mutex>> held;
    for (int i = 0; i < 60; ++i) held.push_back(std::make_unique<mutex>(redis, "orders/" + std::to_string(i), options));
    for (auto& one : held) one->lock();
    server.pause();
    REQUIRE(eventually([&] { return !told.causes().empty(); }));
    std::this_thread::sleep_for(6s);  // all of them fail by now, some twice
    auto const in_outage = told.causes().size();
    server.resume();
    CHECK(in_outage < 10);

    mutex another{redis, "another", options};  // where all were lost meanwhile, nothing is renewed any more
    REQUIRE(eventually([&] {
        std::error_code ec;  // a release that fails is not told
        if (another.try_lock_for(1min)) another.unlock(ec);
        auto const all = told.causes();
        return std::count_if(all.begin(), all.end(), [](auto const& e) { return e.over(); }) * 2 ==
               static_cast<long>(all.size());
    }));
    std::map<std::pair<std::error_code, std::string>, bool> begun;
    for (auto const& e : told.causes()) {
        CAPTURE(e.what());
        bool& before = begun[{e.code(), std::string{e.server()}}];
        CHECK(before == e.over());  // it begins, ends, begins …
        before = !e.over();
        CHECK(e.server() == address_of(server));
        CHECK((e.lock_name().starts_with("orders/") || e.lock_name() == "another"));
        auto const words = e.over() ? address_of(server) + ": leases are granted and renewed again; this is over: "
                                    : "renewal: " + address_of(server);
        CHECK_THAT(e.what(), Catch::Matchers::StartsWith("lock \"" + std::string{e.lock_name()} + "\": " + words));
    }
}

TEST_CASE("a lease that was lost in an outage says why it could not be renewed, and each lock is told of its own")
{
    redis_server server;
    told_errors told;
    client redis{server.url(), {.operation_timeout = 1s}};
    holdfast::lock_options const options{.ttl = 12s, .on_error = told.hook()};
    mutex a{redis, "a", options};
    mutex b{redis, "b", options};
    a.lock();
    b.lock();
    server.kill();
    auto const losses = [&] {
        auto some = told.all();
        std::erase_if(some, [](auto const& e) { return e.code() != errc::lease_lost; });
        return some;
    };
    REQUIRE(eventually([&] { return losses().size() == 2; }));
    for (auto const& e : losses()) {
        CHECK(e.server() == address_of(server));
        CHECK(e.what() == "lock \"" + std::string{e.lock_name()} + "\": not renewed in time; renewal: " +
                              address_of(server) + " (Connection refused): cannot connect: the lease was lost");
    }
    CHECK(losses()[0].lock_name() != losses()[1].lock_name());
}

TEST_CASE("an unlock that reaches no server says which and why, once for all locks")
{
    redis_server server;
    told_errors told;
    client redis{server.url(), holdfast::test::unhurried()};
    holdfast::lock_options const options{.on_error = told.hook()};
    mutex a{redis, "a", options};
    mutex b{redis, "b", options};
    a.lock();
    b.lock();
    server.kill();
    a.unlock();
    b.unlock();
    auto const all = told.all();
    REQUIRE(all.size() == 1);
    CHECK(all[0].server() == address_of(server));
    CHECK(all[0].lock_name() == "a");
    CHECK(std::string{all[0].what()} ==
          "lock \"a\": unlock: " + address_of(server) + " (Connection refused): cannot connect");
}

TEST_CASE("permits that reach no server when they are given back are told once, and once when that is over")
{
    redis_server server;
    told_errors told;
    client redis{server.url(), holdfast::test::unhurried()};
    holdfast::redis::semaphore jobs{redis, "jobs", 6, {.ttl = 1h, .on_error = told.hook()}};
    for (int i = 0; i < 6; ++i) jobs.acquire();
    server.kill();
    for (int i = 0; i < 3; ++i) jobs.release(2);
    REQUIRE(told.all().size() == 1);
    CHECK_THAT(told.all()[0].what(), contains("unlock"));
    CHECK_FALSE(told.all()[0].over());
    jobs.release(2);
    REQUIRE(told.all().size() == 2);
    CHECK(told.all()[1].code() == errc::not_owner);
    server.restart();
    CHECK(eventually([&] {
        if (jobs.try_acquire_for(1min)) jobs.release();
        return told.all().back().over();
    }));
}

TEST_CASE("a key that no lock has made is told once, with what stands there, and still counts as held")
{
    redis_server server;
    told_errors told;
    client redis{server.url(), holdfast::test::unhurried()};
    holdfast::lock_options const options{.on_error = told.hook()};
    mutex endless{redis, "endless", options};
    mutex list{redis, "list", options};
    mutex empty{redis, "empty", options};
    mutex other{redis, "other", options};
    mutex lock{redis, "lock", options};
    server.command({"SET", "endless", "x"});
    server.command({"SET", "empty", ""});
    server.command({"RPUSH", "list", "x"});
    server.command({"RPUSH", "other", "x"});
    server.command({"PEXPIRE", "other", "3600000"});
    server.command({"SET", "lock", "somebody", "PX", "3600000"});
    for (int i = 0; i < 3; ++i)
        for (auto* one : {&endless, &list, &empty, &other, &lock}) CHECK_FALSE(one->try_lock());
    REQUIRE(eventually([&] { return told.causes().size() >= 4; }));
    auto const all = told.causes();
    REQUIRE(all.size() == 4);
    for (auto const& e : all) {
        CHECK(e.code() == errc::contended);
        CHECK(e.server() == address_of(server));
        std::string const what =
            e.lock_name() == "list" || e.lock_name() == "other" ? " holds a value of another type" : " has no expiry";
        CHECK(std::string{e.what()} ==
              "lock \"" + std::string{e.lock_name()} + "\": its key on " + address_of(server) + what +
                  ": no lock of this kind has put it there, and it counts as held until it is gone: "
                  "the lock is held by another owner");
    }
    CHECK(server.command({"EXISTS", "endless", "list", "empty", "other"}).integer == 4);
}

TEST_CASE("who waits for a key that no lock has made is told while it waits")
{
    redis_server server;
    told_errors told;
    client redis{server.url(), holdfast::test::unhurried()};
    mutex m{redis, "orders", {.on_error = told.hook()}};
    server.command({"SADD", "orders", "x"});
    std::jthread const waiting{[&] {
        m.lock();
        m.unlock();
    }};
    CHECK(eventually([&] { return told.causes().size() == 1; }));
    server.command({"DEL", "orders"});
}

TEST_CASE("what was to be told of a key to a lock that is gone by then is told to the next one")
{
    redis_server server;
    told_errors told;
    std::promise<void> begun;
    std::promise<void> goes_on;
    client redis{server.url(), holdfast::test::unhurried()};
    mutex slow{redis, "list", {.on_error = [&](auto const&) {
                   begun.set_value();
                   goes_on.get_future().wait();
               }}};
    mutex m{redis, "orders", {.on_error = told.hook()}};
    server.command({"SADD", "list", "x"});
    server.command({"SADD", "orders", "x"});
    CHECK_FALSE(slow.try_lock());
    begun.get_future().wait();
    {
        mutex brief{redis, "orders", {.on_error = told.hook()}};
        CHECK_FALSE(brief.try_lock());
    }
    CHECK(told.causes().empty());
    goes_on.set_value();
    CHECK(eventually([&] {
        CHECK_FALSE(m.try_lock());
        return told.causes().size() == 1;
    }));
}

TEST_CASE("an on_error that takes its time, or asks for the lock, keeps nobody who waits for it")
{
    redis_server server;
    std::atomic<int> begun{0};
    std::atomic<bool> go_on{false};
    std::atomic<bool> ended{false};
    client redis{server.url(), holdfast::test::unhurried()};
    auto const stays = [&](holdfast::error const& e) {
        if (e.code() != errc::contended) return;
        ++begun;
        {
            mutex same{redis, "orders"};
            (void)same.try_lock();
        }
        (void)eventually([&] { return go_on.load(); });
        ended = true;
    };
    mutex m{redis, "orders", {.on_error = stays}};
    server.command({"SET", "orders", "x"});
    CHECK_FALSE(m.try_lock());
    CHECK_FALSE(m.try_lock_for(2s));
    CHECK(eventually([&] { return begun == 1; }));
    server.command({"DEL", "orders"});
    CHECK(m.try_lock_for(20s));
    CHECK_FALSE(go_on);
    m.unlock();
    go_on = true;
    CHECK(eventually([&] { return ended.load(); }));  // it speaks of what is on this stack
}
