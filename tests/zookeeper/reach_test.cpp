// SPDX-License-Identifier: MIT
//
// Servers that are not reached, and what a session that is reached again asks of them.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/proxy.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/make_store.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/zookeeper.hpp>

#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::test::code_of;
using holdfast::test::connected;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::proxy;
using holdfast::test::zookeeper_packets;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::mutex;
using holdfast::zookeeper::session;

namespace {

std::string message_of(auto const& f)
try {
    f();
    return "nothing was thrown";
} catch (holdfast::error const& e) {
    return e.what();
}

/// Returns: how many threads this process has besides this one; also those that a sanitizer begins with the next one.
::rlim_t other_threads()
{
    auto const all = [] { return std::distance(std::filesystem::directory_iterator{"/proc/self/task"}, {}); };
    std::atomic<bool> counted{false};
    std::thread first{[&] { counted.wait(false); }};
    auto const without = all() - 1;
    counted = true;
    counted.notify_one();
    first.join();
    static_cast<void>(eventually([&] { return all() == without; }));  // a joined thread counts for a moment more
    return static_cast<::rlim_t>(without - 1);
}

/// A socket that listens on the IPv6 loopback address.
class listener {
public:
    listener()
    {
        ::sockaddr_in6 address{};
        address.sin6_family = AF_INET6;
        address.sin6_addr = in6addr_loopback;
        ::socklen_t size = sizeof address;
        auto* const any = reinterpret_cast<::sockaddr*>(&address);
        there_ =
            ::bind(socket_, any, size) == 0 && ::listen(socket_, 8) == 0 && ::getsockname(socket_, any, &size) == 0;
        why_not_ = there_ ? 0 : errno;
        port_ = ntohs(address.sin6_port);
    }
    listener(listener const&) = delete;
    listener& operator=(listener const&) = delete;
    ~listener() { ::close(socket_); }

    [[nodiscard]] bool there() const noexcept { return there_; }
    /// Returns: the error of the system; 0 if it is there.
    [[nodiscard]] int why_not() const noexcept { return why_not_; }
    [[nodiscard]] unsigned port() const noexcept { return port_; }
    [[nodiscard]] bool called(std::chrono::milliseconds limit) const
    {
        ::pollfd one{.fd = socket_, .events = POLLIN, .revents = 0};
        return ::poll(&one, 1, static_cast<int>(limit.count())) == 1;
    }

private:
    int socket_ = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool there_ = false;
    int why_not_ = 0;
    unsigned port_ = 0;
};

}  // namespace

TEST_CASE("where no server is reached, it is said which were asked, and why none was reached")
{
    std::string address;
    {
        zookeeper_server server;
        address = server.address();
    }
    session zk{address + "/app", {.operation_timeout = 2s}};
    mutex m{zk, "/orders", {.unavailable_after = 2s}};
    for (auto const& said : {message_of([&] { static_cast<void>(m.try_lock()); }), message_of([&] { m.lock(); }),
                             message_of([&] { static_cast<void>(m.contenders()); })}) {
        CHECK_THAT(said, contains("/orders"));
        CHECK_THAT(said, contains("servers " + address));
        CHECK_THAT(said, contains("Connection refused"));
        CHECK_THAT(said, contains("no server of the ensemble could be reached"));
    }
    session unknown{"holdfast.invalid:2181", {.operation_timeout = 2s}};
    mutex nowhere{unknown, "/orders"};
    CHECK_THAT(message_of([&] { static_cast<void>(nowhere.try_lock_for(10s)); }),
               contains("servers holdfast.invalid:2181"));
}

TEST_CASE("a store is opened by the address of a server, with the path below which its locks are")
{
    zookeeper_server server;
    zookeeper_tree tree{server.address()};
    auto const store = holdfast::make_store("zookeeper://" + server.address() + "/app");
    holdfast::mutex m{store, "orders", {.unavailable_after = 5min}};
    m.lock();
    CHECK(tree.children("/app/orders").size() == 1);
    m.unlock();
    CHECK(tree.children("/app/orders").empty());
}

TEST_CASE("a session connects to an IPv6 address in brackets, and to a port with zeros before it")
{
    listener server;
    if (!server.there()) {
        CHECK((server.why_not() == EAFNOSUPPORT || server.why_not() == EADDRNOTAVAIL || server.why_not() == EBADF));
        return;  // there is no IPv6 here
    }
    session zk{"[::1]:" + std::string(server.port() < 10'000 ? "0" : "") + std::to_string(server.port())};
    CHECK_FALSE(zk.connect_for(1ms));  // it does not answer
    CHECK(server.called(1min));
}

TEST_CASE("a session that waits for as much as it may is connected again, and refuses to wait for more")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto here = connected(server.address(), {.session_timeout = 10min});
    auto there = connected(way.address(), {.session_timeout = 10min});
    constexpr int names = 500;
    auto const name = [](int i) { return "/" + std::string(1'000, 'x') + std::to_string(i); };
    std::vector<std::unique_ptr<mutex>> held;
    for (int i = 0; i < names; ++i) {
        held.push_back(std::make_unique<mutex>(here, name(i)));
        held.back()->lock();
    }
    std::atomic<int> refused{0};
    std::atomic<int> other{0};
    std::vector<std::jthread> waiters;
    for (int i = 0; i < names; ++i)
        waiters.emplace_back([&, i](std::stop_token const& stop) {
            mutex m{there, name(i), {.unavailable_after = 10min}};
            bool got = false;
            auto const code = code_of([&] { got = m.lock(stop); });
            if (code == holdfast::zookeeper::errc::too_many_watches)
                ++refused;
            else if (code || got)
                ++other;
        });
    CHECK(eventually([&] { return server.watches() + refused == names; }, 5min));
    CHECK(refused > 0);
    CHECK(refused < names / 20);
    auto const watched = server.watches();
    way.refuse();
    CHECK(eventually([&] { return server.watches() == 0; }, 5min));
    way.pass();
    CHECK(eventually([&] { return server.watches() == watched; }, 5min));
    for (auto& one : waiters) one.request_stop();
    waiters.clear();
    CHECK(other == 0);
    CHECK(eventually([&] { return server.watches() == 0; }, 5min));
}

TEST_CASE("a session that cannot have its threads says so, and the program goes on")
{
    auto const most = GENERATE(2U, 3U, 4U, 5U, 6U);
    auto born = holdfast::test::child::fork([&] {
        constexpr ::uid_t somebody = 54'321;  // who has no other process: threads are counted by user
        auto const limit = most + other_threads();  // of which this one and the renewer are two
        ::rlimit const limits{limit, limit};
        if (::setrlimit(RLIMIT_NPROC, &limits) != 0 || ::setresuid(somebody, somebody, somebody) != 0) return 9;
        session zk{"127.0.0.1:1"};
        mutex m{zk, "/orders", {.unavailable_after = 100ms}};
        auto const said = message_of([&] { m.lock(); });
        if (said.find(most < 6 ? "no threads" : "127.0.0.1:1") == std::string::npos) return 1;
        return 0;
    });
    auto const status = born.wait_for(1min);
    CHECK(status == (::geteuid() == 0 ? 0 : 9));  // it needs the rights of root
}
