// SPDX-License-Identifier: MIT
//
// Who leads and who follows: a pipe stands for a connection, a byte in it for the answer to the operation of that number.
#include "conformance/sleeper.hpp"
#include "support/catch.hpp"

#include <holdfast/io/reactor.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::awaited;
using holdfast::boot_clock;
using holdfast::io::reactor;
using holdfast::test::sleeper;

namespace {

int this_thread() { return static_cast<int>(::syscall(SYS_gettid)); }

/// Is done when somebody says so. Guarded by the reactor's lock, but for what is atomic.
class operation final : public awaited {
public:
    [[nodiscard]] bool done() const noexcept override { return done_; }
    [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return due; }
    void on_time(boot_clock::time_point) override
    {
        due = boot_clock::time_point::max();
        timed_by = this_thread();
    }
    void finish() { done_ = true; }

    boot_clock::time_point due = boot_clock::time_point::max();
    std::atomic<int> timed_by{0};     ///< the thread that was told that its time had come
    std::atomic<int> answered_by{0};  ///< the thread that read its answer

private:
    bool done_ = false;
};

class wire final : public holdfast::io::source {
public:
    wire(reactor& r, std::deque<operation>& all) : reactor_{r}, all_{all}
    {
        REQUIRE(::pipe2(ends_.data(), O_NONBLOCK | O_CLOEXEC) == 0);
        std::scoped_lock const guard{reactor_};
        reactor_.add(*this);
    }
    wire(wire const&) = delete;
    wire& operator=(wire const&) = delete;
    ~wire()
    {
        std::scoped_lock const guard{reactor_};
        reactor_.remove(*this);
        for (int const end : ends_) ::close(end);
    }

    void answer(std::size_t n) const
    {
        auto const byte = static_cast<unsigned char>(n);
        while (::write(ends_[1], &byte, 1) != 1) std::this_thread::yield();
    }

    [[nodiscard]] int descriptor() const noexcept override { return ends_[0]; }
    [[nodiscard]] short interest() const noexcept override { return POLLIN; }

    void on_ready(short, boot_clock::time_point) override
    {
        unsigned char byte = 0;
        while (::read(ends_[0], &byte, 1) == 1) {
            auto& one = all_.at(byte);
            one.answered_by = this_thread();
            one.finish();
            reactor_.updated(one);
        }
    }

private:
    reactor& reactor_;
    std::deque<operation>& all_;
    std::array<int, 2> ends_{};
};

struct fixture {
    reactor r{2};
    std::deque<operation> all{4};
    wire way{r, all};

    /// A thread that waits for operation `n`, and tells its number.
    struct waiter {
        waiter(fixture& f, std::size_t n, boot_clock::time_point until = boot_clock::time_point::max())
            : thread{[this, &f, n, until] {
                  id = this_thread();
                  return f.r.wait(f.all[n], until);
              }}
        {
        }
        std::atomic<int> id{0};
        sleeper thread;
    };
};

/// One thread waits for operation 0, and leads; then another for operation 1.
struct followed : fixture {
    waiter leader{*this, 0};
    bool const leads = leader.thread.sleeps();
    waiter follower{*this, 1};
    bool const follows = follower.thread.sleeps();
};

}  // namespace

TEST_CASE("who waits first leads, and completes the operations of those who follow")
{
    followed f;
    REQUIRE((f.leads && f.follows));
    f.way.answer(1);
    CHECK(f.follower.thread.join());
    CHECK(f.all[1].answered_by == f.leader.id);
    CHECK_FALSE(f.leader.thread.done());
    f.way.answer(0);
    CHECK(f.leader.thread.join());
    CHECK(f.all[0].answered_by == f.leader.id);
}

TEST_CASE("who is done hands leadership on to who came first of those who follow")
{
    fixture f;
    fixture::waiter leader{f, 0};
    CHECK(leader.thread.sleeps());
    fixture::waiter second{f, 1};
    CHECK(second.thread.sleeps());
    fixture::waiter third{f, 2};
    CHECK(third.thread.sleeps());
    f.way.answer(0);
    CHECK(leader.thread.join());
    CHECK(second.thread.sleeps());
    f.way.answer(2);
    CHECK(third.thread.join());
    CHECK(f.all[2].answered_by == second.id);
    f.way.answer(1);
    CHECK(second.thread.join());
    CHECK(f.all[1].answered_by == second.id);
}

TEST_CASE("answers that came together are all given, whoever leads")
{
    followed f;
    REQUIRE((f.leads && f.follows));
    f.way.answer(0);
    f.way.answer(1);
    CHECK(f.leader.thread.join());
    CHECK(f.follower.thread.join());
}

TEST_CASE("what was answered before somebody waits is found by the first look")
{
    fixture f;
    f.way.answer(0);
    CHECK(f.r.wait(f.all[0], boot_clock::time_point::max()));
}

TEST_CASE("a wait ends when its time has come, for who leads and for who follows, and the others go on")
{
    fixture f;
    fixture::waiter leader{f, 0, boot_clock::now() + 100ms};
    fixture::waiter follower{f, 1, boot_clock::now() + 30ms};
    fixture::waiter patient{f, 2};
    CHECK_FALSE(follower.thread.join());
    CHECK_FALSE(leader.thread.join());
    CHECK(patient.thread.sleeps());
    f.way.answer(2);
    CHECK(patient.thread.join());
    CHECK_FALSE(f.r.wait(f.all[0], boot_clock::now()));
}

TEST_CASE("an operation is told of its time by the thread that waits for it, also where that was put forward meanwhile")
{
    fixture f;
    f.all[1].due = boot_clock::now() + 20ms;
    fixture::waiter leader{f, 0};
    CHECK(leader.thread.sleeps());
    fixture::waiter follower{f, 1};
    CHECK(holdfast::test::eventually([&] { return f.all[1].timed_by != 0; }));
    CHECK(f.all[1].timed_by == follower.id);
    for (std::size_t const n : {0U, 1U}) {
        f.all[n].timed_by = 0;
        {
            std::scoped_lock const guard{f.r};
            f.all[n].due = boot_clock::now();
            f.r.updated(f.all[n]);
        }
        CHECK(holdfast::test::eventually([&] { return f.all[n].timed_by != 0; }));
        CHECK(f.all[n].timed_by == (n == 0 ? leader : follower).id);
    }
    for (std::size_t const n : {0U, 1U}) f.way.answer(n);
    CHECK(leader.thread.join());
    CHECK(follower.thread.join());
}

TEST_CASE("who waits for what another thread finishes is woken, whether it leads or follows")
{
    followed f;
    REQUIRE((f.leads && f.follows));
    for (std::size_t const n : {0U, 1U}) {
        std::scoped_lock const guard{f.r};
        f.all[n].finish();
        f.r.updated(f.all[n]);
    }
    CHECK(f.leader.thread.join());
    CHECK(f.follower.thread.join());
}

TEST_CASE("what is added while a thread polls is polled, too, and what is removed is not")
{
    fixture f;
    fixture::waiter leader{f, 0};
    CHECK(leader.thread.sleeps());
    {
        wire const another{f.r, f.all};
        fixture::waiter follower{f, 1};
        CHECK(follower.thread.sleeps());
        another.answer(1);
        CHECK(follower.thread.join());
    }
    CHECK_FALSE(leader.thread.done());
    f.way.answer(0);
    CHECK(leader.thread.join());
}

TEST_CASE("many threads that wait again and again are each given their answers")
{
    reactor r{1};
    constexpr std::size_t threads = 12;
    constexpr std::size_t rounds = 20;
    std::deque<operation> all(threads * rounds);
    wire way{r, all};
    std::atomic<std::size_t> given{0};
    {
        std::vector<std::jthread> crew;
        for (std::size_t i = 0; i < threads; ++i)
            crew.emplace_back([&, i] {
                for (std::size_t k = 0; k < rounds; ++k) {
                    auto const n = i * rounds + k;
                    way.answer(n);
                    given += r.wait(all[n], boot_clock::time_point::max()) ? 1U : 0U;
                }
            });
    }
    CHECK(given == threads * rounds);
}

namespace {

/// Has always more to read, and reads on until a thread sleeps that wants the lock.
class endless_wire final : public holdfast::io::source {
public:
    explicit endless_wire(reactor& r) : reactor_{r}
    {
        REQUIRE(::pipe2(ends_.data(), O_NONBLOCK | O_CLOEXEC) == 0);
        REQUIRE(::write(ends_[1], "x", 1) == 1);
        std::scoped_lock const guard{reactor_};
        reactor_.add(*this);
    }
    endless_wire(endless_wire const&) = delete;
    endless_wire& operator=(endless_wire const&) = delete;
    ~endless_wire()
    {
        std::scoped_lock const guard{reactor_};
        reactor_.remove(*this);
        for (int const end : ends_) ::close(end);
    }

    [[nodiscard]] int descriptor() const noexcept override { return ends_[0]; }
    [[nodiscard]] short interest() const noexcept override { return POLLIN; }

    void on_ready(short, boot_clock::time_point) override
    {
        auto const* const who = wants_lock.load();
        if (!who) return;
        if (waited_for_ == who) {
            ++passed;
        } else if (who->sleeps()) {
            waited_for_ = who;
        }
    }

    std::atomic<sleeper const*> wants_lock{nullptr};
    int passed = 0;  ///< turns that began while a thread slept since the one before for the lock. Guarded by it

private:
    reactor& reactor_;
    std::array<int, 2> ends_{};
    sleeper const* waited_for_ = nullptr;
};

}  // namespace

TEST_CASE("a leader that has always more to read lets a thread have the lock that waits for it")
{
    reactor r{1};
    endless_wire way{r};
    operation ends;
    sleeper leader{[&] { return r.wait(ends, boot_clock::time_point::max()); }};
    for (int i = 0; i < 40; ++i) {
        std::atomic<sleeper const*> self{nullptr};
        sleeper other{[&] {
            self.wait(nullptr);
            way.wants_lock = self.load();
            std::scoped_lock const guard{r};
            way.wants_lock = nullptr;
        }};
        self = &other;
        self.notify_one();
        other.join();
    }
    {
        std::scoped_lock const guard{r};
        CHECK(way.passed < 20);  // a mutex that the leader may pass lets it do so more often than that
        ends.finish();
        r.updated(ends);
    }
    CHECK(leader.join());
}
