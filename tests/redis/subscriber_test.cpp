// SPDX-License-Identifier: MIT
//
// What a subscription does with a server that sends more than it was asked for.
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/loopback.hpp"

#include <holdfast/io/poll_for.hpp>
#include <holdfast/io/reactor.hpp>
#include <holdfast/io/running.hpp>
#include <holdfast/redis/listener.hpp>
#include <holdfast/redis/server_news.hpp>
#include <holdfast/redis/server_record.hpp>
#include <holdfast/redis/server_status.hpp>
#include <holdfast/redis/subscriber.hpp>

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::redis::errc;
using holdfast::test::bind_free_port;
using holdfast::test::bound_socket;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::file_descriptor;

namespace {

std::string array(std::initializer_list<std::string_view> words, std::string const& last = {})
{
    auto all = '*' + std::to_string(words.size() + (last.empty() ? 0 : 1)) + "\r\n";
    for (auto const w : words) all += '$' + std::to_string(w.size()) + "\r\n" + std::string{w} + "\r\n";
    return all + last;
}

std::string message(std::string_view channel) { return array({"message", channel, "1"}); }
std::string subscribed(std::string_view channel) { return array({"subscribe", channel}, ":1\r\n"); }

/// Watches, and notes what it is told.
class watcher final : public holdfast::redis::listener, public holdfast::io::running {
public:
    void on_answer(unsigned, holdfast::redis::answer const&, boot_clock::time_point) override {}
    void on_watching(unsigned, boot_clock::time_point) override { watching = true; }
    void on_watch_failed(unsigned, std::error_code e, boot_clock::time_point) override { why = e; }
    void on_released(unsigned, boot_clock::time_point) override { ++releases; }
    [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return boot_clock::time_point::max(); }
    void on_time(boot_clock::time_point) noexcept override {}

    bool watching = false;
    int releases = 0;
    std::optional<std::error_code> why;
};

/// One who watches `orders` on a server that is played by the test.
struct fixture {
    bound_socket bound = bind_free_port();
    holdfast::redis::endpoint server{};
    std::string channel;
    holdfast::io::reactor reactor{1};
    std::shared_ptr<holdfast::redis::server_news> news = std::make_shared<holdfast::redis::server_news>();
    holdfast::redis::server_record record{"a server", false, news};
    std::optional<holdfast::redis::subscriber> subscriptions;
    watcher whom;
    file_descriptor theirs;

    explicit fixture(std::chrono::milliseconds timeout = 1min, std::string name = "orders", std::string password = {})
        : channel{std::move(name)}
    {
        server.password = std::move(password);
        ::listen(bound.fd.get(), 10);
        server.host = "127.0.0.1";
        server.port = bound.port;
        subscriptions.emplace(reactor, 0, server, nullptr, timeout, record);
        {
            std::scoped_lock const guard{reactor};
            CHECK_FALSE(subscriptions->watch(channel, &whom, boot_clock::now()));
        }
        accept();
    }
    fixture(fixture const&) = delete;
    fixture& operator=(fixture const&) = delete;
    ~fixture()
    {
        std::scoped_lock const guard{reactor};
        subscriptions.reset();
    }

    void accept() { theirs = file_descriptor{::accept4(bound.fd.get(), nullptr, nullptr, SOCK_NONBLOCK)}; }

    [[nodiscard]] bool connects() const
    {
        pollfd one{.fd = bound.fd.get(), .events = POLLIN, .revents = 0};
        return ::poll(&one, 1, 0) > 0;
    }

    /// Effects: says as much of `bytes` as the socket takes. Returns: how much that is.
    std::size_t offer(std::string_view bytes) const
    {
        auto const n = ::send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        return n < 0 ? 0 : static_cast<std::size_t>(n);
    }

    /// Returns: whether all that was said is there.
    [[nodiscard]] bool arrived() const
    {
        int unacknowledged = 0;
        return ::ioctl(theirs.get(), SIOCOUTQ, &unacknowledged) == 0 && unacknowledged == 0;
    }

    /// Effects: says all of it, and waits until it is there.
    void say(std::string_view bytes) const
    {
        REQUIRE(offer(bytes) == bytes.size());
        REQUIRE(eventually([&] { return arrived(); }));
    }

    /// Effects: runs the reactor, at least once, until `condition`, which is asked after every turn.
    bool comes(std::function<bool()> const& condition, std::chrono::milliseconds limit = 1min)
    {
        auto const holds = [&] {
            std::scoped_lock const guard{reactor};
            return condition();
        };
        if (holds()) return true;
        for (auto const end = boot_clock::now() + limit;;) {
            std::vector<pollfd> polled;
            auto until = end;
            REQUIRE(reactor.begin_turn(polled, until));
            static_cast<void>(holdfast::io::poll_for(polled, until - boot_clock::now()));
            static_cast<void>(reactor.end_turn(polled.data()));
            if (holds()) return true;
            if (boot_clock::now() >= end) return false;
        }
    }

    bool is_watching()
    {
        say(subscribed(channel));
        return comes([this] { return whom.watching; });
    }

    /// Effects: connects again where that is allowed, as every use of the client does. Returns: whether it does within
    /// `limit`.
    bool connects_again(std::chrono::milliseconds limit)
    {
        return eventually(
            [&] {
                {
                    std::scoped_lock const guard{reactor};
                    subscriptions->keep_up(boot_clock::now());
                }
                (void)comes([] { return false; }, 1ms);
                return connects();
            },
            limit);
    }
};

/// Effects: after each connection calls `say`, which makes the link end it, and `look` with the reason. Returns: how
/// many there were in a second.
[[nodiscard]] int connections_in_a_second(fixture& f, auto const& say, auto const& look)
{
    int connections = 0;
    auto const begun = boot_clock::now();
    while (boot_clock::now() - begun < 1s) {
        say();
        REQUIRE(f.comes([&] { return f.whom.why.has_value(); }));
        look(*f.whom.why);
        f.whom.why.reset();
        ++connections;
        if (!f.connects_again(2s)) break;
        f.accept();
    }
    return connections;
}

}  // namespace

TEST_CASE("one turn of a subscription takes a bounded part of what there is")
{
    fixture f;
    REQUIRE(f.is_watching());
    std::string sent;
    int messages = 0;
    for (; sent.size() < 50'000; ++messages) sent += message("orders");
    f.say(sent);
    for (int before = 0; before < messages; before = f.whom.releases) {
        REQUIRE(f.comes([&] { return f.whom.releases > before; }));
        CHECK(static_cast<std::size_t>(f.whom.releases - before - 1) * message("orders").size() < 16'384);
    }
    CHECK(f.whom.releases == messages);
}

TEST_CASE("a server that reports releases without end is given up, and its watchers are told once")
{
    auto const channel = GENERATE("orders", "something else");
    fixture f;
    REQUIRE(f.is_watching());
    std::string flood;
    // A busy machine, too, has to read 4 MiB of it in a second.
    while (flood.size() < 1'000'000) flood += array({"message", channel, std::string(100'000, 'x')});
    std::jthread const sender{[&](std::stop_token const& stop) {
        while (!stop.stop_requested())
            for (std::size_t at = 0; at < flood.size() && !stop.stop_requested();)
                at += f.offer(std::string_view{flood}.substr(at));
    }};
    REQUIRE(f.comes([&] { return f.whom.why.has_value(); }));
    CHECK(f.whom.why == errc::protocol_error);
    CHECK_FALSE(f.subscriptions->reason(errc::protocol_error).empty());
    f.whom.why.reset();
    CHECK_FALSE(f.comes([&] { return f.whom.why.has_value(); }, 200ms));
    CHECK(f.connects_again(1min));
}

TEST_CASE("the releases of a lock with a long name are no flood, however many bytes they are")
{
    fixture f{1min, std::string(65'536, 'x')};
    std::string const one = message(f.channel);
    constexpr int count = 400;  // 26 MB, in a second where the machine is not busy
    auto const feed = [&](std::string_view bytes, auto&& done) {
        while (!done()) {
            if (!bytes.empty()) bytes.remove_prefix(f.offer(bytes));
            (void)f.comes([] { return false; }, 1ms);
            if (f.whom.why) return;
        }
    };
    feed(subscribed(f.channel), [&] { return f.whom.watching; });
    for (int i = 1; i <= count && !f.whom.why; ++i) feed(one, [&] { return f.whom.releases == i; });
    CHECK_FALSE(f.whom.why);
    CHECK(f.whom.releases == count);
}

TEST_CASE("a server that sends what nobody asked for is given up at once")
{
    auto const junk = GENERATE(as<std::string>{}, subscribed("orders"), array({"unsubscribe", "orders"}, ":0\r\n"),
                               ":1\r\n", "+OK\r\n", "-ERR no\r\n", "$-1\r\n", "*0\r\n", array({"message", "orders"}),
                               array({"message", "orders", "1", "2"}), "GET / HTTP/1.1\r\n");
    CAPTURE(junk);
    fixture f;
    REQUIRE(f.is_watching());
    f.say(junk);
    REQUIRE(f.comes([&] { return f.whom.why.has_value(); }));
    CHECK(f.whom.why == errc::protocol_error);
}

TEST_CASE("a confirmation of another channel is none")
{
    auto const junk = GENERATE(as<std::string>{}, subscribed("invoices"), array({"unsubscribe", "orders"}, ":0\r\n"),
                               array({"1", "2"}, ":0\r\n"));
    CAPTURE(junk);
    fixture f;
    REQUIRE_FALSE(f.comes([] { return false; }, 10ms));
    f.say(junk);
    REQUIRE(f.comes([&] { return f.whom.why.has_value(); }));
    CHECK(f.whom.why == errc::protocol_error);
    CHECK_FALSE(f.whom.watching);
}

TEST_CASE("a server that keeps on sending and does not answer is given up when the time for that is over")
{
    fixture f{100ms};
    std::string flood;
    while (flood.size() < 3'000'000) flood += array({"message", "something else", std::string(1000, 'x')});
    REQUIRE_FALSE(f.comes([] { return false; }, 10ms));
    std::string_view rest = flood;
    while (rest.size() > 500'000 || !f.arrived()) {  // all of it is less than is too much in a second
        if (rest.size() > 500'000) rest.remove_prefix(f.offer(rest.substr(0, 100'000)));
        (void)f.comes([] { return false; }, 1ms);
    }
    std::this_thread::sleep_for(150ms);
    rest.remove_prefix(f.offer(rest));
    REQUIRE_FALSE(f.whom.why);
    std::scoped_lock const guard{f.reactor};
    f.subscriptions->discard_unanswered(boot_clock::now());
    CHECK(f.whom.why == errc::connection_lost);
}

TEST_CASE("an answer that came in time is found behind what came before it, although it was not read in time")
{
    fixture f{100ms};
    REQUIRE_FALSE(f.comes([] { return false; }, 10ms));
    std::string late;
    while (late.size() < 40'000) late += message("orders");
    f.say(late + subscribed("orders"));
    std::this_thread::sleep_for(150ms);
    {
        std::scoped_lock const guard{f.reactor};
        f.subscriptions->discard_unanswered(boot_clock::now());
    }
    CHECK(f.comes([&] { return f.whom.watching; }));
    CHECK_FALSE(f.whom.why);
}

TEST_CASE("a server that breaks the protocol again and again is connected to less and less often")
{
    bool const greets = GENERATE(false, true);
    fixture f{1min, "orders", greets ? "secret" : ""};
    auto const connections = connections_in_a_second(
        f, [&] { f.say(greets ? "+OK\r\n:1\r\n" : ":1\r\n"); }, [](std::error_code) {});
    CHECK(connections <= 10);  // 0, 5, 10, 20, 40, 80, 160, 320, 640 ms
}

TEST_CASE("a server that takes no subscription is connected to less and less often, and what it says is known")
{
    bool const greets = GENERATE(false, true);
    bool const says_why = GENERATE(false, true);
    fixture f{1min, "orders", greets ? "secret" : ""};
    auto const connections = connections_in_a_second(
        f,
        [&] {
            if (greets) f.say("+OK\r\n");
            if (says_why) f.say("-ERR max number of clients reached\r\n");
            if (!says_why) f.theirs = {};
        },
        [&](std::error_code why) { CHECK(why == (says_why ? errc::too_many_clients : errc::connection_lost)); });
    CHECK(connections <= 10);  // 0, 5, 10, 20, 40, 80, 160, 320, 450 ms
}

TEST_CASE("a subscription that is cut off after it was confirmed is made again at once")
{
    fixture f;
    for (int i = 0; i < 20; ++i) {
        f.whom.watching = false;
        f.whom.why.reset();
        REQUIRE(f.is_watching());
        f.theirs = {};
        REQUIRE(f.comes([&] { return f.whom.why.has_value(); }));
        {
            std::scoped_lock const guard{f.reactor};
            f.subscriptions->keep_up(boot_clock::now());  // once: no pause is awaited
        }
        REQUIRE(f.comes([&] { return f.connects(); }));
        f.accept();
    }
}

TEST_CASE(
    "a subscription that fails again while commands are answered is told once, and once when it has stood for a while")
{
    auto const news = std::make_shared<holdfast::redis::server_news>();
    holdfast::redis::server_record one{"redis://a", true, news};
    auto const in = [now = boot_clock::now()](std::chrono::seconds s) { return now + s; };
    auto const fails = [&] { one.subscription_failed(errc::protocol_error, [] { return std::string{"why so"}; }); };
    auto const status = [&] {
        holdfast::redis::server_status s{.asked = true, .reached = true};
        one.fill(s);
        return s;
    };
    one.asked();
    one.answered(in(0s), in(0s));
    fails();
    fails();  // nothing was answered in between: the server may be down
    CHECK(news->take().empty());
    CHECK_FALSE(status().subscription_error);
    for (int i = 1; i <= 5; ++i) {
        one.answered(in(0s), in(0s));
        one.subscribed(in(1s));
        one.subscription_stands(in(2s));
        fails();
    }
    auto const begun = news->take();
    REQUIRE(begun.size() == 1);
    CHECK((begun[0].code() == errc::protocol_error && begun[0].server() == "redis://a" && !begun[0].over()));
    CHECK_THAT(begun[0].what(),
               contains("redis://a: its subscription") && contains("why so") && contains("by the clock"));
    CHECK((status().votes && status().subscription_error == errc::protocol_error));
    CHECK_THAT(status().describe(), contains("votes") && contains("its subscription to releases fails"));
    one.answered(in(3s), in(3s));
    one.subscription_stands(in(1h));  // nothing was subscribed to
    one.subscribed(in(1h));
    one.subscription_stands(in(1h));
    CHECK(news->take().empty());
    one.subscription_stands(in(2h));
    one.subscription_stands(in(3h));
    auto const over = news->take();
    REQUIRE(over.size() == 1);
    CHECK((over[0].code() == errc::protocol_error && over[0].server() == "redis://a" && over[0].over()));
    CHECK_FALSE(status().subscription_error);
}
