// SPDX-License-Identifier: MIT
//
// A connection that ends while an operation is in the middle of a step: sending to one node may show that the
// connection to it, or to another, is over, and then all who wait for it are told, the one that sends included.
#include "answers.hpp"
#include "support/catch.hpp"

#include <holdfast/redis/acquire_operation.hpp>
#include <holdfast/redis/quorum_operation.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <system_error>

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::boot_clock;
using holdfast::owner_token;
using holdfast::redis::command;
using holdfast::redis::errc;
using holdfast::redis::listener;
using holdfast::redis::lock_keys;
using holdfast::redis::shared_keys;
using verb = command::verb;

namespace {

/// A transport that a test lets do what it wants while something is sent.
struct rude_transport {
    using sending = std::function<std::error_code(unsigned node, command const& c, listener* whom)>;

    explicit rude_transport(sending f) : on_send{std::move(f)} {}

    [[nodiscard]] static unsigned size() { return 3; }
    [[nodiscard]] static boot_clock::time_point now() { return t0; }
    [[nodiscard]] static std::chrono::milliseconds node_timeout() { return 100ms; }
    [[nodiscard]] static holdfast::redis::fence_source fencing() { return holdfast::redis::fence_source::counter; }
    [[nodiscard]] static std::uint64_t proposal(boot_clock::time_point) { return 0; }
    [[nodiscard]] static std::chrono::microseconds max_lead() { return {}; }
    [[nodiscard]] static owner_token fresh_token() { return owner_token::fresh(); }
    [[nodiscard]] static std::uint64_t random() { return 1; }
    [[nodiscard]] static std::string describe(unsigned n, std::error_code) { return std::to_string(n); }
    static void began(owner_token const&) {}
    static void refused(unsigned, owner_token const&) {}
    [[nodiscard]] static bool may_reacquire(unsigned, owner_token const&, boot_clock::time_point) { return false; }
    [[nodiscard]] static std::error_code may_vote(unsigned, boot_clock::time_point) { return {}; }
    [[nodiscard]] static bool undecided(unsigned, boot_clock::time_point) { return false; }
    [[nodiscard]] static std::error_code watch(unsigned, std::string const&, listener*, bool) { return {}; }
    static void unwatch(std::string const&, listener*) {}
    [[nodiscard]] static holdfast::redis::waiter_id enter(listener*) { return {}; }
    static void leave(holdfast::redis::waiter_id const&) {}
    [[nodiscard]] static bool calls() { return false; }
    [[nodiscard]] static bool calls(unsigned) { return false; }
    [[nodiscard]] static bool cannot_call(unsigned) { return false; }
    [[nodiscard]] static bool queues(unsigned) { return true; }
    [[nodiscard]] static std::int64_t score(boot_clock::time_point) { return 0; }

    std::error_code send(unsigned node, command const& c, listener* whom)
    {
        if (!whom) {
            log += " release" + std::to_string(node);
            return {};
        }
        CHECK_FALSE(has_ended);
        log += " ask" + std::to_string(node);
        auto const why = on_send(node, c, whom);
        if (!why) in_flight.insert(node);
        return why;
    }
    /// Effects: the answer of `node` to `whom` fails.
    void fail(unsigned node, listener* whom)
    {
        if (in_flight.erase(node) != 0) whom->on_answer(node, failed(errc::cannot_connect), now());
    }
    void forget(unsigned node, listener*) { in_flight.erase(node); }
    void give_up(unsigned node, listener*) { in_flight.erase(node); }
    void begin(holdfast::redis::running_operation&, holdfast::completion&) {}
    void updated(holdfast::redis::running_operation&) { ++updates; }
    void ended(holdfast::redis::running_operation&) { has_ended = true; }
    void abandon(holdfast::redis::running_operation&) { has_ended = true; }
    void lock() {}
    void unlock() {}

    sending on_send;
    std::string log;
    std::set<unsigned> in_flight;
    int updates = 0;
    bool has_ended = false;
};

struct silent final : holdfast::completion {
    void complete() noexcept override {}
};

/// Where sending to node 1 shows that the connection to node 0 is over, too.
struct first_fails_at_second : rude_transport {
    first_fails_at_second()
        : rude_transport{[this](unsigned node, command const&, listener* whom) -> std::error_code {
              if (node != 1) return {};
              fail(0, whom);
              return errc::cannot_connect;
          }}
    {
    }
};

using acquire = holdfast::redis::acquire_operation<rude_transport>;

shared_keys orders() { return std::make_shared<lock_keys const>("orders"); }

}  // namespace

TEST_CASE(
    "an acquire that hears of a lost subscription while it asks ends after the step, and leaves nothing in flight")
{
    rude_transport t{[&](unsigned node, command const&, listener* whom) -> std::error_code {
        if (node != 2) return errc::cannot_connect;
        whom->on_watch_failed(2, errc::cannot_connect, t0);
        return {};
    }};
    silent done;
    acquire a{t, orders(), {.ttl = 10s, .once = true}};
    a.start(done);
    CHECK(t.has_ended);
    CHECK(t.in_flight.empty());
    CHECK(t.log == " ask0 ask1 ask2 release0 release1 release2");
    CHECK(a.outcome().code() == holdfast::errc::unavailable);
}

TEST_CASE("an acquire whose earlier request fails while it asks another node counts that after the step")
{
    first_fails_at_second t;
    silent done;
    acquire a{t, orders(), {.ttl = 10s, .once = true}};
    a.start(done);
    CHECK(t.has_ended);
    CHECK(t.in_flight.empty());
    CHECK(t.log == " ask0 ask1 ask2 release0 release1 release2");
    CHECK(a.outcome().code() == holdfast::errc::unavailable);
}

TEST_CASE("a renewal whose earlier request fails while it asks another node counts that after the step")
{
    first_fails_at_second t;
    silent done;
    holdfast::redis::extend_operation<rude_transport> e{t, orders(), owner_token::fresh(), 10s};
    e.start(done);
    CHECK(t.has_ended);
    CHECK(t.in_flight.empty());
    CHECK(t.log == " ask0 ask1 ask2");
    CHECK(e.outcome().code() == holdfast::errc::unavailable);
}

TEST_CASE("an acquire that is destroyed while its subscriptions fail asks nobody any more")
{
    listener* heard = nullptr;
    rude_transport t{[&](unsigned, command const&, listener* whom) -> std::error_code {
        heard = whom;
        return {};
    }};
    silent done;
    {
        acquire a{t, orders(), {.ttl = 10s}};
        a.start(done);
        REQUIRE(heard);
        CHECK(t.in_flight.size() == 3);
    }
    CHECK(t.has_ended);
    CHECK(t.in_flight.empty());
    CHECK(t.log == " ask0 ask1 ask2 release0 release1 release2");
}
