// SPDX-License-Identifier: MIT
//
// A session without servers and without a thread: the test says what its transport tells, and when it is attended to.
#include "machines.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/zookeeper/contenders_operation.hpp>
#include <holdfast/zookeeper/extend_operation.hpp>
#include <holdfast/zookeeper/mark_watch.hpp>
#include <holdfast/zookeeper/node_key.hpp>
#include <holdfast/zookeeper/node_options.hpp>
#include <holdfast/zookeeper/number_recipe.hpp>
#include <holdfast/zookeeper/session_engine.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::test::eventually;
using holdfast::zookeeper::request;
using holdfast::zookeeper::session_engine;
using holdfast::zookeeper::session_host;
using holdfast::zookeeper::session_options;
using holdfast::zookeeper::session_state;
using holdfast::zookeeper::transport;
using holdfast::zookeeper::transport_events;

namespace {

/// What a session says over its ways to the servers.
struct wire {
    transport_events* to = nullptr;   // of the last way
    boot_clock::time_point closed{};  // when a way was, last
    std::vector<bool> identified;     // what it was answered when it said who it is: no at first
    std::vector<transport_events::call*> unanswered;
    std::vector<request::kind> sent;
    std::vector<std::string> paths;  // of what was sent
    bool removes_watches = true;     // the C client does not, while it knows of none
    bool confirms = true;            // it takes what asks a quorum
};

struct told final : holdfast::completion {
    void complete() noexcept override { ++times; }
    int times = 0;
};

/// An operation that does nothing by itself.
struct idle final : holdfast::zookeeper::session_operation {
    void on_answer(unsigned, holdfast::zookeeper::reply const& r) override { why = r.code; }
    std::error_code why{};
};

/// A way to servers that answer when the test says so.
struct silence final : transport {
    explicit silence(wire& over) : wire_{over} {}
    silence(silence const&) = delete;
    silence& operator=(silence const&) = delete;
    ~silence() override { wire_.closed = boot_clock::now(); }
    bool authenticate(std::string const&, std::string const&) override
    {
        wire_.identified.push_back(!wire_.identified.empty());
        return wire_.identified.back();
    }
    bool send(request const& r, transport_events::call& as, bool) override
    {
        if (r.what == request::kind::unwatch && !wire_.removes_watches) return false;
        if (r.what == request::kind::confirm && !wire_.confirms) return false;
        wire_.sent.push_back(r.what);
        wire_.paths.push_back(r.path);
        wire_.unanswered.push_back(&as);
        return true;
    }

    wire& wire_;
};

struct host final : session_host {
    explicit host(wire& over) : wire_{over} {}
    std::unique_ptr<transport> open(transport_events& events) override
    {
        wire_.to = &events;
        return std::make_unique<silence>(wire_);
    }
    [[nodiscard]] std::string problem() const override { return {}; }
    [[nodiscard]] holdfast::owner_token fresh_token() const override { return holdfast::owner_token::fresh(); }
    [[nodiscard]] bool in_child() const noexcept override { return false; }
    void ensure_running(session_engine&, std::string_view) override {}
    void wake() noexcept override {}
    void end(std::shared_ptr<session_engine>) noexcept override {}

    wire& wire_;
};

struct session : wire {
    explicit session(session_options options) : engine{{}, std::move(options), std::make_unique<host>(*this)}
    {
        attend();
    }

    /// Returns: when it wants to be attended to again.
    boot_clock::time_point attend()
    {
        session_engine::lock guard{engine.mutex()};
        return engine.attend(guard);
    }

    /// Effects: what was sent is answered, as a server does that has all nodes.
    void answer(holdfast::zookeeper::reply const& r = {holdfast::zookeeper::answer::ok})
    {
        for (auto* const one : std::exchange(unanswered, {})) to->on_reply(*one, holdfast::zookeeper::reply{r});
    }

    /// Effects: it is connected, and what was asked then is answered, and not among what was sent.
    void connect()
    {
        to->on_state(transport_events::state::connected, 1, 10s);
        attend();
        answer();
        sent.clear();
    }

    session_engine engine;
};

}  // namespace

TEST_CASE("of more changes of state than are kept the last is told in the end")
{
    using tell = transport_events::state;
    std::mutex mutex;
    std::vector<session_state> told;
    std::atomic<bool> go{false};
    session zk{{.on_state = [&](session_state s) {
        while (!go) std::this_thread::sleep_for(1ms);
        std::scoped_lock guard{mutex};
        told.push_back(s);
    }}};
    REQUIRE(zk.to != nullptr);
    for (int i = 0; i < 500; ++i) {
        zk.to->on_state(tell::connected, 1, 10s);
        zk.to->on_state(tell::suspended, 1, 10s);
        zk.attend();
    }
    zk.to->on_state(tell::expired, 1, 10s);
    go = true;
    CHECK(eventually([&] {
        zk.attend();
        std::scoped_lock guard{mutex};
        return !told.empty() && told.back() == session_state::lost;
    }));
    std::scoped_lock guard{mutex};
    CHECK(told.size() > 10);
    CHECK(told.size() < 1'000);
    CHECK(told.front() == session_state::connected);
}

TEST_CASE("a session that cannot say who it is ends, and another one is made")
{
    using tell = transport_events::state;
    session zk{{.auth_scheme = "digest", .auth_credential = "app:secret"}};
    REQUIRE(zk.to != nullptr);
    zk.to->on_state(tell::connected, 1, 10s);
    zk.to->on_state(tell::suspended, 1, 10s);
    zk.to->on_state(tell::connected, 1, 10s);
    CHECK(zk.engine.state() == session_state::lost);
    CHECK(zk.identified == std::vector{false});
    CHECK(eventually([&] {
        zk.attend();
        zk.to->on_state(tell::connected, 2, 10s);  // has no effect before there is another way to the servers
        return zk.engine.state() == session_state::connected;
    }));
    CHECK(zk.closed != boot_clock::time_point{});
    CHECK(zk.identified == std::vector{false, true});
}

TEST_CASE("a session without memory is over at once, and the servers are told when no lease of it can be held")
{
    bool const holds = GENERATE(false, true);
    session zk{{}};
    REQUIRE(zk.to != nullptr);
    zk.to->on_state(transport_events::state::connected, 1, 400ms);
    boot_clock::time_point until{};
    {
        session_engine::lock const guard{zk.engine.mutex()};
        until = zk.engine.lease().until();
        if (holds) zk.engine.held().add(holdfast::owner_token::fresh(), {{}, until});
        zk.engine.abandon_session(1);
    }
    zk.attend();
    CHECK(zk.engine.state() == session_state::lost);
    CHECK(zk.engine.held().empty());
    if (!holds) CHECK(zk.closed != boot_clock::time_point{});
    while (zk.closed == boot_clock::time_point{}) zk.attend();
    if (holds) CHECK(zk.closed >= until);
}

TEST_CASE("a session that goes on with less time than its leases last ends, and is closed after them")
{
    using tell = transport_events::state;
    session zk{{}};
    REQUIRE(zk.to != nullptr);
    bool const less = GENERATE(true, false);
    auto const granted = less ? 400ms : 400'000ms;
    zk.to->on_state(tell::connected, 1, granted);
    boot_clock::time_point until{};
    {
        session_engine::lock const guard{zk.engine.mutex()};
        until = zk.engine.lease().until();
        zk.engine.held().add(holdfast::owner_token::fresh(), {{}, until});
    }
    zk.to->on_state(tell::suspended, 1, granted);
    zk.to->on_state(tell::connected, 1, less ? 150ms : 300'000ms);
    zk.attend();
    CHECK((zk.engine.state() == session_state::lost) == less);
    CHECK(zk.engine.held().empty() == less);
    if (!less) return;
    while (zk.closed == boot_clock::time_point{}) zk.attend();
    CHECK(zk.closed >= until);
}

TEST_CASE("an idle session is attended to once for each thing that it sends")
{
    session zk{{}};
    zk.to->on_state(transport_events::state::connected, 1, 200ms);
    auto next = zk.attend();
    for (std::size_t sent = 1; sent < 5; ++sent) {
        CHECK(zk.sent == std::vector<request::kind>(sent, request::kind::touch));
        std::this_thread::sleep_until(next);
        next = zk.attend();
        zk.answer();
    }
}

TEST_CASE("a request that was refused proves nothing: a server may refuse it by itself")
{
    using enum request::kind;
    using holdfast::zookeeper::answer;
    session zk{{}};
    zk.to->on_state(transport_events::state::connected, 1, 10s);
    idle one;
    boot_clock::time_point until{};
    {
        session_engine::lock const guard{zk.engine.mutex()};
        until = zk.engine.lease().until();
        zk.engine.held().add(holdfast::owner_token::fresh(), {{}, until});
        zk.engine.attach(one);
    }
    zk.attend();  // a confirm
    CHECK(std::exchange(zk.sent, {}) == std::vector{confirm});
    zk.unanswered.clear();
    for (auto const end = boot_clock::now() + 2s; boot_clock::now() < end;) {
        std::this_thread::sleep_for(50ms);
        {
            session_engine::lock const guard{zk.engine.mutex()};
            zk.engine.perform(one, {{{erase, "/orders/ours"}, 1}});
        }
        zk.answer({answer::refused, holdfast::zookeeper::errc::may_not_delete});
        zk.attend();
        zk.unanswered.clear();
    }
    CHECK(std::count(zk.sent.begin(), zk.sent.end(), confirm) >= 1);  // every T/6
    session_engine::lock const guard{zk.engine.mutex()};
    CHECK(zk.engine.lease().until() == until);
    zk.engine.detach(one);
}

TEST_CASE("a wait that is given up before its watch is answered keeps nothing from being sent")
{
    using enum request::kind;
    session zk{{}};
    zk.connect();
    idle waits;
    idle gives_back;
    {
        session_engine::lock guard{zk.engine.mutex()};
        zk.engine.attach(waits);
        zk.engine.attach(gives_back);
        zk.engine.perform(waits, {{{watch, "/orders/before"}, 1}});
        zk.removes_watches = false;
        zk.engine.detach(waits);
        zk.engine.perform(gives_back, {{{erase, "/orders/ours"}, 1}});
    }
    CHECK(zk.sent == std::vector{watch, erase});
    zk.removes_watches = true;
    zk.answer();  // now the C client knows of it
    CHECK(zk.sent == std::vector{watch, erase, unwatch});
    session_engine::lock guard{zk.engine.mutex()};
    zk.engine.detach(gives_back);
}

TEST_CASE("who holds a lock is asked with few requests, however many wait for it")
{
    using holdfast::report_of;
    using holdfast::zookeeper::answer;
    using holdfast::zookeeper::node_key;
    using kind = request::kind;
    bool const goes = GENERATE(false, true);  // the first in line, before its node is read
    auto const what = GENERATE(report_of::holder, report_of::contenders);
    session zk{{}};
    zk.connect();

    holdfast::zookeeper::reply line{answer::ok};
    for (int i = 0; i < 200; ++i) {
        auto const number = std::to_string(1'000 + 199 - i);
        line.children.push_back("_c_00000000-0000-0000-0000-00000000" + number + "-lock-000000" + number);
    }
    std::shared_ptr<session_engine> const in{&zk.engine, [](session_engine*) {}};
    auto const key = std::make_shared<node_key const>("orders", "/orders", holdfast::zookeeper::node_options{});
    holdfast::zookeeper::inspect_operation asks{in, key, what};
    told done;
    asks.start(done);
    CHECK(zk.sent == std::vector{kind::children});
    zk.answer(line);
    std::size_t asked = 0;
    bool first = goes;
    while (!zk.unanswered.empty()) {
        asked += zk.unanswered.size();
        if (what == report_of::holder) REQUIRE(zk.unanswered.size() == 1);
        for (auto* const one : std::exchange(zk.unanswered, {})) {
            bool const gone = std::exchange(first, false);
            auto const read = holdfast::zookeeper::reply{gone ? answer::no_node : answer::ok, {}, "worker", {5, 1, 1}};
            zk.to->on_reply(*one, holdfast::zookeeper::reply{read});
        }
    }
    REQUIRE(done.times == 1);
    auto const got = asks.outcome();
    REQUIRE(got);
    REQUIRE(got->holder);
    CHECK(got->holder->label == "worker");
    CHECK(got->holder->waiting == (goes ? 198U : 199U));
    CHECK(got->lease.find(goes ? "1001" : "1000") != std::string::npos);
    CHECK(asked == (what == report_of::contenders ? 200U : goes ? 2U : 1U));
    CHECK(got->waiters.size() == (what == report_of::holder ? 0U : goes ? 198U : 199U));
}

TEST_CASE("a session makes no more nodes than its servers can remove at once")
{
    using holdfast::zookeeper::held_nodes;
    using kind = request::kind;
    session zk{{}};
    zk.connect();
    std::string const path = '/' + std::string(999, 'x');
    constexpr std::size_t most = held_nodes::most_bytes / (1'000 + 10 + 4);
    std::vector<std::unique_ptr<idle>> all;
    auto const begin = [&] {
        session_engine::lock guard{zk.engine.mutex()};
        zk.engine.attach(*all.emplace_back(std::make_unique<idle>()));
        zk.engine.perform(*all.back(), {{{kind::create_sequential, path}, 1}});
    };
    auto const end = [&] {
        session_engine::lock guard{zk.engine.mutex()};
        zk.engine.detach(*all.back());
        all.pop_back();
    };
    auto const sent = [&] {
        return static_cast<std::size_t>(std::count(zk.sent.begin(), zk.sent.end(), kind::create_sequential));
    };
    for (std::size_t i = 0; i < most; ++i) begin();
    CHECK(sent() == most);
    begin();
    CHECK(sent() == most);
    zk.attend();
    CHECK(all.back()->why == holdfast::zookeeper::errc::too_many_nodes);
    CHECK(all.back()->why == holdfast::errc::unavailable);

    // What was refused does not count, and one that is held counts as before.
    end();
    end();
    auto const token = holdfast::owner_token::fresh();
    {
        session_engine::lock const guard{zk.engine.mutex()};
        zk.engine.held().add(token, {{.lock = path, .prefix = {}, .node = {}, .czxid = 1, .content = {}, .session = 1},
                                     boot_clock::now() + 1h});
    }
    begin();
    CHECK(sent() == most);
    zk.attend();
    end();
    {
        session_engine::lock const guard{zk.engine.mutex()};
        zk.engine.held().forget(token);
    }
    begin();
    CHECK(sent() == most + 1);
    while (!all.empty()) end();
}

TEST_CASE("what a session cannot take is not sent in part, and keeps no renewal from being sent")
{
    using kind = request::kind;
    bool const watches = GENERATE(false, true);
    session zk{{}};
    zk.connect();
    auto const token = holdfast::owner_token::fresh();
    session_engine::lock guard{zk.engine.mutex()};
    zk.engine.held().add(token, {{"/orders", "ours", "/orders/ours1", 1, {}, 1}, boot_clock::now() + 1h});
    std::vector<std::unique_ptr<idle>> all;
    do {
        zk.sent.clear();
        zk.engine.attach(*all.emplace_back(std::make_unique<idle>()));
        auto const path = '/' + std::string(999, 'x') + std::to_string(all.size());
        zk.engine.perform(*all.back(),
                          {{{watches ? kind::watch : kind::create_sequential, path}, 1}, {{kind::children, path}, 2}});
    } while (zk.sent.size() == 2);
    CHECK(zk.sent.empty());
    guard.unlock();
    std::shared_ptr<session_engine> const in{&zk.engine, [](session_engine*) {}};
    holdfast::zookeeper::extend_operation asks{in, token};
    told done;
    asks.start(done);
    CHECK(zk.sent == std::vector{kind::confirm, kind::data});
    zk.attend();
    CHECK(all.back()->why == (watches ? holdfast::zookeeper::errc::too_many_watches
                                      : holdfast::zookeeper::errc::too_many_nodes));
    zk.answer();
    CHECK(done.times == 1);
    guard.lock();
    for (auto const& one : all) zk.engine.detach(*one);
}

TEST_CASE("a renewal fails if no quorum has been asked, and half of the lease is over")
{
    using holdfast::zookeeper::answer;
    holdfast::zookeeper::reply const there{.what = answer::ok, .stat = {.czxid = 1}};
    session zk{{}};
    zk.connect();
    auto const token = holdfast::owner_token::fresh();
    boot_clock::time_point until{};
    {
        session_engine::lock const guard{zk.engine.mutex()};
        zk.engine.held().add(token, {{"/orders", "ours", "/orders/ours1", 1, {}, 1}, boot_clock::now() + 1h});
        until = zk.engine.lease().until();
    }
    auto const show_life = [&] {  // as another renewal does
        session_engine::lock const guard{zk.engine.mutex()};
        zk.engine.show_life(true, boot_clock::now());
    };
    bool const late = GENERATE(true, false);
    bool const asked = GENERATE(true, false);
    if (late) std::this_thread::sleep_until(until - 5s / 2);
    if (asked) show_life();
    zk.answer(there);
    zk.confirms = asked;
    std::shared_ptr<session_engine> const in{&zk.engine, [](session_engine*) {}};
    std::error_code code;
    do {
        holdfast::zookeeper::extend_operation asks{in, token};
        told done;
        for (bool begun = false; done.times == 0;) {
            if (!asked) show_life();
            zk.attend();
            if (!std::exchange(begun, true)) asks.start(done);
            zk.answer(there);
        }
        code = asks.outcome().code();
    } while (code == holdfast::zookeeper::errc::no_answer);  // this thread stood still
    if (asked) CHECK_FALSE(code);
    if (late && !asked) CHECK(code == holdfast::zookeeper::errc::not_confirmed);
    if (!late && boot_clock::now() < until - 5s / 2) CHECK_FALSE(code);
}

TEST_CASE("a node that is being removed counts until it is gone, and so does the mark of a semaphore")
{
    using holdfast::zookeeper::answer;
    using holdfast::zookeeper::held_nodes;
    using kind = request::kind;
    session zk{{}};
    zk.connect();
    std::string const path = '/' + std::string(999, 'x');
    bool const marks = GENERATE(true, false);
    auto const number = std::make_shared<holdfast::zookeeper::permit_number>(path, 3);
    session_engine::lock guard{zk.engine.mutex()};
    if (marks) {
        number->uses = 1;
        using namespace holdfast::test;
        driven<holdfast::zookeeper::number_recipe> makes{
            holdfast::zookeeper::acquire_plan{.lock = path, .tokens = counted_tokens()}, std::size_t{3}};
        makes.machine.connected(1);
        auto const mark = makes.sent().at(0).substr(std::string_view{"plain "}.size());
        makes.answer_to(0, created(mark, 10));
        CHECK(makes.sent().size() == 1);
        makes.answer_to(0, names({mark.substr(path.size() + 1)}));
        CHECK(makes.sent().size() == 1);
        makes.answer_to(0, {answer::ok});
        REQUIRE(keep_mark(zk.engine, number, makes.machine));
        CHECK(zk.sent == std::vector{kind::watch});
    } else {
        auto const token = holdfast::owner_token::fresh();
        zk.engine.held().add(token, {{path, "ours", path + "/ours1", 1, {}, 1}, boot_clock::now() + 1h});
        CHECK(give_back(zk.engine, token));
        CHECK(zk.sent == std::vector{kind::erase});
    }
    zk.sent.clear();
    constexpr std::size_t most = held_nodes::most_bytes / (1'000 + 10 + 4);
    std::vector<std::unique_ptr<idle>> all;
    auto const begin = [&] {
        auto const before = zk.sent.size();
        zk.engine.attach(*all.emplace_back(std::make_unique<idle>()));
        zk.engine.perform(*all.back(), {{{kind::create_sequential, path}, 1}});
        return zk.sent.size() == before + 1;
    };
    while (begin()) {
    }
    CHECK(zk.sent.size() == most - 1);
    zk.engine.detach(*all.back());
    all.pop_back();
    guard.unlock();
    zk.attend();  // answers what was refused: only then is more sent
    guard.lock();
    if (marks) remove_mark(zk.engine, *number);
    guard.unlock();
    if (marks) zk.to->on_notice(number->mark.node);
    zk.answer();
    guard.lock();
    CHECK(begin());
    for (auto const& one : all) zk.engine.detach(*one);
}

TEST_CASE("a session without locks is lost half of its timeout after its last answer")
{
    using tell = transport_events::state;
    session zk{{}};
    zk.to->on_state(tell::connected, 1, 400ms);
    boot_clock::time_point asked{};
    for (bool judged = false; !judged;) {
        for (auto const end = boot_clock::now() + 300ms; boot_clock::now() < end;) {  // longer than its first lease
            auto const before = boot_clock::now();
            zk.attend();
            if (!zk.unanswered.empty()) asked = before;
            zk.answer();
            std::this_thread::sleep_for(5ms);
        }
        zk.to->on_state(tell::suspended, 1, 400ms);
        zk.attend();
        auto const state = zk.engine.state();
        judged = boot_clock::now() < holdfast::valid_until(asked, 200ms);  // this thread did not stand still
        if (judged) CHECK(state == session_state::suspended);
        if (!judged) zk.to->on_state(tell::connected, 1, 400ms);
    }
    while (zk.engine.state() == session_state::suspended) zk.attend();
    CHECK(zk.engine.state() == session_state::lost);
    CHECK(boot_clock::now() >= holdfast::valid_until(asked, 200ms));
}

TEST_CASE("a renewal fails before its lease can end, however long the operation timeout is")
{
    session zk{{.operation_timeout = 1h}};
    zk.to->on_state(transport_events::state::connected, 1, 400ms);
    auto const token = holdfast::owner_token::fresh();
    {
        session_engine::lock const guard{zk.engine.mutex()};
        zk.engine.held().add(token, {{"/orders", "ours", "/orders/ours1", 1, {}, 1}, boot_clock::now() + 1h});
    }
    std::shared_ptr<session_engine> const in{&zk.engine, [](session_engine*) {}};
    holdfast::zookeeper::extend_operation asks{in, token};
    told done;
    asks.start(done);
    REQUIRE(eventually([&] {
        zk.attend();
        return done.times == 1;
    }));
    CHECK(asks.outcome().code() == holdfast::zookeeper::errc::no_answer);
}

TEST_CASE("a renewal that is not answered fails before the loss of its lease is told")
{
    // Nothing else is due for so long.
    auto const due_after = [](std::chrono::hours left, std::chrono::hours margin) {
        session zk{{.operation_timeout = 1000h}};
        zk.to->on_state(transport_events::state::connected, 1, 40h);
        auto const token = holdfast::owner_token::fresh();
        auto const begun = boot_clock::now();
        {
            session_engine::lock const guard{zk.engine.mutex()};
            zk.engine.held().add(token, {{"/orders", "ours", "/orders/ours1", 1, {}, 1}, begun + left, 0, margin});
        }
        std::shared_ptr<session_engine> const in{&zk.engine, [](session_engine*) {}};
        holdfast::zookeeper::extend_operation asks{in, token};
        told done;
        asks.start(done);
        return zk.attend() - begun;
    };
    auto const told_of_loss = 4h - 2 * holdfast::drift(20h);
    CHECK(due_after(100h, 0h) > told_of_loss);
    CHECK(due_after(4h, 0h) < told_of_loss);
    CHECK(due_after(4h, 0h) > told_of_loss - 1h);
    CHECK(due_after(4h, 1h) < told_of_loss - 1h);
    CHECK(due_after(4h, 1h) > told_of_loss - 2h);
}

TEST_CASE("a holder whose node goes while the line is read, as it may have another one, is not overlooked")
{
    using holdfast::report_of;
    using holdfast::zookeeper::answer;
    using holdfast::zookeeper::naming;
    using holdfast::zookeeper::node_key;
    using kind = request::kind;
    bool const kazoo = GENERATE(false, true);
    session zk{{}};
    zk.to->on_state(transport_events::state::connected, 1, 10s);
    zk.attend();
    zk.answer();
    std::string const writer = kazoo ? "0123456789abcdef0123456789abcdef__lock__0000000001"
                                     : "_c_00000000-0000-0000-0000-000000000001-__WRIT__0000000001";
    std::string const waits = kazoo ? "1123456789abcdef0123456789abcdef__lock__0000000002"
                                    : "_c_00000000-0000-0000-0000-000000000002-__WRIT__0000000002";
    std::shared_ptr<session_engine> const in{&zk.engine, [](session_engine*) {}};
    auto const key = std::make_shared<node_key const>(
        "prices", "/prices", holdfast::zookeeper::node_options{.naming = kazoo ? naming::kazoo : naming::curator},
        holdfast::access::exclusive);
    holdfast::zookeeper::inspect_operation asks{in, key, report_of::holder};
    told done;
    zk.sent.clear();
    asks.start(done);
    holdfast::zookeeper::reply line{answer::ok};
    line.children = {writer, waits};
    zk.answer(line);
    CHECK(zk.sent == std::vector{kind::children, kind::data});
    zk.answer({answer::no_node});
    CHECK(zk.sent == std::vector{kind::children, kind::data, kind::children});
    CHECK(done.times == 0);
    line.children = {waits};  // it has given the lock back
    zk.answer(line);
    zk.answer({answer::ok, {}, "worker", {5, 1, 1}});
    CHECK(done.times == 1);
    CHECK(asks.outcome()->holder->label == "worker");
}
