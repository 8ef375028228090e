// SPDX-License-Identifier: MIT
//
// A connection that ends while an operation is in the middle of a step: sending to one node may show that the
// connection to it, or to another, is over, and then all who wait for it are told, the one that sends included.
#include "answers.hpp"
#include "support/catch.hpp"

#include <holdfast/redis/acquire_operation.hpp>
#include <holdfast/redis/quorum_operation.hpp>
#include <holdfast/redis/transport.hpp>

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
struct rude_transport : holdfast::redis::transport {
    using sending = std::function<std::error_code(unsigned node, command const& c, listener* whom)>;

    explicit rude_transport(sending f) : transport{3, 100ms, 1, 0ms}, on_send{std::move(f)} {}

    [[nodiscard]] boot_clock::time_point now() const noexcept override { return t0; }
    [[nodiscard]] std::chrono::milliseconds connect_timeout() const noexcept override { return 100ms; }
    [[nodiscard]] owner_token fresh_token() override { return owner_token::fresh(); }
    [[nodiscard]] std::uint64_t random() noexcept override { return 1; }
    [[nodiscard]] std::string describe(unsigned n, std::error_code) override { return std::to_string(n); }
    void refused(unsigned, owner_token const&) noexcept override {}
    [[nodiscard]] bool may_reacquire(unsigned, owner_token const&) const noexcept override { return false; }
    [[nodiscard]] std::error_code may_vote(unsigned, boot_clock::time_point) noexcept override { return {}; }
    std::error_code watch(unsigned, std::string const&, listener*, bool) noexcept override { return {}; }
    [[nodiscard]] bool queues(unsigned) const noexcept override { return true; }

    std::error_code send(unsigned node, command const& c, listener* whom) noexcept override
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
    void forget(unsigned node, listener*) noexcept override { in_flight.erase(node); }
    void leave_if_refused(unsigned, listener*) noexcept override {}
    void give_up(unsigned node, listener*) noexcept override { in_flight.erase(node); }
    void begin(holdfast::io::running&, holdfast::completion&) override {}
    void updated(holdfast::io::running&) override { ++updates; }
    void ended(holdfast::io::running&) override { has_ended = true; }
    void abandon(holdfast::io::running&) override { has_ended = true; }
    void lock() override {}
    void unlock() noexcept override {}

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

using acquire = holdfast::redis::acquire_operation;

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
    holdfast::redis::extend_operation e{t, orders(), owner_token::fresh(), 10s};
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
