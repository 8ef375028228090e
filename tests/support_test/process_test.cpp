// SPDX-License-Identifier: MIT
#include "../support/catch.hpp"
#include "../support/loopback.hpp"
#include "../support/process.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

struct counters {
    std::atomic<int> count{0};
    std::atomic<::pid_t> pid{0};
    std::atomic<bool> seen{false};
};

int count_for_ever(counters& shared)
{
    for (;;) {
        ++shared.count;
        std::this_thread::sleep_for(100us);
    }
}

/// Returns: as in proc(5): T for one that is stopped.
char state_of(::pid_t pid)
{
    std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
    std::string number;
    std::string name;
    char state = '?';
    file >> number >> name >> state;
    return state;
}

bool gone(::pid_t pid) { return ::kill(pid, 0) != 0; }

}  // namespace

TEST_CASE("a child ends with the number its function returns")
{
    CHECK(child::fork([] { return 0; }).wait() == 0);
    CHECK(child::fork([] { return 7; }).wait() == 7);
}

TEST_CASE("a function that throws ends its child with a status of its own")
{
    CHECK(child::fork([]() -> int { throw std::runtime_error{"as this test intends"}; }).wait() == child::threw);
}

TEST_CASE("a signal that ends a child shows in its status")
{
    auto aborted = child::fork([]() -> int { std::abort(); });
    CHECK(aborted.wait() == 128 + SIGABRT);

    shared<counters> area;
    auto killed = child::fork([&] { return count_for_ever(*area); });
    CHECK_FALSE(killed.exit_status());
    killed.kill();
    CHECK(killed.exit_status() == 128 + SIGKILL);
    killed.kill();
    CHECK_FALSE(killed.running());
}

TEST_CASE("a child runs nothing that its parent registered for the end")
{
    static shared<counters> area;
    std::atexit([] { area->seen = true; });
    CHECK(child::fork([] { return 0; }).wait() == 0);
    CHECK_FALSE(area->seen);
}

TEST_CASE("parent and child exchange atomics in shared memory")
{
    shared<counters> area;
    auto other = child::fork([&] {
        area->pid = ::getpid();
        return eventually([&] { return area->seen.load(); }) ? 0 : 1;
    });
    CHECK(eventually([&] { return area->pid == other.pid(); }));
    area->seen = true;
    CHECK(other.wait() == 0);
}

TEST_CASE("a shared object is destroyed once, by the process that made it")
{
    struct watched {
        explicit watched(std::atomic<int>& destroyed) : destroyed_{destroyed} {}
        ~watched() { ++destroyed_; }
        std::atomic<int>& destroyed_;
    };
    shared<counters> area;
    {
        shared<watched> object{area->count};
        CHECK(child::fork([&] {
                  auto mine = std::move(object);
                  return 0;
              }).wait() == 0);
        CHECK(area->count == 0);
    }
    CHECK(area->count == 1);
}

TEST_CASE("a paused child does nothing until it is resumed")
{
    shared<counters> area;
    auto other = child::fork([&] { return count_for_ever(*area); });
    REQUIRE(eventually([&] { return area->count > 0; }));

    for (int round = 0; round < 20; ++round) {
        other.pause();
        CHECK(state_of(other.pid()) == 'T');
        other.pause();
        CHECK(other.paused());
        int const before = area->count;
        std::this_thread::sleep_for(2ms);
        CHECK(area->count == before);

        other.resume();
        CHECK_FALSE(other.paused());
        CHECK(eventually([&] { return area->count > before; }));
    }
    other.pause();
    CHECK_FALSE(other.wait_for(1ms));
    CHECK(other.running());
}  // destroyed while paused

TEST_CASE("a child is gone when its object is")
{
    shared<counters> area;
    ::pid_t pid = 0;
    {
        auto first = child::fork([&] { return count_for_ever(*area); });
        pid = first.pid();
        auto second = std::move(first);
        CHECK(first.pid() == -1);
        CHECK(second.running());
    }
    CHECK(gone(pid));
}

TEST_CASE("children die with a parent that is killed")
{
    shared<counters> area;
    int ends[2] = {-1, -1};
    REQUIRE(::pipe(ends) == 0);
    file_descriptor const ours{ends[0]};
    auto parent = child::fork([&] {
        auto grandchild = child::fork([&] { return count_for_ever(*area); });
        return grandchild.wait();
    });
    ::close(ends[1]);
    REQUIRE(eventually([&] { return area->count > 0; }));
    ::pollfd hung_up{ours.get(), 0, 0};
    CHECK(::poll(&hung_up, 1, 0) == 0);
    parent.kill();
    CHECK(::poll(&hung_up, 1, 60'000) == 1);  // nobody is left who holds the other end
}

TEST_CASE("a child outlives the thread that forked it")
{
    shared<counters> area;
    child other;
    std::thread{[&] { other = child::fork([&] { return count_for_ever(*area); }); }}.join();
    for (int i = 0; i < 10; ++i) {
        int const before = area->count;
        REQUIRE(eventually([&] { return area->count > before; }));
    }
    CHECK(other.running());
}

TEST_CASE("eventually gives up at its limit, and asks at least once")
{
    int asked = 0;
    CHECK_FALSE(eventually([&] { return ++asked < 0; }, 5ms));
    CHECK(asked > 1);
    CHECK(eventually([] { return true; }, 0ms));
    CHECK(eventually([&] { return ++asked > 10; }));
}

#if !defined(__SANITIZE_THREAD__) || defined(__clang__) || __GNUC__ >= 13
TEST_CASE("a child forked by a thread can fork from a thread")
{
    int status = -1;
    std::thread{[&] {
        status = child::fork([] {
                     int inner = -1;
                     std::thread{[&] { inner = child::fork([] { return 5; }).wait(); }}.join();
                     return inner;
                 }).wait();
    }}.join();
    CHECK(status == 5);
}

TEST_CASE("a child of a process with many threads can start threads")
{
    std::atomic<int> started{0};
    std::atomic<bool> enough{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            ++started;
            enough.wait(false);
        });
    REQUIRE(eventually([&] { return started == 8; }));
    auto other = child::fork([] {
        std::atomic<int> count{0};
        for (int round = 0; round < 3; ++round) {
            std::vector<std::thread> mine;
            for (int i = 0; i < 8; ++i) mine.emplace_back([&] { ++count; });
            for (auto& thread : mine) thread.join();
        }
        return count.load();
    });
    CHECK(other.wait() == 24);
    enough = true;
    enough.notify_all();
    for (auto& thread : threads) thread.join();
}
#endif

TEST_CASE("a child that stops itself is seen to have, and goes on when it is told")
{
    auto one = child::fork([] {
        std::this_thread::sleep_for(5ms);
        ::raise(SIGSTOP);
        return 7;
    });
    CHECK(eventually([&] { return one.stopped_itself(); }));
    CHECK(one.paused());
    CHECK(one.running());
    one.resume();
    CHECK_FALSE(one.paused());
    CHECK(one.wait_for(1min) == 7);
    CHECK_FALSE(one.stopped_itself());
}
