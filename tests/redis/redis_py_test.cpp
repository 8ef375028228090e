// SPDX-License-Identifier: MIT
//
// The same key as the real redis-py's Lock has.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/rival.hpp"
#include "support/temporary_folder.hpp"

#include <holdfast/redis.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redis::client;
using holdfast::redis::fair_mutex;
using holdfast::redis::mutex;
using holdfast::redis::shared_mutex;
using holdfast::test::beside_tests;
using holdfast::test::content;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::redis_server;
using holdfast::test::temporary_folder;
using holdfast::test::unhurried;
using holdfast::test::waiters;

namespace {

holdfast::lock_options const at_ease{.ttl = 10min};

/// redis-py's lock "orders", in a process of its own.
class redis_py {
public:
    /// Effects: starts redis_py_rival.py with these words, and the file of its end.
    redis_py(redis_server const& server, std::string const& what, std::vector<std::string> const& more = {})
    {
        std::vector<std::string> words{"/usr/bin/python3", beside_tests("redis_py_rival.py"), what,
                                       std::to_string(server.port()), "orders"};
        words.insert(words.end(), more.begin(), more.end());
        if (what != "try") words.push_back((folder_.path() / "end").string());
        process_ = holdfast::test::start(words, output());
    }

    [[nodiscard]] std::string said() const { return content(output()); }
    [[nodiscard]] bool says(std::string const& all) const
    {
        return eventually([&] { return said() == all; }, 3min);
    }

    void end() const { std::ofstream{folder_.path() / "end"}; }
    void kill() { process_.kill(); }
    [[nodiscard]] bool ended_well() { return process_.wait_for(3min) == 0; }

private:
    [[nodiscard]] std::string output() const { return (folder_.path() / "output").string(); }

    temporary_folder folder_;
    holdfast::test::child process_;
};

/// Returns: what redis-py says when it asks once.
std::string asked_once(redis_server const& server)
{
    redis_py one{server, "try"};
    return one.ended_well() ? one.said() : "failed";
}

/// A number in a file, which two that add to it at a time would spoil.
class counter {
public:
    counter() { std::ofstream{path()} << 0; }

    [[nodiscard]] std::string path() const { return (folder_.path() / "counter").string(); }
    [[nodiscard]] std::string text() const { return content(path()); }

    void add() const
    {
        auto const seen = std::strtol(text().c_str(), nullptr, 10);
        std::this_thread::sleep_for(1ms);
        std::ofstream{path()} << seen + 1;
    }

private:
    temporary_folder folder_;
};

constexpr int times = 25;

/// Effects: has two of redis-py contend with `one` and `two`, each in a thread, until every one of them has had the
/// lock so many times beside the others. `one` and `two` run a section, and return whether they added to the counter.
template <class One, class Two>
void contend(redis_server const& server, counter const& sum, One one, Two two)
{
    redis_py first{server, "count", {sum.path(), std::to_string(times)}};
    redis_py second{server, "count", {sum.path(), std::to_string(times)}};
    std::atomic<bool> done{false};
    std::atomic<int> by_one{0};
    std::atomic<int> by_two{0};
    std::atomic<long> added{0};
    auto const go_on = [&](auto& section, std::atomic<int>& sections) {
        while (!done) {
            if (section()) ++added;
            ++sections;
        }
    };
    {
        std::jthread const a{[&] { go_on(one, by_one); }};
        std::jthread const b{[&] { go_on(two, by_two); }};
        CHECK(eventually(
            [&] {
                return by_one >= times && by_two >= times && first.said() == "enough\n" && second.said() == "enough\n";
            },
            5min));
        done = true;
        first.end();
        second.end();
    }
    CHECK(first.ended_well());
    CHECK(second.ended_well());
    auto const theirs = [](redis_py const& who) {
        return std::stol(who.said().substr(std::string{"enough\n"}.size()));
    };
    CHECK(sum.text() == std::to_string(added + theirs(first) + theirs(second)));
}

/// The errors that a lock tells.
class told {
public:
    [[nodiscard]] holdfast::lock_options options()
    {
        auto with = at_ease;
        with.on_error = [this](holdfast::error const& e) {
            std::scoped_lock const guard{mutex_};
            all_.push_back(e);
        };
        return with;
    }

    /// Returns: whether it is told, once, that the lock's key has no expiry.
    [[nodiscard]] bool of_no_expiry() const
    {
        return eventually([&] {
            std::scoped_lock const guard{mutex_};
            return all_.size() == 1 && all_[0].code() == holdfast::errc::contended &&
                   std::string{all_[0].what()}.find(" has no expiry") != std::string::npos;
        });
    }

private:
    mutable std::mutex mutex_;
    std::vector<holdfast::error> all_;
};

}  // namespace

TEMPLATE_TEST_CASE("this library and redis-py exclude each other, and neither starves", "", mutex, fair_mutex)
{
    redis_server server;
    counter const sum;
    client here{server.url(), unhurried()};
    client there{server.url(), unhurried()};
    TestType a{here, "orders", at_ease};
    TestType b{there, "orders", at_ease};
    auto const section = [&](TestType& m) {
        return [&] {
            std::scoped_lock const hold{m};
            sum.add();
            return true;
        };
    };
    contend(server, sum, section(a), section(b));
    CHECK_FALSE(exists(server, "orders"));
}

TEST_CASE("readers and writers of this library and redis-py exclude each other, and none starves")
{
    redis_server server;
    counter const sum;
    client here{server.url(), unhurried()};
    client there{server.url(), unhurried()};
    shared_mutex writes{here, "orders", at_ease};
    shared_mutex reads{there, "orders", at_ease};
    std::atomic<int> torn{0};
    auto const write = [&] {
        std::scoped_lock const hold{writes};
        sum.add();
        return true;
    };
    auto const read = [&] {
        std::shared_lock const hold{reads};
        auto const seen = sum.text();
        std::this_thread::sleep_for(1ms);
        if (seen.empty() || sum.text() != seen) ++torn;
        return false;
    };
    contend(server, sum, write, read);
    CHECK(torn == 0);
    CHECK_FALSE(exists(server, "orders"));
}

TEMPLATE_TEST_CASE("this library and redis-py see that the other has the lock", "", mutex, fair_mutex)
{
    redis_server server;
    client redis{server.url(), unhurried()};
    TestType m{redis, "orders", at_ease};
    redis_py rival{server, "hold", {"600"}};
    REQUIRE(rival.says("held\n"));
    CHECK_FALSE(m.try_lock());
    CHECK_FALSE(m.try_lock_for(50ms));
    std::atomic<bool> held{false};
    {
        std::jthread const waiter{[&] {
            m.lock();
            held = true;
        }};
        CHECK(eventually([&] { return waiters(server) == 1; }));
        CHECK_FALSE(held);
        rival.end();
    }
    CHECK(rival.says("held\nreleased\n"));
    CHECK(m.lease().still_held());
    CHECK(asked_once(server) == "refused\n");
    redis_py next{server, "hold", {"600"}};
    REQUIRE(next.says("waits\n"));
    m.unlock();
    CHECK(next.says("waits\nheld\n"));
    CHECK_FALSE(m.try_lock());
}

TEST_CASE("redis-py waits for the readers of this library, and for its writer")
{
    redis_server server;
    client here{server.url(), unhurried()};
    client there{server.url(), unhurried()};
    shared_mutex one{here, "orders", at_ease};
    shared_mutex other{there, "orders", at_ease};
    SECTION("until the last of the readers has left")
    {
        one.lock_shared();
        other.lock_shared();
        redis_py rival{server, "hold", {"600"}};
        REQUIRE(rival.says("waits\n"));
        one.unlock_shared();
        CHECK(asked_once(server) == "refused\n");
        CHECK(rival.said() == "waits\n");
        CHECK(other.lease_shared().still_held());
        other.unlock_shared();
        CHECK(rival.says("waits\nheld\n"));
        CHECK_FALSE(one.try_lock_shared());
        CHECK_FALSE(one.try_lock());
    }
    SECTION("also while the writer becomes a reader, and a writer again")
    {
        one.lock();
        redis_py rival{server, "hold", {"600"}};
        REQUIRE(rival.says("waits\n"));
        one.unlock_and_lock_shared();
        CHECK(asked_once(server) == "refused\n");
        CHECK(one.try_unlock_shared_and_lock());
        CHECK(asked_once(server) == "refused\n");
        CHECK(rival.said() == "waits\n");
        one.unlock();
        CHECK(rival.says("waits\nheld\n"));
    }
}

TEST_CASE("readers and writers of this library wait for redis-py")
{
    auto const* const seconds = GENERATE("600", "none");
    redis_server server;
    client here{server.url(), unhurried()};
    client there{server.url(), unhurried()};
    shared_mutex reads{here, "orders", at_ease};
    shared_mutex writes{there, "orders", at_ease};
    redis_py rival{server, "hold", {seconds}};
    REQUIRE(rival.says("held\n"));
    CHECK_FALSE(reads.try_lock_shared());
    CHECK_FALSE(reads.try_lock_shared_for(50ms));
    CHECK_FALSE(writes.try_lock());
    CHECK_FALSE(writes.try_lock_for(50ms));
    std::atomic<int> in{0};
    {
        std::jthread const writer{[&] {
            std::scoped_lock const hold{writes};
            ++in;
        }};
        CHECK(eventually([&] { return waiters(server) == 1; }));
        std::jthread const reader{[&] {
            std::shared_lock const hold{reads};
            ++in;
        }};
        // One that waits has said who it is.
        CHECK(eventually([&] {
            return server.command({"HGET", "holdfast:phase:{orders}", "waiting"}).text.size() > 1;
        }));
        CHECK(in == 0);
        CHECK(rival.said() == "held\n");
        rival.end();
    }
    CHECK(in == 2);
    CHECK(rival.says("held\nreleased\n"));
}

TEMPLATE_TEST_CASE("who waits for redis-py's lock without a timeout is told so, and has the lock after it", "", mutex,
                   fair_mutex, shared_mutex)
{
    redis_server server;
    told errors;
    client redis{server.url(), unhurried()};
    TestType m{redis, "orders", errors.options()};
    redis_py rival{server, "hold", {"none"}};
    REQUIRE(rival.says("held\n"));
    std::atomic<bool> held{false};
    {
        std::jthread const waiter{[&] {
            m.lock();
            held = true;
        }};
        CHECK(errors.of_no_expiry());
        CHECK_FALSE(held);
        rival.end();
    }
    CHECK(rival.says("held\nreleased\n"));
    m.unlock();
    CHECK(errors.of_no_expiry());
}

TEST_CASE("a redis-py that dies with a lock without a timeout keeps it, until an operator takes the key away")
{
    redis_server server;
    told errors;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders", errors.options()};
    redis_py rival{server, "hold", {"none"}};
    REQUIRE(rival.says("held\n"));
    rival.kill();
    CHECK_FALSE(m.try_lock_for(50ms));
    CHECK(errors.of_no_expiry());
    CHECK(redis.force_unlock("orders"));
    CHECK(m.try_lock());
}

TEST_CASE("a redis-py whose timeout is over does not give back the lock of the next holder")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders", at_ease};
    redis_py rival{server, "hold", {"0.1"}};
    REQUIRE(rival.says("held\n"));
    m.lock();
    rival.end();
    CHECK(rival.says("held\nlost\n"));
    CHECK(m.lease().still_held());
    CHECK(exists(server, "orders"));
}
