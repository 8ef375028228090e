// SPDX-License-Identifier: MIT
//
// The scripts of a read-write lock, on a real server.
#include "joined_scripts.hpp"
#include "support/catch.hpp"
#include "support/connection.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis/script_table.hpp>

#include <string>
#include <vector>

namespace scripts = holdfast::redis::scripts;
using holdfast::redis::script;
using holdfast::test::connection;
using holdfast::test::eventually;
using holdfast::test::redis_server;
using holdfast::test::reply;

namespace {

using list = std::vector<std::string>;

std::string const reader = "holdfast:readers";
std::string const inbox_of_writers = "00000000000abcde";

/// One of the scripts with its arguments, with the keys of the queue or without.
struct step {
    std::string text;
    list arguments;
    bool in_line = true;
};

step ask_to_read(std::string const& token)
{
    return {scripts::acquire_shared.text(), {token, "60000", "", "0"}, false};
}
step ask_to_write(std::string const& token, std::string const& waits)
{
    return {scripts::acquire_exclusive.text(), {token, "60000", "", waits}, false};
}
step ask_in_line(std::string const& token, std::string const& waiter, std::string const& score)
{
    return {scripts::acquire_exclusive.text(), {token, "60000", "", "60000", waiter, score}};
}
step end_of_read(std::string const& token) { return {scripts::release_shared.text(), {token, "free"}}; }
step end_of_write(std::string const& token) { return {scripts::release_exclusive.text(), {token, "free"}}; }
step const reserved{"return redis.call('GET', KEYS[5])", {}};

struct fixture {
    redis_server server{};
    connection all{server.port()};

    fixture() { all({"SUBSCRIBE", "free"}); }

    long long run(script const& s, list const& arguments, bool fenced = false)
    {
        list words{"EVAL", s.text(), fenced ? "4" : "3", "k"};
        if (fenced) words.emplace_back("f");
        words.insert(words.end(), {"r", "p"});
        words.insert(words.end(), arguments.begin(), arguments.end());
        auto const got = server.command(words);
        INFO(got);
        CHECK(got.type == reply::kind::integer);
        return got.integer;
    }

    long long read(std::string const& token, std::string const& ttl = "60000", std::string const& waits = "0",
                   std::string const& beside = "")
    {
        return run(scripts::acquire_shared, {token, ttl, beside, waits});
    }
    long long write(std::string const& token, std::string const& waits = "0", std::string const& beside = "")
    {
        return run(scripts::acquire_exclusive, {token, "60000", beside, waits});
    }
    /// The waiter's inbox is the first 16 of its letters; the scripts have the keys `q` and `n` of the queue, too.
    long long run_in_line(script const& s, list const& arguments)
    {
        list words{"EVAL", s.text(), "5", "k", "r", "p", "q", "n"};
        words.insert(words.end(), arguments.begin(), arguments.end());
        auto const got = server.command(words);
        INFO(got);
        // A refusal may be followed by the score of the last in the queue.
        CHECK((got.type == reply::kind::integer || got.elements.size() == 2));
        return got.elements.empty() ? got.integer : got.elements[0].integer;
    }
    long long wait_to_write(std::string const& token, std::string const& waiter, std::string const& score)
    {
        return run_in_line(scripts::acquire_exclusive, {token, "60000", "", "60000", waiter, score});
    }
    long long wait_to_read(std::string const& token, std::string const& waiter)
    {
        return run(scripts::acquire_shared, {token, "60000", "", "60000", waiter});
    }
    long long end_write_in_line(std::string const& token)
    {
        return run_in_line(scripts::release_exclusive, {token, "free"});
    }
    long long end_read_in_line(std::string const& token)
    {
        return run_in_line(scripts::release_shared, {token, "free"});
    }
    long long leave(std::string const& waiter)
    {
        return run_in_line(scripts::release_exclusive, {"", "free", waiter, "0"});
    }
    /// Effects: one script with all steps: while it runs, no reservation ends.
    /// Returns: what each answered; "refused" for any refusal.
    list at_once(std::vector<step> const& steps)
    {
        holdfast::test::joined_scripts together;
        for (auto const& one : steps)
            together.add(one.text, one.in_line ? "'k', 'r', 'p', 'q', 'n'" : "'k', 'r', 'p'", one.arguments);
        auto const got = server.command(together.command());
        INFO(got);
        REQUIRE(got.elements.size() == steps.size());
        list all_answers;
        for (auto const& one : got.elements) {
            // A refusal may be followed by the score of the last in the queue.
            auto const number = one.elements.empty() ? one.integer : one.elements[0].integer;
            if (one.type != reply::kind::integer && one.elements.empty())
                all_answers.push_back(one.text);
            else
                all_answers.push_back(number < 0 ? "refused" : std::to_string(number));
        }
        return all_answers;
    }
    std::string score(long long later = 0) { return std::to_string((now() + later) * 1000); }
    /// Returns: how many messages to all have come.
    int told()
    {
        server.command({"PUBLISH", "free", "no more"});
        for (int count = 0;; ++count)
            if (all.read().elements.at(2).text == "no more") return count;
    }
    std::string reserved_for() { return server.command({"GET", "n"}).text; }

    long long end_read(std::string const& token) { return run(scripts::release_shared, {token, "free"}); }
    long long end_write(std::string const& token) { return run(scripts::release_exclusive, {token, "free"}); }
    long long extend(std::string const& token, std::string const& ttl = "60000")
    {
        return run(scripts::extend_shared, {token, ttl});
    }

    list readers()
    {
        list some;
        for (auto const& one : server.command({"ZRANGE", "r", "0", "-1"}).elements) some.push_back(one.text);
        return some;
    }
    long long now()
    {
        auto const t = server.command({"TIME"});
        return std::stoll(t.elements.at(0).text) * 1000 + std::stoll(t.elements.at(1).text) / 1000;
    }
    long long live() { return server.command({"ZCOUNT", "r", std::to_string(now()), "+inf"}).integer; }
    std::string value() { return server.command({"GET", "k"}).text; }
    long long left(std::string const& key = "k") { return server.command({"PTTL", key}).integer; }
    bool empty() { return server.command({"EXISTS", "k", "r", "p"}).integer == 0; }
    bool set_nx(std::string const& token)
    {
        return server.command({"SET", "k", token, "NX", "PX", "60000"}).text == "OK";
    }
};

}  // namespace

TEST_CASE("readers are beside each other, and keep out writers and strangers")
{
    fixture f;
    CHECK(f.read("a") == 1);
    CHECK(f.read("b") == 1);
    CHECK(f.read("b") == 1);  // a copy
    CHECK(f.readers().size() == 2);
    CHECK(f.value() == reader);
    CHECK(f.write("w") < -50'000);
    CHECK_FALSE(f.set_nx("s"));
    CHECK(f.server.command({"EXISTS", "p"}).integer == 0);
    CHECK(f.end_read("a") == 1);
    CHECK(f.end_read("a") == 0);
    CHECK(f.write("w") < 0);
    CHECK(f.end_read("b") == 2);  // it was told
    CHECK(f.all.read().elements.size() == 3);
    CHECK(f.empty());
    CHECK(f.write("w") == 1);
    CHECK(f.write("w") == 1);
    CHECK(f.value() == "w");
    CHECK(f.read("a") < -50'000);
    CHECK(f.write("v") < -50'000);
    CHECK_FALSE(f.set_nx("s"));
    CHECK(f.end_write("v") == 0);
    CHECK(f.end_write("w") == 2);
    CHECK(f.empty());
    CHECK(f.set_nx("s"));
    CHECK(f.read("a") < 0);
    CHECK(f.write("w") < 0);
    CHECK(f.value() == "s");
}

TEST_CASE("the lock lasts as long as its last reader, and no longer")
{
    fixture f;
    CHECK(f.read("long") == 1);
    CHECK(f.read("short", "5000") == 1);
    CHECK(f.left() > 50'000);
    CHECK(f.left("r") > 50'000);
    CHECK(f.end_read("long") == 1);
    CHECK(f.left() <= 5000);
    CHECK(f.extend("short", "30000") == 1);
    CHECK(f.left() > 20'000);
    CHECK(f.extend("short", "1000") == 1);  // a late copy cuts nothing
    CHECK(f.left() > 20'000);
    CHECK(f.left("r") > 20'000);
    CHECK(f.extend("long") == 0);
    CHECK(f.readers() == list{"short"});
}

TEST_CASE("a dead reader keeps no writer out, and a live one beside it does")
{
    fixture f;
    CHECK(f.read("live") == 1);
    CHECK(f.read("dead", "1") == 1);
    CHECK(eventually([&] { return f.live() == 1; }));
    CHECK(f.extend("dead") == 0);
    CHECK(f.write("w") < 0);
    CHECK(f.extend("live") == 1);
    CHECK(f.end_read("dead") == 0);
    CHECK(f.end_read("live") == 2);
    CHECK(f.read("dead", "1") == 1);
    CHECK(eventually([&] { return f.write("w") == 1; }));
    CHECK(f.readers().empty());
}

TEST_CASE("a writer that waits keeps out new readers, for a while")
{
    fixture f;
    CHECK(f.read("a") == 1);
    CHECK(f.write("w", "60000") < 0);
    CHECK(f.read("b") <= -2);
    CHECK(f.read("b") >= -60'002);
    CHECK(f.extend("a") == 1);
    CHECK(f.read("a") == 1);  // it is no newcomer
    CHECK(f.end_read("a") == 2);
    CHECK(f.read("b") < 0);
    CHECK(f.write("w", "60000") == 1);
    CHECK(f.end_write("w") == 2);
    CHECK(f.read("b") == 1);
    CHECK(f.write("dead", "20") < 0);
    CHECK(eventually([&] { return f.read("c") == 1; }));
    f.end_read("b");
    f.end_read("c");
    CHECK(eventually([&] { return f.empty(); }));
}

TEST_CASE("readers that wait for a writer go before the next one, once")
{
    CHECK(eventually([] {
        fixture f;
        CHECK(f.write("w") == 1);
        CHECK(f.read("a", "60000", "60000") < 0);
        CHECK(f.write("v", "60000") < 0);
        auto const begun = f.now();
        CHECK(f.end_write("w") == 2);
        auto const refused = f.write("v", "60000");
        auto const came = f.read("a");
        auto const still_refused = f.write("v", "60000");
        bool const in_their_turn = f.now() < begun + 100;  // if not: once more
        if (in_their_turn) {
            CHECK(refused < 0);
            CHECK(refused >= -102);
            CHECK(came == 1);
            CHECK(still_refused < 0);
        }
        f.end_read("a");
        CHECK(eventually([&] { return f.write("v") == 1; }));
        CHECK(f.end_write("v") == 2);
        CHECK(f.write("v") == 1);  // none has waited since
        return in_their_turn;
    }));
}

TEST_CASE("a writer that waits for less does not have another one forgotten")
{
    fixture f;
    CHECK(f.read("a") == 1);
    CHECK(f.write("w", "60000") < 0);
    CHECK(f.write("v", "1") < 0);
    auto const over = f.now() + 1;
    CHECK(eventually([&] { return f.now() > over; }));
    CHECK(f.read("b") < 0);
    CHECK(f.wait_to_write("w", inbox_of_writers + "00321", f.score()) < 0);
    CHECK(f.run_in_line(scripts::acquire_exclusive, {"v", "60000", "", "1", inbox_of_writers + "00322", f.score()}) <
          0);
    auto const over_in_line = f.now() + 1;
    CHECK(eventually([&] { return f.now() > over_in_line; }));
    CHECK(f.read("b") < 0);
}

TEST_CASE("a reader that waits for less does not have another one forgotten")
{
    for (bool const known : {false, true}) {
        fixture f;
        CHECK(f.write("w") == 1);
        CHECK((known ? f.wait_to_read("a", inbox_of_writers + "00321") : f.read("a", "60000", "60000")) < 0);
        CHECK(f.read("b", "60000", "1") < 0);
        CHECK(f.run(scripts::acquire_shared, {"c", "60000", "", "1", inbox_of_writers + "00322"}) < 0);
        auto const over = f.now() + 1;
        CHECK(eventually([&] { return f.now() > over; }));
        CHECK(f.end_write("w") == 2);
        CHECK(f.server.command({"HGET", "p", "turn"}).text.size() > 1);  // it is a time, not 0
    }
}

TEST_CASE("readers that wait have no turn after a roll-back, and still have it after the next writer")
{
    fixture f;
    bool const waiter = GENERATE(true, false);
    bool const upgrades = GENERATE(true, false);
    if (upgrades) CHECK(f.read("r") == 1);
    CHECK(f.write("w", "0", upgrades ? "r" : "") == 1);
    CHECK(f.read("a", "60000", "60000") < 0);
    CHECK(f.run_in_line(scripts::release_exclusive, {"w", "free", waiter ? inbox_of_writers + "00321" : "", "0"}) == 2);
    if (!waiter) CHECK(f.run_in_line(scripts::release_exclusive, {"w", "free", "", "0"}) == 0);  // a copy
    CHECK(f.server.command({"HGET", "p", "turn"}).text == "0");
    CHECK(f.value() == (upgrades ? reader : ""));
    if (upgrades) CHECK(f.end_read("r") == 2);
    CHECK(f.write("v") == 1);
    CHECK(f.end_write("v") == 2);
    CHECK(f.server.command({"HGET", "p", "turn"}).text.size() > 1);  // it is a time, not 0
}

TEST_CASE("when the last reader has left, a writer does not wait for the rest of their turn")
{
    fixture f;
    CHECK(f.write("w") == 1);
    CHECK(f.read("a", "60000", "60000") < 0);
    CHECK(f.end_write("w") == 2);
    CHECK(f.read("a") == 1);
    CHECK(f.end_read("a") == 2);
    CHECK(f.write("v") == 1);
}

TEST_CASE("readers that wait have their turn also after a writer that became a reader")
{
    fixture f;
    CHECK(f.write("w") == 1);
    CHECK(f.read("a", "60000", "60000") < 0);
    CHECK(f.read("c", "60000", "0", "w") == 1);
    CHECK(f.end_write("w") == 2);
    CHECK(f.server.command({"HGET", "p", "turn"}).text.size() > 1);  // it is a time, not 0
}

TEST_CASE("what a clock that was set back has left behind keeps no reader or writer out")
{
    fixture f;
    auto const later = std::to_string(f.now() + 600'000);
    f.server.command({"HSET", "p", "turn", later, "writer", later, "reader", later});
    CHECK(f.read("a") == 1);
    CHECK(f.end_read("a") == 2);
    CHECK(f.write("w") == 1);
    CHECK(f.end_write("w") == 2);
}

TEST_CASE("a server without memory refuses new readers, and lets those that are there renew and leave")
{
    fixture f;
    CHECK(f.write("w") == 1);
    CHECK(f.read("a", "60000", "0", "w") == 1);
    f.server.command({"CONFIG", "SET", "maxmemory", "1"});
    CHECK(f.extend("a") == 1);
    CHECK(f.end_write("w") == 2);
    CHECK(f.value() == reader);
    CHECK(f.extend("a") == 1);
    CHECK(
        f.server.command({"EVAL", scripts::acquire_shared.text(), "3", "k", "r", "p", "b", "60000", "", "0"})
            .type == reply::kind::error);
    CHECK(f.end_read("a") == 2);
    CHECK(f.server.command({"EXISTS", "k", "r"}).integer == 0);
}

TEST_CASE("readers of before do not come back")
{
    fixture f;
    CHECK(f.read("old") == 1);
    f.server.command({"DEL", "k"});
    CHECK(f.extend("old") == 0);
    CHECK(f.set_nx("s"));
    CHECK(f.extend("old") == 0);
    CHECK(f.end_read("old") == 0);
    f.server.command({"DEL", "k"});
    CHECK(f.read("new") == 1);
    CHECK(f.readers() == list{"new"});
    CHECK(f.extend("old") == 0);
    f.server.command({"DEL", "k"});
    CHECK(f.write("w") == 1);
    CHECK(f.extend("new") == 0);
    CHECK(f.readers().empty());
    f.server.command({"DEL", "k"});
    CHECK(f.run(scripts::reacquire_shared, {"new", "60000"}) == 1);
    CHECK(f.run(scripts::reacquire_shared, {"new", "60000"}) == 1);
    CHECK(f.run(scripts::reacquire_shared, {"more", "60000"}) == 1);
    CHECK(f.readers().size() == 2);
    f.end_read("new");
    f.end_read("more");
    CHECK(f.write("w") == 1);
    CHECK(f.run(scripts::reacquire_shared, {"new", "60000"}) == 0);
}

TEST_CASE("a writer becomes a reader without a gap")
{
    fixture f;
    CHECK(f.read("a", "60000", "0", "w") == -2);  // it does not hold it
    CHECK(f.write("w") == 1);
    CHECK(f.read("a", "600000", "0", "other") < 0);
    CHECK(f.read("a", "600000", "0", "w") == 1);
    CHECK(f.read("a", "600000", "0", "w") == 1);
    CHECK(f.left() > 500'000);  // the lock does not end before its reader
    CHECK(f.left("p") > 500'000);
    CHECK(f.value() == "w");
    CHECK(f.read("b") < 0);
    CHECK(f.write("v", "60000") < 0);
    CHECK(f.extend("a", "700000") == 1);
    CHECK(f.left("p") > 600'000);
    // given up: the writer is as it was
    CHECK(f.end_read("a") == 1);
    CHECK(f.value() == "w");
    CHECK(f.extend("a") == 0);
    CHECK(f.read("c", "60000", "0", "w") == 1);
    CHECK(f.end_write("w") == 2);
    CHECK(f.value() == reader);
    CHECK(f.left() <= 60'000);
    CHECK_FALSE(f.set_nx("s"));
    CHECK(f.write("v") < 0);
    CHECK(f.extend("c") == 1);
    CHECK(f.read("b") == 1);
    CHECK(f.end_read("b") == 1);
    CHECK(f.end_read("c") == 2);
    CHECK(f.empty());
}

TEST_CASE("the only reader becomes a writer without a gap, and of two neither")
{
    fixture f;
    CHECK(f.write("w", "0", "a") < 0);
    CHECK(f.read("a") == 1);
    CHECK(f.read("b") == 1);
    CHECK(f.write("w", "0", "a") < 0);
    CHECK(f.write("v", "0", "b") < 0);
    CHECK(f.write("v", "0", "c") < 0);
    CHECK(f.end_read("b") == 1);
    CHECK(f.write("u", "60000") < 0);  // another writer waits: no matter
    CHECK(f.write("w", "0", "a") == 1);
    CHECK(f.write("w", "0", "a") == 1);
    CHECK(f.value() == "w");
    CHECK(f.extend("a") == 1);
    CHECK(f.read("b") < 0);
    CHECK(f.write("v") < 0);
    // given up: the reader is as it was
    CHECK(f.end_write("w") == 2);
    CHECK(f.value() == reader);
    CHECK(f.extend("a") == 1);
    CHECK(f.write("x", "0", "a") == 1);
    CHECK(f.end_read("a") == 1);
    CHECK(f.value() == "x");
    CHECK(f.extend("a") == 0);
    CHECK(f.read("b") < 0);
    CHECK(f.end_write("x") == 2);
    CHECK(f.write("u", "60000") == 1);
    CHECK(f.end_write("u") == 2);
    CHECK(f.empty());
}

TEST_CASE("a writer that waits is not forgotten when a reader becomes a writer, or a single attempt gets the lock")
{
    fixture f;
    bool const upgrades = GENERATE(true, false);
    CHECK(f.read("r") == 1);
    CHECK(f.write("u", "60000") < 0);
    if (!upgrades) CHECK(f.end_read("r") > 0);
    CHECK(f.write("w", "0", upgrades ? "r" : "") == 1);
    f.server.command({"DEL", "k"});  // the lease ends
    CHECK(f.read("s") < 0);
    CHECK(f.write("u", "60000") == 1);
    CHECK(f.end_write("u") == 2);
    CHECK(f.read("s") == 1);
}

TEST_CASE("a writer whose release the server has forgotten keeps readers out for its own lease, and no longer")
{
    fixture f;
    step const write{scripts::acquire_exclusive.text(), {"w", "20", "", "0"}, false};
    step const stand_beside{scripts::acquire_shared.text(), {"a", "60000", "w", "0"}, false};
    CHECK(f.at_once({write, stand_beside}) == list{"1", "1"});
    auto const over = f.now() + 21;
    auto const wait_until_over = [&] { REQUIRE(eventually([&] { return f.now() > over; })); };
    SECTION("the reader renews its own lease")
    {
        CHECK(eventually([&] { return f.extend("a") == 1 && f.value() == reader; }));
        CHECK(f.server.command({"HGET", "p", "beside"}).text.empty());
        CHECK(f.extend("a", "600000") == 1);
        CHECK(f.left() > 500'000);
        CHECK(f.read("b") == 1);
        CHECK(f.end_read("b") == 1);
        CHECK(f.end_write("w") == 0);
    }
    SECTION("another reader comes")
    {
        CHECK(eventually([&] { return f.read("b") == 1; }));
        CHECK(f.value() == reader);
        CHECK(f.server.command({"HGET", "p", "beside"}).text.empty());
        CHECK(f.extend("a") == 1);
        CHECK(f.server.command({"HGET", "p", "beside"}).text.empty());
        CHECK(f.end_read("b") == 1);
        CHECK(f.end_write("w") == 0);
    }
    SECTION("a reader asks for a vote that this server never gave")
    {
        CHECK(eventually([&] { return f.run(scripts::reacquire_shared, {"b", "60000"}) == 1; }));
        CHECK(f.value() == reader);
        CHECK(f.end_read("b") == 1);
    }
    SECTION("another reader is refused, since a writer waits, and is remembered")
    {
        CHECK(f.wait_to_write("v", inbox_of_writers + "00321", f.score()) < 0);
        wait_until_over();
        CHECK(f.read("b", "60000", "60000") < 0);
        CHECK(f.extend("a") == 1);
        CHECK(f.leave(inbox_of_writers + "00321") == 0);
    }
    SECTION("its release comes late")
    {
        wait_until_over();
        CHECK(f.end_write("w") == 2);
        CHECK(f.value() == reader);
    }
    SECTION("its reader is asked for once more, late")
    {
        wait_until_over();
        CHECK(f.read("a", "60000", "0", "w") == 1);
        CHECK(f.value() == reader);
        CHECK(f.read("c", "60000", "0", "w") < 0);
    }
    SECTION("no other asks") { wait_until_over(); }
    CHECK(f.write("v") < 0);
    CHECK(f.end_read("a") == 2);
    CHECK(f.server.command({"EXISTS", "k", "r"}).integer == 0);
}

TEST_CASE("a writer beside its reader has the lock if its end is not known, and if its key has none")
{
    fixture f;
    bool const endless = GENERATE(true, false);
    CHECK(f.write("w") == 1);
    if (endless) f.server.command({"PERSIST", "k"});
    CHECK(f.read("a", "60000", "0", "w") == 1);
    if (!endless) f.server.command({"HDEL", "p", "beside_until"});
    auto const granted = f.now();
    CHECK(eventually([&] { return f.now() > granted + 1; }));
    CHECK(f.read("b") < 0);
    CHECK(f.extend("a") == 1);
    CHECK(f.read("b") < 0);
    CHECK(f.value() == "w");
}

TEST_CASE("a reader that became a writer, and whose end the server has forgotten, is alone for as long as it renews")
{
    struct renewal {
        script const* what;
        bool holder;
        bool many;
        bool text;
    };
    auto const by = GENERATE(renewal{&scripts::extend_exclusive, false, false, false},
                             renewal{&scripts::extend_exclusive_and_hear, true, false, false},
                             renewal{&scripts::extend_many_exclusive, false, true, false},
                             renewal{&scripts::extend_many_exclusive_and_hear, true, true, false},
                             renewal{&scripts::reacquire_exclusive, false, false, false},
                             renewal{&scripts::reacquire_exclusive_and_tell, true, false, true});
    fixture f;
    auto const renew = [&](std::string const& ttl) -> step {
        list arguments{"x", ttl};
        if (by.many) arguments.insert(arguments.begin(), "1");
        if (by.text) arguments.emplace_back("host=a pid=1");
        std::string keys = by.holder ? "'k', 'r', 'p', 'h'" : "'k', 'r', 'p'";
        std::string const answer = by.many ? ")[1]" : ")";
        return {"return (function(KEYS)\n" + by.what->text() + "\nend)({" + keys + "}" + answer, arguments, false};
    };
    step const upgrade{scripts::acquire_exclusive.text(), {"x", "20", "a", "0"}, false};
    auto const until = [&] { return std::stoll(f.server.command({"HGET", "p", "beside_until"}).text); };
    CHECK(f.at_once({ask_to_read("a"), upgrade}) == list{"1", "1"});
    CHECK(until() <= f.now() + 60'000);  // as long as the reader was granted it
    auto const before = f.now();
    CHECK(f.at_once({renew("600000"), renew("1")}) == list{"1", "1"});
    CHECK(until() >= before + 600'000);
    CHECK(f.extend("a", "900000") == 1);
    CHECK(f.value() == "x");
    CHECK(f.read("b") < 0);
    CHECK(until() <= f.now() + 600'000);
    CHECK(f.left() > 800'000);
    f.server.command({"CONFIG", "SET", "maxmemory", "1"});
    auto const once_more = f.now();
    CHECK(f.at_once({renew("700000")}) == list{"1"});
    CHECK(until() >= once_more + 700'000);
}

TEST_CASE("fencing tokens of both modes come from one counter, and a reader confirms its own")
{
    fixture f;
    list const fence{"60000", "1", "3600000", "86400000000"};
    auto const run = [&](script const& s, std::string const& token, list more) {
        list words{token};
        words.insert(words.end(), fence.begin(), fence.end());
        words.insert(words.end(), more.begin(), more.end());
        return f.run(s, words, true);
    };
    auto const first = run(scripts::acquire_shared_by_clock, "a", {"", "0"});
    auto const second = run(scripts::acquire_shared_by_clock, "b", {"", "0"});
    CHECK(first > 0);
    CHECK(second > first);
    CHECK(run(scripts::acquire_exclusive_by_clock, "w", {"", "0"}) < 0);
    auto const greater = std::to_string(second + 5);
    CHECK(f.run(scripts::confirm_shared, {"a", greater, "3600000", "86400000000"}, true) == 1);
    CHECK(f.server.command({"GET", "f"}).text == greater);
    CHECK(f.run(scripts::confirm_shared, {"c", greater, "3600000", "86400000000"}, true) == 0);
    f.end_read("a");
    f.end_read("b");
    auto const third = run(scripts::acquire_exclusive_by_count, "w", {"0", "0", "1", "", "0"});
    CHECK(third == second + 6);
    CHECK(f.run(scripts::confirm_shared, {"a", greater, "3600000", "86400000000"}, true) == 0);
    CHECK(run(scripts::acquire_shared_by_count, "a", {"0", "0", "1", "", "0"}) < 0);
    f.end_write("w");
    CHECK(run(scripts::acquire_shared_by_count, "a", {"0", "0", "1", "", "0"}) == third + 1);
}

TEST_CASE("writers that wait are called one by one, in the order in which they came")
{
    fixture f;
    connection inbox{f.server.port()};
    inbox({"SUBSCRIBE", "holdfast:wake:" + inbox_of_writers});
    auto const first = inbox_of_writers + "03e81";
    auto const second = inbox_of_writers + "03e82";
    CHECK(f.write("w") == 1);
    auto const came = f.score();
    CHECK(f.wait_to_write("v", second, f.score(5)) < 0);
    CHECK(f.wait_to_write("u", first, came) < 0);
    auto const later = f.score(5);
    // The reader is refused because a writer waits.
    CHECK(f.at_once({end_of_write("w"), reserved, ask_in_line("v", second, later), ask_to_read("r"),
                     ask_in_line("u", first, came)}) == list{"2", first, "refused", "refused", "1"});
    CHECK(inbox.read().elements.at(2).text == "03e81 k");
    CHECK(f.reserved_for().empty());
    CHECK(f.read("r") < 0);
    CHECK(f.at_once({end_of_write("u"), reserved, ask_to_read("r"), ask_in_line("v", second, later)}) ==
          list{"2", second, "refused", "1"});
    CHECK(f.end_write_in_line("v") == 2);
    CHECK(f.read("r") == 1);  // no writer is known to wait any more
    CHECK(f.end_read_in_line("r") == 2);
    CHECK(f.server.command({"EXISTS", "k", "r", "q", "n"}).integer == 0);
}

TEST_CASE("when the last reader leaves, the writer that came first is called, and no other is told")
{
    fixture f;
    connection inbox{f.server.port()};
    inbox({"SUBSCRIBE", "holdfast:wake:" + inbox_of_writers});
    auto const writer = inbox_of_writers + "03e81";
    CHECK(f.read("r") == 1);
    CHECK(f.read("s") == 1);
    CHECK(f.wait_to_write("u", writer, f.score()) < 0);
    CHECK(f.end_read_in_line("r") == 1);
    CHECK(f.reserved_for().empty());
    CHECK(f.at_once({end_of_read("s"), reserved, ask_in_line("u", writer, f.score())}) == list{"1", writer, "1"});
    CHECK(f.told() == 0);
    CHECK(f.end_write_in_line("u") == 2);
    CHECK(f.told() == 1);
}

TEST_CASE("a writer that knows of no queue hears that the last reader has left, although another is called")
{
    fixture f;
    connection inbox{f.server.port()};
    inbox({"SUBSCRIBE", "holdfast:wake:" + inbox_of_writers});
    auto const called = inbox_of_writers + "03e81";
    CHECK(f.read("r") == 1);
    CHECK(f.wait_to_write("u", called, f.score()) < 0);
    CHECK(f.write("old", "30000") < 0);
    auto const again = ask_in_line("u", called, f.score());
    // It does not respect a reservation, as ever.
    CHECK(f.at_once({end_of_read("r"), reserved, ask_to_write("old", "30000"), again, end_of_write("old"), reserved,
                     again}) == list{"2", called, "1", "refused", "2", called, "1"});
}

TEST_CASE("a writer in the queue is not forgotten when another that knows of no queue gets the lock")
{
    fixture f;
    connection inbox{f.server.port()};
    inbox({"SUBSCRIBE", "holdfast:wake:" + inbox_of_writers});
    auto const writer = inbox_of_writers + "03e81";
    bool const upgrades = GENERATE(true, false);
    CHECK(f.read("r") == 1);
    CHECK(f.wait_to_write("u", writer, f.score()) < 0);
    if (upgrades) {
        CHECK(f.write("w", "0", "r") == 1);
        CHECK(f.end_read("r") == 1);
    } else {
        CHECK(f.end_read("r") > 0);
        CHECK(f.write("w") == 1);  // a single attempt
    }
    CHECK(f.at_once({end_of_write("w"), reserved, ask_to_read("s"), ask_in_line("u", writer, f.score())}) ==
          list{"2", writer, "refused", "1"});
    CHECK(f.end_write_in_line("u") == 2);
    CHECK(f.read("s") == 1);
}

TEST_CASE("a writer whose client is gone keeps neither the next one nor readers out")
{
    fixture f;
    connection inbox{f.server.port()};
    inbox({"SUBSCRIBE", "holdfast:wake:" + inbox_of_writers});
    auto const lives = inbox_of_writers + "03e81";
    CHECK(f.read("r") == 1);
    CHECK(f.wait_to_write("dead", "000000000000dead03e81", f.score()) < 0);
    CHECK(f.wait_to_write("u", lives, f.score(5)) < 0);
    CHECK(f.at_once({end_of_read("r"), reserved, ask_in_line("u", lives, f.score(5))}) == list{"1", lives, "1"});
    CHECK(f.end_write_in_line("u") == 2);
    CHECK(f.read("r") == 1);
}

TEST_CASE("when the last writer in the queue gives up, readers may come, and are told")
{
    fixture f;
    auto const one = inbox_of_writers + "03e81";
    auto const other = inbox_of_writers + "03e82";
    CHECK(f.read("r") == 1);
    CHECK(f.wait_to_write("u", one, f.score()) < 0);
    CHECK(f.wait_to_write("v", other, f.score()) < 0);
    CHECK(f.leave(one) == 0);
    CHECK(f.read("s", "60000", "60000") < 0);
    CHECK(f.told() == 0);
    CHECK(f.leave(other) == 0);
    CHECK(f.told() == 1);
    CHECK(f.read("s") == 1);
    CHECK(f.write("old", "60000") < 0);
    CHECK(f.wait_to_write("u", one, f.score()) < 0);
    CHECK(f.write("old", "30000") < 0);
    CHECK(f.leave(one) == 0);
    CHECK(f.read("t") < 0);  // one that is in no queue waits
}

TEST_CASE("the turn of readers lasts until each of those that waited has come")
{
    fixture f;
    connection inbox{f.server.port()};
    inbox({"SUBSCRIBE", "holdfast:wake:" + inbox_of_writers});
    auto const near = inbox_of_writers + "00321";
    auto const far = inbox_of_writers + "03e82";
    auto const writer = inbox_of_writers + "03e83";
    CHECK(f.write("w") == 1);
    CHECK(f.wait_to_read("a", near) < 0);
    CHECK(f.wait_to_read("b", far) < 0);
    CHECK(f.wait_to_read("b", far) < 0);
    CHECK(f.wait_to_write("u", writer, f.score()) < 0);
    auto const begun = f.now();
    CHECK(f.end_write_in_line("w") == 2);
    auto const first = f.wait_to_read("a", near);
    auto const left = f.end_read_in_line("a");
    auto const refused = f.wait_to_write("u", writer, f.score());  // the far one has not come
    auto const came = f.wait_to_read("b", far);
    if (f.now() < begun + 1000) {
        CHECK(first == 1);
        CHECK(left > 0);
        CHECK(refused < 0);
        CHECK(came == 1);
    }
    f.end_read_in_line("b");
    CHECK(eventually([&] { return f.wait_to_write("u", writer, f.score()) == 1; }));
    // One that gives up is not waited for.
    CHECK(eventually([&] {
        CHECK(f.wait_to_read("a", near) < 0);
        CHECK(f.wait_to_read("b", far) < 0);
        CHECK(f.run_in_line(scripts::release_shared, {"", "free", near}) == 0);
        auto const ended = f.now();
        CHECK(f.end_write_in_line("u") == 2);
        auto const gave_up = f.run_in_line(scripts::release_shared, {"", "free", far});
        bool const in_their_turn = f.now() < ended + 1000;  // if not: once more
        if (in_their_turn) {
            CHECK(gave_up == 2);
            CHECK(f.write("u") == 1);
        } else {
            CHECK(eventually([&] { return f.write("u") == 1; }));
        }
        return in_their_turn;
    }));
    CHECK(f.wait_to_read("a", near) < 0);
    CHECK(f.run_in_line(scripts::release_shared, {"", "free", near}) == 0);
    CHECK(f.end_write_in_line("u") == 2);
    CHECK(f.write("u") == 1);
    // One that does not come keeps others out for a reservation, once.
    CHECK(f.wait_to_read("a", far) < 0);
    CHECK(f.end_write_in_line("u") == 2);
    CHECK(eventually([&] { return f.write("v") == 1; }));
    CHECK(f.end_write_in_line("v") == 2);
    CHECK(f.write("v") == 1);
}

TEST_CASE("a key of another type counts as held by a read-write lock, too")
{
    fixture f;
    f.server.command({"LPUSH", "k", "1"});
    CHECK(f.read("a") < -holdfast::redis::other_type_mark);
    CHECK(f.write("w") < -holdfast::redis::other_type_mark);
    CHECK(f.extend("a") == 0);
    CHECK(f.end_read("a") == 0);
    CHECK(f.end_write("w") == 0);
    CHECK(f.run(scripts::reacquire_shared, {"a", "60000"}) == 0);
}
