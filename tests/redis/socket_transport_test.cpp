// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis/socket_transport.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::owner_token;
using holdfast::redis::answer;
using holdfast::redis::command;
using holdfast::redis::errc;
using holdfast::redis::lock_keys;
using holdfast::redis::parse_url;
using holdfast::redis::socket_transport;
using holdfast::test::eventually;
using holdfast::test::proxy;
using holdfast::test::redis_server;

namespace {

/// One who asks for an extension and waits for the answer without end: in a quorum, others may decide long before he
/// has it.
class patient final : public holdfast::redis::listener, public holdfast::io::running, private holdfast::completion {
public:
    explicit patient(socket_transport& on) : on_{on} {}
    patient(patient const&) = delete;
    patient& operator=(patient const&) = delete;
    ~patient()
    {
        std::scoped_lock const guard{on_};
        on_.abandon(*this);
    }

    void ask()
    {
        std::scoped_lock const guard{on_};
        on_.begin(*this, *this);
        command const extend{.what = command::verb::extend,
                             .keys = std::make_shared<lock_keys const>("orders"),
                             .token = owner_token::fresh(),
                             .ttl = 10s};
        CHECK_FALSE(on_.send(0, extend, this));
    }

    /// Returns: whether it was answered within a minute.
    [[nodiscard]] bool answered() { return on_.reactor().drive(parker_, boot_clock::now() + 1min) != 0; }

    void on_answer(unsigned, answer const& a, boot_clock::time_point) override
    {
        got = a;
        on_.ended(*this);
    }
    [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return boot_clock::time_point::max(); }
    void on_time(boot_clock::time_point) noexcept override {}

    std::optional<answer> got;

private:
    void complete() noexcept override { parker_.unpark(); }

    socket_transport& on_;
    holdfast::detail::parker parker_;
};

}  // namespace

TEST_CASE("a connection that does not answer is given up at the next use of the client, whoever waits for it")
{
    constexpr auto node_timeout = 500ms;
    redis_server server;
    proxy way{server.port()};
    socket_transport transport{{.servers = {parse_url(way.url())},
                                .tls = nullptr,
                                .node_timeout = node_timeout,
                                .connect_timeout = 1min,
                                .key_prefix = {},
                                .restart_guard = 0ms},
                               nullptr};
    patient first{transport};
    first.ask();
    CHECK(first.answered());
    way.hold();
    patient second{transport};
    second.ask();
    CHECK(eventually([&] { return way.held() == 1; }));
    std::this_thread::sleep_for(node_timeout + 10ms);
    {
        std::scoped_lock const others{transport};
    }
    std::scoped_lock const guard{transport};
    REQUIRE(second.got);
    CHECK(second.got->error == errc::connection_lost);
}

TEST_CASE(
    "a late answer to one operation leaves the connection to those that it answers, and is for nobody when it comes")
{
    redis_server server;
    proxy way{server.port()};
    socket_transport transport{{.servers = {parse_url(way.url())},
                                .tls = nullptr,
                                .node_timeout = 1min,
                                .connect_timeout = 1min,
                                .key_prefix = {},
                                .restart_guard = 0ms},
                               nullptr};
    patient first{transport};
    first.ask();
    REQUIRE(first.answered());
    auto const connections = way.connections();
    way.delay(0us, 200ms);
    auto const before = way.requests();
    patient in_time{transport};
    in_time.ask();
    REQUIRE(eventually([&] { return way.requests() > before; }));
    way.hold();
    {
        patient late{transport};
        late.ask();
        REQUIRE(eventually([&] { return way.held() == 1; }));
        REQUIRE(in_time.answered());
        CHECK(in_time.got->what == answer::kind::refused);
        std::scoped_lock const guard{transport};
        transport.give_up(0, &late);
        CHECK_FALSE(late.got);
    }
    patient behind{transport};
    behind.ask();
    REQUIRE(eventually([&] { return way.requests() >= before + 3; }));
    way.heal();
    REQUIRE(behind.answered());
    CHECK(behind.got->what == answer::kind::refused);
    CHECK(way.connections() == connections);
}
