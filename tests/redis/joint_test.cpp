// SPDX-License-Identifier: MIT
//
// Several locks by one request: the script, its words, and what `multi_mutex` makes of it.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/philosophers.hpp"
#include "support/proxy.hpp"
#include "support/redis_rights.hpp"
#include "support/redis_server.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redis/protocol.hpp>
#include <holdfast/redis/script_table.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::multi_mutex;
using holdfast::redis::client;
using holdfast::redis::command;
using holdfast::redis::mutex;
using holdfast::test::code_of;
using holdfast::test::containing;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::proxy;
using holdfast::test::redis_server;
using holdfast::test::reply;
using holdfast::test::unhurried;
namespace scripts = holdfast::redis::scripts;
using texts = std::vector<std::string>;

namespace {

/// An attempt so long after its client's own release does not count as early.
constexpr auto not_early = 6ms;

std::string const token_a(32, 'a');
std::string const token_b(32, 'b');

/// The script on a server, for the locks `a` and `b`.
struct on_server {
    redis_server server;

    reply take(std::string const& batch = "1", std::string const& text = "")
    {
        texts words{"EVAL", scripts::acquire_all.text(), text.empty() ? "8" : "10"};
        for (auto const* const name : {"a", "b"})
            for (auto const* const kind : {"", "fence:", "queue:", "next:", "holder:"})
                if (kind != std::string{"holder:"} || !text.empty()) words.push_back(std::string{kind} + name);
        for (auto const& one : texts{"3600000", "86400000000", text, token_a, "60000", batch, token_b, "30000", batch})
            words.push_back(one);
        return server.command(words);
    }

    /// Returns: whether the script takes nothing because of the lock at `place`, and writes nothing.
    [[nodiscard]] bool refuses(long long place)
    {
        auto const before = keys();
        auto const got = take();
        INFO(got);
        return got.elements.size() == 2 && got.elements[0].integer == -place && keys() == before;
    }

    [[nodiscard]] texts keys()
    {
        texts all;
        for (auto const& one : server.command({"KEYS", "*"}).elements) all.push_back(one.text);
        std::sort(all.begin(), all.end());
        return all;
    }
    [[nodiscard]] std::string get(std::string const& key) { return server.command({"GET", key}).text; }
    [[nodiscard]] long long pttl(std::string const& key) { return server.command({"PTTL", key}).integer; }
};

/// Locks of a client behind a proxy, and those of another client.
struct shop {
    redis_server server;
    proxy way{server.port()};
    client redis;
    client elsewhere{server.url(), unhurried()};
    mutex orders{redis, "orders", {.ttl = 1h}};
    mutex parcels{redis, "parcels", {.ttl = 1h, .fencing = false}};
    mutex stock{redis, "stock", {.ttl = 2h}};
    mutex their_orders{elsewhere, "orders", {.ttl = 1h}};
    mutex their_stock{elsewhere, "stock", {.ttl = 1h}};
    multi_mutex all{stock, orders, parcels};

    explicit shop(std::chrono::milliseconds operation_timeout = 1min)
        : redis{way.url(), {.operation_timeout = operation_timeout, .connect_timeout = 1min, .connections = 2}}
    {
        all.lock();  // connected; the server knows the scripts
        all.unlock();
    }

    [[nodiscard]] bool nothing_is_left()
    {
        return eventually(
            [&] { return !exists(server, "orders") && !exists(server, "parcels") && !exists(server, "stock"); });
    }
};

}  // namespace

TEST_CASE("acquire_all is called by the SHA-1 of its text")
{
    redis_server server;
    auto const& s = scripts::acquire_all;
    CHECK(server.command({"SCRIPT", "LOAD", s.text()}).text == s.sha1);
}

TEST_CASE("acquire_all says the keys of each lock, then its token, ttl and batch; its answer counts as a whole or not")
{
    using holdfast::redis::answer;
    command c{.what = command::verb::acquire_all, .keys = nullptr, .token = {}};
    auto members = std::make_shared<std::vector<holdfast::redis::joint_member>>();
    for (auto const* const name : {"orders", "stock"})
        members->push_back({std::make_shared<holdfast::redis::lock_keys const>(name),
                            holdfast::owner_token::from_bits(1, members->size()), 30s, members->empty() ? 33U : 0U});
    c.keys = members->front().keys;
    c.members = members;
    auto const said = [&] {
        holdfast::redis::request made;
        holdfast::redis::encode(made, c, holdfast::redis::script_form::by_hash);
        texts words;
        std::string line;
        for (std::istringstream in{std::string{made.bytes()}}; std::getline(in, line);)
            if (line.front() != '$' && line.front() != '*') words.push_back(line.substr(0, line.size() - 1));
        return words;
    };
    texts const expected{"EVALSHA",
                         std::string{scripts::acquire_all.sha1},
                         "8",
                         "orders",
                         "holdfast:fence:{orders}",
                         "holdfast:queue:{orders}",
                         "holdfast:next:{orders}",
                         "stock",
                         "holdfast:fence:{stock}",
                         "holdfast:queue:{stock}",
                         "holdfast:next:{stock}",
                         "3600000",
                         "86400000000",
                         "",
                         std::string{members->front().token.view()},
                         "30000",
                         "33",
                         std::string{members->back().token.view()},
                         "30000",
                         "0"};
    CHECK(said() == expected);
    c.holder = "host=h pid=1";
    c.use_holder = true;
    CHECK(said().at(2) == "10");
    CHECK(said().at(7) == "holdfast:holder:{orders}");
    CHECK(said().at(15) == "host=h pid=1");

    auto const decoded = [&](std::string const& text) {
        holdfast::redis::reply_reader reader;
        REQUIRE(reader.feed(text));
        return holdfast::redis::decode(c, reader.next()->get());
    };
    auto const yes = decoded("*2\r\n:77\r\n:0\r\n");
    CHECK(yes.what == answer::kind::applied);
    CHECK(yes.report->fences == std::vector<std::uint64_t>{77, 0});
    auto const no = decoded("*2\r\n:-2\r\n:1500\r\n");
    CHECK(no.what == answer::kind::refused);
    CHECK(no.report->blocker == 1);
    CHECK(no.time_left == 1500ms);
    for (auto const* const wrong : {"*0\r\n", ":1\r\n", "*1\r\n:77\r\n", "*2\r\n:0\r\n:0\r\n", "*2\r\n:77\r\n:78\r\n",
                                    "*2\r\n:77\r\n$1\r\n0\r\n", "*2\r\n:-3\r\n:0\r\n", "*1\r\n:-1\r\n",
                                    "*3\r\n:77\r\n:0\r\n:0\r\n", "*2\r\n:-9223372036854775808\r\n:0\r\n"}) {
        INFO(wrong);
        CHECK(decoded(wrong).error == holdfast::redis::errc::protocol_error);
        CHECK(decoded(wrong).what == answer::kind::unknown);  // it may have been done
    }
}

TEST_CASE("acquire_all takes all that are free, each for its token and its time, with fences that increase")
{
    on_server s;
    std::uint64_t last = 0;
    for (int i = 0; i < 3; ++i) {
        auto const got = s.take("33");
        INFO(got);
        REQUIRE(got.elements.size() == 2);
        CHECK(static_cast<std::uint64_t>(got.elements[0].integer) >= last + 33);
        last = static_cast<std::uint64_t>(got.elements[0].integer);
        CHECK(s.get("fence:a") == std::to_string(last));
        CHECK(s.get("fence:b") == std::to_string(got.elements[1].integer));
        CHECK(s.get("a") == token_a);
        CHECK(s.get("b") == token_b);
        CHECK(s.pttl("a") > 50'000);
        CHECK(s.pttl("b") <= 30'000);
        s.server.command({"DEL", "a", "b"});
    }
    CHECK(s.take("0").elements.at(1).integer == 0);  // without fences
    CHECK(s.get("fence:a") == std::to_string(last));
}

TEST_CASE("acquire_all takes none if one is held, wanted by others or reserved, or its fence is foreign")
{
    on_server s;
    CHECK(s.take().elements.at(0).integer > 0);
    s.server.command({"DEL", "a"});
    CHECK(s.refuses(2));
    s.server.command({"DEL", "b"});
    s.server.command({"SET", "a", "", "PX", "5000"});  // of another client
    CHECK(s.refuses(1));
    CHECK(s.take().elements.at(1).integer > 0);  // its time
    s.server.command({"DEL", "a"});
    s.server.command({"LPUSH", "a", "x"});
    CHECK(s.refuses(1));
    s.server.command({"DEL", "a"});
    s.server.command({"ZADD", "queue:b", "1", "waiter"});
    CHECK(s.refuses(2));
    s.server.command({"DEL", "queue:b"});
    CHECK(eventually([&] {  // before the reservation is over
        s.server.command({"SET", "next:a", "waiter", "PX", "1000"});
        return s.refuses(1);
    }));
    s.server.command({"DEL", "next:a"});
    for (auto const* const foreign : {"", "x", "99999999999999999", "9999999999999999"}) {
        s.server.command({"SET", "fence:b", foreign});
        CHECK(s.refuses(2));
    }
    s.server.command({"DEL", "fence:b"});
    CHECK(s.take().elements.at(0).integer > 0);
}

TEST_CASE("acquire_all does not believe a reservation that is longer than any, as an acquire does not")
{
    on_server s;
    bool const lasts = GENERATE(true, false);
    s.server.command({"SET", "next:a", "waiter"});
    if (lasts) s.server.command({"PEXPIRE", "next:a", "600000"});
    CHECK(s.take().elements.at(0).integer > 0);
    CHECK(s.get("a") == token_a);
    CHECK(s.get("b") == token_b);
}

TEST_CASE("acquire_all leaves a record of the holder with each lock, if it is given one")
{
    on_server s;
    auto const got = s.take("3", "host=h pid=1");
    INFO(got);
    REQUIRE(got.elements.size() == 2);
    auto const record = s.get("holder:b");
    CHECK(record.substr(0, 33) == token_b + ' ');
    CHECK_THAT(record, holdfast::test::contains(' ' + std::to_string(got.elements[1].integer - 2) + " host=h pid=1"));
    CHECK(s.pttl("holder:b") <= 30'000);
}

TEST_CASE("several locks of one client that are free are taken by one request, each with a token of its own")
{
    shop s;
    for (int i = 0; i < 3; ++i) {
        auto const asked = s.way.count(containing("EVAL"));
        auto const before = holdfast::boot_clock::now();
        s.all.lock();
        CHECK(asked() == 1);
        CHECK(s.server.command({"GET", "orders"}).text != s.server.command({"GET", "stock"}).text);
        CHECK(s.all.lease_of(s.stock).fencing_token() > 0);
        CHECK(s.all.lease_of(s.parcels).fencing_token() == 0);
        CHECK(s.all.lease().still_held());
        CHECK(s.all.lease_of(s.stock).expires_at() > before + 1h);  // each for its own ttl
        CHECK(s.all.lease_of(s.orders).expires_at() < holdfast::boot_clock::now() + 1h);
        CHECK_FALSE(s.their_stock.try_lock());
        s.all.unlock();
        CHECK(s.nothing_is_left());
        std::this_thread::sleep_for(not_early);
    }
    CHECK(s.redis.stats().acquired == 12);
}

TEST_CASE("a refusal of several locks names the one that is not free, and nothing was taken")
{
    shop s;
    CHECK(s.all.blocker().empty());
    CHECK_FALSE(s.all.blocker_remaining());
    auto const asked = s.way.count(containing("EVAL"));
    s.their_stock.lock();
    CHECK_FALSE(s.all.try_lock());
    CHECK(s.all.blocker() == "stock");
    CHECK(s.all.blocker_remaining() > 30min);
    CHECK(s.all.blocker_remaining() <= 1h);
    CHECK(asked() == 1);
    CHECK_FALSE(exists(s.server, "orders"));
    CHECK_FALSE(s.all.try_lock_for(10ms));
    CHECK(s.all.blocker() == "stock");
    CHECK(s.their_orders.try_lock());
    CHECK_FALSE(s.all.try_lock());
    CHECK(s.all.blocker() == "orders");
    s.their_orders.unlock();
    std::jthread releases{[&] { s.their_stock.unlock(); }};
    s.all.lock();  // in order
    CHECK(s.all.lease().still_held());
    s.all.unlock();
}

TEST_CASE("of a key that does not expire it is not said how long it refuses several locks")
{
    shop s;
    s.server.command({"SET", "stock", "theirs", "PX", "60000"});
    CHECK_FALSE(s.all.try_lock());
    CHECK(s.all.blocker_remaining() > 0s);
    CHECK(s.all.blocker_remaining() <= 1min);
    s.server.command({"SET", "stock", "theirs"});
    CHECK_FALSE(s.all.try_lock());
    CHECK(s.all.blocker() == "stock");
    CHECK_FALSE(s.all.blocker_remaining());
    s.server.command({"DEL", "stock"});
}

TEST_CASE("several locks are taken although one is reserved for longer than any is")
{
    shop s;
    s.server.command({"SET", "holdfast:next:{orders}", "0000000000000abc03e81", "PX", "600000"});
    CHECK(s.all.try_lock());
    s.all.unlock();
}

TEST_CASE("several locks of which another thread of this process has one are asked for when it is free")
{
    shop s;
    mutex same{s.redis, "stock", {.ttl = 1h}};
    same.lock();
    auto const asked = s.way.count(containing("EVAL"));
    CHECK_FALSE(s.all.try_lock());
    CHECK(s.all.blocker() == "stock");
    CHECK_FALSE(s.all.blocker_remaining());
    CHECK(asked() == 0);
    std::jthread releases{[&] { same.unlock(); }};
    s.all.lock();
    s.all.unlock();
    CHECK(s.nothing_is_left());
}

TEST_CASE("several locks whose grant is lost on the way are given back, and taken again")
{
    shop s{2s};
    s.way.swallow_next_reply({.matches = containing("orders")});
    s.all.lock();  // the connection broke: they are taken in order
    CHECK(s.all.lease().still_held());
    CHECK(s.way.struck() == 1);
    s.all.unlock();
    CHECK(s.nothing_is_left());
}

TEST_CASE("an attempt at several locks whose answer does not come gives all back")
{
    shop s{2s};
    s.way.swallow_next_reply({.matches = containing("orders"), .then = holdfast::test::aftermath::silence});
    CHECK(code_of([&] { static_cast<void>(s.all.try_lock()); }) == errc::unavailable);
    CHECK(s.orders.try_lock_for(1min));  // over a new connection, after what was to be given back
    s.orders.unlock();
    CHECK(s.nothing_is_left());
}

TEST_CASE("an attempt at several locks that is cancelled gives all back")
{
    shop s;
    s.way.hold(containing("orders"));
    std::stop_source stop;
    std::atomic<bool> got{true};
    std::jthread waits{[&] { got = s.all.lock(stop.get_token()); }};
    CHECK(eventually([&] { return s.way.held() > 0; }));
    stop.request_stop();
    waits.join();
    CHECK_FALSE(got);
    s.way.let_go();
    CHECK(s.nothing_is_left());
    CHECK(s.all.try_lock_for(1min));
}

TEST_CASE("an attempt at several locks of a server that is gone fails once")
{
    shop s;
    auto const before = s.redis.stats();
    s.way.refuse();
    CHECK(code_of([&] { static_cast<void>(s.all.try_lock()); }) == errc::unavailable);
    auto const stats = s.redis.stats();
    CHECK(stats.failed == before.failed + 1);
    CHECK(stats.timed_out == before.timed_out);
    s.way.pass();
    CHECK(eventually([&] {
        try {
            return s.all.try_lock_for(10s);
        } catch (holdfast::error const&) {
            return false;
        }
    }));
}

TEST_CASE(
    "an attempt at several locks, of which a thread of this process waits for one in an outage, fails as one does")
{
    shop s;
    s.way.refuse();
    std::stop_source stop;
    auto waits = std::async(std::launch::async, [&] { return s.stock.lock(stop.get_token()); });
    REQUIRE(eventually([&] { return s.redis.stats().waiting == 1; }));
    mutex same{s.redis, "stock", {.ttl = 1h}};
    REQUIRE(eventually([&] { return code_of([&] { static_cast<void>(same.try_lock()); }) == errc::unavailable; }));
    auto const before = s.redis.stats();
    CHECK(code_of([&] { static_cast<void>(s.all.try_lock()); }) == errc::unavailable);
    auto const stats = s.redis.stats();
    CHECK(stats.failed == before.failed + 1);
    CHECK(stats.canceled == before.canceled);
    stop.request_stop();
    CHECK_FALSE(waits.get());
}

TEST_CASE("a user without the rights for one request takes several locks in order, and does not ask again")
{
    redis_server server;
    server.command(
        {"ACL", "SETUSER", "app", "on", ">canary-of-several", "+@all", "&*", "~orders", "~stock", "~holdfast:fence:*"});
    proxy way{server.port()};
    client redis{"redis://app:canary-of-several@" + way.address(), unhurried()};
    mutex orders{redis, "orders", {.ttl = 1h}};
    mutex stock{redis, "stock", {.ttl = 1h}};
    multi_mutex both{orders, stock};
    both.lock();
    CHECK(both.lease().still_held());
    both.unlock();
    auto const asked = way.count(containing(std::string{scripts::acquire_all.sha1}));
    auto const as_text = way.count(containing("local each"));
    both.lock();
    CHECK(both.lease().still_held());
    both.unlock();
    CHECK(asked() + as_text() == 0);
}

TEST_CASE("a name that a user has no right to does not take from its client that others are asked for together")
{
    redis_server server{{.config = {holdfast::test::least_rights("secret", "orders stock")}}};
    proxy way{server.port()};
    client redis{"redis://app:secret@" + way.address(), unhurried()};
    mutex orders{redis, "orders", {.ttl = 1h}};
    mutex stock{redis, "stock", {.ttl = 1h}};
    mutex invoices{redis, "invoices", {.ttl = 1h}};
    multi_mutex allowed{orders, stock};
    multi_mutex with_another{orders, invoices};
    CHECK(code_of([&] { with_another.lock(); }) == errc::misconfigured);
    allowed.lock();
    allowed.unlock();
    std::this_thread::sleep_for(not_early);
    auto const asked = way.count(containing(std::string{scripts::acquire_all.sha1}));
    allowed.lock();
    CHECK(allowed.lease().still_held());
    allowed.unlock();
    CHECK(asked() == 1);
}

TEST_CASE("locks that are free, but in whose way is a queue or a fence of no number, are taken one by one")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex orders{redis, "orders", {.ttl = 1h}};
    mutex stock{redis, "stock", {.ttl = 1h}};
    multi_mutex both{orders, stock};
    both.lock();
    both.unlock();
    std::this_thread::sleep_for(not_early);
    bool const queue = GENERATE(true, false);
    if (queue)
        server.command({"ZADD", "holdfast:queue:{stock}", "1", std::string(21, '0')});
    else
        server.command({"SET", "holdfast:fence:{stock}", "x"});
    bool const once = GENERATE(true, false);
    bool got = false;
    CHECK_NOTHROW(got = once ? both.try_lock() : both.try_lock_for(1min));
    CHECK(got);
    CHECK(both.lease().still_held());
    both.unlock();
}

TEST_CASE("several locks leave a record of their holder, and are renewed one by one")
{
    redis_server server;
    auto options = unhurried();
    options.label = "billing";
    client redis{server.url(), options};
    mutex orders{redis, "orders", {.ttl = 1h}};
    mutex stock{redis, "stock", {.ttl = 1h}};
    multi_mutex both{orders, stock};
    both.lock();
    auto const who = redis.holder("stock");
    REQUIRE(who);
    CHECK(who->label == "billing");
    CHECK(who->fencing_token == both.lease_of(stock).fencing_token());
    both.extend(2h);
    CHECK(server.command({"PTTL", "orders"}).integer > 100 * 60 * 1000);
    CHECK(server.command({"PTTL", "stock"}).integer > 100 * 60 * 1000);
    both.unlock();
    CHECK_FALSE(redis.holder("stock"));
}

TEST_CASE("threads of one client that take several of its locks do not wait for each other in a circle")
{
    redis_server server;
    client const table{server.url()};
    CHECK(holdfast::test::dine(std::vector<holdfast::store>(5, table)));
}

TEST_CASE("of clients that take several locks of one server, no two have one together")
{
    redis_server server;
    std::atomic<int> inside{0};
    std::atomic<bool> alone{true};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            client redis{server.url(), unhurried()};
            mutex orders{redis, "orders", {.ttl = 1h}};
            mutex stock{redis, "stock", {.ttl = 1h}};
            multi_mutex both{orders, stock};
            for (int i = 0; i < 50; ++i) {
                std::scoped_lock hold{both};
                if (++inside != 1) alone = false;
                std::this_thread::yield();
                --inside;
            }
        });
    threads.clear();
    CHECK(alone);
}

TEST_CASE("more locks than one request takes are taken together all the same")
{
    constexpr std::size_t count = 257;
    redis_server server;
    client redis{server.url(), unhurried()};
    std::vector<std::unique_ptr<mutex>> all;
    std::vector<holdfast::mutex*> locks;
    for (std::size_t i = 0; i < count; ++i) {
        all.push_back(std::make_unique<mutex>(redis, "orders/" + std::to_string(i), holdfast::lock_options{.ttl = 1h}));
        locks.push_back(all.back().get());
    }
    multi_mutex together{locks};
    together.lock();
    CHECK(together.lease().still_held());
    CHECK(static_cast<std::size_t>(server.command({"EXISTS", "orders/0", "orders/255", "orders/256"}).integer) == 3);
    for (auto const& one : all) CHECK(one->lease().still_held());
    together.unlock();
    CHECK(server.command({"EXISTS", "orders/0", "orders/255", "orders/256"}).integer == 0);
}

TEST_CASE("of several locks that are given back, the one that is not ours any more is reported, by its own on_error")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    std::atomic<int> orders_told{0};
    std::atomic<int> stock_told{0};
    auto const counting = [](std::atomic<int>& told) {
        return holdfast::lock_options{.ttl = 1h, .on_error = [&told](holdfast::error const& e) {
                                          if (e.code() == errc::lease_lost) ++told;
                                      }};
    };
    mutex orders{redis, "orders", counting(orders_told)};
    mutex stock{redis, "stock", counting(stock_told)};
    multi_mutex both{orders, stock};
    both.lock();
    server.command({"DEL", "stock"});
    both.unlock();
    CHECK(orders_told == 0);
    CHECK(stock_told == 1);
    both.lock();
    server.command({"DEL", "stock"});
    std::error_code ec;
    both.unlock(ec);
    CHECK(ec == errc::lease_lost);
    CHECK(stock_told == 1);
}

TEST_CASE("why several locks could not be given back is told once, as the server says it")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    std::mutex guard;
    std::vector<std::string> told;
    holdfast::lock_options const options{.ttl = 1h, .on_error = [&](holdfast::error const& e) {
                                             std::scoped_lock lock{guard};
                                             told.emplace_back(e.what());
                                         }};
    mutex orders{redis, "orders", options};
    mutex stock{redis, "stock", options};
    multi_mutex both{orders, stock};
    both.lock();
    server.command({"REPLICAOF", "127.0.0.1", "1"});
    both.unlock();
    std::scoped_lock lock{guard};
    CHECK(std::count_if(told.begin(), told.end(), [&](auto const& one) {
              return one.find("unlock") != std::string::npos && one.find("is a replica") != std::string::npos &&
                     one.find(server.url()) != std::string::npos;
          }) == 1);
}
