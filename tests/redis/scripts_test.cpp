// SPDX-License-Identifier: MIT
//
// Each script's contract, on a real server.
#include "support/catch.hpp"
#include "support/connection.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/script_table.hpp>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace scripts = holdfast::redis::scripts;
using holdfast::redis::script;
using holdfast::test::redis_server;
using holdfast::test::reply;

namespace {

struct on_server {
    redis_server server;

    reply run(script const& s, std::vector<std::string> const& keys, std::vector<std::string> const& arguments)
    {
        std::vector<std::string> words{"EVAL", s.text(), std::to_string(keys.size())};
        words.insert(words.end(), keys.begin(), keys.end());
        words.insert(words.end(), arguments.begin(), arguments.end());
        return server.command(words);
    }

    long long number(script const& s, std::vector<std::string> const& keys, std::vector<std::string> const& arguments)
    {
        auto const r = run(s, keys, arguments);
        INFO(r);
        CHECK(r.type == reply::kind::integer);
        return r.integer;
    }

    long long micros()
    {
        auto const t = server.command({"TIME"});
        return std::stoll(t.elements.at(0).text) * 1'000'000 + std::stoll(t.elements.at(1).text);
    }

    std::string get(std::string const& key) { return server.command({"GET", key}).text; }
    long long pttl(std::string const& key) { return server.command({"PTTL", key}).integer; }
};

constexpr long long hour = 3'600'000;
std::string const hour_text = "3600000";
std::string const half_hour = "1800000000";  // the bound, in µs

}  // namespace

TEST_CASE("every script's SHA-1 is the one by which a server knows it")
{
    redis_server server;
    std::set<holdfast::redis::script const*> all{&scripts::acquire_all};
    for (auto const* r : scripts::recipes) all.insert(r->begin(), r->end());
    all.insert(scripts::of_operators.begin(), scripts::of_operators.end());
    all.insert(scripts::redisson::of_operators.begin(), scripts::redisson::of_operators.end());
    for (auto const& r : scripts::renewals) all.insert(r.many);
    std::set<std::string> different;
    for (auto const* s : all) {
        CHECK(server.command({"SCRIPT", "LOAD", s->text()}).text == s->sha1);
        different.emplace(s->sha1);
    }
    CHECK(different.size() == all.size());
    CHECK(all.size() <= holdfast::redis::most_scripts);
}

TEST_CASE("acquire: takes a free key, knows its own token again and refuses others with the time left", "[lesson-1]")
{
    on_server s;
    CHECK(s.number(scripts::acquire, {"k"}, {"mine", "60000"}) == 1);
    CHECK(s.get("k") == "mine");
    CHECK(s.pttl("k") > 50'000);
    CHECK(s.number(scripts::acquire, {"k"}, {"mine", "60000"}) == 1);
    auto const left = -2 - s.number(scripts::acquire, {"k"}, {"other", "60000"});
    CHECK(left > 50'000);
    CHECK(left <= 60'000);
    CHECK(s.get("k") == "mine");
}

namespace {

/// Each script that acquires, with arguments for the token `mine` and a minute.
std::vector<std::pair<script, std::vector<std::string>>> all_that_acquire(std::string const& mine = "mine")
{
    return {{scripts::acquire, {mine, "60000"}},
            {scripts::acquire_by_clock, {mine, "60000", "1", hour_text, half_hour}},
            {scripts::acquire_by_count, {mine, "60000", "1", hour_text, half_hour, "0", "0", "1"}}};
}

}  // namespace

TEST_CASE("acquire: without the key and the fence it takes, and begins the fence with the clock")
{
    on_server s;
    for (auto const& [script, arguments] : all_that_acquire()) {
        s.server.command({"FLUSHALL"});
        auto const before = s.micros();
        auto const got = s.number(script, {"k", "f"}, arguments);
        CHECK(s.get("k") == "mine");
        CHECK(s.pttl("k") > 50'000);
        if (got == 1) continue;
        CHECK(got >= before);
        CHECK(got <= s.micros() + 1);
        CHECK(s.get("f") == std::to_string(got));
    }
}

TEST_CASE("acquire: an empty key is held, and a fence that is there stays as it is")
{
    on_server s;
    s.server.command({"SET", "k", ""});
    s.server.command({"SET", "f", "7"});
    for (auto const& [script, arguments] : all_that_acquire()) {
        CHECK(s.number(script, {"k", "f"}, arguments) == -1);
        CHECK(s.server.command({"EXISTS", "k"}).integer == 1);
        CHECK(s.get("k").empty());
        CHECK(s.get("f") == "7");
    }
    s.server.command({"PEXPIRE", "k", "30000"});
    for (auto const& [script, arguments] : all_that_acquire()) CHECK(s.number(script, {"k", "f"}, arguments) < -20'000);
}

TEST_CASE("a key that begins as a token does, and is longer, is not the token's")
{
    on_server s;
    std::string const token(32, 'a');
    s.server.command({"SET", "k", token + "a", "PX", "60000"});
    for (auto const& [script, arguments] : all_that_acquire(token))
        CHECK(s.number(script, {"k", "f"}, arguments) < -50'000);
    CHECK(s.number(scripts::confirm, {"k", "f"}, {token, "50", hour_text, half_hour}) == 0);
    CHECK(s.number(scripts::extend, {"k"}, {token, "600000"}) == 0);
    CHECK(s.number(scripts::reacquire, {"k"}, {token, "600000"}) == 0);
    CHECK(s.number(scripts::release, {"k"}, {token, "channel"}) == 0);
    CHECK(s.get("k") == token + "a");
    CHECK(s.pttl("k") <= 60'000);
    CHECK(s.server.command({"EXISTS", "f"}).integer == 0);
}

TEST_CASE("no script reads a value of 200 MB, at the lock's key or at its fence")
{
    on_server s;
    std::string const last = "209715199";
    s.server.command({"SETRANGE", "great", last, "x"});
    auto const peak = [&] {
        auto const info = s.server.command({"INFO", "memory"}).text;
        return std::stoll(info.substr(info.find("used_memory_peak:") + 17));
    };
    auto const before = peak();
    for (auto const& [script, arguments] : all_that_acquire()) CHECK(s.number(script, {"great", "f"}, arguments) == -1);
    CHECK(s.number(scripts::confirm, {"great", "f"}, {"mine", "50", hour_text, half_hour}) == 0);
    CHECK(s.number(scripts::extend, {"great"}, {"mine", "60000"}) == 0);
    CHECK(s.number(scripts::reacquire, {"great"}, {"mine", "60000"}) == 0);
    CHECK(s.number(scripts::release, {"great"}, {"mine", "channel"}) == 0);
    for (auto const& [script, arguments] : all_that_acquire()) {
        s.server.command({"DEL", "k"});
        s.server.command({"RENAME", "great", "f"});
        if (script.sha1 == scripts::acquire.sha1) {
            CHECK(s.number(script, {"k", "f"}, arguments) == 1);
            CHECK(s.number(scripts::confirm, {"k", "f"}, {"mine", "50", hour_text, half_hour}) == 0);
            s.server.command({"RENAME", "f", "great"});
            continue;
        }
        CHECK(s.run(script, {"k", "f"}, arguments).elements.size() == 2);
        if (script.sha1 == scripts::acquire_by_count.sha1) break;
        s.server.command({"SETRANGE", "great", last, "x"});
    }
    CHECK(peak() - before < 50'000'000);
}

TEST_CASE("acquire: refuses a key without expiry and keys of other types")
{
    on_server s;
    s.server.command({"SET", "forever", "x"});
    s.server.command({"HSET", "hash", "field", "1"});
    s.server.command({"PEXPIRE", "hash", "30000"});
    s.server.command({"LPUSH", "list", "x"});
    for (auto const& [script, arguments] : all_that_acquire()) {
        CHECK(s.number(script, {"forever", "f"}, arguments) == -1);
        CHECK(s.number(script, {"list", "f"}, arguments) == -1 - holdfast::redis::other_type_mark);
        auto const left = -2 - holdfast::redis::other_type_mark - s.number(script, {"hash", "f"}, arguments);
        CHECK(left > 20'000);
        CHECK(left <= 30'000);
    }
    CHECK(s.server.command({"EXISTS", "f"}).integer == 0);
}

TEST_CASE("acquire by clock: the fence is ahead of the clock's start and grows by a batch")
{
    on_server s;
    auto const before = s.micros();
    auto const first = s.number(scripts::acquire_by_clock, {"k", "f"}, {"mine", "60000", "4", hour_text, half_hour});
    CHECK(first >= before + 3);
    CHECK(first <= s.micros() + 3);
    CHECK(s.get("f") == std::to_string(first));
    CHECK(s.pttl("f") > hour - 60'000);
    auto const again = s.number(scripts::acquire_by_clock, {"k", "f"}, {"mine", "60000", "4", hour_text, half_hour});
    CHECK(again >= first + 4);

    auto const ahead = s.micros() + 1'700'000'000;
    s.server.command({"SET", "f", std::to_string(ahead)});
    CHECK(s.number(scripts::acquire_by_clock, {"k", "f"}, {"mine", "60000", "4", hour_text, half_hour}) == ahead + 4);
    CHECK(s.number(scripts::acquire_by_clock, {"k", "f"}, {"other", "60000", "4", hour_text, half_hour}) < 0);
    CHECK(s.get("f") == std::to_string(ahead + 4));
}

TEST_CASE("acquire by count: a fence that is there counts on, whatever the clock and the proposal")
{
    on_server s;
    s.server.command({"SET", "f", "100"});
    CHECK(s.number(scripts::acquire_by_count, {"k", "f"},
                   {"mine", "60000", "3", hour_text, half_hour, "500", "1000000", "100"}) == 103);
    CHECK(s.number(scripts::acquire_by_count, {"k", "f"},
                   {"mine", "60000", "3", hour_text, half_hour, "500", "1000000", "100"}) == 106);
    CHECK(s.number(scripts::acquire_by_count, {"k", "f"},
                   {"other", "60000", "3", hour_text, half_hour, "500", "1000000", "100"}) < 0);
    CHECK(s.get("f") == "106");
    CHECK(s.pttl("f") > hour - 60'000);
}

TEST_CASE("acquire by count: a missing fence begins with the clock, or with a proposal that is not too far ahead")
{
    on_server s;
    auto const acquire = [&](std::string const& name, long long proposal) {
        return s.number(scripts::acquire_by_count, {name, "f:" + name},
                        {"mine", "60000", "3", hour_text, half_hour, std::to_string(proposal), "60000000", "1"});
    };
    auto const now = s.micros();
    CHECK(acquire("near", now + 50'000'000) == now + 50'000'003);
    auto const too_far = acquire("far", now + 3'600'000'000);
    CHECK(too_far >= now + 3);
    CHECK(too_far <= s.micros() + 3);
    auto const behind = acquire("behind", now - 1'000'000);
    CHECK(behind >= now + 3);
    CHECK(behind <= s.micros() + 3);
    auto const none = acquire("none", 0);
    CHECK(none >= now + 3);
}

TEST_CASE("acquire by count: a fence below the floor begins anew, at the floor at least")
{
    on_server s;
    auto const acquire = [&](std::string const& name, long long fence, long long floor) {
        s.server.command({"SET", "f:" + name, std::to_string(fence)});
        return s.number(scripts::acquire_by_count, {name, "f:" + name},
                        {"mine", "60000", "3", hour_text, half_hour, "0", "0", std::to_string(floor)});
    };
    auto const now = s.micros();
    CHECK(acquire("at the floor", now - 1'000'000, now - 1'000'000) == now - 999'997);
    CHECK(acquire("old", now - 1'000'001, now - 1'000'000) >= now + 3);
    CHECK(acquire("clock behind the floor", now, now + 60'000'000) == now + 60'000'003);
    CHECK(s.get("f:clock behind the floor") == std::to_string(now + 60'000'003));
    CHECK(s.pttl("f:old") > hour - 60'000);
}

TEST_CASE("acquire by clock: a fence that was replaced is counted on, also faster than the clock")
{
    on_server s;
    s.server.command({"SET", "f", "no number"});
    // A bound of no time at all: each of these ends a long way ahead of it.
    auto const acquire = [&](std::string const& name, std::string const& batch) {
        return s.run(scripts::acquire_by_clock, {name, "f"}, {"mine", "60000", batch, hour_text, "0"});
    };
    auto const replaced = acquire("a", "400000");
    REQUIRE(replaced.elements.size() == 2);
    auto const next = acquire("b", "400000");
    CHECK(next.type == reply::kind::integer);
    CHECK(next.integer >= replaced.elements[0].integer + 400'000);
    s.server.command({"SET", "f", std::to_string(s.micros() + 60'000'000)});
    CHECK(acquire("c", "1").elements.size() == 2);
}

TEST_CASE("confirm: raises the fence only for the holder and never lowers it")
{
    on_server s;
    s.server.command({"SET", "k", "mine", "PX", "60000"});
    CHECK(s.number(scripts::confirm, {"k", "f"}, {"mine", "50", hour_text, half_hour}) == 1);
    CHECK(s.get("f") == "50");
    CHECK(s.pttl("f") > hour - 60'000);
    CHECK(s.number(scripts::confirm, {"k", "f"}, {"mine", "40", hour_text, half_hour}) == 1);
    CHECK(s.get("f") == "50");
    CHECK(s.number(scripts::confirm, {"k", "f"}, {"other", "60", hour_text, half_hour}) == 0);
    CHECK(s.number(scripts::confirm, {"gone", "f"}, {"mine", "60", hour_text, half_hour}) == 0);
    CHECK(s.get("f") == "50");
    CHECK(s.number(scripts::confirm, {"k", "f"}, {"mine", "1700000000000123", hour_text, half_hour}) == 1);
    CHECK(s.get("f") == "1700000000000123");
}

namespace {

/// What somebody may have made of a fence that holdfast never does.
std::vector<std::vector<std::string>> foreign_fences()
{
    std::vector<std::vector<std::string>> all;
    for (auto const* text : {"9223372036854775807", "9223372036854775806", "9007199254740993", "9999999999999999",
                             "18446744073709551616", "1e300", "inf", "nan", "", " 7", "7 ", "0x7f", "1.5", "-", "--5",
                             "-9223372036854775808", "-9999999999999999", "text"})
        all.push_back({"SET", "f", text});
    all.push_back({"LPUSH", "f", "x"});
    all.push_back({"HSET", "f", "x", "1"});
    return all;
}

}  // namespace

TEST_CASE("acquire by clock: a foreign fence is replaced by the most that one can be, and said")
{
    on_server s;
    for (auto const& write : foreign_fences()) {
        CAPTURE(write.back());
        s.server.command({"FLUSHALL"});
        s.server.command(write);
        auto const before = s.micros();
        auto const got = s.run(scripts::acquire_by_clock, {"k", "f"}, {"mine", "60000", "4", hour_text, half_hour});
        REQUIRE(got.elements.size() == 2);
        auto const fence = got.elements[0].integer;
        CHECK(fence >= before + 1'800'000'004);
        CHECK(fence <= s.micros() + 1'800'000'004);
        CHECK(got.elements[1].integer == 1);
        CHECK(s.get("f") == std::to_string(fence));
        CHECK(s.pttl("f") > hour - 60'000);
        CHECK(s.get("k") == "mine");
        CHECK(s.number(scripts::acquire_by_clock, {"k", "f"}, {"mine", "60000", "4", hour_text, half_hour}) ==
              fence + 4);
    }
}

TEST_CASE(
    "acquire by count: a foreign fence is no vote and leaves no key, until the clock is near the most that it can have been before")
{
    on_server s;
    auto const acquire = [&](std::string const& bound, std::string const& lead) {
        return s.run(scripts::acquire_by_count, {"k", "f"}, {"mine", "60000", "3", hour_text, bound, "0", lead, "1"});
    };
    auto writes = foreign_fences();
    writes.push_back({"SET", "f", "-1"});  // as a note of what was lost, if it were not so old
    for (auto const& write : writes) {
        CAPTURE(write.back());
        s.server.command({"FLUSHALL"});
        s.server.command(write);
        auto const before = s.micros();
        auto got = acquire("90000000", "30000000");
        REQUIRE(got.elements.size() == 2);
        CHECK(got.elements[0].integer == 0);
        CHECK(got.elements[1].integer == 1);
        CHECK(s.server.command({"EXISTS", "k"}).integer == 0);
        auto const most = -std::stoll(s.get("f"));
        CHECK(most >= before + 120'000'000);  // also if the clock was set back meanwhile, by 30 s
        CHECK(most <= s.micros() + 120'000'000);
        CHECK(s.pttl("f") > hour - 60'000);
        got = acquire("90000000", "30000000");
        REQUIRE(got.elements.size() == 2);
        CHECK(got.elements[0].integer == 0);
        CHECK(got.elements[1].integer == 0);
        CHECK(s.get("f") == std::to_string(-most));
        CHECK(s.server.command({"EXISTS", "k"}).integer == 0);
    }
    auto const most = s.micros() + 20'000'000;
    s.server.command({"SET", "f", "-" + std::to_string(most)});
    CHECK(acquire("90000000", "30000000").integer == most + 3);
    CHECK(s.get("f") == std::to_string(most + 3));
}

TEST_CASE("acquire by count: without a guard a foreign fence begins anew at once")
{
    on_server s;
    for (auto const& write : foreign_fences()) {
        CAPTURE(write.back());
        s.server.command({"FLUSHALL"});
        s.server.command(write);
        auto const before = s.micros();
        auto const got =
            s.run(scripts::acquire_by_count, {"k", "f"}, {"mine", "60000", "3", hour_text, half_hour, "0", "0", "1"});
        REQUIRE(got.elements.size() == 2);
        CHECK(got.elements[0].integer >= before + 3);
        CHECK(got.elements[0].integer <= s.micros() + 3);
        CHECK(s.get("k") == "mine");
    }
}

TEST_CASE("confirm: neither confirms a foreign fence nor writes one")
{
    on_server s;
    auto const now = std::to_string(s.micros());
    for (auto const& write : foreign_fences()) {
        CAPTURE(write.back());
        s.server.command({"FLUSHALL"});
        s.server.command({"SET", "k", "mine", "PX", "60000"});
        s.server.command(write);
        CHECK(s.number(scripts::confirm, {"k", "f"}, {"mine", now, hour_text, "90000000"}) == 0);
    }
    s.server.command({"DEL", "f"});
    for (auto const& value : {std::to_string(s.micros() + 150'000'000), std::string{"9223372036854775807"},
                              std::string{"18446744073709551615"}})
        CHECK(s.number(scripts::confirm, {"k", "f"}, {"mine", value, hour_text, "90000000"}) == 0);
    CHECK(s.server.command({"EXISTS", "f"}).integer == 0);
    CHECK(s.number(scripts::confirm, {"k", "f"},
                   {"mine", std::to_string(s.micros() + 80'000'000), hour_text, "90000000"}) == 1);
}

TEST_CASE("extend: never makes the time left shorter, and gives a key that does not expire an end")
{
    on_server s;
    s.server.command({"SET", "k", "mine", "PX", "3600000"});
    CHECK(s.number(scripts::extend, {"k"}, {"mine", "1000"}) == 1);
    CHECK(s.pttl("k") > 3'000'000);
    s.server.command({"SET", "k", "mine"});
    CHECK(s.number(scripts::extend, {"k"}, {"mine", "60000"}) == 1);
    CHECK(s.pttl("k") > 50'000);
    CHECK(s.pttl("k") <= 60'000);
}

TEST_CASE("extend: only the holder's, and nothing that is gone", "[lesson-4][lesson-10]")
{
    on_server s;
    s.server.command({"SET", "k", "mine", "PX", "60000"});
    CHECK(s.number(scripts::extend, {"k"}, {"mine", "3600000"}) == 1);
    CHECK(s.pttl("k") > 3'000'000);
    CHECK(s.number(scripts::extend, {"k"}, {"other", "7200000"}) == 0);
    CHECK(s.pttl("k") <= 3'600'000);
    CHECK(s.number(scripts::extend, {"gone"}, {"mine", "60000"}) == 0);
    CHECK(s.server.command({"EXISTS", "gone"}).integer == 0);
    s.server.command({"HSET", "hash", "mine", "1"});
    CHECK(s.number(scripts::extend, {"hash"}, {"mine", "60000"}) == 0);
    CHECK(s.pttl("hash") == -1);
}

TEST_CASE("reacquire: takes what is gone, extends what is the holder's, and leaves what is another's")
{
    on_server s;
    CHECK(s.number(scripts::reacquire, {"k"}, {"mine", "60000"}) == 1);
    CHECK(s.get("k") == "mine");
    CHECK(s.pttl("k") > 50'000);
    CHECK(s.pttl("k") <= 60'000);
    CHECK(s.number(scripts::reacquire, {"k"}, {"mine", "3600000"}) == 1);
    CHECK(s.pttl("k") > 3'000'000);
    CHECK(s.number(scripts::reacquire, {"k"}, {"mine", "60000"}) == 1);
    CHECK(s.pttl("k") > 3'000'000);
    CHECK(s.number(scripts::reacquire, {"k"}, {"other", "7200000"}) == 0);
    CHECK(s.get("k") == "mine");
    CHECK(s.pttl("k") <= 3'600'000);
    s.server.command({"HSET", "hash", "mine", "1"});
    CHECK(s.number(scripts::reacquire, {"hash"}, {"mine", "60000"}) == 0);
    CHECK(s.pttl("hash") == -1);
}

TEST_CASE("release: only the holder's", "[lesson-2]")
{
    on_server s;
    s.server.command({"SET", "k", "mine", "PX", "60000"});
    CHECK(s.number(scripts::release, {"k"}, {"other", "channel"}) == 0);
    CHECK(s.get("k") == "mine");
    CHECK(s.number(scripts::release, {"k"}, {"mine", "channel"}) == 1);
    CHECK(s.server.command({"EXISTS", "k"}).integer == 0);
    CHECK(s.number(scripts::release, {"k"}, {"mine", "channel"}) == 0);
    s.server.command({"HSET", "hash", "mine", "1"});
    CHECK(s.number(scripts::release, {"hash"}, {"mine", "channel"}) == 0);
    CHECK(s.server.command({"EXISTS", "hash"}).integer == 1);
}

TEST_CASE("release: says how many were told")
{
    on_server s;
    holdfast::test::connection one{s.server.socket()};
    holdfast::test::connection other{s.server.socket()};
    one({"SUBSCRIBE", "channel"});
    other({"SUBSCRIBE", "channel"});
    s.server.command({"SET", "k", "mine", "PX", "60000"});
    CHECK(s.number(scripts::release, {"k"}, {"mine", "channel"}) == 3);
}

TEST_CASE("release: a user who may not publish releases, too")
{
    on_server s;
    s.server.command({"ACL", "SETUSER", "quiet", "on", "nopass", "~*", "resetchannels", "+@all"});
    holdfast::test::connection quiet{s.server.socket()};
    quiet({"AUTH", "quiet", ""});
    s.server.command({"SET", "k", "mine", "PX", "60000"});
    auto const r = quiet({"EVAL", scripts::release.text(), "1", "k", "mine", "channel"});
    CHECK(r.integer == 1);
    CHECK(s.server.command({"EXISTS", "k"}).integer == 0);
}

TEST_CASE("renewals that are asked for together are answered as each alone")
{
    on_server s;
    auto const many = [&](script const& of, std::vector<std::string> const& keys,
                          std::vector<std::string> const& arguments) {
        auto const r = s.run(of, keys, arguments);
        INFO(r);
        std::vector<long long> all;
        for (auto const& one : r.elements) all.push_back(one.integer);
        return all;
    };
    using answers = std::vector<long long>;
    std::string const mine(32, 'm');
    for (auto const* key : {"a", "b", "c", "d"}) s.server.command({"SET", key, mine, "PX", "30000"});
    s.server.command({"SET", "other", "theirs", "PX", "30000"});
    s.server.command({"LPUSH", "list", "x"});
    SECTION("of a mutex")
    {
        CHECK(many(scripts::extend_many, {"a", "other", "none", "list", "b"},
                   {"5", mine, "60000", mine, "60000", mine, "60000", mine, "60000", mine, "70000"}) ==
              answers{1, 0, 0, 0, 1});
    }
    SECTION("with a record of the holder")
    {
        s.server.command({"SET", "ha", mine + "!1 1 x", "PX", "30000"});
        s.server.command({"SET", "hb", mine + " 1 1 x", "PX", "30000"});
        CHECK(many(scripts::extend_many_and_hear, {"a", "ha", "other", "ho", "b", "hb"},
                   {"3", mine, "60000", mine, "60000", mine, "70000"}) == answers{2, 0, 1});
        CHECK(s.pttl("ha") > 50'000);
        CHECK(s.pttl("hb") > 60'000);
    }
    CHECK(s.pttl("a") > 50'000);
    CHECK(s.pttl("a") <= 60'000);
    CHECK(s.pttl("b") > 60'000);
    CHECK(s.pttl("other") <= 30'000);
    CHECK(s.pttl("c") <= 30'000);
}

TEST_CASE("renewals of slots and of readers that are asked for together are answered as each alone")
{
    on_server s;
    auto const answers = [](reply const& r) {
        INFO(r);
        std::string all;
        for (auto const& one : r.elements) all += std::to_string(one.integer) + ' ';
        return all;
    };
    SECTION("slots")
    {
        std::vector<std::string> const keys{"holdfast:semaphore:0:{s}", "holdfast:semaphore:1:{s}"};
        for (auto const& key : keys) s.server.command({"SET", key, "mine", "PX", "30000"});
        CHECK(answers(s.run(scripts::extend_many_slots, keys, {"2", "mine", "60000", "2", "other", "60000", "2"})) ==
              "1 0 ");
        CHECK(s.pttl(keys[0]) > 50'000);
        CHECK(s.pttl(keys[1]) <= 30'000);
        CHECK(answers(s.run(scripts::extend_many_slots_and_hear, {keys[0], "h0", keys[1], "h1"},
                            {"2", "mine", "70000", "2", "mine", "70000", "2"})) == "1 1 ");
        CHECK(s.pttl(keys[0]) > 60'000);
    }
    SECTION("readers")
    {
        for (std::string const n : {"1", "2"})
            CHECK(s.number(scripts::acquire_shared, {"k" + n, "r" + n, "p" + n}, {"mine", "30000", "", "0"}) == 1);
        std::vector<std::string> const keys{"k1", "r1", "p1", "k2", "r2", "p2"};
        CHECK(answers(s.run(scripts::extend_many_shared, keys, {"2", "mine", "60000", "other", "60000"})) == "1 0 ");
        CHECK(s.pttl("k1") > 50'000);
        CHECK(s.pttl("k2") <= 30'000);
        CHECK(answers(s.run(scripts::extend_many_shared_and_hear, {"k1", "r1", "p1", "h1", "k2", "r2", "p2", "h2"},
                            {"2", "mine", "60000", "mine", "60000"})) == "1 1 ");
        CHECK(s.pttl("k2") > 50'000);
    }
}
