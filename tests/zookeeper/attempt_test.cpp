// SPDX-License-Identifier: MIT
//
// An acquire without servers: the test says what is answered, and when the session is attended to.
#include "support/catch.hpp"

#include <holdfast/zookeeper/acquire_operation.hpp>
#include <holdfast/zookeeper/permit_operation.hpp>
#include <holdfast/zookeeper/session_engine.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::zookeeper::acquire_operation;
using holdfast::zookeeper::answer;
using holdfast::zookeeper::node_key;
using holdfast::zookeeper::permit_operation;
using holdfast::zookeeper::reply;
using holdfast::zookeeper::request;
using holdfast::zookeeper::session_engine;
using holdfast::zookeeper::session_host;
using holdfast::zookeeper::transport;
using holdfast::zookeeper::transport_events;

namespace {

struct asked {
    request what;
    transport_events::call* as;
};

/// What the test sees of a session's transport.
struct wire {
    transport_events* events = nullptr;
    std::vector<asked> open;

    /// Effects: answers the first open request of `kind`. Returns: that request.
    request answered(request::kind kind, reply r)
    {
        for (auto one = open.begin(); one != open.end(); ++one) {
            if (one->what.what != kind) continue;
            auto const found = *one;
            open.erase(one);
            events->on_reply(*found.as, std::move(r));
            return found.what;
        }
        throw std::runtime_error{"nothing of this kind was asked"};
    }
};

struct recording final : transport {
    explicit recording(wire& to) : to_{to} {}
    bool authenticate(std::string const&, std::string const&) override { return true; }
    bool send(request const& r, transport_events::call& as, bool) override
    {
        as.what = r.what;
        to_.open.push_back({r, &as});
        return true;
    }

private:
    wire& to_;
};

struct host final : session_host {
    explicit host(wire& to) : to_{to} {}
    std::unique_ptr<transport> open(transport_events& events) override
    {
        to_.events = &events;
        return std::make_unique<recording>(to_);
    }
    [[nodiscard]] std::string problem() const override { return {}; }
    [[nodiscard]] holdfast::owner_token fresh_token() const override { return holdfast::owner_token::fresh(); }
    [[nodiscard]] bool in_child() const noexcept override { return false; }
    void ensure_running(session_engine&, std::string_view) override {}
    void wake() noexcept override {}
    void end(std::shared_ptr<session_engine>) noexcept override {}

private:
    wire& to_;
};

struct told final : holdfast::completion {
    void complete() noexcept override { ended = true; }
    bool ended = false;
};

/// An acquire whose deadline passes when its node has been made and the list of nodes has not come yet.
struct late_attempt {
    late_attempt()
    {
        attend();
        wired.events->on_state(transport_events::state::connected, 1, 10s);
        acquire.start(end);
        list(answer::ok, {});
        auto const asked_for = wired.answered(
            request::kind::create_sequential,
            {.what = answer::ok, .text = "/orders/_c_0-lock-0000000007", .stat = {.czxid = 5, .owner = 1}});
        CHECK(asked_for.path.starts_with("/orders/"));
        while (boot_clock::now() <= deadline) {
        }
        attend();
    }

    void list(answer what, std::vector<std::string> names)
    {
        wired.answered(request::kind::children, {.what = what, .children = std::move(names)});
    }

    void attend()
    {
        session_engine::lock guard{engine->mutex()};
        static_cast<void>(engine->attend(guard));
    }

    wire wired;
    std::shared_ptr<session_engine> engine = std::make_shared<session_engine>(
        holdfast::zookeeper::ensemble{}, holdfast::zookeeper::session_options{.operation_timeout = 1min},
        std::make_unique<host>(wired));
    told end;
    boot_clock::time_point const deadline = boot_clock::now() + 20ms;
    acquire_operation acquire{
        engine,
        std::make_shared<node_key const>("orders", "/orders", holdfast::zookeeper::node_options{}),
        {.deadline = deadline}};
};

/// An acquire of one of Curator's permits that has its place in the queue some time after it began.
struct late_permit {
    explicit late_permit(bool once)
    {
        static_cast<void>(attend());
        wired.events->on_state(transport_events::state::connected, 1, 1h);
        if (!once) asked_for.deadline = boot_clock::now();
        asked_for.once = once;
        acquire = std::make_unique<permit_operation>(
            engine, std::make_shared<node_key const>("jobs", "/jobs/leases", std::size_t{3}), asked_for);
        acquire->start(end);
        begun = boot_clock::now();
        while (boot_clock::now() <= begun + 1ms) {
        }
        wired.answered(request::kind::children, {.what = answer::ok});
        wired.answered(
            request::kind::create_sequential,
            {.what = answer::ok, .text = "/jobs/locks/_c_0-lock-0000000007", .stat = {.czxid = 5, .owner = 1}});
        wired.answered(request::kind::children, {.what = answer::ok, .children = {"_c_0-lock-0000000007"}});
    }

    boot_clock::time_point attend()
    {
        session_engine::lock guard{engine->mutex()};
        return engine->attend(guard);
    }

    wire wired;
    std::shared_ptr<session_engine> engine = std::make_shared<session_engine>(
        holdfast::zookeeper::ensemble{}, holdfast::zookeeper::session_options{.operation_timeout = patience},
        std::make_unique<host>(wired));
    told end;
    holdfast::acquire_request asked_for{};
    std::unique_ptr<permit_operation> acquire;
    boot_clock::time_point begun;
    static constexpr auto patience = 1min;
};

}  // namespace

TEST_CASE("a permit and the place in the queue for it share the time of one attempt")
{
    for (bool const once : {true, false}) {
        late_permit a{once};
        REQUIRE_FALSE(a.end.ended);
        CHECK(a.wired.open.size() == 1);  // the look at the permits
        CHECK(a.attend() <= a.begun + late_permit::patience);
    }
}

TEST_CASE("a permit that has its place in the queue has reached the servers")
{
    late_permit a{false};
    a.wired.events->on_state(transport_events::state::suspended, 1, 1h);
    CHECK(a.acquire->unavailable() == std::optional{false});
}

TEST_CASE("an attempt that has begun gets the lock if that is free, although its deadline passed meanwhile")
{
    late_attempt a;
    REQUIRE_FALSE(a.end.ended);
    a.list(answer::ok, {"_c_0-lock-0000000007"});
    REQUIRE(a.end.ended);
    CHECK(a.acquire.outcome());
}

TEST_CASE("an attempt that ends behind its deadline does not wait for the client that has the lock")
{
    late_attempt a;
    REQUIRE_FALSE(a.end.ended);
    a.list(answer::ok, {"_c_1-lock-0000000001", "_c_0-lock-0000000007"});
    CHECK_FALSE(a.end.ended);
    static_cast<void>(a.wired.answered(request::kind::erase, {.what = answer::ok}));
    REQUIRE(a.end.ended);
    CHECK(a.acquire.outcome().code() == holdfast::errc::timed_out);
}
