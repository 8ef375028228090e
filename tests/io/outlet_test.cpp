// SPDX-License-Identifier: MIT
//
// `send` is one of this program, which lets the next call fail or stop if a test says so: the system's own does seldom.
#include "conformance/sleeper.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/loopback.hpp"

#include <holdfast/io/outlet.hpp>
#include <holdfast/io/unsent_outlets.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using holdfast::io::is_ready_for;
using holdfast::io::outlet;
using holdfast::io::unsent_outlets;
using holdfast::test::bind_free_port;
using holdfast::test::eventually;
using holdfast::test::file_descriptor;
using holdfast::test::sleeper;
using holdfast::test::start_connecting;

namespace {

std::atomic<int> fails_on{-1};  // the descriptor whose next send fails
std::atomic<int> fails_with{0};
std::atomic<int> stops_on{-1};  // the descriptor whose next send stops, until `goes_on`
std::atomic<bool> stopped{false};
std::atomic<bool> goes_on{false};

/// Returns: whether the other side is told that the connection is over, and how much it got before.
bool read_to_the_end(int fd, std::size_t& got)
{
    std::string part(65'536, '\0');
    for (;;) {
        auto const n = ::recv(fd, part.data(), part.size(), 0);
        if (n <= 0) return n < 0 && errno == ECONNRESET;
        got += static_cast<std::size_t>(n);
    }
}

/// Returns: what can be read now; empty at the end of file.
std::string received(int fd)
{
    std::string bytes(4096, '\0');
    auto const n = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    REQUIRE(n >= 0);
    bytes.resize(static_cast<std::size_t>(n));
    return bytes;
}

}  // namespace

extern "C" ssize_t send(int descriptor, void const* bytes, std::size_t size, int flags)
{
    int stopping = descriptor;
    if (stops_on.compare_exchange_strong(stopping, -1)) {
        stopped = true;
        stopped.notify_all();
        goes_on.wait(false);
    }
    int failing = descriptor;
    if (!fails_on.compare_exchange_strong(failing, -1)) return ::sendto(descriptor, bytes, size, flags, nullptr, 0);
    errno = fails_with;
    return -1;
}

TEST_CASE("a connection may be given up while another thread sends on it: it is reset, and nothing more is sent")
{
    for (int n = 0; n < 20; ++n) {
        auto const bound = bind_free_port();
        ::listen(bound.fd.get(), 1);
        auto ours = start_connecting(bound.port);
        file_descriptor const theirs{::accept(bound.fd.get(), nullptr, nullptr)};
        REQUIRE(theirs);
        outlet to{::dup(ours.get())};
        std::atomic<bool> stop{false};
        std::atomic<std::size_t> flushes{0};
        std::jthread sender{[&] {
            while (!stop) {
                to.append("SET orders\r\n");
                to.flush();
                ++flushes;
            }
        }};
        std::size_t got = 0;
        bool reset = false;
        std::jthread reader{[&] { reset = read_to_the_end(theirs.get(), got); }};
        while (flushes < 10) std::this_thread::yield();
        to.abandon();
        auto const then = flushes.load();
        while (flushes < then + 10) std::this_thread::yield();
        reader.join();
        CHECK(reset);
        stop = true;
    }
}

TEST_CASE("what a thread flushes while another one sends goes out, too")
{
    constexpr int threads = 4;
    constexpr std::size_t each = 20'000;
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    file_descriptor const theirs{ends[1]};
    outlet to{ends[0]};
    std::atomic<std::size_t> got{0};
    std::jthread const reader{[&] {
        std::array<char, 4096> bytes{};
        while (got < threads * each) {
            auto const n = ::read(theirs.get(), bytes.data(), bytes.size());
            if (n <= 0) return;
            got += static_cast<std::size_t>(n);
        }
    }};
    {
        std::vector<std::jthread> senders;
        for (int i = 0; i < threads; ++i)
            senders.emplace_back([&] {
                for (std::size_t n = 0; n < each; ++n) {
                    to.append("x");
                    if (to.flush()) to.flush_again();
                }
            });
    }
    CHECK(eventually([&] {
        if (to.blocked()) to.flush_again();  // the socket took no more, and nobody has tried again since
        return got == threads * each;
    }));
    to.cut();
}

TEST_CASE("what is to go out before a thread goes on has been sent when that does, also if another one is sending")
{
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    file_descriptor const theirs{ends[1]};
    outlet to{ends[0]};
    stops_on = ends[0];
    to.append("first\r\n");
    sleeper sends{[&] { to.flush(); }};
    stopped.wait(false);
    to.append("second\r\n");
    sleeper waits{[&] { to.flush_all(); }};
    CHECK(waits.sleeps());
    CHECK_FALSE(waits.done());
    to.append("third\r\n");
    to.flush();  // is left to those
    goes_on = true;
    goes_on.notify_all();
    waits.join();
    CHECK(received(theirs.get()) == "first\r\nsecond\r\nthird\r\n");
    sends.join();
}

TEST_CASE("of several servers the answer of the one that was asked last is awaited, for a moment at most")
{
    std::array<std::array<int, 2>, 3> ends{};
    std::vector<file_descriptor> theirs;
    std::vector<std::shared_ptr<outlet>> ours;
    for (auto& pair : ends) {
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) == 0);
        ours.push_back(std::make_shared<outlet>(pair[0]));
        theirs.emplace_back(pair[1]);
    }
    auto const answers = [](file_descriptor const& one) { REQUIRE(::write(one.get(), "+", 1) == 1); };
    auto const other = ours[2]->descriptor();

    unsent_outlets one;
    REQUIRE(one.add(ours[0]));
    answers(theirs[0]);
    CHECK(!one.await_last(other));  // there is nothing to wait for

    unsent_outlets two;
    REQUIRE(two.add(ours[0]));
    REQUIRE(two.add(ours[1]));
    auto const asked = std::chrono::steady_clock::now();
    CHECK(!two.await_last(other));  // the first one has answered
    CHECK(std::chrono::steady_clock::now() - asked >= unsent_outlets::moment);
    answers(theirs[2]);
    CHECK(!two.await_last(other));
    answers(theirs[1]);
    CHECK(two.await_last(other));
}

TEST_CASE("after an error of a send that is not known to pass, the connection is over: nothing is sent behind a gap")
{
    auto const why = GENERATE(ENOBUFS, ENOMEM, EPERM, EPIPE);
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    file_descriptor const theirs{ends[1]};
    outlet to{ends[0]};
    to.append("first\r\n");
    CHECK_FALSE(to.flush());
    fails_with = why;
    fails_on = ends[0];
    to.append("second\r\n");
    CHECK_FALSE(to.flush());
    REQUIRE(fails_on == -1);
    to.append("third\r\n");
    CHECK_FALSE(to.flush());

    CHECK(received(theirs.get()) == "first\r\n");
    CHECK(received(theirs.get()).empty());  // end of file
    CHECK(is_ready_for(ends[0], POLLIN));   // so that our side learns of it
    std::array<char, 1> none{};
    CHECK(::recv(ends[0], none.data(), none.size(), MSG_DONTWAIT) == 0);
}

TEST_CASE("a send that was interrupted, or finds no room, is no error: what is sent later follows what was sent before")
{
    auto const why = GENERATE(EINTR, EAGAIN);
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    file_descriptor const theirs{ends[1]};
    outlet to{ends[0]};
    fails_with = why;
    fails_on = ends[0];
    to.append("first\r\n");
    CHECK(to.flush() == (why == EAGAIN));
    to.append("second\r\n");
    CHECK_FALSE(to.flush_again());
    CHECK(received(theirs.get()) == "first\r\nsecond\r\n");
}
