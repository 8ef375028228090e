// SPDX-License-Identifier: MIT
//
// Who leads and who follows: a pipe stands for a connection, a byte in it for the answer to the operation of that
// number.
#include "conformance/sleeper.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/core/operation.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/io/outlet.hpp>
#include <holdfast/io/poll_for.hpp>
#include <holdfast/io/reactor.hpp>
#include <holdfast/io/running.hpp>
#include <holdfast/io/wake_up.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::io::reactor;
using holdfast::test::eventually;
using holdfast::test::sleeper;

namespace {

int this_thread() { return static_cast<int>(::syscall(SYS_gettid)); }

/// Ends when a byte with its number comes. Guarded by the reactor's lock, but for what is atomic.
class operation final : public holdfast::io::running, private holdfast::completion {
public:
    void begin(reactor& r)
    {
        std::scoped_lock const guard{r};
        r.begin(*this, *this);
        r.updated(*this);
    }

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return due; }
    void on_time(boot_clock::time_point) noexcept override
    {
        due = boot_clock::time_point::max();
        timed_by = this_thread();
    }

    boot_clock::time_point due = boot_clock::time_point::max();
    std::atomic<int> timed_by{0};     ///< the thread that was told that its time had come
    std::atomic<int> answered_by{0};  ///< the thread that read its answer
    std::atomic<int> completed{0};    ///< how many times its completion was told
    std::function<void()> then{};
    holdfast::detail::parker who;

private:
    void complete() noexcept override
    {
        if (then) then();
        ++completed;
        who.unpark();
    }
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

    void on_ready(short, boot_clock::time_point) noexcept override
    {
        unsigned char byte = 0;
        while (::read(ends_[0], &byte, 1) == 1) {
            auto& one = all_.at(byte);
            one.answered_by = this_thread();
            reactor_.ended(one);
        }
    }

private:
    reactor& reactor_;
    std::deque<operation>& all_;
    std::array<int, 2> ends_{};
};

struct fixture {
    holdfast::io::wake_up orphaned;
    reactor r{2, &orphaned};
    std::deque<operation> all{4};
    wire way{r, all};

    fixture()
    {
        for (auto& one : all) one.begin(r);
    }
    fixture(fixture const&) = delete;
    fixture& operator=(fixture const&) = delete;
    ~fixture()
    {
        std::scoped_lock const guard{r};
        for (auto& one : all) r.abandon(one);
    }

    /// Returns: whether operation `n` ended before `until`.
    [[nodiscard]] bool wait(std::size_t n, boot_clock::time_point until) { return r.drive(all[n].who, until) != 0; }

    /// A thread that waits for operation `n`, and tells its number.
    struct waiter {
        waiter(fixture& f, std::size_t n, boot_clock::time_point until = boot_clock::time_point::max())
            : thread{[this, &f, n, until] {
                  id = this_thread();
                  return f.wait(n, until);
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
    CHECK(f.wait(0, boot_clock::time_point::max()));
    CHECK(f.all[0].answered_by == this_thread());
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
    CHECK_FALSE(f.wait(0, boot_clock::now()));
}

TEST_CASE("an operation is told of its time by the thread that leads, also if that was put forward meanwhile")
{
    fixture f;
    f.all[1].due = boot_clock::now() + 20ms;
    f.all[1].begin(f.r);
    fixture::waiter leader{f, 0};
    CHECK(leader.thread.sleeps());
    fixture::waiter follower{f, 1};
    CHECK(eventually([&] { return f.all[1].timed_by != 0; }));
    CHECK(f.all[1].timed_by == leader.id);
    for (std::size_t const n : {0U, 1U, 2U}) {  // nobody waits for the last
        CHECK(leader.thread.sleeps());
        f.all[n].timed_by = 0;
        {
            std::scoped_lock const guard{f.r};
            f.all[n].due = boot_clock::now();
            f.r.updated(f.all[n]);
        }
        CHECK(eventually([&] { return f.all[n].timed_by != 0; }));
        CHECK(f.all[n].timed_by == leader.id);
    }
    for (std::size_t const n : {0U, 1U}) f.way.answer(n);
    CHECK(leader.thread.join());
    CHECK(follower.thread.join());
}

TEST_CASE("an operation is not told of a time that it gave up, nor after it has ended")
{
    fixture f;
    for (std::size_t const n : {0U, 1U, 2U}) {
        std::scoped_lock const guard{f.r};
        f.all[n].due = boot_clock::now() + 10ms;
        f.r.updated(f.all[n]);
    }
    {
        std::scoped_lock const guard{f.r};
        f.all[0].due = boot_clock::now() + 1h;
        f.r.updated(f.all[0]);
        f.r.ended(f.all[1]);
        f.r.abandon(f.all[2]);
    }
    CHECK_FALSE(f.wait(3, boot_clock::now() + 50ms));
    for (std::size_t const n : {0U, 1U, 2U}) CHECK(f.all[n].timed_by == 0);
    CHECK(f.all[1].completed == 1);
    CHECK(f.all[2].completed == 0);
}

TEST_CASE("who waits for what another thread ends is woken, whether it leads or follows")
{
    followed f;
    REQUIRE((f.leads && f.follows));
    for (std::size_t const n : {0U, 1U}) {
        std::scoped_lock const guard{f.r};
        f.r.ended(f.all[n]);
    }
    CHECK(f.leader.thread.join());
    CHECK(f.follower.thread.join());
}

TEST_CASE("a signal wakes a thread that follows, also if no operation has ended")
{
    followed f;
    REQUIRE((f.leads && f.follows));
    f.all[1].who.unpark();
    CHECK(f.follower.thread.join());
    CHECK_FALSE(f.leader.thread.done());
    f.way.answer(0);
    CHECK(f.leader.thread.join());
}

TEST_CASE("a completion is told once, when the lock was given up, in the order in which the operations ended")
{
    fixture f;
    std::vector<std::size_t> order;
    for (std::size_t n = 0; n < 3; ++n)
        f.all[n].then = [&, n] {
            std::scoped_lock const guard{f.r};  // it is free
            order.push_back(n);
        };
    {
        std::scoped_lock const guard{f.r};
        for (std::size_t const n : {2U, 0U, 1U, 0U, 2U}) f.r.ended(f.all[n]);
        CHECK(order.empty());
    }
    CHECK(order == std::vector<std::size_t>{2, 0, 1});
    {
        std::scoped_lock const guard{f.r};
        for (std::size_t const n : {0U, 1U, 2U}) f.r.ended(f.all[n]);
    }
    CHECK(order.size() == 3);
    for (std::size_t n = 0; n < 3; ++n) CHECK(f.all[n].completed == 1);
}

TEST_CASE("a completion may destroy its operation, and end another one")
{
    fixture f;
    struct destroyed final : holdfast::io::running, holdfast::completion {
        [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return boot_clock::time_point::max(); }
        void on_time(boot_clock::time_point) noexcept override {}
        void complete() noexcept override
        {
            auto& with = *on;
            self.reset();
            std::scoped_lock const guard{with.r};
            with.r.ended(with.all[0]);
        }

        fixture* on = nullptr;
        std::unique_ptr<destroyed> self{};
    };
    auto* const one = new destroyed;
    one->on = &f;
    one->self.reset(one);
    std::unique_lock guard{f.r};
    f.r.begin(*one, *one);
    f.r.ended(*one);
    f.r.ended(f.all[1]);
    guard.unlock();
    CHECK(f.all[0].completed == 1);
    CHECK(f.all[1].completed == 1);
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
    for (auto& one : all) one.begin(r);
    wire way{r, all};
    std::atomic<std::size_t> given{0};
    {
        std::vector<std::jthread> crew;
        for (std::size_t i = 0; i < threads; ++i)
            crew.emplace_back([&, i] {
                for (std::size_t k = 0; k < rounds; ++k) {
                    auto const n = i * rounds + k;
                    way.answer(n);
                    given += r.drive(all[n].who, boot_clock::time_point::max()) != 0 ? 1U : 0U;
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

    void on_ready(short, boot_clock::time_point) noexcept override
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
    ends.begin(r);
    sleeper leader{[&] { return r.drive(ends.who, boot_clock::time_point::max()) != 0; }};
    std::deque<sleeper> others;  // each has an address of its own
    for (int i = 0; i < 40; ++i) {
        std::atomic<sleeper const*> self{nullptr};
        auto& other = others.emplace_back([&] {
            self.wait(nullptr);
            way.wants_lock = self.load();
            std::scoped_lock const guard{r};
            way.wants_lock = nullptr;
        });
        self = &other;
        self.notify_one();
        other.join();
    }
    {
        std::scoped_lock const guard{r};
        CHECK(way.passed < 20);  // a mutex that the leader may pass lets it do so more often than that
        r.ended(ends);
    }
    CHECK(leader.join());
}

namespace {

/// Takes one turn as the client's own thread does. Returns: whether it led.
bool turn(reactor& r, boot_clock::time_point until = boot_clock::time_point::max())
{
    std::vector<pollfd> polled;
    if (!r.begin_turn(polled, until)) return false;
    static_cast<void>(holdfast::io::poll_for(polled, until - boot_clock::now()));
    CHECK(r.end_turn(polled.data()) == polled.size());
    return true;
}

}  // namespace

TEST_CASE("a turn reads what has come, and calls those whose time has come")
{
    fixture f;
    f.way.answer(2);
    CHECK(turn(f.r));
    CHECK(f.all[2].answered_by == this_thread());
    CHECK(f.all[2].completed == 1);
    {
        std::scoped_lock const guard{f.r};
        f.all[1].due = boot_clock::now() + 10ms;
        f.r.updated(f.all[1]);
    }
    auto until = boot_clock::time_point::max();
    std::vector<pollfd> polled;
    REQUIRE(f.r.begin_turn(polled, until));
    CHECK(until == f.all[1].due);
    CHECK(polled.size() <= f.r.most_polled());
    std::this_thread::sleep_until(std::chrono::steady_clock::now() + 10ms);
    static_cast<void>(f.r.end_turn(polled.data()));
    CHECK(f.all[1].timed_by == this_thread());
}

TEST_CASE("there is no turn while a caller leads, and it is signalled when the last one leaves")
{
    holdfast::io::wake_up const orphaned;
    auto const signals = [&] {
        std::uint64_t count = 0;
        return ::read(orphaned.descriptor(), &count, sizeof count) < 0 ? 0 : count;
    };
    {
        reactor r{1, &orphaned};
        std::deque<operation> all(3);
        for (auto& one : all) one.begin(r);
        wire way{r, all};
        sleeper leader{[&] { return r.drive(all[0].who, boot_clock::time_point::max()) != 0; }};
        CHECK(leader.sleeps());
        sleeper follower{[&] { return r.drive(all[1].who, boot_clock::time_point::max()) != 0; }};
        CHECK(follower.sleeps());
        CHECK_FALSE(turn(r));
        way.answer(0);
        CHECK(leader.join());
        CHECK(follower.sleeps());
        CHECK(signals() == 0);  // another caller leads now
        way.answer(1);
        CHECK(follower.join());
        CHECK(signals() == 1);
        way.answer(2);
        CHECK(turn(r));
        CHECK(all[2].completed == 1);

        sleeper alone{[&] { return r.drive(all[0].who, boot_clock::now() + 20ms) != 0; }};
        CHECK_FALSE(alone.join());
        CHECK(signals() == 0);  // it did not give way to this one
    }
}

TEST_CASE("a caller that comes during a turn leads after it")
{
    fixture f;
    auto until = boot_clock::time_point::max();
    std::vector<pollfd> polled;
    REQUIRE(f.r.begin_turn(polled, until));
    fixture::waiter caller{f, 0};
    CHECK(caller.thread.sleeps());
    static_cast<void>(f.r.end_turn(polled.data()));
    CHECK(eventually([&] { return !turn(f.r, boot_clock::now()); }));
    f.way.answer(1);
    CHECK(eventually([&] { return f.all[1].completed == 1; }));
    CHECK(f.all[1].answered_by == caller.id);
    f.way.answer(0);
    CHECK(caller.thread.join());
}

TEST_CASE("a caller that leads as soon as a turn is over looks again when the completions of that turn were told")
{
    fixture f;
    auto until = boot_clock::time_point::max();
    std::vector<pollfd> polled;
    REQUIRE(f.r.begin_turn(polled, until));
    // Between the end of a turn and the first completion, a caller finds no signal, and polls. Another turn does so in
    // its place.
    std::vector<pollfd> next;
    bool leads = false;
    f.all[1].then = [&] { leads = f.r.begin_turn(next, until); };
    f.way.answer(1);
    REQUIRE(holdfast::io::poll_for(polled, 1min) == 1);
    static_cast<void>(f.r.end_turn(polled.data()));
    REQUIRE(leads);
    CHECK(f.all[1].completed == 1);
    CHECK(holdfast::io::is_ready_for(next.at(0).fd, POLLIN));  // otherwise it sleeps on, with its signal
    static_cast<void>(f.r.end_turn(next.data()));
}

TEST_CASE(
    "what is sent between the turns of the client's own thread goes out with the next, and at the latest when it rests or a caller leads")
{
    fixture f;
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
    auto const out = std::make_shared<holdfast::io::outlet>(ends[0]);
    auto const sent = [&] {
        std::array<char, 64> bytes{};
        auto const n = ::recv(ends[1], bytes.data(), bytes.size(), 0);
        return n < 0 ? std::string{} : std::string{bytes.data(), static_cast<std::size_t>(n)};
    };
    auto const send = [&](char const* bytes) {
        std::scoped_lock const guard{f.r};
        f.r.send(out, bytes);
    };
    auto until = boot_clock::time_point::max();
    std::vector<pollfd> polled;

    send("a");
    CHECK(sent() == "a");  // nobody has taken a turn
    REQUIRE(f.r.begin_turn(polled, until));
    send("b");
    send("c");
    CHECK(sent().empty());
    CHECK(holdfast::io::poll_for(polled, 1min) == 1);  // the thread is woken for that
    static_cast<void>(f.r.end_turn(polled.data()));
    send("d");
    CHECK(sent().empty());
    polled.clear();
    REQUIRE(f.r.begin_turn(polled, until));
    CHECK(sent() == "bcd");
    static_cast<void>(f.r.end_turn(polled.data()));

    send("e");
    f.r.rest();
    CHECK(sent() == "e");
    send("f");
    CHECK(sent() == "f");

    CHECK(turn(f.r, boot_clock::now()));
    send("g");
    fixture::waiter caller{f, 0};
    CHECK(eventually([&] { return sent() == "g"; }));
    send("h");
    CHECK(sent() == "h");
    f.way.answer(0);
    CHECK(caller.thread.join());
    ::close(ends[1]);
}

TEST_CASE("a follower that is chosen to lead just when it has what it waits for passes that on")
{
    fixture f;
    std::vector<::pollfd> polled;
    auto until = boot_clock::time_point::max();
    REQUIRE(f.r.begin_turn(polled, until));  // the client's own thread leads: it stops when it is told to
    fixture::waiter chosen{f, 1};
    CHECK(chosen.thread.sleeps());
    fixture::waiter other{f, 2};
    CHECK(other.thread.sleeps());
    std::unique_lock guard{f.r};
    sleeper leader{[&] { static_cast<void>(f.r.end_turn(polled.data())); }};
    CHECK(leader.sleeps());  // it wants the lock, before the next one does
    f.all[1].who.unpark();
    std::this_thread::sleep_for(50ms);
    guard.unlock();
    leader.join();
    CHECK(chosen.thread.join());
    f.way.answer(2);
    CHECK(eventually([&] { return f.all[2].completed == 1; }));
    f.all[2].who.unpark();
    CHECK(other.thread.join());
}

TEST_CASE("what a source keeps back is composed once, before the next send, and not after its end")
{
    struct keeper final : holdfast::io::source {
        int composed = 0;

        [[nodiscard]] int descriptor() const noexcept override { return -1; }
        [[nodiscard]] short interest() const noexcept override { return 0; }
        void compose(boot_clock::time_point) noexcept override { ++composed; }
        void on_ready(short, boot_clock::time_point) override {}
    };
    reactor r{2};
    keeper one;
    keeper other;
    auto const keep_back = [&r](keeper& by) {
        std::scoped_lock const guard{r};
        return r.send_later(by);
    };
    {
        std::scoped_lock const guard{r};
        r.add(one);
        r.add(other);
        CHECK(r.send_later(one));
        CHECK(r.send_later(one));
        CHECK(one.composed == 0);
    }
    CHECK(one.composed == 1);
    CHECK(keep_back(other));
    CHECK(other.composed == 1);
    CHECK(one.composed == 1);

    // The client's own thread sends at its next turn.
    std::vector<::pollfd> polled;
    auto until = boot_clock::now();
    REQUIRE(r.begin_turn(polled, until));
    CHECK(keep_back(one));
    CHECK(one.composed == 1);
    static_cast<void>(r.end_turn(polled.data()));
    CHECK(one.composed == 1);
    polled.clear();
    REQUIRE(r.begin_turn(polled, until));
    CHECK(one.composed == 2);
    CHECK(keep_back(one));
    static_cast<void>(r.end_turn(polled.data()));
    r.rest();
    CHECK(one.composed == 3);
    {
        std::scoped_lock const guard{r};
        CHECK(r.send_later(other));
        CHECK(r.send_later(one));
        r.remove(other);
    }
    CHECK(other.composed == 1);
    CHECK(one.composed == 4);
    std::scoped_lock const guard{r};
    r.remove(one);
}
