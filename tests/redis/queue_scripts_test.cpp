// SPDX-License-Identifier: MIT
//
// The queue of waiters, as the scripts keep it on a real server.
#include "support/catch.hpp"
#include "support/connection.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis/scripts.hpp>
#include <holdfast/redis/waiter_id.hpp>

#include <string>
#include <utility>
#include <vector>

namespace scripts = holdfast::redis::scripts;
using holdfast::redis::script;
using holdfast::redis::waiter_id;
using holdfast::redis::waiter_text;
using holdfast::test::connection;
using holdfast::test::redis_server;
using holdfast::test::reply;

namespace {

using list = std::vector<std::string>;

std::string text_of(waiter_id const& w) { return std::string{waiter_text{w}.view()}; }

struct fixture {
    redis_server server{};
    std::string first = text_of({.inbox = 0xabc, .number = 1});
    std::string second = text_of({.inbox = 0xabc, .number = 2});
    std::string gone = text_of({.inbox = 0xdef, .number = 3});
    connection inbox{server.port()};

    fixture() { inbox({"SUBSCRIBE", "holdfast:wake:0000000000000abc"}); }

    long long run(script const& s, list const& arguments, bool fenced = false)
    {
        list words{"EVAL", std::string{s.text}, fenced ? "4" : "3", "k"};
        if (fenced) words.emplace_back("f");
        words.insert(words.end(), {"q", "n"});
        words.insert(words.end(), arguments.begin(), arguments.end());
        auto const r = server.command(words);
        INFO(r);
        CHECK(r.type == reply::kind::integer);
        return r.integer;
    }

    long long ask(std::string const& token, std::string const& waiter = {}, std::string const& score = "1")
    {
        list words{token, "60000"};
        if (!waiter.empty()) words.insert(words.end(), {waiter, score});
        return run(scripts::acquire, words);
    }

    long long release(std::string const& token) { return run(scripts::release, {token, "free"}); }
    long long give_back(std::string const& token, std::string const& waiter, std::string const& score = "0")
    {
        return run(scripts::give_back, {token, "free", waiter, score});
    }

    list queue()
    {
        list all;
        for (auto const& one : server.command({"ZRANGE", "q", "0", "-1"}).elements) all.push_back(one.text);
        return all;
    }
    std::string next() { return server.command({"GET", "n"}).text; }
    std::string get(std::string const& key) { return server.command({"GET", key}).text; }
    bool empty() { return server.command({"EXISTS", "q", "n"}).integer == 0; }
    long long clock()
    {
        auto const t = server.command({"TIME"});
        return std::stoll(t.elements.at(0).text) * 1'000'000 + std::stoll(t.elements.at(1).text);
    }
};

}  // namespace

TEST_CASE("a lock that nobody waits for writes no key of the queue")
{
    fixture f;
    CHECK(f.ask("mine", f.first) == 1);
    CHECK(f.release("mine") == 1);
    CHECK(f.empty());
}

TEST_CASE("who is refused is in the queue, by score, and knows how many are ahead")
{
    fixture f;
    f.ask("mine");
    auto const now = f.clock();
    auto const later = -2 - f.ask("a", f.second, std::to_string(now + 1000));
    auto const sooner = -2 - f.ask("b", f.first, std::to_string(now));
    CHECK(f.queue() == list{f.first, f.second});
    auto const again = -2 - f.ask("a", f.second, std::to_string(now + 1000));
    CHECK(f.queue() == list{f.first, f.second});
    CHECK((later <= 60'000 && later > 50'000));
    CHECK((sooner <= 60'000 && sooner > 50'000));
    CHECK(again >= sooner - 1000);
    CHECK(f.server.command({"PTTL", "q"}).integer > 3'000'000);
    CHECK(-2 - f.ask("c") <= 60'000);               // without a waiter it is only refused
    CHECK(-2 - f.ask("d", f.gone, "0") <= 60'000);  // and with a score of 0
    CHECK(f.queue() == list{f.first, f.second});
}

TEST_CASE("a release calls the first waiter, and keeps the lock for it")
{
    fixture f;
    f.ask("mine");
    f.ask("a", f.first, "1");
    f.ask("b", f.second, std::to_string(f.clock() + 1'000'000));
    CHECK(f.release("mine") == 1);
    auto const message = f.inbox.read();
    REQUIRE(message.elements.size() == 3);
    CHECK(message.elements[2].text == f.first.substr(16) + " k");
    CHECK(f.next() == f.first);
    CHECK(f.server.command({"PTTL", "n"}).integer <= 50);
    CHECK(f.queue() == list{f.second});
    auto const refused = f.ask("c");
    CHECK((refused <= -2 && refused >= -60));  // as long as the reservation
    CHECK(f.get("k").empty());
    CHECK(f.ask("a", f.first) == 1);
    CHECK(f.next().empty());
    CHECK(f.queue() == list{f.second});
}

TEST_CASE("a waiter to whom nobody listens is skipped")
{
    fixture f;
    f.ask("mine");
    f.ask("a", f.gone);
    f.ask("b", f.first, std::to_string(f.clock() + 1'000'000));
    f.release("mine");
    CHECK(f.next() == f.first);
    CHECK(f.queue().empty());
    CHECK(f.ask("b", f.first) == 1);
    f.ask("a", f.gone);
    f.release("b");
    CHECK(f.empty());
    CHECK(f.ask("c") == 1);
}

TEST_CASE("a called waiter that another client was faster than is in the queue again, at its place")
{
    fixture f;
    f.ask("mine");
    auto const score = std::to_string(f.clock());
    f.ask("a", f.first, score);
    f.ask("b", f.second, std::to_string(f.clock() + 1000));
    f.release("mine");
    f.server.command({"SET", "k", "a poller's", "NX", "PX", "60000"});
    CHECK(f.ask("a", f.first, score) < 0);
    CHECK(f.next().empty());
    CHECK(f.queue() == list{f.first, f.second});
}

TEST_CASE("what a waiter gives back calls the next one; it stays in the queue with a score, and leaves it without")
{
    fixture f;
    CHECK(f.ask("a", f.first) == 1);
    auto const now = f.clock();
    f.ask("b", f.second, std::to_string(now));
    SECTION("it stays: the first is the first, whoever gives back")
    {
        CHECK(f.give_back("a", f.first, std::to_string(now - 1000)) == 1);
        CHECK(f.next() == f.first);
        CHECK(f.queue() == list{f.second});
    }
    SECTION("it leaves")
    {
        CHECK(f.give_back("a", f.first) == 1);
        CHECK(f.next() == f.second);
        CHECK(f.queue().empty());
    }
    SECTION("it leaves while another has the lock")
    {
        CHECK(f.give_back("nobody's", f.second) == 0);
        CHECK(f.get("k") == "a");
        CHECK(f.empty());
    }
    SECTION("it leaves when it was called: the next one is called in its place")
    {
        f.ask("c", f.gone, std::to_string(now + 1000));
        f.ask("d", f.first, std::to_string(now + 2000));
        f.release("a");
        CHECK(f.next() == f.second);
        CHECK(f.give_back("nobody's", f.second) == 1);
        CHECK(f.next() == f.first);
        CHECK(f.queue().empty());
    }
}

TEST_CASE("no waiter is called while one is waited for")
{
    fixture f;
    f.ask("mine");
    f.ask("a", f.first, "1");
    f.ask("b", f.second, std::to_string(f.clock() + 1'000'000));
    f.release("mine");
    CHECK(f.give_back("nobody's", f.gone) == 1);
    CHECK(f.next() == f.first);
    CHECK(f.queue() == list{f.second});
}

TEST_CASE("a reservation is as long as its waiter says, within bounds, and no foreign text can spoil a release")
{
    fixture f;
    f.ask("mine");
    f.ask("a", "0000000000000abc"
               "0190"
               "7");
    f.release("mine");
    auto left = f.server.command({"PTTL", "n"}).integer;
    CHECK((left > 200 && left <= 400));
    f.server.command({"DEL", "n", "k"});
    f.ask("mine");
    f.server.command({"ZADD", "q", "1", "0000000000000abcffff1", "2", "0000000000000abc", "3", "x"});
    CHECK(f.release("mine") == 1);
    left = f.server.command({"PTTL", "n"}).integer;
    CHECK((left > 800 && left <= 1000));
    f.server.command({"DEL", "n"});
    f.server.command({"SET", "k", "mine", "PX", "60000"});
    CHECK(f.release("mine") == 1);
    left = f.server.command({"PTTL", "n"}).integer;
    CHECK((left > 0 && left <= 50));
}

TEST_CASE("a score of more than an hour ago counts as that, and one of more than a minute from now, too")
{
    fixture f;
    f.ask("mine");
    f.ask("a", f.first, "1");
    f.ask("b", f.second, "99999999999999999");
    auto const score = [&](std::string const& who) { return std::stod(f.server.command({"ZSCORE", "q", who}).text); };
    auto const now = static_cast<double>(f.clock());
    CHECK(now - score(f.first) > 3.5e9);
    CHECK(now - score(f.first) < 3.7e9);
    CHECK(score(f.second) - now > 5e7);
    CHECK(score(f.second) - now < 7e7);
}

TEST_CASE("what is wrong with the keys of the queue makes nothing fail")
{
    fixture f;
    f.server.command({"LPUSH", "n", "x"});
    CHECK(f.ask("mine", f.first) == 1);
    CHECK(f.release("mine") == 1);
    f.server.command({"DEL", "n"});
    f.server.command({"SET", "n", "for ever"});
    CHECK(f.ask("mine", f.first) == 1);
    CHECK(f.ask("a", f.first) < -50'000);
    CHECK(f.release("mine") == 1);
    CHECK(f.next() == f.first);
    f.server.command({"DEL", "n", "q"});
    f.server.command({"LPUSH", "q", "x"});
    CHECK(f.ask("mine", f.second) == 1);
    CHECK(f.ask("a", f.first) < -50'000);
    CHECK(f.give_back("mine", f.second, "1") == 1);
    CHECK(f.get("k").empty());
}

TEST_CASE("a user who may not publish to an inbox takes nobody's place in the queue")
{
    fixture f;
    f.ask("mine");
    f.ask("a", f.first, std::to_string(f.clock()));
    auto const before = f.server.command({"ZSCORE", "q", f.first}).text;
    f.server.command({"ACL", "SETUSER", "app", "on", ">secret", "~*", "resetchannels", "&free", "+@all"});
    connection app{f.server.port()};
    app({"AUTH", "app", "secret"});
    auto const r = app({"EVAL", std::string{scripts::release.text}, "3", "k", "q", "n", "mine", "free"});
    INFO(r);
    CHECK(r.integer == 1);
    CHECK(f.queue() == list{f.first});
    CHECK(f.server.command({"ZSCORE", "q", f.first}).text == before);
    CHECK(f.next().empty());
}

TEST_CASE("the scripts that count fences honour the queue, too")
{
    fixture f;
    auto const by_clock = list{"a", "60000", "1", "3600000", "1800000000", f.first, "1"};
    auto const by_count = list{"b", "60000", "1", "3600000", "1800000000", "0", "0", "1", f.second, "1"};
    CHECK(f.run(scripts::acquire_by_clock, by_clock, true) > 0);
    CHECK(f.run(scripts::acquire_by_count, by_count, true) < 0);
    CHECK(f.queue() == list{f.second});
    f.release("a");
    CHECK(f.next() == f.second);
    CHECK(f.run(scripts::acquire_by_clock, by_clock, true) < 0);
    CHECK(f.queue() == list{f.first});
    CHECK(f.run(scripts::acquire_by_count, by_count, true) > 0);
    CHECK(f.next().empty());
}

TEST_CASE("a server without memory refuses those who wait as others, and forgets their place")
{
    fixture f;
    f.ask("mine");
    f.server.command({"CONFIG", "SET", "maxmemory", "1"});
    CHECK(f.ask("a", f.first) < -50'000);
    CHECK(f.release("mine") == 1);
    f.server.command({"CONFIG", "SET", "maxmemory", "0"});
    CHECK(f.empty());
}

TEST_CASE("a free lock goes to those who wait for it, before one that comes")
{
    fixture f;
    f.ask("mine");
    auto const now = f.clock();
    f.ask("a", f.gone, std::to_string(now));
    f.ask("b", f.first, std::to_string(now + 1));
    f.ask("c", f.second, std::to_string(now + 2));
    f.server.command({"DEL", "k"});
    CHECK(f.ask("new") <= -2);
    CHECK(f.inbox.read().elements.at(2).text == f.first.substr(16) + " k");
    CHECK(f.get("k").empty());
    CHECK(f.queue() == list{f.second});

    f.server.command({"DEL", "n"});
    CHECK(f.ask("c", f.second) == 1);  // it is the first itself
    CHECK(f.empty());
}
