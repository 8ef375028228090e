// SPDX-License-Identifier: MIT
//
// What is written to a node, repeated, undone, and told, whatever happens to the connection: the tables at `pipeline`.
#include "answers.hpp"
#include "support/catch.hpp"

#include <holdfast/redis/pipeline.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::boot_clock;
using holdfast::owner_token;
using holdfast::redis::answer;
using holdfast::redis::command;
using holdfast::redis::errc;
using holdfast::redis::lock_keys;
using holdfast::redis::script_form;
using verb = command::verb;

namespace {

constexpr auto timeout = 100ms;

/// An operation that is told.
struct ear final : holdfast::redis::listener {
    std::vector<answer> got;

    void on_answer(unsigned, answer const& a, boot_clock::time_point) override { got.push_back(a); }

    /// Returns: the error it was told, last of all.
    [[nodiscard]] std::error_code failure() const { return got.empty() ? std::error_code{} : got.back().error; }
};

owner_token token(unsigned n) { return owner_token::from_bits(n, n); }

/// A pipeline, and what stands for its connection.
struct line {
    holdfast::redis::vote_ledger ledger{std::make_shared<holdfast::redis::vote_table>(), 1};
    holdfast::redis::pipeline pipeline{1, timeout, ledger};
    holdfast::redis::shared_keys keys = std::make_shared<lock_keys const>("orders");
    boot_clock::time_point now = t0;
    bool up = false;
    bool undecided = false;
    std::string_view holder;  // what the record of a holder says; empty: none is kept

    command make(verb what, unsigned n) const { return {.what = what, .keys = keys, .token = token(n), .ttl = 10s}; }

    std::error_code send(verb what, unsigned n, ear* whom, std::error_code why_not = {})
    {
        if (!whom && !up) why_not = errc::cannot_connect;
        return pipeline.send(make(what, n), whom, {.why_not = why_not, .undecided = undecided}, now);
    }

    void connect()
    {
        up = true;
        pipeline.connected({.holder = holder}, now);
    }

    /// Effects: connects to a node whose vote is decided at once. Returns: what is written.
    std::string connect_and_decide()
    {
        connect();
        auto const first = written();
        pipeline.decided({});
        auto const then = written();
        return first + (first.empty() || then.empty() ? "" : " ") + then;
    }

    void down(std::error_code why = errc::connection_lost)
    {
        up = false;
        pipeline.went_down(why, now);
        tell();
    }

    void tell()
    {
        for (auto one = pipeline.next_failure(); one.whom; one = pipeline.next_failure())
            one.whom->on_answer(1, answer::failed(one.why), now);
    }

    /// Effects: writes what is ready. Returns: it, each command as its verb and the number of its token, and those of
    /// others that are asked for together with it.
    std::string written()
    {
        std::string text;
        for (auto const* next = pipeline.next_to_write(); next; next = pipeline.next_to_write()) {
            text += (text.empty() ? "" : " ") + name(next->what.what) + number(next->what.token);
            for (auto const* one = next->what.also; one; one = one->also) text += "+" + number(one->token);
            last_form = next->form;
            pipeline.written(now);
        }
        return text;
    }

    void answer_with(answer const& a)
    {
        if (auto* const whom = pipeline.answered(a, now)) whom->on_answer(1, a, now);
    }

    /// Effects: has the node vote for a token.
    void grant(unsigned n)
    {
        ear e;
        REQUIRE_FALSE(send(verb::acquire, n, &e));
        (void)written();
        answer_with(yes());
    }

    [[nodiscard]] bool may_reacquire(owner_token const& t) const { return up && ledger.may_reacquire(t); }

    /// Effects: sends a release, which the node refuses for now.
    void refuse_release(unsigned n, char const* lock = "orders", holdfast::access mode = holdfast::access::sole)
    {
        ear e;
        auto one = make(verb::release, n);
        one.keys = std::make_shared<lock_keys const>(lock, std::string_view{}, mode);
        REQUIRE_FALSE(pipeline.send(one, &e, {}, now));
        REQUIRE(written() == "release" + std::to_string(n));
        answer_with(answer::failed(errc::loading));
        REQUIRE(e.failure() == errc::loading);
    }

    script_form last_form{};

private:
    static std::string name(verb v)
    {
        switch (v) {
        case verb::acquire: return "acquire";
        case verb::confirm: return "confirm";
        case verb::extend: return "extend";
        case verb::reacquire: return "reacquire";
        case verb::release: return "release";
        case verb::leave: return "leave";
        default: break;
        }
        return "?";
    }

    static std::string number(owner_token const& t)
    {
        for (unsigned n = 0; n < 20; ++n)
            if (t == token(n)) return std::to_string(n);
        return "?";
    }
};

/// One that is connected, to a node whose vote is decided.
struct connected_line : line {
    connected_line() { (void)connect_and_decide(); }
};

}  // namespace

TEST_CASE("commands are written in the order in which they are sent, and answered in that order, each to its own")
{
    connected_line l;
    ear first;
    ear second;
    CHECK(l.pipeline.answered_all());
    CHECK_FALSE(l.send(verb::acquire, 1, &first));
    CHECK_FALSE(l.send(verb::extend, 2, &second));
    CHECK_FALSE(l.send(verb::release, 3, nullptr));
    CHECK(l.written() == "acquire1 extend2 release3");
    CHECK(l.pipeline.busy());
    l.answer_with(yes(70));
    REQUIRE(first.got.size() == 1);
    CHECK(first.got[0].fence == 70);
    CHECK(second.got.empty());
    l.answer_with(no());
    CHECK(second.got.size() == 1);
    l.answer_with(yes());
    CHECK(first.got.size() + second.got.size() == 2);
    CHECK(l.pipeline.answered_all());
    CHECK_FALSE(l.pipeline.busy());
    CHECK(l.written().empty());
}

TEST_CASE("what is sent while a connection is made waits for it, and an acquire for the vote to be decided, too")
{
    line l;
    ear acquire;
    ear extend;
    ear late;
    CHECK_FALSE(l.send(verb::acquire, 1, &acquire));
    CHECK_FALSE(l.send(verb::extend, 2, &extend));
    CHECK(l.written().empty());
    l.connect();
    CHECK(l.written() == "extend2");
    l.undecided = true;
    CHECK_FALSE(l.send(verb::acquire, 3, &late));
    CHECK(l.written().empty());
    SECTION("and is sent then")
    {
        l.pipeline.decided({});
        CHECK(l.written() == "acquire1 acquire3");
    }
    SECTION("and is refused if the node has none")
    {
        l.pipeline.decided(errc::clock_out_of_line);
        l.tell();
        CHECK(l.written().empty());
        CHECK(acquire.failure() == errc::clock_out_of_line);
        CHECK(late.failure() == errc::clock_out_of_line);
        CHECK(extend.got.empty());
    }
}

TEST_CASE("an acquire has the facts of the node that it is written to")
{
    line l;
    ear e;
    CHECK_FALSE(l.send(verb::acquire, 1, &e));
    l.pipeline.connected({.floor = 77, .fence_lifetime = 3h}, l.now);
    l.pipeline.decided({});
    REQUIRE(l.pipeline.next_to_write());
    CHECK(l.pipeline.next_to_write()->what.floor == 77);
    CHECK(l.pipeline.next_to_write()->what.fence_lifetime == 3h);
}

TEST_CASE("what is forgotten before it was written is not sent, but for a release")
{
    line l;
    ear acquire;
    ear extend;
    ear release;
    CHECK_FALSE(l.send(verb::acquire, 1, &acquire));
    CHECK_FALSE(l.send(verb::extend, 2, &extend));
    CHECK_FALSE(l.send(verb::release, 3, &release));
    for (auto* e : {&acquire, &extend, &release}) l.pipeline.forget(*e);
    CHECK(l.connect_and_decide() == "release3");
    l.answer_with(yes());
    CHECK(release.got.empty());
}

TEST_CASE("the answer to what is forgotten goes to no listener, and the next one to its own")
{
    connected_line l;
    ear first;
    ear second;
    CHECK_FALSE(l.send(verb::acquire, 1, &first));
    CHECK_FALSE(l.send(verb::acquire, 2, &second));
    CHECK(l.written() == "acquire1 acquire2");
    l.pipeline.forget(first);
    l.answer_with(yes(70));
    l.answer_with(yes(71));
    CHECK(first.got.empty());
    REQUIRE(second.got.size() == 1);
    CHECK(second.got[0].fence == 71);
}

TEST_CASE("a waiter that waits no longer leaves a node that refuses it yet, and is no longer asked for")
{
    connected_line l;
    ear e;
    auto acquire = l.make(verb::acquire, 1);
    acquire.waiter = {.inbox = 1, .number = 7};
    acquire.use_queue = false;
    CHECK_FALSE(l.pipeline.send(acquire, &e, {}, l.now));
    CHECK(l.written() == "acquire1");
    l.pipeline.leave_if_refused(e);
    l.pipeline.forget(e);
    SECTION("it is refused")
    {
        l.answer_with(no(3s));
        auto const* const next = l.pipeline.next_to_write();
        REQUIRE(next);
        CHECK(next->what.what == verb::leave);
        CHECK(next->what.waiter == acquire.waiter);
        CHECK(next->what.token == owner_token{});
        CHECK(next->what.use_queue);  // the next in line may be called
        (void)l.written();
        l.answer_with(no());
    }
    SECTION("it is refused by a node that forgot the script of a leave")
    {
        l.answer_with(no(3s));
        CHECK(l.written() == "leave?");
        l.answer_with(no());
        CHECK_FALSE(l.pipeline.send(acquire, &e, {}, l.now));
        (void)l.written();
        l.pipeline.leave_if_refused(e);
        l.pipeline.forget(e);
        l.answer_with(no(3s));
        CHECK(l.written() == "leave?");
        CHECK(l.last_form == script_form::by_hash);
        l.answer_with(failed(errc::no_script));
        CHECK(l.written() == "leave?");
        CHECK(l.last_form == script_form::by_text);
        l.answer_with(no());
    }
    SECTION("it is granted, or the node fails")
    {
        bool const granted = GENERATE(true, false);
        l.answer_with(granted ? yes(70) : answer::failed(make_error_code(holdfast::errc::unavailable)));
        CHECK(l.written().empty());
    }
    SECTION("the connection breaks")
    {
        l.down();
        CHECK(l.connect_and_decide().empty());
    }
    CHECK_FALSE(l.pipeline.next_to_write());
    CHECK_FALSE(l.pipeline.busy());
    CHECK(e.got.empty());
}

TEST_CASE("an acquire whose answer is lost fails, and is undone over the next connection, ahead of its repetition")
{
    connected_line l;
    ear e;
    CHECK_FALSE(l.send(verb::acquire, 1, &e));
    CHECK(l.written() == "acquire1");
    l.down();
    CHECK(e.failure() == errc::connection_lost);
    CHECK_FALSE(l.send(verb::acquire, 1, &e));
    CHECK(l.connect_and_decide() == "release1 acquire1");
}

TEST_CASE("an acquire that was not written when the connection broke fails and leaves nothing to undo")
{
    line l;
    ear e;
    auto const why = GENERATE(errc::cannot_connect, errc::connection_lost);
    CHECK_FALSE(l.send(verb::acquire, 1, &e));
    if (why == errc::connection_lost) l.connect();
    l.down(why);
    CHECK(e.failure() == why);
    CHECK(l.connect_and_decide().empty());
}

TEST_CASE("an acquire that is forgotten leaves its vote to the holder; one given up with its connection is undone")
{
    connected_line l;
    ear e;
    CHECK_FALSE(l.send(verb::acquire, 1, &e));
    CHECK(l.written() == "acquire1");
    bool const given_up = GENERATE(true, false);
    l.now += timeout;
    if (given_up)
        CHECK(l.pipeline.give_up(e, l.now));
    else
        l.pipeline.forget(e);
    l.down();
    CHECK(e.got.empty());
    CHECK(l.connect_and_decide() == (given_up ? "release1" : ""));
}

TEST_CASE("a release is sent again over the next connection, whether its listener waits or not, until it is answered")
{
    connected_line l;
    ear waits;
    ear left;
    CHECK_FALSE(l.send(verb::release, 1, &waits));
    CHECK_FALSE(l.send(verb::release, 2, &left));
    CHECK_FALSE(l.send(verb::release, 3, nullptr));
    CHECK(l.written() == "release1 release2 release3");
    l.pipeline.forget(left);
    for (int i = 0; i < 3; ++i) {
        l.down();
        CHECK(l.connect_and_decide() == "release1 release2 release3");
    }
    CHECK(waits.got.size() == 1);
    CHECK(waits.failure() == errc::connection_lost);
    l.answer_with(yes());
    l.answer_with(no());
    l.down();
    CHECK(l.connect_and_decide() == "release3");
    l.down();
    l.now += 31s;  // it is gone by itself
    CHECK(l.connect_and_decide().empty());
}

TEST_CASE("a release that cannot be sent is kept; its repetition takes its place")
{
    line l;
    ear e;
    bool const begun = GENERATE(true, false);
    if (begun) {
        CHECK_FALSE(l.send(verb::release, 1, &e));
        l.down(errc::cannot_connect);
        CHECK(e.failure() == errc::cannot_connect);
    } else {
        CHECK(l.send(verb::release, 1, &e, errc::cannot_connect) == errc::cannot_connect);
        CHECK(e.got.empty());
    }
    if (GENERATE(true, false)) CHECK_FALSE(l.send(verb::release, 1, &e));
    CHECK(l.connect_and_decide() == "release1");
}

TEST_CASE("a lost round is rolled back over the next connection if the node voted, and needs no connection otherwise")
{
    connected_line l;
    l.ledger.began(token(1));
    l.ledger.began(token(2));
    l.grant(1);
    l.down();
    for (unsigned n : {1U, 2U, 3U}) CHECK(l.send(verb::release, n, nullptr) == errc::cannot_connect);
    CHECK(l.connect_and_decide() == "release1");
}

TEST_CASE("an extension drops the release that is kept of its token: its holder has the lock")
{
    connected_line l;
    ear acquire;
    ear extend;
    l.ledger.began(token(1));
    CHECK_FALSE(l.send(verb::acquire, 1, &acquire));
    CHECK(l.written() == "acquire1");
    l.down();
    CHECK_FALSE(l.send(verb::extend, 1, &extend));
    SECTION("if it goes over the next connection") { CHECK(l.connect_and_decide() == "extend1"); }
    SECTION("but not if the release may still arrive: it goes ahead")
    {
        l.pipeline.forget(extend);
        CHECK(l.connect_and_decide() == "release1");
        l.down();
        CHECK_FALSE(l.send(verb::extend, 1, &extend));
        CHECK(l.connect_and_decide() == "release1 extend1");
    }
    SECTION("nor if the holder has sent one")
    {
        ear release;
        l.pipeline.forget(extend);
        CHECK(l.send(verb::release, 1, &release, errc::cannot_connect));
        CHECK_FALSE(l.send(verb::extend, 1, &extend));
        CHECK(l.connect_and_decide() == "release1 extend1");
    }
}

TEST_CASE("a vote may be reacquired over a connection, as long as no release of it has been sent")
{
    line l;
    ear e;
    l.ledger.began(token(1));
    CHECK_FALSE(l.may_reacquire(token(1)));
    CHECK_FALSE(l.may_reacquire(token(2)));
    (void)l.connect_and_decide();
    REQUIRE(l.may_reacquire(token(1)));
    CHECK_FALSE(l.may_reacquire(token(2)));
    CHECK_FALSE(l.send(verb::reacquire, 1, &e));
    CHECK(l.written() == "reacquire1");
    CHECK(l.last_form == script_form::by_text);
    SECTION("and not again when it was given")
    {
        l.answer_with(yes());
        CHECK_FALSE(l.may_reacquire(token(1)));
        CHECK_FALSE(l.send(verb::extend, 1, &e));
        (void)l.written();
        l.answer_with(no());
        CHECK(l.may_reacquire(token(1)));
    }
    SECTION("nor when it may have been given")
    {
        l.down();
        CHECK(e.failure() == errc::connection_lost);
        CHECK(l.connect_and_decide().empty());
        CHECK_FALSE(l.may_reacquire(token(1)));
    }
    SECTION("nor behind a release")
    {
        l.answer_with(no());
        CHECK(l.may_reacquire(token(1)));
        CHECK_FALSE(l.send(verb::release, 1, nullptr));
        CHECK_FALSE(l.may_reacquire(token(1)));
    }
}

TEST_CASE("a vote whose acquire was lost and undone, and then won by others, may be reacquired")
{
    connected_line l;
    ear first;
    ear again;
    l.ledger.began(token(1));
    REQUIRE_FALSE(l.send(verb::acquire, 1, &first));
    CHECK(l.written() == "acquire1");
    l.down();
    CHECK(first.failure() == errc::connection_lost);
    REQUIRE_FALSE(l.send(verb::acquire, 1, &again));
    l.pipeline.forget(again);  // the others are enough
    CHECK(l.connect_and_decide() == "release1");
    CHECK_FALSE(l.may_reacquire(token(1)));
    l.answer_with(GENERATE(answer::yes(), answer::no()));
    CHECK(l.may_reacquire(token(1)));
}

TEST_CASE("a release that could not be sent erases the record of the holder when it is")
{
    line l;
    l.holder = "payments";
    l.connect_and_decide();
    l.grant(1);
    l.down();
    ear e;
    static_cast<void>(l.send(verb::release, 1, &e, errc::cannot_connect));
    l.connect();
    auto const* const next = l.pipeline.next_to_write();
    REQUIRE(next != nullptr);
    CHECK(next->what.what == verb::release);
    CHECK(next->what.use_holder);
    CHECK(next->what.holder == "payments");
}

TEST_CASE("a reacquire that comes too late for its connection is not sent, and no extension in its place")
{
    line l;
    ear e;
    l.ledger.began(token(1));
    CHECK(l.send(verb::reacquire, 1, &e) == errc::cannot_connect);
    CHECK(l.connect_and_decide().empty());
    l.undecided = true;
    CHECK(l.send(verb::reacquire, 1, &e) == errc::cannot_connect);
    CHECK(l.written().empty());
}

TEST_CASE("a script goes as text first, then by its hash, and as text again if the server does not know it")
{
    connected_line l;
    ear e;
    auto const ask = [&](std::string const& expected, script_form form) {
        CHECK(l.written() == expected);
        CHECK(l.last_form == form);
    };
    CHECK_FALSE(l.send(verb::extend, 1, &e));
    ask("extend1", script_form::by_text);
    l.answer_with(yes());
    CHECK_FALSE(l.send(verb::extend, 1, &e));
    ask("extend1", script_form::by_hash);
    CHECK(l.pipeline.repeats(failed(errc::no_script)));
    l.answer_with(failed(errc::no_script));
    CHECK(e.got.size() == 1);
    ask("extend1", script_form::by_text);
    CHECK_FALSE(l.pipeline.repeats(failed(errc::no_script)));
    l.answer_with(failed(errc::no_script));
    CHECK(e.failure() == errc::no_script);

    CHECK_FALSE(l.send(verb::extend, 1, &e));
    (void)l.written();
    l.answer_with(yes());
    CHECK_FALSE(l.send(verb::extend, 1, &e));
    ask("extend1", script_form::by_hash);
    l.pipeline.forget(e);
    l.answer_with(failed(errc::no_script));
    CHECK(l.written().empty());  // nothing waits for it
    l.down();
    (void)l.connect_and_decide();
    CHECK_FALSE(l.send(verb::extend, 1, &e));
    ask("extend1", script_form::by_text);  // another connection, another server
}

TEST_CASE("of the releases that are sent over a new connection, the first is sent as text")
{
    connected_line l;
    for (unsigned n = 1; n <= 3; ++n) l.grant(n);
    for (unsigned n = 1; n <= 3; ++n) CHECK_FALSE(l.send(verb::release, n, nullptr));
    CHECK(l.written() == "release1 release2 release3");
    l.down();
    CHECK(l.connect_and_decide() == "release1 release2 release3");
    CHECK(l.last_form == script_form::by_hash);
    l.answer_with(failed(errc::loading));
    for (unsigned n = 2; n <= 3; ++n) {
        l.answer_with(failed(errc::no_script));
        CHECK(l.written() == "release" + std::to_string(n));
        CHECK(l.last_form == script_form::by_text);
    }
}

TEST_CASE("releases that the server refuses for now are tried one by one, and all when one is answered")
{
    connected_line l;
    for (unsigned n = 1; n <= 4; ++n) l.refuse_release(n);
    CHECK(l.written().empty());
    ear e;
    auto other = l.make(verb::acquire, 9);
    other.keys = std::make_shared<lock_keys const>("invoices");
    CHECK_FALSE(l.pipeline.send(other, &e, {}, l.now));
    CHECK(l.written() == "acquire9");
    l.answer_with(yes());
    CHECK(l.written().empty());
    CHECK(l.pipeline.finish(l.now));
    CHECK(l.written() == "release1");
    l.answer_with(failed(errc::busy));
    CHECK(l.written().empty());
    CHECK(l.pipeline.finish(l.now));
    CHECK(l.written() == "release2");
    l.answer_with(no());
    CHECK(l.written() == "release3 release4 release1");
    for (int i = 0; i < 3; ++i) l.answer_with(yes());
    CHECK(l.written().empty());
    CHECK_FALSE(l.pipeline.finish(l.now));
    CHECK(l.written().empty());
}

TEST_CASE("the releases that are kept of a lock go ahead of what is asked of it next, and those of others do not")
{
    connected_line l;
    l.refuse_release(1, "orders");
    l.refuse_release(2, "invoices");
    l.refuse_release(3, "orders", holdfast::access::shared);
    ear e;
    SECTION("by an acquire of it, or a renewal")
    {
        auto const what = GENERATE(verb::acquire, verb::extend);
        CHECK_FALSE(l.send(what, 9, &e));
        CHECK(l.written() == (what == verb::acquire ? "release1 release3 acquire9" : "release1 release3 extend9"));
    }
    SECTION("by an acquire of several")
    {
        auto both = l.make(verb::acquire_all, 9);
        both.keys = std::make_shared<lock_keys const>("books");
        both.members = std::make_shared<std::vector<holdfast::redis::joint_member> const>(
            std::vector<holdfast::redis::joint_member>{{.keys = both.keys, .token = token(9)},
                                                       {.keys = l.keys, .token = token(10)}});
        CHECK_FALSE(l.pipeline.send(both, &e, {}, l.now));
        CHECK(l.written() == "release1 release3 ?9");
    }
    SECTION("not by a release of it, a confirmation, or a leave: they are not to wait for more")
    {
        auto const [what, written] = GENERATE(std::pair{verb::release, "release9"},
                                              std::pair{verb::confirm, "confirm9"}, std::pair{verb::leave, "leave9"});
        CHECK_FALSE(l.send(what, 9, &e));
        CHECK(l.written() == written);
    }
}

TEST_CASE("a node that may not have got a release has something to finish until it has answered it")
{
    line l;
    ear e;
    CHECK_FALSE(l.pipeline.unfinished());
    l.connect();
    REQUIRE_FALSE(l.send(verb::acquire, 1, &e));
    REQUIRE_FALSE(l.send(verb::release, 2, &e));
    CHECK(l.written() == "acquire1 release2");
    CHECK_FALSE(l.pipeline.unfinished());  // a listener waits
    l.pipeline.forget(e);
    CHECK(l.pipeline.unfinished());
    l.answer_with(yes());
    CHECK_FALSE(l.pipeline.finish(l.now));  // its answer may be on the way
    CHECK(l.pipeline.unfinished());
    l.now += 100ms;
    CHECK(l.pipeline.finish(l.now));
    l.answer_with(yes());
    CHECK_FALSE(l.pipeline.finish(l.now));
    CHECK_FALSE(l.pipeline.unfinished());

    REQUIRE_FALSE(l.send(verb::release, 3, nullptr));
    CHECK(l.written() == "release3");
    CHECK(l.pipeline.unfinished());
    l.down();
    CHECK(l.pipeline.finish(l.now));
    CHECK(l.written().empty());
    l.connect();
    CHECK(l.written() == "release3");
    CHECK(l.pipeline.unfinished());
    l.now += 100ms;
    CHECK(l.pipeline.finish(l.now));
    CHECK(l.written().empty());  // it is under way
    l.answer_with(failed(errc::loading));
    CHECK(l.written().empty());
    CHECK(l.pipeline.finish(l.now));
    CHECK(l.written() == "release3");
    l.answer_with(no());
    CHECK_FALSE(l.pipeline.finish(l.now));
    CHECK_FALSE(l.pipeline.unfinished());
}

TEST_CASE("a node has nothing to finish any more when the key of an unsent release has expired")
{
    line l;
    ear e;
    l.connect();
    REQUIRE_FALSE(l.send(verb::acquire, 1, &e));
    CHECK(l.written() == "acquire1");
    l.down();
    CHECK(l.pipeline.finish(l.now));
    l.now += 29s;
    CHECK(l.pipeline.finish(l.now));
    l.now += 2s;
    CHECK_FALSE(l.pipeline.finish(l.now));
    CHECK_FALSE(l.pipeline.unfinished());
}

TEST_CASE("a release that is refused for good is not repeated")
{
    connected_line l;
    ear e;
    CHECK_FALSE(l.send(verb::release, 1, &e));
    (void)l.written();
    l.answer_with(failed(errc::not_permitted));
    CHECK(l.written() == "release1");  // without the queue
    l.answer_with(failed(errc::not_permitted));
    CHECK(e.failure() == errc::not_permitted);
    l.down();
    CHECK(l.connect_and_decide().empty());
}

TEST_CASE("a roll-back that is refused is not kept if its token is asked for again behind it")
{
    connected_line l;
    ear e;
    CHECK_FALSE(l.send(verb::acquire, 1, &e));
    (void)l.written();
    l.down();
    CHECK_FALSE(l.send(verb::acquire, 1, &e));
    l.undecided = GENERATE(true, false);
    l.connect();
    CHECK(l.written() == "release1");
    if (!l.undecided) {
        l.pipeline.decided({});
        CHECK(l.written() == "acquire1");
    }
    l.answer_with(failed(errc::loading));
    if (l.undecided) {
        l.pipeline.decided({});
        CHECK(l.written() == "acquire1");
    }
    l.answer_with(yes());
    CHECK(l.written().empty());
    l.down();
    CHECK(l.connect_and_decide().empty());
}

TEST_CASE(
    "a roll-back that is refused is not kept if an extension is behind it, even if nobody waits for that any more")
{
    connected_line l;
    {
        ear acquire;
        CHECK_FALSE(l.send(verb::acquire, 1, &acquire));
        (void)l.written();
        l.down();
    }
    CHECK(l.connect_and_decide() == "release1");
    ear extension;
    CHECK_FALSE(l.send(verb::extend, 1, &extension));
    CHECK(l.written() == "extend1");
    l.pipeline.forget(extension);  // the others have granted it
    l.answer_with(failed(errc::loading));
    l.answer_with(yes());
    CHECK(l.written().empty());
    l.down();
    CHECK(l.connect_and_decide().empty());
}

TEST_CASE("a node that has answered since it was asked is late, one that has not is silent")
{
    connected_line l;
    ear first;
    ear second;
    CHECK_FALSE(l.send(verb::extend, 1, &first));
    CHECK_FALSE(l.pipeline.give_up(first, l.now + 1h));  // not written
    CHECK_FALSE(l.send(verb::extend, 1, &first));
    (void)l.written();
    CHECK_FALSE(l.send(verb::extend, 2, &second));
    (void)l.written();
    l.now += timeout;
    if (GENERATE(true, false)) {
        l.answer_with(yes());
        CHECK_FALSE(l.pipeline.give_up(second, l.now));
        CHECK_FALSE(l.pipeline.stopped(l.now));
    } else {
        CHECK_FALSE(l.pipeline.stopped(l.now));
        CHECK(l.pipeline.stopped(l.now + 1ms));
        CHECK(l.pipeline.give_up(second, l.now));
    }
    CHECK(second.got.empty());
}

TEST_CASE("an acquire on the wire must not arrive any more when the connection is given up")
{
    connected_line l;
    ear e;
    CHECK_FALSE(l.send(verb::extend, 1, &e));
    (void)l.written();
    CHECK_FALSE(l.pipeline.harmful_later());
    ear acquire;
    CHECK_FALSE(l.send(GENERATE(verb::acquire, verb::reacquire), 2, &acquire));
    (void)l.written();
    CHECK(l.pipeline.harmful_later());
    l.down();
    CHECK_FALSE(l.pipeline.harmful_later());
}

TEST_CASE("an operation that is forgotten while others are told that the connection broke is not told")
{
    connected_line l;
    ear first;
    ear second;
    CHECK_FALSE(l.send(verb::extend, 1, &first));
    CHECK_FALSE(l.send(verb::extend, 2, &second));
    (void)l.written();
    l.pipeline.went_down(errc::protocol_error, l.now);
    auto const one = l.pipeline.next_failure();
    CHECK(one.whom == &first);
    CHECK(one.why == errc::protocol_error);
    l.pipeline.forget(second);
    CHECK(l.pipeline.next_failure().whom == nullptr);
}

TEST_CASE("a missing right is looked for in the record first, then in the queue, then in both")
{
    bool const record_is_missing = GENERATE(true, false);
    bool const queue_is_missing = GENERATE(true, false);
    line l;
    l.holder = "host=a pid=1";
    (void)l.connect_and_decide();
    auto const next = [&] {
        auto const& c = l.pipeline.next_to_write()->what;
        return std::pair{c.use_holder, c.use_queue};
    };
    for (int i = 0; i < 2; ++i) {  // the second time it is known
        ear e;
        CHECK_FALSE(l.send(verb::acquire, 1, &e));
        std::vector<std::pair<bool, bool>> tried;
        while (e.got.empty()) {
            REQUIRE(l.pipeline.next_to_write());
            auto const [record, queue] = next();
            tried.emplace_back(record, queue);
            (void)l.written();
            bool const refused = (record && record_is_missing) || (queue && queue_is_missing);
            l.answer_with(refused ? failed(errc::not_permitted) : yes(70));
        }
        CHECK_FALSE(e.failure());
        CHECK(tried.back() == std::pair{!record_is_missing, !queue_is_missing});
        CHECK(tried.size() == (i == 1 ? 1U : 1U + (record_is_missing ? 1U : 0U) + (queue_is_missing ? 2U : 0U)));
        CHECK(l.pipeline.queues() == !queue_is_missing);
    }
    ear e;
    CHECK_FALSE(l.send(verb::extend, 1, &e));
    CHECK(next().first == !record_is_missing);
}

TEST_CASE("a roll-back that the user may not send with the queue is not sent behind what asks for its token again")
{
    connected_line l;
    auto const again = GENERATE(verb::acquire, verb::extend);
    auto without = l.make(verb::acquire, 1);
    without.use_queue = false;
    {
        ear first;
        CHECK_FALSE(l.pipeline.send(without, &first, {}, l.now));
        CHECK(l.written() == "acquire1");
        l.down();
    }
    ear e;
    if (again == verb::acquire) {
        CHECK_FALSE(l.pipeline.send(without, &e, {}, l.now));
        CHECK(l.connect_and_decide() == "release1 acquire1");
    } else {
        CHECK(l.connect_and_decide() == "release1");
        CHECK_FALSE(l.send(verb::extend, 1, &e));
        CHECK(l.written() == "extend1");
    }
    l.answer_with(failed(errc::not_permitted));
    CHECK(l.written().empty());
    l.answer_with(yes());
    CHECK(e.got.size() == 1);
    l.down();
    CHECK(l.connect_and_decide().empty());
}

TEST_CASE("a right that is missing in any case is told after every way was tried, and takes neither record nor queue")
{
    line l;
    l.holder = "host=a pid=1";
    (void)l.connect_and_decide();
    for (int i = 0; i < 2; ++i) {
        ear e;
        CHECK_FALSE(l.send(verb::acquire, 1, &e));
        CHECK(l.pipeline.next_to_write()->what.use_holder);
        for (int tries = 0; tries < 4; ++tries) {
            CHECK(e.got.empty());
            (void)l.written();
            l.answer_with(failed(errc::not_permitted));
        }
        CHECK(e.failure() == errc::not_permitted);
    }
    CHECK(l.pipeline.queues());
}

TEST_CASE("renewals that are ready at the same time are asked for together, and each gets its own answer")
{
    connected_line l;
    ear first;
    ear second;
    ear third;
    CHECK_FALSE(l.send(verb::extend, 1, &first));
    CHECK(l.pipeline.may_keep_back());
    CHECK_FALSE(l.send(verb::extend, 2, &second));
    CHECK_FALSE(l.send(verb::extend, 3, &third));
    CHECK(l.pipeline.may_keep_back());
    CHECK(l.written() == "extend1+2+3");
    CHECK_FALSE(l.pipeline.may_keep_back());
    CHECK(l.pipeline.oldest().what.together == 3);
    SECTION("each its own")
    {
        l.answer_with(yes());
        l.answer_with(no());
        l.answer_with(yes());
        CHECK(first.got.at(0).what == answer::kind::applied);
        CHECK(second.got.at(0).what == answer::kind::refused);
        CHECK(third.got.at(0).what == answer::kind::applied);
        CHECK(l.pipeline.answered_all());
        CHECK(l.written().empty());
        CHECK_FALSE(l.send(verb::extend, 1, &first));
        CHECK_FALSE(l.send(verb::extend, 2, &second));
        CHECK(l.written() == "extend1+2");
        CHECK(l.last_form == script_form::by_hash);
    }
    SECTION("none of one that does not want it any more")
    {
        l.pipeline.forget(second);
        for (unsigned n = 0; n < 3; ++n) l.answer_with(yes());
        CHECK(second.got.empty());
        CHECK(third.got.size() == 1);
        CHECK(l.pipeline.answered_all());
    }
    SECTION("all fail with the connection")
    {
        l.down();
        for (auto const* one : {&first, &second, &third}) CHECK(one->failure() == errc::connection_lost);
        CHECK(l.connect_and_decide().empty());
    }
}

TEST_CASE("renewals that are refused together for want of a right to one are asked for one by one from then on")
{
    connected_line l;
    ear first;
    ear second;
    ear third;
    CHECK_FALSE(l.send(verb::extend, 1, &first));
    CHECK_FALSE(l.send(verb::extend, 2, &second));
    CHECK_FALSE(l.send(verb::extend, 3, &third));
    CHECK(l.written() == "extend1+2+3");
    l.pipeline.forget(third);
    auto const why = GENERATE(errc::not_permitted, errc::moved, errc::wrong_type, errc::server_error);
    for (unsigned n = 0; n < 3; ++n) {
        CHECK(l.pipeline.repeats(failed(why)));
        l.answer_with(failed(why));
    }
    CHECK(first.got.empty());
    CHECK_FALSE(l.pipeline.may_keep_back());
    CHECK(l.written() == "extend1 extend2");
    l.answer_with(failed(errc::not_permitted));
    CHECK(first.failure() == errc::not_permitted);
    l.answer_with(yes());
    CHECK(second.got.at(0).what == answer::kind::applied);
    CHECK_FALSE(l.send(verb::extend, 1, &first));
    CHECK_FALSE(l.send(verb::extend, 2, &second));
    CHECK(l.written() == "extend1 extend2");
    l.down();
    (void)l.connect_and_decide();
    CHECK_FALSE(l.send(verb::extend, 1, &first));
    CHECK_FALSE(l.send(verb::extend, 2, &second));
    CHECK(l.written() == "extend1+2");
}

TEST_CASE("what keeps a server from renewing at all is the answer to all that were asked for together")
{
    connected_line l;
    ear first;
    ear second;
    CHECK_FALSE(l.send(verb::extend, 1, &first));
    CHECK_FALSE(l.send(verb::extend, 2, &second));
    CHECK(l.written() == "extend1+2");
    auto const why = GENERATE(errc::busy, errc::loading, errc::read_only, errc::out_of_memory, errc::no_script);
    l.answer_with(failed(why));
    l.answer_with(failed(why));
    CHECK(first.failure() == why);
    CHECK(second.failure() == why);
    CHECK(l.written().empty());
    CHECK_FALSE(l.send(verb::extend, 1, &first));
    CHECK_FALSE(l.send(verb::extend, 2, &second));
    CHECK(l.written() == "extend1+2");
}

TEST_CASE("renewals whose script the server has forgotten are asked for together again, by its text")
{
    connected_line l;
    ear first;
    ear second;
    for (int n = 0; n < 2; ++n) {
        CHECK_FALSE(l.send(verb::extend, 1, &first));
        CHECK_FALSE(l.send(verb::extend, 2, &second));
        CHECK(l.written() == "extend1+2");
        CHECK(l.last_form == (n == 0 ? script_form::by_text : script_form::by_hash));
        l.answer_with(n == 0 ? yes() : failed(errc::no_script));
        CHECK(l.pipeline.may_keep_back() == (n == 1));
        l.answer_with(n == 0 ? yes() : failed(errc::no_script));
    }
    CHECK(l.written() == "extend1+2");
    CHECK(l.last_form == script_form::by_text);
    l.answer_with(yes());
    l.answer_with(yes());
    CHECK(first.got.size() == 2);
    CHECK(second.got.size() == 2);
}

TEST_CASE("renewals that are refused with their records are asked for alone with them first, and then without")
{
    line l;
    l.holder = "host";
    (void)l.connect_and_decide();
    ear first;
    ear second;
    auto const both_again = [&](bool with_record, std::string const& written) {
        CHECK_FALSE(l.send(verb::extend, 1, &first));
        CHECK_FALSE(l.send(verb::extend, 2, &second));
        CHECK(l.pipeline.next_to_write()->what.use_holder == with_record);
        CHECK(l.written() == written);
    };
    auto const refused = failed(errc::not_permitted);
    both_again(true, "extend1+2");
    l.answer_with(refused);
    l.answer_with(refused);
    CHECK(l.pipeline.next_to_write()->what.use_holder);
    CHECK(l.written() == "extend1 extend2");
    SECTION("no right to records: together from then on, without")
    {
        l.answer_with(refused);
        l.answer_with(refused);
        CHECK_FALSE(l.pipeline.next_to_write()->what.use_holder);
        CHECK(l.written() == "extend1 extend2");
        l.answer_with(yes());
        l.answer_with(yes());
        CHECK(first.got.size() == 1);
        CHECK(second.got.size() == 1);
        both_again(false, "extend1+2");
    }
    SECTION("no right to the key of one: alone from then on, the others with theirs")
    {
        l.answer_with(refused);
        l.answer_with(yes());
        CHECK(second.got.size() == 1);
        CHECK_FALSE(l.pipeline.next_to_write()->what.use_holder);
        CHECK(l.written() == "extend1");
        l.answer_with(refused);
        CHECK(first.failure() == errc::not_permitted);
        both_again(true, "extend1 extend2");
    }
}

TEST_CASE("only renewals of one script are asked for together, up to a number, and nothing changes its place")
{
    connected_line l;
    std::vector<ear> all(70);
    SECTION("up to a number")
    {
        for (unsigned n = 0; n < 66; ++n) CHECK_FALSE(l.send(verb::extend, 1, &all[n]));
        auto const* const next = l.pipeline.next_to_write();
        REQUIRE(next);
        CHECK(next->what.together == 64);
        l.pipeline.written(l.now);
        CHECK(l.written() == "extend1+1");
    }
    SECTION("not with what is between them")
    {
        CHECK_FALSE(l.send(verb::extend, 1, &all[0]));
        CHECK_FALSE(l.send(verb::extend, 2, &all[1]));
        CHECK_FALSE(l.send(verb::release, 2, &all[2]));
        CHECK_FALSE(l.pipeline.may_keep_back());
        CHECK_FALSE(l.send(verb::extend, 3, &all[3]));
        CHECK(l.written() == "extend1+2 release2 extend3");
    }
    SECTION("not what a listener no longer wants before it is written")
    {
        for (unsigned n = 1; n <= 3; ++n) CHECK_FALSE(l.send(verb::extend, n, &all[n]));
        REQUIRE(l.pipeline.next_to_write());
        l.pipeline.forget(all[2]);
        CHECK(l.written() == "extend1+3");
        l.answer_with(yes());
        l.answer_with(no());
        CHECK(all[3].got.at(0).what == answer::kind::refused);
    }
    SECTION("not with those of readers")
    {
        auto const of_reader = [&](unsigned n, ear& whom) {
            auto c = l.make(verb::extend, n);
            c.keys = std::make_shared<lock_keys const>("prices", std::string_view{}, holdfast::access::shared);
            CHECK_FALSE(l.pipeline.send(c, &whom, {}, l.now));
        };
        CHECK_FALSE(l.send(verb::extend, 1, &all[0]));
        of_reader(2, all[1]);
        of_reader(3, all[2]);
        CHECK(l.written() == "extend1 extend2+3");
        for (unsigned n = 10; n < 27; ++n) of_reader(4, all[n]);
        auto const* const next = l.pipeline.next_to_write();
        REQUIRE(next);
        CHECK(next->what.together == 16);  // they take the server longer
    }
}
