// SPDX-License-Identifier: MIT
//
// What operators ask of several masters: what a majority says.
#include "masters.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"

#include <holdfast/redlock.hpp>
#include <holdfast/shared_mutex.hpp>

#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::redlock::shared_mutex;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::five_masters;

namespace {

masters named(five_masters const& all, std::string label)
{
    auto options = five_masters::options();
    options.label = std::move(label);
    return masters{all.servers.urls(), options};
}

}  // namespace

TEST_CASE("with a minority of the masters down, holders are shown, listed, asked and broken")
{
    five_masters all;
    auto client = named(all, "holder");
    mutex m{client, "orders", {.ttl = 1h}};
    REQUIRE(all.lock_on_all(m, "orders"));
    all.servers.kill(0);
    all.servers.kill(3);
    auto const seen = all.client.holder("orders");
    REQUIRE(seen);
    CHECK(seen->label == "holder");
    CHECK(seen->fencing_token == 0);  // a master that is down may have granted it with a greater one
    CHECK(seen->remaining.value() > 30min);
    CHECK(all.client.list("ord") == std::vector<std::string>{"orders"});
    CHECK(all.client.request_release("orders"));
    m.extend(2h);
    CHECK(m.lease().release_requested().stop_requested());
    CHECK(all.client.force_unlock("orders"));
    CHECK_FALSE(all.client.holder("orders"));
    std::error_code ec;
    CHECK_FALSE(m.extend(1h, ec));
    CHECK(ec == holdfast::errc::lease_lost);
    auto const token = m.lease().fencing_token();
    m.unlock();
    mutex next{all.client, "orders", {.ttl = 1h}};
    next.lock();
    CHECK(next.lease().fencing_token() > token);
}

TEST_CASE("with a majority of the masters down, nothing is said of a lock")
{
    five_masters all;
    auto client = named(all, "holder");
    mutex m{client, "orders", {.ttl = 1h}};
    REQUIRE(all.lock_on_all(m, "orders"));
    for (std::size_t const i : {0U, 1U, 2U}) all.servers.kill(i);
    std::error_code ec;
    CHECK_FALSE(all.client.holder("orders", ec));
    CHECK(ec == holdfast::errc::unavailable);
    CHECK(all.client.list("orders", ec).empty());
    CHECK(ec == holdfast::errc::unavailable);
    CHECK_FALSE(all.client.request_release("orders", ec));
    CHECK(ec == holdfast::errc::unavailable);
    CHECK_FALSE(all.client.force_unlock("orders", ec));
    CHECK(ec == holdfast::errc::outcome_unknown);  // the other two have done it
    for (std::size_t const i : {3U, 4U}) CHECK(all.servers[i].command({"EXISTS", "orders"}).integer == 0);
    CHECK_FALSE(all.client.force_unlock("orders", ec));
    CHECK(ec == holdfast::errc::unavailable);  // there is nothing on them any more
}

TEST_CASE("a request of which no majority has heard is undecided, not impossible, if a silent master could decide it")
{
    five_masters all;
    auto client = named(all, "holder");
    mutex m{client, "orders", {.ttl = 1h}};
    REQUIRE(all.lock_on_all(m, "orders"));
    for (std::size_t const i : {3U, 4U}) all.servers[i].command({"DEL", "orders"});
    all.servers.kill(2);
    std::error_code ec;
    CHECK_FALSE(all.client.request_release("orders", ec));
    CHECK(ec == holdfast::errc::unavailable);
    CHECK_THROWS_WITH(all.client.request_release("orders"), contains("undecided"));
}

TEST_CASE("a lock is broken although another value stands in its place on a minority of the masters")
{
    five_masters all;
    auto client = named(all, "holder");
    mutex m{client, "orders", {.ttl = 1h}};
    REQUIRE(all.lock_on_all(m, "orders"));
    for (std::size_t const i : {3U, 4U}) {
        all.servers[i].command({"DEL", "orders"});
        all.servers[i].command({"RPUSH", "orders", "1"});
    }
    CHECK(all.client.force_unlock("orders"));
    for (std::size_t const i : {0U, 1U, 2U}) CHECK(all.servers[i].command({"EXISTS", "orders"}).integer == 0);
    for (std::size_t const i : {3U, 4U}) CHECK(all.servers[i].command({"LLEN", "orders"}).integer == 1);
    std::error_code ec;
    CHECK_FALSE(all.client.force_unlock("orders", ec));
    CHECK(ec == holdfast::errc::misconfigured);
}

TEST_CASE("votes that no majority agrees to are a free lock, or undecided if a master is silent that could decide")
{
    five_masters all;
    auto const put = [&](std::size_t i, char owner) {
        all.servers[i].command({"SET", "orders", std::string(32, owner), "PX", "3600000"});
    };
    put(0, 'a');
    put(1, 'a');
    put(2, 'b');
    CHECK_FALSE(all.client.holder("orders"));
    CHECK(all.client.list("orders").empty() == false);  // of three masters, whoever has them
    all.servers.kill(4);
    std::error_code ec;
    CHECK_FALSE(all.client.holder("orders", ec));
    CHECK(ec == holdfast::errc::unavailable);
    CHECK_THROWS_WITH(all.client.holder("orders"), contains("undecided"));
    put(3, 'a');
    CHECK(all.client.holder("orders"));
    all.servers.kill(2);
    CHECK(all.client.holder("orders"));
}

TEST_CASE("with a minority of the masters down, a writer is shown, asked and broken")
{
    five_masters all;
    auto client = named(all, "writer");
    shared_mutex m{client, "orders", {.ttl = 1h}};
    all.servers.kill(0);
    all.servers.kill(3);
    m.lock();
    auto const seen = all.client.holder("orders");
    REQUIRE(seen);
    CHECK(seen->label == "writer");
    CHECK(seen->remaining.value() > 30min);
    CHECK(all.client.request_release("orders"));
    m.extend(2h);
    CHECK(m.lease().release_requested().stop_requested());
    CHECK(all.client.force_unlock("orders"));
    CHECK_FALSE(all.client.holder("orders"));
    CHECK(all.copies("holdfast:holder:{orders}") == 0);
    std::error_code ec;
    CHECK_FALSE(m.extend(1h, ec));
    CHECK(ec == holdfast::errc::lease_lost);
}

TEST_CASE("a writer that had to wait is shown")
{
    five_masters all;
    auto client = named(all, "writer");
    shared_mutex m{client, "orders", {.ttl = 1h}};
    shared_mutex before{all.client, "orders", {.ttl = 1h}};
    before.lock();
    std::thread waiting{[&] { m.lock(); }};
    CHECK(eventually([&] { return all.copies("holdfast:queue:{orders}") >= 3; }));
    before.unlock();
    waiting.join();
    auto const seen = all.client.holder("orders");
    REQUIRE(seen);
    CHECK(seen->label == "writer");
    m.unlock();
    CHECK(all.copies("orders") == 0);
    CHECK(all.copies("holdfast:holder:{orders}") == 0);
}

TEST_CASE("with a minority of the masters down, one of the readers is shown, and all are asked and broken")
{
    five_masters all;
    auto one = named(all, "one");
    auto two = named(all, "two");
    shared_mutex first{one, "orders", {.ttl = 1h}};
    shared_mutex second{two, "orders", {.ttl = 1h}};
    all.servers.kill(0);
    all.servers.kill(3);
    first.lock_shared();
    CHECK(all.client.holder("orders").value().label == "one");
    second.lock_shared();
    auto const label = all.client.holder("orders").value().label;
    CHECK((label == "one" || label == "two"));
    CHECK(all.client.request_release("orders"));
    CHECK(all.client.holder("orders").value().release_requested);
    std::error_code ec;
    for (auto* const m : {&first, &second}) {
        CHECK(m->extend_shared(2h, ec));
        CHECK(m->lease_shared().release_requested().stop_requested());
    }
    first.unlock_shared();
    CHECK(eventually([&] { return all.client.holder("orders").value().label == "two"; }));
    CHECK(all.client.force_unlock("orders"));
    CHECK_FALSE(all.client.holder("orders"));
    CHECK_FALSE(second.extend_shared(1h, ec));
    CHECK(ec == holdfast::errc::lease_lost);
    second.unlock_shared();
    shared_mutex next{all.client, "orders", {.ttl = 1h}};
    CHECK(next.try_lock_for(1min));
}

TEST_CASE("of readers that the masters do not agree on, the one is shown that most of them name")
{
    five_masters all;
    auto const put = [&](std::size_t i, char owner, std::string const& about) {
        std::string const token(32, owner);
        all.servers[i].command({"SET", "orders", "holdfast:readers", "PX", "3600000"});
        all.servers[i].command({"ZADD", "holdfast:readers:{orders}", "9000000000000", token});
        auto const digest = all.servers[i].command({"EVAL", "return redis.sha1hex(ARGV[1])", "0", token}).text;
        all.servers[i].command({"SET", "holdfast:holder:{orders}:" + digest, token + about, "PX", "3600000"});
    };
    put(0, 'a', " 5 7 host=far pid=1 label=one");
    put(1, 'b', "!6 8 host=near pid=2 label=two");
    put(2, 'a', " 5 7 host=far pid=1 label=one");
    put(3, 'b', "!6 8 host=near pid=2 label=two");
    put(4, 'b', "!6 8 host=near pid=2 label=two");
    auto const seen = all.client.holder("orders");
    REQUIRE(seen);
    CHECK(seen->label == "two");
    CHECK(seen->host == "near");
    CHECK(seen->pid == 2);
    CHECK(seen->fencing_token == 0);  // not all masters say the same
    CHECK(seen->release_requested);
}

TEST_CASE("a lock that was broken is lost although its renewals take back votes")
{
    five_masters all;
    auto client = named(all, "holder");
    for (int i = 0; i < 20; ++i) {
        mutex m{client, "orders", {.ttl = 1h}};
        m.lock();
        std::jthread renewing{[&](std::stop_token const& stop) {
            std::error_code ec;
            while (!stop.stop_requested() && m.extend(1h, ec)) {
            }
        }};
        CHECK(eventually([&] {  // one that is under way takes it back, as it may
            static_cast<void>(all.client.force_unlock("orders"));
            return !m.lease().still_held();
        }));
        renewing.request_stop();
        renewing.join();
        m.unlock();
        CHECK(eventually([&] { return !all.client.holder("orders"); }));
    }
}
