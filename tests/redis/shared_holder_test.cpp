// SPDX-License-Identifier: MIT
//
// The record of who has a read-write lock, on a real server, and what operators ask and do.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/redis_rights.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/shared_mutex.hpp>

#include <unistd.h>

#include <chrono>
#include <string>
#include <system_error>
#include <utility>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::shared_mutex;
using holdfast::redis::client;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::least_rights;
using holdfast::test::redis_server;
using holdfast::test::unhurried;

namespace {

constexpr char const* record = "holdfast:holder:{orders}";

/// Returns: options of a client that leaves records.
holdfast::redis::client_options named(std::string label)
{
    auto options = unhurried();
    options.name_holder = true;
    options.label = std::move(label);
    return options;
}

/// A server, a client that leaves records, and an operator's, which needs no option.
struct fixture {
    redis_server server{};
    client ours{server.url(), named("ours")};
    client operators{server.url(), unhurried()};
    holdfast::lock_options options{.ttl = 1h};
    shared_mutex m{ours, "orders", options};
};

}  // namespace

TEST_CASE("the record of a writer is there as long as its hold, and says who it is")
{
    fixture f;
    f.options.fencing = GENERATE(true, false);
    shared_mutex m{f.ours, "orders", f.options};
    for (int i = 0; i < 2; ++i) {
        m.lock();
        CHECK(f.server.command({"GET", record}).text.substr(0, 32) == f.server.command({"GET", "orders"}).text);
        auto const seen = f.operators.holder("orders");
        REQUIRE(seen);
        CHECK(seen->label == "ours");
        CHECK_FALSE(seen->host.empty());
        CHECK(seen->pid == ::getpid());
        CHECK(seen->since);
        CHECK(seen->fencing_token == m.lease().fencing_token());
        CHECK(seen->remaining.value() > 50min);
        CHECK_FALSE(seen->release_requested);
        auto const left = f.server.command({"PTTL", record}).integer;
        CHECK(left > 50 * 60 * 1000);
        CHECK(left <= 60 * 60 * 1000);
        m.extend(2h);
        CHECK(f.server.command({"PTTL", record}).integer > 100 * 60 * 1000);
        m.unlock();
        CHECK_FALSE(exists(f.server, record));
        CHECK_FALSE(f.operators.holder("orders"));
    }
}

TEST_CASE("a writer is told that it is asked for the lock")
{
    fixture f;
    f.m.lock();
    CHECK(f.operators.request_release("orders"));
    CHECK(f.operators.holder("orders").value().release_requested);
    f.m.extend(1h);
    CHECK(f.m.lease().release_requested().stop_requested());
    CHECK(f.m.lease().still_held());
    f.m.unlock();
    f.m.lock();
    CHECK_FALSE(f.operators.holder("orders").value().release_requested);
}

TEST_CASE("a writer whose lock is broken loses it, and its record goes with it")
{
    fixture f;
    f.m.lock();
    CHECK(f.operators.force_unlock("orders"));
    CHECK_FALSE(exists(f.server, record));
    CHECK_FALSE(f.operators.force_unlock("orders"));
    std::error_code ec;
    CHECK_FALSE(f.m.extend(1h, ec));
    CHECK(ec == errc::lease_lost);
    f.m.unlock();
    client others{f.server.url(), named("others")};
    shared_mutex theirs{others, "orders", f.options};
    CHECK(theirs.try_lock());
    CHECK(f.operators.holder("orders").value().label == "others");
}

TEST_CASE("a reader that becomes a writer has a record for as long as the lock, and none once it is a reader again")
{
    fixture f;
    f.m.lock_shared();
    std::error_code ec;
    CHECK(f.m.extend_shared(3h, ec));
    REQUIRE(f.m.try_unlock_shared_and_lock());
    CHECK(f.operators.holder("orders").value().label == "ours");
    CHECK(f.server.command({"PTTL", record}).integer > 150 * 60 * 1000);
    f.m.unlock_and_lock_shared();
    CHECK_FALSE(exists(f.server, record));
    CHECK(f.operators.holder("orders"));
}

TEST_CASE("a user without a right to the record reads and writes without it")
{
    redis_server server{{.config = {least_rights("secret", "orders*")}}};
    client redis{server.url("app", "secret"), named("ours")};
    client operators{server.url(), unhurried()};
    shared_mutex m{redis, "orders", {.ttl = 1h}};
    std::error_code ec;
    for (int i = 0; i < 2; ++i) {
        m.lock();
        CHECK(m.lease().fencing_token() > 0);
        CHECK(m.extend(2h, ec));
        CHECK(operators.holder("orders").value().label.empty());
        CHECK_FALSE(operators.request_release("orders", ec));
        CHECK(ec == errc::misconfigured);
        m.unlock();
        m.lock_shared();
        CHECK(m.extend_shared(2h, ec));
        CHECK(operators.holder("orders").value().label.empty());
        m.unlock_shared();
    }
    CHECK_FALSE(operators.holder("orders"));
}
