// SPDX-License-Identifier: MIT
#include "answers.hpp"

#include <holdfast/redis/protocol.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::owner_token;
using holdfast::redis::answer;
using holdfast::redis::command;
using holdfast::redis::errc;
using holdfast::redis::fence_source;
using holdfast::redis::lock_keys;
using holdfast::redis::reply_reader;
using holdfast::redis::script_form;
using holdfast::redis::unknown_time_left;
namespace scripts = holdfast::redis::scripts;

namespace {

using words = std::vector<std::string>;
using verb = command::verb;

std::string const token = "0123456789abcdeffedcba9876543210";
std::string const hour = "3600000";

command make(verb what, fence_source fence = fence_source::none, std::string name = "orders",
             holdfast::access mode = holdfast::access::sole)
{
    return {.what = what,
            .fence = fence,
            .keys = std::make_shared<lock_keys const>(std::move(name), std::string_view{}, mode),
            .token = owner_token::from_bits(0x0123456789abcdefU, 0xfedcba9876543210U),
            .ttl = 30'000ms,
            .batch = 33,
            .value = 1'700'000'000'000'123,
            .max_lead = 15s,
            .floor = 1'699'999'999'000'000};
}

/// Returns: the words of a request, which is an array of bulk strings and nothing else; none where it is not.
words sent(command const& c, script_form form = script_form::by_hash)
{
    reply_reader reader;
    words all;
    holdfast::redis::request made;
    encode(made, c, form);
    if (!reader.feed(made.bytes())) return {};
    auto const read = reader.next();
    if (!read || !*read) return {};
    for (std::size_t i = 0; i < read->get().size(); ++i) all.emplace_back(read->get()[i].text());
    auto const more = reader.next();
    return more && !*more ? all : words{};
}

answer decoded(command const& c, std::string const& bytes)
{
    reply_reader reader;
    REQUIRE(reader.feed(bytes));
    auto const one = reader.next();
    REQUIRE(one);
    REQUIRE(*one);
    return decode(c, one->get());
}

void check(answer const& a, answer::kind what)
{
    CHECK(a.what == what);
    CHECK(a.error == (what == answer::kind::unknown ? make_error_code(errc::protocol_error) : std::error_code{}));
}

}  // namespace

TEST_CASE("the clock that TIME tells is none before 1970, and none that is not the protocol")
{
    auto const told = [](std::string const& text) {
        reply_reader reader;
        REQUIRE(reader.feed(text));
        return decode_clock(reader.next()->get());
    };
    CHECK(told("*2\r\n$10\r\n1700000000\r\n$6\r\n000123\r\n") == 1'700'000'000'000'123us);
    for (auto const* text :
         {"-ERR unknown command\r\n", "$-1\r\n", ":5\r\n", "*1\r\n$1\r\n5\r\n", "*2\r\n$1\r\n5\r\n$2\r\n6x\r\n",
          "*2\r\n$2\r\n-5\r\n$1\r\n6\r\n", "*2\r\n$20\r\n18446744073709551615\r\n$1\r\n6\r\n", "*2\r\n$-1\r\n$-1\r\n"})
        CHECK(told(text) == 0us);
}

TEST_CASE(
    "each script goes as text over a connection until the server has run it, and again where the server does not know it")
{
    holdfast::redis::script_forms forms;
    auto const acquire = make(verb::acquire, fence_source::clock);
    auto const plain = make(verb::acquire);
    auto const next = [&](holdfast::redis::command const& c) { return forms.next(c, true); };
    auto const tell = [&](script_form sent_as, std::error_code why) {
        forms.sent(acquire);
        forms.note(acquire, sent_as, why);
    };
    CHECK(next(acquire) == script_form::by_text);
    tell(script_form::by_text, errc::not_permitted);
    CHECK(next(acquire) == script_form::by_text);
    tell(script_form::by_text, {});
    CHECK(next(acquire) == script_form::by_hash);
    CHECK(next(plain) == script_form::by_text);
    tell(script_form::by_hash, errc::out_of_memory);
    CHECK(next(acquire) == script_form::by_hash);
    tell(script_form::by_text, errc::out_of_memory);
    CHECK(next(acquire) == script_form::by_hash);
    tell(script_form::by_hash, errc::no_script);
    CHECK(next(acquire) == script_form::by_text);
}

TEST_CASE("a script goes as text once over a connection, if no listener waits, unless the server refused the text")
{
    holdfast::redis::script_forms forms;
    auto const release = make(verb::release);
    auto const next = [&] { return forms.next(release, false); };
    CHECK(next() == script_form::by_text);
    forms.sent(release);
    CHECK(next() == script_form::by_hash);
    CHECK(forms.next(release, true) == script_form::by_text);
    forms.note(release, script_form::by_text, errc::loading);
    CHECK(next() == script_form::by_text);
    forms.sent(release);
    forms.note(release, script_form::by_text, {});
    forms.note(release, script_form::by_hash, errc::no_script);
    CHECK(next() == script_form::by_text);
}

TEST_CASE("acquire calls the script that its fence comes from")
{
    std::string const queue = "holdfast:queue:{orders}";
    std::string const next = "holdfast:next:{orders}";
    CHECK(sent(make(verb::acquire)) ==
          words{"EVALSHA", std::string{scripts::acquire.sha1}, "3", "orders", queue, next, token, "30000"});
    CHECK(sent(make(verb::acquire, fence_source::clock)) ==
          words{"EVALSHA", std::string{scripts::acquire_by_clock.sha1}, "4", "orders", "holdfast:fence:{orders}", queue,
                next, token, "30000", "33", hour, "86400000000"});
    CHECK(sent(make(verb::acquire, fence_source::counter)) ==
          words{"EVALSHA", std::string{scripts::acquire_by_count.sha1}, "4", "orders", "holdfast:fence:{orders}", queue,
                next, token, "30000", "33", hour, "45000000", "1700000000000123", "15000000", "1699999999000000"});
    auto unguarded = make(verb::acquire, fence_source::counter);
    unguarded.max_lead = 0us;
    CHECK(sent(unguarded)[11] == "86400000000");
}

TEST_CASE("confirm, extend and release call their scripts")
{
    CHECK(sent(make(verb::confirm, fence_source::counter)) == words{"EVALSHA", std::string{scripts::confirm.sha1}, "2",
                                                                    "orders", "holdfast:fence:{orders}", token,
                                                                    "1700000000000123", hour, "45000000"});
    CHECK(sent(make(verb::extend)) ==
          words{"EVALSHA", std::string{scripts::extend.sha1}, "1", "orders", token, "30000"});
    auto first = make(verb::extend);
    auto const second = make(verb::extend, fence_source::none, "stock");
    first.together = 2;
    first.also = &second;
    CHECK(sent(first) == words{"EVALSHA", std::string{scripts::extend_many.sha1}, "2", "orders", "stock", "2", token,
                               "30000", token, "30000"});
    CHECK(sent(make(verb::reacquire)) ==
          words{"EVALSHA", std::string{scripts::reacquire.sha1}, "1", "orders", token, "30000"});
    CHECK(sent(make(verb::release)) == words{"EVALSHA", std::string{scripts::release.sha1}, "3", "orders",
                                             "holdfast:queue:{orders}", "holdfast:next:{orders}", token,
                                             "holdfast:free:{orders}"});
}

TEST_CASE("with a record of the holder its key comes last, and its text where it is written")
{
    namespace of = holdfast::redis::scripts;
    std::string const queue = "holdfast:queue:{orders}";
    std::string const next = "holdfast:next:{orders}";
    std::string const holder = "holdfast:holder:{orders}";
    auto const with_record = [](verb what, fence_source fence = fence_source::none) {
        auto c = make(what, fence);
        c.holder = "host=a pid=1";
        c.use_holder = true;
        return c;
    };
    CHECK(sent(with_record(verb::acquire)) == words{"EVALSHA", std::string{of::acquire_and_tell.sha1}, "4", "orders",
                                                    queue, next, holder, token, "30000", "host=a pid=1"});
    CHECK(sent(with_record(verb::acquire, fence_source::clock)) ==
          words{"EVALSHA", std::string{of::acquire_by_clock_and_tell.sha1}, "5", "orders", "holdfast:fence:{orders}",
                queue, next, holder, token, "30000", "33", hour, "86400000000", "host=a pid=1"});
    CHECK(sent(with_record(verb::acquire, fence_source::counter)).at(1) == of::acquire_by_count_and_tell.sha1);
    CHECK(sent(with_record(verb::extend)) ==
          words{"EVALSHA", std::string{of::extend_and_hear.sha1}, "2", "orders", holder, token, "30000"});
    CHECK(sent(with_record(verb::reacquire)) == words{"EVALSHA", std::string{of::reacquire_and_tell.sha1}, "2",
                                                      "orders", holder, token, "30000", "host=a pid=1"});
    CHECK(sent(with_record(verb::release)) == words{"EVALSHA", std::string{of::release_and_erase.sha1}, "4", "orders",
                                                    queue, next, holder, token, "holdfast:free:{orders}"});
    auto waiting = with_record(verb::release);
    waiting.waiter = {.inbox = 1, .number = 2, .reserve = 50ms};
    CHECK(sent(waiting).at(1) == of::give_back_and_erase.sha1);
    CHECK(decoded(with_record(verb::extend), ":2\r\n").release_requested);
    CHECK(decoded(with_record(verb::extend), ":2\r\n").what == answer::kind::applied);
    CHECK_FALSE(decoded(with_record(verb::extend), ":1\r\n").release_requested);
    CHECK(decoded(make(verb::extend), ":2\r\n").what == answer::kind::refused);
}

TEST_CASE("every request has as many words and keys as it says, with all that can be in it")
{
    using holdfast::access;
    for (auto const mode : {access::sole, access::exclusive, access::shared})
        for (auto const fence : {fence_source::none, fence_source::clock, fence_source::counter})
            for (auto const what :
                 {verb::acquire, verb::confirm, verb::extend, verb::reacquire, verb::release, verb::leave}) {
                auto c = make(what, fence, "orders", mode);
                c.holder = "host=a pid=1";
                c.use_holder = true;
                c.has_beside = true;
                c.beside = c.token;
                c.waits_for = 24h;
                c.waiter = {.inbox = ~0ULL, .number = ~0ULL, .reserve = 1000ms};
                c.score = std::numeric_limits<std::int64_t>::min();
                c.ttl = 24h;
                c.value = ~0ULL;
                c.max_lead = 24h;
                c.floor = ~0ULL;
                auto const all = sent(c);
                CAPTURE(static_cast<int>(mode), static_cast<int>(fence), static_cast<int>(what));
                REQUIRE(all.size() > 4);
                CHECK(all[3] == "orders");
                auto const keys = std::stoul(all[2]);
                REQUIRE(keys + 3 < all.size());
                CHECK(all[keys + 2].find("orders") != std::string::npos);
                CHECK(all[keys + 3] == token);
            }
}

TEST_CASE("with a record of a writer or a reader its key comes last, and its text where it is written")
{
    namespace of = holdfast::redis::scripts;
    using holdfast::access;
    std::string const readers = "holdfast:readers:{orders}";
    std::string const phase = "holdfast:phase:{orders}";
    std::string const queue = "holdfast:queue:{orders}";
    std::string const next = "holdfast:next:{orders}";
    std::string const holder = "holdfast:holder:{orders}";
    auto const with_record = [](access mode, verb what, fence_source fence = fence_source::none) {
        auto c = make(what, fence, "orders", mode);
        c.holder = "host=a pid=1";
        c.use_holder = true;
        return c;
    };
    CHECK(sent(with_record(access::exclusive, verb::acquire)) ==
          words{"EVALSHA", std::string{of::acquire_exclusive_and_tell.sha1}, "6", "orders", readers, phase, queue, next,
                holder, token, "30000", "", "0", "host=a pid=1"});
    CHECK(sent(with_record(access::exclusive, verb::acquire, fence_source::clock)).at(1) ==
          of::acquire_exclusive_by_clock_and_tell.sha1);
    CHECK(sent(with_record(access::exclusive, verb::acquire, fence_source::counter)).at(1) ==
          of::acquire_exclusive_by_count_and_tell.sha1);
    CHECK(sent(with_record(access::exclusive, verb::extend)) ==
          words{"EVALSHA", std::string{of::extend_exclusive_and_hear.sha1}, "4", "orders", readers, phase, holder, token,
                "30000"});
    CHECK(sent(with_record(access::exclusive, verb::reacquire)) ==
          words{"EVALSHA", std::string{of::reacquire_exclusive_and_tell.sha1}, "4", "orders", readers, phase, holder,
                token, "30000", "host=a pid=1"});
    CHECK(sent(with_record(access::exclusive, verb::release)) ==
          words{"EVALSHA", std::string{of::release_exclusive_and_erase.sha1}, "6", "orders", readers, phase, queue,
                next, holder, token, "holdfast:free:{orders}"});
    auto called = with_record(access::shared, verb::acquire);
    called.waiter = {.inbox = 1, .number = 2, .reserve = 50ms};
    CHECK(sent(called) == words{"EVALSHA", std::string{of::acquire_shared_and_tell.sha1}, "4", "orders", readers, phase,
                                holder, token, "30000", "", "0", "000000000000000100322", "host=a pid=1"});
    CHECK(sent(with_record(access::shared, verb::acquire, fence_source::clock)).at(1) ==
          of::acquire_shared_by_clock_and_tell.sha1);
    CHECK(sent(with_record(access::shared, verb::acquire, fence_source::counter)).at(1) ==
          of::acquire_shared_by_count_and_tell.sha1);
    CHECK(sent(with_record(access::shared, verb::extend)) == words{"EVALSHA",
                                                                   std::string{of::extend_shared_and_hear.sha1}, "4",
                                                                   "orders", readers, phase, holder, token, "30000"});
    CHECK(sent(with_record(access::shared, verb::reacquire)) ==
          words{"EVALSHA", std::string{of::reacquire_shared_and_tell.sha1}, "4", "orders", readers, phase, holder,
                token, "30000", "host=a pid=1"});
    CHECK(sent(with_record(access::shared, verb::release)) ==
          words{"EVALSHA", std::string{of::release_shared_and_erase.sha1}, "6", "orders", readers, phase, queue, next,
                holder, token, "holdfast:free:{orders}"});
    CHECK(decoded(with_record(access::shared, verb::extend), ":2\r\n").release_requested);
    CHECK(decoded(make(verb::extend, fence_source::none, "orders", access::shared), ":2\r\n").what ==
          answer::kind::refused);
}

TEST_CASE("a roll-back of a writer says that it is one, also if it is no waiter")
{
    using holdfast::access;
    auto c = make(verb::release, fence_source::none, "orders", access::exclusive);
    auto const release = sent(c);
    c.rolls_back = true;
    auto expected = release;
    expected.insert(expected.end(), {"", "0"});
    CHECK(sent(c) == expected);
    c.waiter = {.inbox = 1, .number = 2, .reserve = 50ms};
    c.score = 3;
    expected = release;
    expected.insert(expected.end(), {"000000000000000100322", "3"});
    CHECK(sent(c) == expected);
    c.leave_queue_out();
    auto const without_queue = sent(c);
    CHECK(words{without_queue.end() - 2, without_queue.end()} == words{"", "0"});
    for (auto const mode : {access::sole, access::shared}) {
        auto other = make(verb::release, fence_source::none, "orders", mode);
        auto const as_ever = sent(other);
        other.rolls_back = true;
        CHECK(sent(other) == as_ever);
    }
}

TEST_CASE("what operators ask has no owner token, and its answers are read as a whole or not at all")
{
    auto ask = make(verb::inspect);
    CHECK(sent(ask) == words{"EVALSHA", std::string{scripts::inspect.sha1}, "3", "orders", "holdfast:queue:{orders}",
                             "holdfast:next:{orders}", ""});
    CHECK(decoded(ask, "*0\r\n").what == answer::kind::refused);
    auto const got = decoded(ask, "*5\r\n:1500\r\n$2\r\nab\r\n$4\r\n1234\r\n$0\r\n\r\n:3\r\n");
    REQUIRE(got.report);
    CHECK(got.report->left == 1500ms);
    CHECK(got.report->digest == "ab");
    CHECK(got.report->clock == 1234us);
    CHECK(got.report->waiting == 3);
    CHECK(decoded(ask, "*4\r\n:1500\r\n$2\r\nab\r\n$4\r\n1234\r\n:3\r\n").error == errc::protocol_error);
    CHECK(decoded(ask, ":1\r\n").error == errc::protocol_error);
    ask.what = verb::list;
    ask.value = 7;
    CHECK(sent(ask) == words{"EVALSHA", std::string{scripts::list.sha1}, "0", "7", "orders", "100"});
    auto const names = decoded(ask, "*3\r\n$2\r\n42\r\n$1\r\na\r\n$1\r\nb\r\n");
    REQUIRE(names.report);
    CHECK(names.report->cursor == 42);
    CHECK(names.report->names == std::vector<std::string>{"a", "b"});
    CHECK(decoded(ask, "*0\r\n").error == errc::protocol_error);
    ask.what = verb::force_release;
    CHECK(sent(ask).back() == "holdfast:free:{orders}");
    CHECK(decoded(ask, ":1\r\n").what == answer::kind::applied);
    CHECK(decoded(ask, ":-1\r\n").other_type);
    ask.what = verb::request_release;
    CHECK(decoded(ask, ":0\r\n").what == answer::kind::refused);
    CHECK(decoded(ask, ":-1\r\n").no_record);
}

TEST_CASE("a waiter is named by who can get in line or out of it, as text that can be read")
{
    holdfast::redis::waiter_id const who{.inbox = 0xabc, .number = 18'446'744'073'709'551'615U, .reserve = 75ms};
    std::string const text = "0000000000000abc004b18446744073709551615";
    CHECK(holdfast::redis::waiter_text{who}.view() == text);
    CHECK(holdfast::redis::waiter_text::read(0xabc, text.substr(16)) == who);
    for (auto const* const wrong : {"", "004b",
                                    "00-1"
                                    "7",
                                    "004x7", "004b7x", "004b-7", "004b99999999999999999999"})
        CHECK_FALSE(holdfast::redis::waiter_text::read(0xabc, wrong));
    auto c = make(verb::acquire);
    c.waiter = who;
    c.score = 1'700'000'000'000'123;
    CHECK(sent(c).back() == "1700000000000123");
    CHECK(sent(c).at(sent(c).size() - 2) == text);
    CHECK(decoded(c, ":-1502\r\n").in_line);
    CHECK(decoded(c, ":1\r\n").in_line);
    c.score = 0;
    CHECK_FALSE(decoded(c, ":-1502\r\n").in_line);
    c.score = 1'700'000'000'000'123;
    c.what = verb::release;
    words const rest{
        "3",  "orders",          "holdfast:queue:{orders}", "holdfast:next:{orders}", token, "holdfast:free:{orders}",
        text, "1700000000000123"};
    auto all = sent(c);
    CHECK(all.at(1) == scripts::give_back.sha1);
    CHECK(words{all.begin() + 2, all.end()} == rest);
    c.what = verb::leave;
    CHECK(sent(c) == all);
    auto const own = std::exchange(c.token, {});
    CHECK(sent(c).at(6).size() > 33);  // more than is read of a key
    c.token = own;
    c.leave_queue_out();
    c.what = verb::acquire;
    CHECK(sent(c) == words{"EVALSHA", std::string{scripts::acquire.sha1}, "1", "orders", token, "30000"});
    CHECK_FALSE(decoded(c, ":-1502\r\n").in_line);
}

TEST_CASE("a script is sent as text where the server does not know its hash, with the same arguments")
{
    for (auto const what : {verb::acquire, verb::confirm, verb::extend, verb::reacquire, verb::release}) {
        auto const by_hash = sent(make(what, fence_source::counter));
        auto by_text = sent(make(what, fence_source::counter), script_form::by_text);
        REQUIRE(by_text.size() == by_hash.size());
        CHECK(by_text[0] == "EVAL");
        CHECK_THAT(by_text[1], contains("redis.call("));
        by_text[0] = by_hash[0];
        by_text[1] = by_hash[1];
        CHECK(by_text == by_hash);
    }
}

TEST_CASE("a name of any bytes is sent as it is")
{
    for (auto const& name :
         {std::string{"a\r\nb"}, std::string{"\0", 1}, std::string{"*1\r\n$4\r\nQUIT\r\n"}, std::string(65'536, 'x')})
        CHECK(sent(make(verb::acquire, fence_source::none, name)).at(3) == name);
}

TEST_CASE("the greatest numbers fit into a request")
{
    auto c = make(verb::acquire, fence_source::counter);
    c.ttl = std::chrono::milliseconds::max();
    c.batch = std::numeric_limits<unsigned>::max();
    c.value = std::numeric_limits<std::uint64_t>::max();
    c.max_lead = std::chrono::microseconds::max() / 3;
    c.floor = std::numeric_limits<std::uint64_t>::max();
    c.waiter = {.inbox = c.value, .number = c.value, .reserve = 1000ms};
    c.score = std::numeric_limits<std::int64_t>::min();
    auto const all = sent(c);
    REQUIRE(all.size() == 17);
    CHECK(all[8] == "9223372036854775807");
    CHECK(all[9] == "4294967295");
    CHECK(all[11] == "9223372036854775806");
    CHECK(all[12] == "18446744073709551615");
    CHECK(all[13] == "3074457345618258602");
    CHECK(all[14] == "18446744073709551615");
    CHECK(all[15] == "ffffffffffffffff03e818446744073709551615");
    CHECK(all[16] == "-9223372036854775808");
}

TEST_CASE("an acquire with a fence is granted with it, or says how long the key has left")
{
    for (auto const source : {fence_source::clock, fence_source::counter}) {
        auto const c = make(verb::acquire, source);
        auto const granted = decoded(c, ":1700000000000123\r\n");
        check(granted, answer::kind::applied);
        CHECK(granted.fence == 1'700'000'000'000'123);
        auto const held = decoded(c, ":-1502\r\n");
        check(held, answer::kind::refused);
        CHECK(held.time_left == 1500ms);
        CHECK_FALSE(held.other_type);
        auto const list = decoded(c, ":-4503599627371998\r\n");
        check(list, answer::kind::refused);
        CHECK(list.time_left == 1500ms);
        CHECK(list.other_type);
        CHECK(decoded(c, ":-4503599627370497\r\n").time_left == holdfast::redis::unknown_time_left);
        CHECK(decoded(c, ":-2\r\n").time_left == 0ms);
        check(decoded(c, ":-2\r\n"), answer::kind::refused);
    }
}

TEST_CASE(
    "an acquire that finds a foreign fence is granted with another one, or has no vote, and says whether it was replaced")
{
    for (auto const source : {fence_source::clock, fence_source::counter}) {
        auto const c = make(verb::acquire, source);
        auto const granted = decoded(c, "*2\r\n:1700000000000123\r\n:1\r\n");
        check(granted, answer::kind::applied);
        CHECK(granted.fence == 1'700'000'000'000'123);
        CHECK(granted.fence_replaced);
        for (bool const replaced : {true, false}) {
            auto const refused = decoded(c, replaced ? "*2\r\n:0\r\n:1\r\n" : "*2\r\n:0\r\n:0\r\n");
            CHECK(refused.what == answer::kind::refused);
            CHECK(refused.error == errc::foreign_fence);
            CHECK(refused.error == holdfast::errc::unavailable);
            CHECK(refused.fence_replaced == replaced);
        }
        for (auto const* bytes :
             {"*2\r\n:5\r\n:2\r\n", "*2\r\n:5\r\n:0\r\n", "*2\r\n:0\r\n:2\r\n", "*2\r\n:-5\r\n:1\r\n",
              "*2\r\n$1\r\n5\r\n:1\r\n", "*2\r\n:5\r\n$-1\r\n", "*3\r\n:5\r\n:1\r\n:1\r\n", "*2\r\n-ERR x\r\n:1\r\n"})
            check(decoded(c, bytes), answer::kind::unknown);
    }
    check(decoded(make(verb::acquire), "*2\r\n:5\r\n:1\r\n"), answer::kind::unknown);
}

TEST_CASE("an acquire without a fence is granted with a 1, or says how long the key has left")
{
    auto const c = make(verb::acquire);
    check(decoded(c, ":1\r\n"), answer::kind::applied);
    CHECK(decoded(c, ":1\r\n").fence == 0);
    check(decoded(c, ":-1502\r\n"), answer::kind::refused);
    CHECK(decoded(c, ":-1502\r\n").time_left == 1500ms);
}

TEST_CASE("a refusal may name the score of the last in the queue")
{
    for (auto const fence : {fence_source::none, fence_source::counter}) {
        auto c = make(verb::acquire, fence);
        c.waiter = {.inbox = 1, .number = 1};
        c.score = 1;
        auto const told = decoded(c, "*2\r\n:-1502\r\n:1700000000000123\r\n");
        check(told, answer::kind::refused);
        CHECK(told.time_left == 1500ms);
        CHECK(told.last_score == 1'700'000'000'000'123);
        CHECK(decoded(c, ":-1502\r\n").last_score == 0);
        check(decoded(c, "*2\r\n:-1502\r\n$1\r\nx\r\n"), answer::kind::unknown);
        c.score = 0;
        check(decoded(c, "*2\r\n:-1502\r\n:5\r\n"), answer::kind::unknown);
    }
}

TEST_CASE("a key that does not expire has an unknown time left, one that has just gone has none")
{
    for (auto const source : {fence_source::none, fence_source::clock}) {
        auto const endless = decoded(make(verb::acquire, source), ":-1\r\n");
        check(endless, answer::kind::refused);
        CHECK(endless.time_left == unknown_time_left);
        auto const gone = decoded(make(verb::acquire, source), ":0\r\n");
        check(gone, answer::kind::refused);
        CHECK(gone.time_left == 0ms);
    }
}

TEST_CASE("confirm, extend and release are granted with 1 and refused with 0")
{
    for (auto const what : {verb::confirm, verb::extend, verb::reacquire, verb::release}) {
        check(decoded(make(what), ":1\r\n"), answer::kind::applied);
        check(decoded(make(what), ":0\r\n"), answer::kind::refused);
    }
}

TEST_CASE("an error reply is an error, known by its first word")
{
    for (auto const what : {verb::acquire, verb::confirm, verb::extend, verb::reacquire, verb::release}) {
        CHECK(decoded(make(what), "-READONLY You can't write\r\n").what == answer::kind::refused);
        CHECK(decoded(make(what), "-READONLY You can't write\r\n").error == errc::read_only);
        CHECK(decoded(make(what), "-ERR OK\r\n").error == errc::server_error);
    }
}

TEST_CASE("a reply of a kind that the request does not have is not the protocol")
{
    for (auto const what : {verb::acquire, verb::confirm, verb::extend, verb::reacquire, verb::release})
        for (auto const* bytes : {"+OK\r\n", "$1\r\n1\r\n", "$-1\r\n", "*0\r\n", "*1\r\n:1\r\n", "$0\r\n\r\n"})
            check(decoded(make(what, fence_source::clock), bytes), answer::kind::unknown);
}

TEST_CASE("no room is made for an array that is longer than any reply")
{
    reply_reader reader;
    REQUIRE(reader.feed("*" + std::to_string(reply_reader::longest_array) + "\r\n"));
    auto const unfinished = reader.next();
    CHECK((unfinished && !*unfinished));

    reply_reader other;
    REQUIRE(other.feed("*" + std::to_string(reply_reader::longest_array + 1) + "\r\n"));
    CHECK_FALSE(other.next());
}

TEST_CASE("a refusal that claims the longest time of all is still a refusal")
{
    auto const held = decoded(make(verb::acquire), ":-9223372036854775808\r\n");
    check(held, answer::kind::refused);
    CHECK(held.time_left > 24h);
}

TEST_CASE("a release says whether others were told of it")
{
    auto const a = decoded(make(verb::release), ":3\r\n");
    CHECK(a.what == answer::kind::applied);
    CHECK(a.others_wait);
    CHECK_FALSE(decoded(make(verb::release), ":1\r\n").others_wait);
}

TEST_CASE("arrays in arrays that are deeper than any reply are no replies, with any hiredis")
{
    auto const nested = [](int depth) {
        std::string bytes;
        for (int i = 0; i < depth; ++i) bytes += "*1\r\n";
        return bytes + ":1\r\n";
    };
    for (int const depth : {1, 2, reply_reader::deepest_array, reply_reader::deepest_array + 1, 9, 100, 200'000}) {
        reply_reader reader;
        REQUIRE(reader.feed(nested(depth)));
        bool const read = reader.next().has_value();
        CHECK(read == (depth <= reply_reader::deepest_array));
    }
}
