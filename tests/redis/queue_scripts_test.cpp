// SPDX-License-Identifier: MIT
//
// The queue of waiters, as the scripts keep it on a real server.
#include "joined_scripts.hpp"
#include "support/catch.hpp"
#include "support/connection.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis/scripts.hpp>
#include <holdfast/redis/shared_scripts.hpp>
#include <holdfast/redis/waiter_id.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
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

/// One of the scripts with its arguments, or a command.
struct step {
    step(script const& s, list all, bool with_fence = false)
        : text{s.text()}, arguments{std::move(all)}, fenced{with_fence}
    {
    }
    step(std::initializer_list<std::string> command) : text{"return redis.call(unpack(ARGV))"}, arguments{command} {}

    std::string text;
    list arguments;
    bool fenced = false;
};

step ask(std::string const& token, std::string const& waiter = {}, std::string const& score = "1")
{
    list all{token, "60000"};
    if (!waiter.empty()) all.insert(all.end(), {waiter, score});
    return {scripts::acquire, std::move(all)};
}

step release(std::string const& token) { return {scripts::release, {token, "free"}}; }

step give_back(std::string const& token, std::string const& waiter, std::string const& score = "0")
{
    return {scripts::give_back, {token, "free", waiter, score}};
}

step const queue{"ZRANGE", "q", "0", "-1"};
step const next{"GET", "n"};
step const reservation{"PTTL", "n"};

/// What the steps answered, and for how many milliseconds the server was busy with them, or one more.
struct answers {
    std::vector<reply> all;
    long long took = 0;

    /// A refusal may be followed by the score of the last in the queue.
    long long number(std::size_t i) const { return last_score(i) == 0 ? all.at(i).integer : part(i, 0); }
    long long last_score(std::size_t i) const { return all.at(i).elements.size() == 2 ? part(i, 1) : 0; }
    long long part(std::size_t i, std::size_t of) const { return all.at(i).elements.at(of).integer; }
    std::string const& text(std::size_t i) const { return all.at(i).text; }
    list texts(std::size_t i) const
    {
        list r;
        for (auto const& one : all.at(i).elements) r.push_back(one.text);
        return r;
    }
    /// What a refusal answers: how long the lock is still held or reserved, if it was for `whole` at first.
    bool refused_for(std::size_t i, long long whole) const { return lasts(-2 - number(i), whole); }
    bool lasts(long long left, long long whole) const { return left <= whole && left >= std::max(0LL, whole - took); }
};

long long microseconds(reply const& time)
{
    return std::stoll(time.elements.at(0).text) * 1'000'000 + std::stoll(time.elements.at(1).text);
}

struct fixture {
    redis_server server{};
    std::string first = text_of({.inbox = 0xabc, .number = 1});
    std::string second = text_of({.inbox = 0xabc, .number = 2});
    std::string gone = text_of({.inbox = 0xdef, .number = 3});
    connection inbox{server.port()};

    fixture() { inbox({"SUBSCRIBE", "holdfast:wake:0000000000000abc"}); }

    /// Effects: one script with all steps. Between two commands a reservation may end, also in a transaction: a script in it looks at
    /// the clock.
    answers at_once(std::vector<step> steps)
    {
        steps.insert(steps.begin(), {"TIME"});
        steps.push_back({"TIME"});
        holdfast::test::joined_scripts together;
        for (auto const& one : steps)
            together.add(std::string{one.text}, one.fenced ? "'k', 'f', 'q', 'n'" : "'k', 'q', 'n'", one.arguments);
        auto const r = server.command(together.command());
        INFO(r);
        REQUIRE(r.elements.size() == steps.size());
        return {.all = {r.elements.begin() + 1, r.elements.end() - 1},
                .took = (microseconds(r.elements.back()) - microseconds(r.elements.front())) / 1000 + 1};
    }
    reply run(step const& one) { return at_once({one}).all.front(); }

    std::string get(std::string const& key) { return server.command({"GET", key}).text; }
    bool empty() { return server.command({"EXISTS", "q", "n"}).integer == 0; }
    long long clock() { return microseconds(server.command({"TIME"})); }
};

}  // namespace

TEST_CASE("who may not use the queue is told so before its lock is given back: the release is not lost to others")
{
    fixture f;
    auto const right = GENERATE("-zadd", "-zrem", "-zrank", "-zpopmin");
    f.server.command({"ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", right});
    f.server.command({"SET", "k", "mine", "PX", "60000"});
    connection app{f.server.port()};
    app({"AUTH", "app", "secret"});
    bool const shared = GENERATE(false, true);
    list words{"EVAL", shared ? scripts::release_exclusive.text() : scripts::give_back.text(), shared ? "5" : "3", "k"};
    if (shared) words.insert(words.end(), {"readers", "phase"});
    words.insert(words.end(), {"q", "n", "mine", "free", f.first, "-1"});
    auto const r = app(words);
    INFO(r);
    CHECK(r.type == reply::kind::error);
    CHECK(f.get("k") == "mine");
    CHECK(f.server.command({"EXISTS", "q"}).integer == (right == std::string{"-zrem"}));
    if (right == std::string{"-zrem"}) CHECK(f.server.command({"PTTL", "q"}).integer > 0);
}

TEST_CASE("a lock that nobody waits for writes no key of the queue")
{
    fixture f;
    CHECK(f.run(ask("mine", f.first)).integer == 1);
    CHECK(f.run(release("mine")).integer == 1);
    CHECK(f.empty());
}

TEST_CASE("who is refused is in the queue, by score, and knows how many are ahead")
{
    fixture f;
    auto const now = f.clock();
    auto const late = ask("a", f.second, std::to_string(now + 1000));
    auto const early = ask("b", f.first, std::to_string(now));
    auto const without_score = ask("d", f.gone, "0");
    auto const seen = f.at_once({ask("mine"), late, early, queue, late, queue, ask("c"), without_score, queue});
    CHECK(seen.number(0) == 1);
    CHECK(seen.refused_for(1, 60'000));
    CHECK(seen.refused_for(2, 60'000));
    CHECK(seen.texts(3) == list{f.first, f.second});
    CHECK(seen.refused_for(4, 60'004));  // 4 ms more for each ahead
    CHECK(seen.texts(5) == list{f.first, f.second});
    CHECK(seen.refused_for(6, 60'000));  // without a waiter it is only refused
    CHECK(seen.refused_for(7, 60'000));  // and with a score of 0
    CHECK(seen.texts(8) == list{f.first, f.second});
    CHECK(f.server.command({"PTTL", "q"}).integer > 3'000'000);
    CHECK(seen.last_score(1) == 0);
    CHECK(seen.last_score(2) == now + 1000);  // who knows an earlier clock is told of the later one
    CHECK(seen.last_score(4) == 0);
}

TEST_CASE("who sends the time waited is not told of a later score")
{
    fixture f;
    auto const late = ask("a", f.second, std::to_string(f.clock() + 1'000'000));
    auto const seen = f.at_once({ask("mine"), late, ask("b", f.first, "-1")});
    CHECK(seen.last_score(2) == 0);
    CHECK(seen.refused_for(2, 60'000));
}

TEST_CASE("a release calls the first waiter, and keeps the lock for it")
{
    fixture f;
    f.run(ask("mine"));
    f.run(ask("a", f.first, "1"));
    f.run(ask("b", f.second, std::to_string(f.clock() + 1'000'000)));
    auto const seen = f.at_once(
        {release("mine"), next, reservation, queue, ask("c"), {"EXISTS", "k"}, ask("a", f.first), next, queue});
    CHECK(seen.number(0) == 1);
    CHECK(seen.text(1) == f.first);
    CHECK(seen.lasts(seen.number(2), 50));
    CHECK(seen.texts(3) == list{f.second});
    CHECK(seen.refused_for(4, 50));  // as long as the reservation
    CHECK(seen.number(5) == 0);
    CHECK(seen.number(6) == 1);
    CHECK(seen.text(7).empty());
    CHECK(seen.texts(8) == list{f.second});
    auto const message = f.inbox.read();
    REQUIRE(message.elements.size() == 3);
    CHECK(message.elements[2].text == f.first.substr(16) + " k");
}

TEST_CASE("a waiter to whom nobody listens is skipped")
{
    fixture f;
    f.run(ask("mine"));
    f.run(ask("a", f.gone));
    f.run(ask("b", f.first, std::to_string(f.clock() + 1'000'000)));
    auto const seen = f.at_once({release("mine"), next, queue, ask("b", f.first)});
    CHECK(seen.text(1) == f.first);
    CHECK(seen.texts(2).empty());
    CHECK(seen.number(3) == 1);
    f.run(ask("a", f.gone));
    f.run(release("b"));
    CHECK(f.empty());
    CHECK(f.run(ask("c")).integer == 1);
}

TEST_CASE("a called waiter that another client was faster than is in the queue again, at its place")
{
    fixture f;
    f.run(ask("mine"));
    auto const score = std::to_string(f.clock());
    f.run(ask("a", f.first, score));
    f.run(ask("b", f.second, std::to_string(f.clock() + 1000)));
    auto const seen = f.at_once({release("mine"),
                                 next,
                                 {"SET", "k", "a poller's", "NX", "PX", "60000"},
                                 ask("a", f.first, score),
                                 next,
                                 queue});
    CHECK(seen.text(1) == f.first);
    CHECK(seen.number(3) < 0);
    CHECK(seen.text(4).empty());
    CHECK(seen.texts(5) == list{f.first, f.second});
}

TEST_CASE("what a waiter gives back calls the next one; it stays in the queue with a score, and leaves it without")
{
    fixture f;
    CHECK(f.run(ask("a", f.first)).integer == 1);
    auto const now = f.clock();
    f.run(ask("b", f.second, std::to_string(now)));
    SECTION("it stays: the first is the first, whoever gives back")
    {
        auto const seen = f.at_once({give_back("a", f.first, std::to_string(now - 1000)), next, queue});
        CHECK(seen.number(0) == 1);
        CHECK(seen.text(1) == f.first);
        CHECK(seen.texts(2) == list{f.second});
    }
    SECTION("it leaves")
    {
        auto const seen = f.at_once({give_back("a", f.first), next, queue});
        CHECK(seen.number(0) == 1);
        CHECK(seen.text(1) == f.second);
        CHECK(seen.texts(2).empty());
    }
    SECTION("it leaves while another has the lock")
    {
        CHECK(f.run(give_back("nobody's", f.second)).integer == 0);
        CHECK(f.get("k") == "a");
        CHECK(f.empty());
    }
    SECTION("it leaves when it was called: the next one is called in its place")
    {
        f.run(ask("c", f.gone, std::to_string(now + 1000)));
        f.run(ask("d", f.first, std::to_string(now + 2000)));
        auto const seen = f.at_once({release("a"), next, give_back("nobody's", f.second), next, queue});
        CHECK(seen.text(1) == f.second);
        CHECK(seen.number(2) == 1);
        CHECK(seen.text(3) == f.first);
        CHECK(seen.texts(4).empty());
    }
}

TEST_CASE("no waiter is called while one is waited for")
{
    fixture f;
    f.run(ask("mine"));
    f.run(ask("a", f.first, "1"));
    f.run(ask("b", f.second, std::to_string(f.clock() + 1'000'000)));
    auto const seen = f.at_once({release("mine"), give_back("nobody's", f.gone), next, queue});
    CHECK(seen.number(1) == 1);
    CHECK(seen.text(2) == f.first);
    CHECK(seen.texts(3) == list{f.second});
}

TEST_CASE("a reservation is as long as its waiter says, within bounds, and no foreign text can spoil a release")
{
    fixture f;
    auto const seen = f.at_once({ask("mine"),
                                 ask("a", "0000000000000abc"
                                          "0190"
                                          "7"),
                                 release("mine"),
                                 reservation,
                                 {"DEL", "n", "k"},
                                 ask("mine"),
                                 {"ZADD", "q", "1", "0000000000000abcffff1", "2", "0000000000000abc", "3", "x"},
                                 release("mine"),
                                 reservation,
                                 {"DEL", "n"},
                                 {"SET", "k", "mine", "PX", "60000"},
                                 release("mine"),
                                 reservation});
    CHECK(seen.lasts(seen.number(3), 400));
    CHECK(seen.number(7) == 1);
    CHECK(seen.lasts(seen.number(8), 1000));
    CHECK(seen.number(11) == 1);
    CHECK(seen.lasts(seen.number(12), 50));
}

TEST_CASE("a score of more than an hour ago counts as that, and one of more than a minute from now, too")
{
    fixture f;
    f.run(ask("mine"));
    auto const before = static_cast<double>(f.clock());
    f.run(ask("a", f.first, "1"));
    f.run(ask("b", f.second, "99999999999999999"));
    auto const after = static_cast<double>(f.clock());
    auto const score = [&](std::string const& who) { return std::stod(f.server.command({"ZSCORE", "q", who}).text); };
    CHECK(score(f.first) >= before - 3.6e9);
    CHECK(score(f.first) <= after - 3.6e9);
    CHECK(score(f.second) >= before + 6e7);
    CHECK(score(f.second) <= after + 6e7);
}

TEST_CASE("a score that is negative is the time waited so far, up to an hour")
{
    fixture f;
    f.run(ask("mine"));
    auto const before = static_cast<double>(f.clock());
    f.run(ask("a", f.first, "-5000000"));
    f.run(ask("b", f.second, "-9223372036854775808"));
    auto const after = static_cast<double>(f.clock());
    auto const score = [&](std::string const& who) { return std::stod(f.server.command({"ZSCORE", "q", who}).text); };
    CHECK(score(f.first) >= before - 5e6);
    CHECK(score(f.first) <= after - 5e6);
    CHECK(score(f.second) >= before - 3.6e9);
    CHECK(score(f.second) <= after - 3.6e9);
}

TEST_CASE("what is wrong with the keys of the queue makes nothing fail")
{
    fixture f;
    f.server.command({"LPUSH", "n", "x"});
    CHECK(f.run(ask("mine", f.first)).integer == 1);
    CHECK(f.run(release("mine")).integer == 1);
    f.server.command({"DEL", "n"});
    f.server.command({"SET", "n", "for ever"});
    auto const seen = f.at_once({ask("mine", f.first), ask("a", f.first), release("mine"), next});
    CHECK(seen.number(0) == 1);
    CHECK(seen.refused_for(1, 60'000));
    CHECK(seen.number(2) == 1);
    CHECK(seen.text(3) == f.first);
    f.server.command({"DEL", "n", "q"});
    f.server.command({"LPUSH", "q", "x"});
    auto const more = f.at_once({ask("mine", f.second), ask("a", f.first), give_back("mine", f.second, "1")});
    CHECK(more.number(0) == 1);
    CHECK(more.refused_for(1, 500));  // it is in no queue, and asks again soon
    CHECK(more.number(2) == 1);
    CHECK(f.get("k").empty());
}

TEST_CASE("a user who may not publish to an inbox takes nobody's place in the queue")
{
    fixture f;
    f.run(ask("mine"));
    f.run(ask("a", f.first, std::to_string(f.clock())));
    auto const before = f.server.command({"ZSCORE", "q", f.first}).text;
    f.server.command({"ACL", "SETUSER", "app", "on", ">secret", "~*", "resetchannels", "&free", "+@all"});
    connection app{f.server.port()};
    app({"AUTH", "app", "secret"});
    auto const r = app({"EVAL", scripts::release.text(), "3", "k", "q", "n", "mine", "free"});
    INFO(r);
    CHECK(r.integer == 1);
    auto const seen = f.at_once({queue, next});
    CHECK(seen.texts(0) == list{f.first});
    CHECK(seen.text(1).empty());
    CHECK(f.server.command({"ZSCORE", "q", f.first}).text == before);
}

TEST_CASE("the scripts that count fences honour the queue, too")
{
    fixture f;
    step const by_clock{scripts::acquire_by_clock, {"a", "60000", "1", "3600000", "1800000000", f.first, "1"}, true};
    step const by_count{
        scripts::acquire_by_count, {"b", "60000", "1", "3600000", "1800000000", "0", "0", "1", f.second, "1"}, true};
    auto const seen = f.at_once({by_clock, by_count, queue, release("a"), next, by_clock, queue, by_count, next});
    CHECK(seen.number(0) > 0);
    CHECK(seen.number(1) < 0);
    CHECK(seen.texts(2) == list{f.second});
    CHECK(seen.number(3) == 1);
    CHECK(seen.text(4) == f.second);
    CHECK(seen.number(5) < 0);
    CHECK(seen.texts(6) == list{f.first});
    CHECK(seen.number(7) > 0);
    CHECK(seen.text(8).empty());
}

TEST_CASE("a server without memory refuses those who wait as others, forgets their place, and has them ask soon")
{
    fixture f;
    f.run(ask("mine"));
    f.server.command({"CONFIG", "SET", "maxmemory", "1"});
    CHECK(f.at_once({ask("a", f.first)}).refused_for(0, 500));  // the holder has a minute, and will not call it
    CHECK(f.run(release("mine")).integer == 1);
    f.server.command({"CONFIG", "SET", "maxmemory", "0"});
    CHECK(f.empty());
}

TEST_CASE("a free lock goes to those who wait for it, before one that comes")
{
    fixture f;
    auto const now = f.clock();
    auto const seen = f.at_once({ask("mine"),
                                 ask("a", f.gone, std::to_string(now)),
                                 ask("b", f.first, std::to_string(now + 1)),
                                 ask("c", f.second, std::to_string(now + 2)),
                                 {"DEL", "k"},
                                 ask("new"),
                                 {"EXISTS", "k"},
                                 queue,
                                 next,
                                 {"DEL", "n"},
                                 ask("c", f.second),
                                 {"EXISTS", "q", "n"}});
    CHECK(seen.refused_for(5, 50));
    CHECK(seen.number(6) == 0);
    CHECK(seen.texts(7) == list{f.second});
    CHECK(seen.text(8) == f.first);
    CHECK(seen.number(10) == 1);  // it is the first itself
    CHECK(seen.number(11) == 0);
    CHECK(f.inbox.read().elements.at(2).text == f.first.substr(16) + " k");
}

TEST_CASE("a waiter that comes after its reservation has its old place")
{
    fixture f;
    auto const now = f.clock();
    auto const one = ask("a", f.first, std::to_string(now));
    auto const seen = f.at_once({ask("mine"),
                                 one,
                                 ask("b", f.second, std::to_string(now + 1)),
                                 release("mine"),
                                 next,
                                 {"DEL", "n"},
                                 one,
                                 queue,
                                 next});
    CHECK(seen.text(4) == f.first);
    CHECK(seen.number(6) == 1);
    CHECK(seen.texts(7) == list{f.second});
    CHECK(seen.text(8).empty());
}

TEST_CASE("who was called takes the lock, whoever has come to the queue since")
{
    fixture f;
    auto const now = f.clock();
    auto const one = ask("a", f.first, std::to_string(now));
    auto const seen = f.at_once({ask("mine"),
                                 one,
                                 release("mine"),
                                 ask("b", f.second, std::to_string(now - 1000)),
                                 queue,
                                 one,
                                 {"GET", "k"},
                                 {"EXISTS", "n"},
                                 queue});
    CHECK(seen.refused_for(3, 50));
    CHECK(seen.texts(4) == list{f.second});
    CHECK(seen.number(5) == 1);
    CHECK(seen.text(6) == "a");
    CHECK(seen.number(7) == 0);
    CHECK(seen.texts(8) == list{f.second});
}
