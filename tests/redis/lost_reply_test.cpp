// SPDX-License-Identifier: MIT
//
// Requests and replies that are lost on the way.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/redis_rights.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redis/scripts.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <list>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::aftermath;
using holdfast::test::code_of;
using holdfast::test::containing;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::proxy;
using holdfast::test::redis_server;
using holdfast::test::unhurried;

namespace {

constexpr std::chrono::milliseconds waited_out{5000};  // the operation timeout where a test waits for its end

/// A server behind a proxy, and a client of it that has connected before; the server knows all scripts.
struct faulty {
    redis_server server;
    proxy way{server.port()};
    client redis;

    explicit faulty(std::chrono::milliseconds operation_timeout = 10s, std::vector<std::string> config = {},
                    std::string const& user = {})
        : server{{.config = std::move(config)}},
          redis{"redis://" + user + way.address(),
                {.operation_timeout = operation_timeout, .connect_timeout = 1min, .connections = 1}}
    {
        mutex m{redis, "before"};
        m.lock();
        m.extend(30s);
        m.unlock();
        mutex bare{redis, "before", {.fencing = false}};
        bare.lock();
        CHECK_FALSE(bare.try_lock());
    }
};

/// A holder whose release was not answered in time and is held on its way, and a rival that waits for the end of its
/// lease.
struct held_back {
    redis_server server;
    proxy way{server.port()};
    client redis{way.url(), {.operation_timeout = 2s, .connect_timeout = 1min}};
    client elsewhere{server.url(), unhurried()};
    mutex m{redis, "orders", {.ttl = 10s, .renew = false}};
    mutex rival{elsewhere, "orders"};

    held_back()
    {
        m.lock();
        way.hold(containing("orders"));
        std::error_code ec;
        m.unlock(ec);
        CHECK(ec);
    }

    /// Effects: requires that the rival has the lock, and frees it.
    void check_rival_has_it()
    {
        CHECK(rival.lease().still_held());
        CHECK(exists(server, "orders"));
        std::error_code ec;
        rival.unlock(ec);
        CHECK_FALSE(ec);
    }
};

void check_held_once(faulty& f, bool fencing)
{
    mutex m{f.redis, "orders", {.ttl = 1h, .fencing = fencing}};
    mutex beside{f.redis, "orders", {.ttl = 1h}};
    REQUIRE(m.try_lock_for(1min));
    CHECK(f.way.struck() == 1);
    CHECK(exists(f.server, "orders"));
    CHECK_FALSE(beside.try_lock());
    std::error_code ec;
    m.unlock(ec);
    CHECK_FALSE(ec);
    CHECK_FALSE(exists(f.server, "orders"));
    CHECK(beside.try_lock());
}

/// Effects: lets the requests go that the proxy has held, of which there must be some, and waits until they have come
/// to the server.
void let_go_late(redis_server& server, proxy& way)
{
    auto const before = holdfast::test::lock_requests(server);
    CHECK(way.held() > 0);
    way.let_go();
    CHECK(eventually([&] { return holdfast::test::lock_requests(server) > before; }));
    way.heal();
}

}  // namespace

TEST_CASE("an acquire whose reply is lost is held once and one unlock frees it", "[lesson-1]")
{
    auto const then = GENERATE(aftermath::reset, aftermath::silence);
    bool const fencing = GENERATE(true, false);
    CAPTURE(then == aftermath::reset, fencing);
    faulty f{waited_out};
    f.way.swallow_next_reply({.matches = containing("orders"), .then = then});
    check_held_once(f, fencing);
}

TEST_CASE("an acquire of a user without rights to the queue whose reply is lost is held once", "[lesson-1]")
{
    bool const once = GENERATE(true, false);
    CAPTURE(once);
    faulty f{waited_out, {holdfast::test::least_rights("secret", "before orders*", {}, false)}, "app:secret@"};
    int held = 0;
    for (int i = 0; i < 5; ++i) {
        auto const name = "orders/" + std::to_string(i);  // of its own: no attempt comes early
        mutex m{f.redis, name, {.ttl = 1h}};
        f.way.swallow_next_reply({.matches = containing("orders")});
        if (once ? m.try_lock() : m.try_lock_for(1min)) ++held;
        // Whatever is sent again behind the answer comes before an extension.
        std::error_code ec;
        if (m.lease().still_held()) CHECK(m.extend(1h, ec));
        CHECK(exists(f.server, name) == m.lease().still_held());
        m.unlock(ec);
        CHECK_FALSE(ec);
        CHECK_FALSE(exists(f.server, name));
        f.way.heal();
    }
    CHECK(held == 5);
}

TEST_CASE("an acquire that is lost on the way is sent again", "[lesson-1]")
{
    auto const then = GENERATE(aftermath::reset, aftermath::silence);
    bool const fencing = GENERATE(true, false);
    CAPTURE(then == aftermath::reset, fencing);
    faulty f{waited_out};
    f.way.drop_next_request({.matches = containing("orders"), .then = then});
    check_held_once(f, fencing);
}

TEST_CASE("a connection cut in the middle of a reply counts for nothing")
{
    auto const passed = GENERATE(std::size_t{1}, std::size_t{4}, std::size_t{10});
    bool const fencing = GENERATE(true, false);
    CAPTURE(passed, fencing);
    faulty f;
    f.way.cut_mid_reply(passed, {.matches = containing("orders")});
    check_held_once(f, fencing);
}

TEST_CASE("a single attempt whose reply is lost for good leaves nothing behind", "[lesson-2]")
{
    bool const fencing = GENERATE(true, false);
    faulty f{waited_out};
    f.way.swallow_next_reply({.matches = containing("orders"), .times = 2, .then = aftermath::silence});
    mutex m{f.redis, "orders", {.ttl = 1h, .fencing = fencing}};
    try {
        if (m.try_lock()) m.unlock();
    } catch (holdfast::error const& e) {
        CHECK(e.code() == errc::unavailable);
    }
    CHECK_FALSE(m.lease().still_held());
    mutex other{f.redis, "invoices"};
    CHECK(other.try_lock_for(1min));  // the next connection rolls back
    CHECK(eventually([&] { return !exists(f.server, "orders"); }));
}

TEST_CASE("an acquire whose reply is spoilt is held once and one unlock frees it")
{
    bool const fencing = GENERATE(true, false);
    auto const* const spoilt = GENERATE("HTTP/1.1 400 Bad Request\r\n\r\n", "+OK?\r\n", "$-7\r\n");
    CAPTURE(fencing, spoilt);
    faulty f;
    f.way.spoil_next_reply(spoilt, {.matches = containing("orders")});
    mutex m{f.redis, "orders", {.ttl = 1h, .fencing = fencing}};
    CHECK(m.try_lock());
    CHECK(f.way.struck() == 1);
    std::error_code ec;
    m.unlock(ec);
    CHECK_FALSE(ec);
    CHECK_FALSE(exists(f.server, "orders"));
}

TEST_CASE(
    "a roll-back that was kept for longer than the operation timeout does not make its new connection a stale one")
{
    constexpr auto operation_timeout = 8s;  // as long as the machine may stand still while the other lock is taken
    faulty f{operation_timeout};
    f.way.swallow_next_reply({.matches = containing("orders"), .then = aftermath::refuse});
    mutex m{f.redis, "orders", {.ttl = 1h}};
    CHECK(code_of([&] { (void)m.try_lock(); }) == errc::unavailable);
    std::this_thread::sleep_for(operation_timeout + 100ms);
    CHECK(exists(f.server, "orders"));
    auto const connections = f.way.connections();
    f.way.delay(0us, 500ms);
    f.way.pass();
    mutex other{f.redis, "invoices", {.ttl = 1h}};
    std::stop_source stop;
    auto locking = std::async(std::launch::async, [&] { return other.lock(stop.get_token()); });
    REQUIRE(eventually([&] { return exists(f.server, "invoices"); }));
    stop.request_stop();
    if (locking.get()) other.unlock();
    CHECK(eventually([&] { return !exists(f.server, "invoices"); }));
    CHECK_FALSE(exists(f.server, "orders"));
    CHECK(f.way.connections() == connections + 1);
}

TEST_CASE("a release that the server refuses for now is repeated when it answers again")
{
    auto const* const refusal =
        GENERATE("-LOADING Redis is loading the dataset in memory\r\n", "-BUSY Redis is busy running a script.\r\n",
                 "-MASTERDOWN Link with MASTER is down.\r\n", "-ERR max number of clients reached\r\n");
    bool const rolled_back = GENERATE(true, false);
    CAPTURE(refusal, rolled_back);
    faulty f;
    mutex m{f.redis, "orders", {.ttl = 1h}};
    mutex other{f.redis, "invoices"};
    if (rolled_back) {
        f.way.swallow_next_reply({.matches = containing("orders")});
        f.way.answer_next_request(refusal, {.matches = containing("orders"), .times = 1000});
        CHECK(code_of([&] { (void)m.try_lock(); }) == errc::unavailable);
    } else {
        m.lock();
        f.way.answer_next_request(refusal, {.matches = containing("orders"), .times = 1000});
        std::error_code ec;
        m.unlock(ec);
        CHECK(ec == errc::unavailable);
    }
    CHECK(eventually([&] { return exists(f.server, "orders"); }));
    if (!std::string{refusal}.starts_with(
            "-MASTERDOWN")) {  // that ends the connection, and grants no other lock either
        CHECK(other.try_lock());
        other.unlock();
        CHECK(exists(f.server, "orders"));
    }
    f.way.heal();
    CHECK(eventually([&] {
        bool got = false;
        return !code_of([&] { got = other.try_lock(); }) && got;
    }));
    CHECK(eventually([&] { return !exists(f.server, "orders"); }));
}

TEST_CASE("a server that refuses releases for now is not stormed with them, and gets all of them when it answers one")
{
    faulty f;
    auto const begun = boot_clock::now();
    std::list<mutex> many;
    for (int i = 0; i < 8; ++i)
        many.emplace_back(f.redis, "orders/" + std::to_string(i), holdfast::lock_options{.ttl = 1h}).lock();
    f.way.answer_next_request("-LOADING Redis is loading the dataset in memory\r\n",
                              {.matches = containing("orders"), .times = 1000});
    for (auto& m : many) {
        std::error_code ec;
        m.unlock(ec);
        CHECK(ec == errc::unavailable);
    }
    mutex other{f.redis, "invoices"};
    CHECK(other.try_lock());
    CHECK(eventually([&] { return f.way.struck() >= 8 + 2; }));
    auto const again = f.way.struck() - 8;
    CHECK(again <= 1 + (boot_clock::now() - begun) / 450ms);
    f.way.heal();
    CHECK(eventually([&] { return f.server.command({"KEYS", "orders*"}).elements.empty(); }));
}

TEST_CASE("a lock whose release was refused for now can be taken by its client as soon as the server answers again")
{
    faulty f;
    std::list<mutex> all;
    for (auto const* const name : {"orders/1", "orders/2", "orders/3"})
        all.emplace_back(f.redis, name, holdfast::lock_options{.ttl = 1h}).lock();
    f.way.answer_next_request("-LOADING Redis is loading the dataset in memory\r\n",
                              {.matches = containing("orders"), .times = 1000});
    for (auto& m : all) {
        std::error_code ec;
        m.unlock(ec);
        CHECK(ec == errc::unavailable);
    }
    f.way.heal();
    mutex again{f.redis, "orders/3", {.ttl = 1h}};
    CHECK(again.try_lock());
}

TEST_CASE("a release that was refused for now does not free what is acquired with its token again")
{
    faulty f;
    f.way.swallow_next_reply({.matches = containing("orders")});
    f.way.answer_next_request("-LOADING Redis is loading the dataset in memory\r\n", {.matches = containing("orders")});
    mutex m{f.redis, "orders", {.ttl = 1h, .renew = false}};
    mutex other{f.redis, "invoices"};
    REQUIRE(m.try_lock_for(1min));
    CHECK(f.way.struck() == 2);
    for (int i = 0; i < 3; ++i) {
        CHECK(other.try_lock_for(1min));
        other.unlock();
    }
    CHECK(m.lease().still_held());
    CHECK(exists(f.server, "orders"));
    std::error_code ec;
    m.unlock(ec);
    CHECK_FALSE(ec);
}

TEST_CASE("a release whose reply is lost or spoilt is repeated and freed the lock", "[lesson-17]")
{
    auto const lost = GENERATE(0, 1, 2);
    CAPTURE(lost);
    faulty f;
    mutex m{f.redis, "orders", {.ttl = 1h}};
    m.lock();
    if (lost == 0)
        f.way.swallow_next_reply({.matches = containing("orders")});
    else if (lost == 1)
        f.way.drop_next_request({.matches = containing("orders")});
    else
        f.way.answer_next_request("HTTP/1.1 400 Bad Request\r\n\r\n", {.matches = containing("orders")});
    std::error_code ec;
    m.unlock(ec);
    CHECK_FALSE(ec);
    CHECK(f.way.struck() == 1);
    CHECK_FALSE(exists(f.server, "orders"));
}

TEST_CASE("a release that came late frees no successor", "[lesson-17]")
{
    held_back h;
    h.rival.lock();
    let_go_late(h.server, h.way);
    mutex probe{h.redis, "invoices"};
    CHECK(probe.try_lock_for(1min));
    h.check_rival_has_it();
}

TEST_CASE("a second release, after one that failed, leaves a successor alone, and the lock can be taken again",
          "[lesson-17]")
{
    held_back h;
    h.way.heal();
    h.rival.lock();
    std::error_code ec;
    h.m.unlock(ec);
    CHECK(ec == errc::not_owner);
    h.m.unlock();
    h.check_rival_has_it();
    CHECK(h.m.try_lock_for(1min));
}

TEST_CASE("a renewal that came late does not prolong the lease of a successor", "[lesson-10]")
{
    redis_server server;
    proxy way{server.port()};
    client redis{way.url(), {.operation_timeout = 2s, .connect_timeout = 1min}};
    client elsewhere{server.url(), unhurried()};
    mutex m{redis, "orders", {.ttl = 9s}};
    mutex rival{elsewhere, "orders", {.ttl = 1h}};
    REQUIRE(eventually([&] {
        m.lock();
        auto const lease = m.lease();
        way.hold(containing("orders"));
        if (eventually([&] { return way.held() > 0 || !lease.still_held(); }) && way.held() > 0) {
            rival.lock();
            CHECK_FALSE(lease.still_held());
            return true;
        }
        way.let_go();  // it was over before it was to be renewed: once more
        way.heal();
        m.unlock();
        return false;
    }));
    let_go_late(server, way);
    mutex probe{redis, "invoices"};
    CHECK(probe.try_lock_for(1min));
    CHECK(rival.lease().still_held());
    CHECK(server.command({"PTTL", "orders"}).integer > 3'000'000);
}

TEST_CASE("a renewal that was under way when unlock began is not sent again over the next connection", "[lesson-8]")
{
    redis_server server;
    proxy way{server.port()};
    client redis{way.url(), {.operation_timeout = 10s, .connect_timeout = 1min}};
    mutex m{redis, "orders", {.ttl = 30s}};
    std::atomic<int> renewals{0};
    way.hold([&](std::string_view request) {
        auto const& script = holdfast::redis::scripts::extend_and_hear;
        bool const renewal = request.find(script.sha1) != std::string_view::npos ||
                             request.find(script.text()) != std::string_view::npos;
        if (renewal) ++renewals;
        return renewal;
    });
    m.lock();
    REQUIRE(eventually([&] { return way.held() == 1; }));
    auto const requests = way.requests();
    std::error_code ec;
    auto released = std::async(std::launch::async, [&] { m.unlock(ec); });
    CHECK(eventually([&] { return way.requests() > requests; }));
    way.cut_all();
    released.get();
    CHECK_FALSE(ec);
    CHECK_FALSE(exists(server, "orders"));
    CHECK(renewals == 1);
}

TEST_CASE("a request for a shorter lease that arrives late does not cut a longer one")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders", {.ttl = 1h, .renew = false}};
    m.lock();
    auto const token = server.command({"GET", "orders"}).text;
    auto const late =
        server.command({"EVAL", holdfast::redis::scripts::extend.text(), "1", "orders", token, "1000"});
    CHECK(late.integer == 1);
    CHECK(server.command({"PTTL", "orders"}).integer > 3'000'000);
}

TEST_CASE("a shorter lease counts from the moment it is asked for, also where the answer is lost")
{
    faulty f{waited_out};
    client elsewhere{f.server.url(), unhurried()};
    mutex m{f.redis, "orders", {.ttl = 1h, .renew = false}};
    mutex rival{elsewhere, "orders"};
    m.lock();
    auto const lease = m.lease();
    f.way.swallow_next_reply({.matches = containing("orders"), .times = 5, .then = aftermath::silence});
    std::error_code ec;
    CHECK_FALSE(m.extend(2 * waited_out, ec));
    CHECK(ec);
    CHECK(eventually([&] { return !lease.still_held(); }));
    m.unlock();
    CHECK(rival.try_lock_for(1min));
}
