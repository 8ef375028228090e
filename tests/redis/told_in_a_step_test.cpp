// SPDX-License-Identifier: MIT
//
// A connection that ends while an operation is in the middle of a step: sending to one node may show that the
// connection to it, or to another, is over, and then all who wait for it are told, the one that sends included.
#include "answers.hpp"
#include "support/catch.hpp"

#include <holdfast/redis/acquire_operation.hpp>
#include <holdfast/redis/eligibility.hpp>
#include <holdfast/redis/node.hpp>
#include <holdfast/redis/quorum_operation.hpp>
#include <holdfast/redis/subscriptions.hpp>
#include <holdfast/redis/transport.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
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

/// A node that is connected, until a test says something else while something is sent to it.
struct rude_node final : holdfast::redis::node {
    rude_node(unsigned n, holdfast::redis::eligibility& votes, std::string& log) : node{n, 100ms, votes}, log_{log}
    {
        came_up({}, 1h, {}, t0);
    }

    void disconnect(std::error_code why, boot_clock::time_point now) override { went_down(why, now); }

    std::function<std::error_code()> on_send = [] { return std::error_code{}; };

private:
    std::error_code connect(boot_clock::time_point) override { return up() ? on_send() : errc::cannot_connect; }
    void disconnect_silent(boot_clock::time_point) override {}
    void write(holdfast::redis::pending_command const& next) override
    {
        log_ += (next.what.what == verb::release ? " release" : " ask") + std::to_string(index());
    }

    std::string& log_;
};

struct no_reports final : holdfast::redis::subscriptions {
    explicit no_reports(unsigned n) : subscriptions{n, 100ms} {}

private:
    std::error_code connect(boot_clock::time_point) override { return errc::cannot_connect; }
    void disconnect(std::error_code, boot_clock::time_point, std::string) override {}
    void write(verb, std::string const&) override {}
    [[nodiscard]] bool readable() const noexcept override { return false; }
    [[nodiscard]] std::uint64_t received() const noexcept override { return 0; }
};

struct rude_transport final : holdfast::redis::transport {
    rude_transport() : transport{3, 100ms, 1, 0ms}
    {
        for (unsigned n = 0; n < size(); ++n) add(nodes.emplace_back(n, votes(), log), reports.emplace_back(n));
    }

    [[nodiscard]] boot_clock::time_point now() const noexcept override { return t0; }
    [[nodiscard]] std::chrono::milliseconds connect_timeout() const noexcept override { return 100ms; }
    [[nodiscard]] owner_token fresh_token() override { return owner_token::fresh(); }
    [[nodiscard]] std::uint64_t random() noexcept override { return 1; }
    [[nodiscard]] std::string describe(unsigned n, std::error_code) override { return std::to_string(n); }
    void begin(holdfast::io::running&, holdfast::completion&) override {}
    void updated(holdfast::io::running&) override {}
    void ended(holdfast::io::running&) override { has_ended = true; }
    void abandon(holdfast::io::running&) override { has_ended = true; }
    void lock() override {}
    void unlock() noexcept override {}

    /// Effects: sending to node 1 shows that the connections to it and to node 0 are over.
    void fail_first_at_second()
    {
        nodes[1].on_send = [this] {
            nodes[0].disconnect(errc::connection_lost, t0);
            return make_error_code(errc::cannot_connect);
        };
    }

    std::string log;
    std::deque<rude_node> nodes;
    std::deque<no_reports> reports;
    bool has_ended = false;
};

/// Returns: how many nodes have an answer in flight for `whom`.
int in_flight(listener const& whom)
{
    int count = 0;
    for (unsigned n = 0; n < 3; ++n)
        if (holdfast::redis::listener_link::get(whom, n)) ++count;
    return count;
}

struct silent final : holdfast::completion {
    void complete() noexcept override {}
};

using acquire = holdfast::redis::acquire_operation;

shared_keys orders() { return std::make_shared<lock_keys const>("orders"); }

}  // namespace

TEST_CASE(
    "an acquire that hears of a lost subscription while it asks ends after the step, and leaves nothing in flight")
{
    rude_transport t;
    silent done;
    acquire a{t, orders(), {.ttl = 10s, .once = true}};
    for (unsigned n : {0U, 1U}) t.nodes[n].on_send = [] { return make_error_code(errc::cannot_connect); };
    t.nodes[2].on_send = [&] {
        if (!t.has_ended) static_cast<listener&>(a).on_watch_failed(2, errc::cannot_connect, t0);
        return std::error_code{};
    };
    a.start(done);
    CHECK(t.has_ended);
    CHECK(in_flight(a) == 0);
    CHECK(t.log == " ask2 release2");
    CHECK(a.outcome().code() == holdfast::errc::unavailable);
}

TEST_CASE("an acquire whose earlier request fails while it asks another node counts that after the step")
{
    rude_transport t;
    t.fail_first_at_second();
    silent done;
    acquire a{t, orders(), {.ttl = 10s, .once = true}};
    a.start(done);
    CHECK(t.has_ended);
    CHECK(in_flight(a) == 0);
    CHECK(t.log == " ask0 ask2 release2");
    CHECK(t.unfinished());  // node 0 may have voted
    CHECK(a.outcome().code() == holdfast::errc::unavailable);
}

TEST_CASE("a renewal whose earlier request fails while it asks another node counts that after the step")
{
    rude_transport t;
    t.fail_first_at_second();
    silent done;
    holdfast::redis::extend_operation e{t, orders(), owner_token::fresh(), 10s};
    e.start(done);
    CHECK(t.has_ended);
    CHECK(in_flight(e) == 0);
    CHECK(t.log == " ask0 ask2");
    CHECK(e.outcome().code() == holdfast::errc::unavailable);
}

TEST_CASE("an acquire that is destroyed while it asks gives back what it asked for, and asks no node any more")
{
    rude_transport t;
    silent done;
    {
        acquire a{t, orders(), {.ttl = 10s}};
        a.start(done);
        CHECK_FALSE(t.has_ended);
        CHECK(in_flight(a) == 3);
    }
    CHECK(t.has_ended);
    CHECK(t.log == " ask0 ask1 ask2 release0 release1 release2");
}
