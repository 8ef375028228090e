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
#include <cstddef>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::shared_mutex;
using holdfast::redis::client;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::least_rights;
using holdfast::test::redis_server;
using holdfast::test::unhurried;
using holdfast::test::unnamed;

namespace {

constexpr char const* record = "holdfast:holder:{orders}";

/// Returns: how many readers have a record.
std::size_t records_of_readers(redis_server& server)
{
    return server.command({"KEYS", std::string{record} + ":*"}).elements.size();
}

/// Returns: options of a client whose records have that label.
holdfast::redis::client_options named(std::string label)
{
    auto options = unhurried();
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

TEST_CASE("a reader that becomes a writer has a record for as long as the lock, and that of a reader once it is one")
{
    fixture f;
    f.m.lock_shared();
    std::error_code ec;
    CHECK(f.m.extend_shared(3h, ec));
    auto const read = f.operators.holder("orders").value();
    CHECK(read.label == "ours");
    REQUIRE(f.m.try_unlock_shared_and_lock());
    auto const written = f.operators.holder("orders").value();
    CHECK(written.label == "ours");
    CHECK(written.fencing_token > read.fencing_token);
    CHECK(f.server.command({"PTTL", record}).integer > 150 * 60 * 1000);
    CHECK(records_of_readers(f.server) == 0);
    f.m.unlock_and_lock_shared();
    CHECK_FALSE(exists(f.server, record));
    CHECK(records_of_readers(f.server) == 1);
    CHECK(f.operators.holder("orders").value().fencing_token == f.m.lease_shared().fencing_token());
}

TEST_CASE("the record of a reader is there as long as its hold, and one of the readers is shown")
{
    fixture f;
    f.options.fencing = GENERATE(true, false);
    shared_mutex first{f.ours, "orders", f.options};
    client others{f.server.url(), named("others")};
    shared_mutex second{others, "orders", f.options};
    first.lock_shared();
    auto const alone = f.operators.holder("orders");
    REQUIRE(alone);
    CHECK(alone->label == "ours");
    CHECK(alone->pid == ::getpid());
    CHECK_FALSE(alone->host.empty());
    CHECK(alone->since);
    CHECK(alone->fencing_token == first.lease_shared().fencing_token());
    second.lock_shared();
    CHECK(records_of_readers(f.server) == 2);
    auto const of_two = f.operators.holder("orders").value();
    CHECK((of_two.label == "ours" || of_two.label == "others"));
    std::error_code ec;
    CHECK(second.extend_shared(2h, ec));
    for (auto const& key : f.server.command({"KEYS", std::string{record} + ":*"}).elements) {
        auto const text = f.server.command({"GET", key.text}).text;
        bool const longer = text.find(" label=others") != std::string::npos;
        auto const digest = f.server.command({"EVAL", "return redis.sha1hex(ARGV[1])", "0", text.substr(0, 32)}).text;
        CHECK(key.text == std::string{record} + ':' + digest);
        auto const left = f.server.command({"PTTL", key.text}).integer;
        CHECK(left > (longer ? 110 : 50) * 60 * 1000);
        CHECK(left <= (longer ? 120 : 60) * 60 * 1000);
    }
    first.unlock_shared();
    CHECK(records_of_readers(f.server) == 1);
    CHECK(f.operators.holder("orders").value().label == "others");
    second.unlock_shared();
    CHECK(records_of_readers(f.server) == 0);
    CHECK_FALSE(f.operators.holder("orders"));
}

TEST_CASE("a reader that leaves no record does not hide one that does, and is not asked for the lock")
{
    fixture f;
    client others{f.server.url(), unnamed()};
    shared_mutex theirs{others, "orders", f.options};
    theirs.lock_shared();
    CHECK(f.operators.holder("orders").value().label.empty());
    f.m.lock_shared();
    CHECK(f.operators.holder("orders").value().label == "ours");
    CHECK(f.operators.request_release("orders"));
    std::error_code ec;
    CHECK(theirs.extend_shared(1h, ec));
    CHECK_FALSE(theirs.lease_shared().release_requested().stop_requested());
    f.m.unlock_shared();
    CHECK(f.operators.holder("orders").value().label.empty());
    CHECK_FALSE(f.operators.request_release("orders", ec));
    CHECK(ec == errc::misconfigured);
}

TEST_CASE("all readers are told that they are asked for the lock, and one that comes later is not")
{
    fixture f;
    client others{f.server.url(), named("others")};
    shared_mutex theirs{others, "orders", f.options};
    f.m.lock_shared();
    theirs.lock_shared();
    CHECK(f.operators.request_release("orders"));
    CHECK(f.operators.holder("orders").value().release_requested);
    std::error_code ec;
    for (auto* const one : {&f.m, &theirs}) {
        CHECK(one->extend_shared(2h, ec));
        CHECK(one->lease_shared().release_requested().stop_requested());
        CHECK(one->lease_shared().still_held());
    }
    f.m.unlock_shared();
    f.m.lock_shared();
    CHECK(f.m.extend_shared(2h, ec));
    CHECK_FALSE(f.m.lease_shared().release_requested().stop_requested());
    theirs.unlock_shared();
    CHECK_FALSE(f.operators.holder("orders").value().release_requested);
}

TEST_CASE("readers whose lock is broken lose it, a writer that waits gets it, and their records go with it")
{
    fixture f;
    client others{f.server.url(), GENERATE(true, false) ? named("others") : unnamed()};
    client next{f.server.url(), named("next")};
    shared_mutex theirs{others, "orders", f.options};
    shared_mutex writing{next, "orders", {.ttl = 1h, .unavailable_after = 5min}};
    f.m.lock_shared();
    theirs.lock_shared();
    auto const token = theirs.lease_shared().fencing_token();
    std::jthread writer{[&] { writing.lock(); }};
    CHECK(eventually([&] { return holdfast::test::waiters(f.server) == 1; }));
    CHECK(f.operators.force_unlock("orders"));
    writer.join();
    CHECK(writing.lease().fencing_token() > token);
    CHECK(records_of_readers(f.server) == 0);
    CHECK(f.operators.holder("orders").value().label == "next");
    std::error_code ec;
    for (auto* const one : {&f.m, &theirs}) {
        CHECK_FALSE(one->extend_shared(1h, ec));
        CHECK(ec == errc::lease_lost);
        one->unlock_shared();
    }
    CHECK(writing.lease().still_held());
    CHECK(f.operators.holder("orders").value().label == "next");
    writing.unlock();
    CHECK_FALSE(f.operators.force_unlock("orders"));
}

TEST_CASE("a record that is left of an earlier reader is not taken for that of one who has the lock")
{
    fixture f;
    f.m.lock_shared();
    f.server.command({"DEL", "orders"});
    CHECK(records_of_readers(f.server) == 1);
    client others{f.server.url(), unnamed()};
    shared_mutex theirs{others, "orders", f.options};
    theirs.lock_shared();
    CHECK(f.operators.holder("orders").value().label.empty());
    std::error_code ec;
    CHECK_FALSE(f.operators.request_release("orders", ec));
    CHECK(ec == errc::misconfigured);
    f.m.unlock_shared();
    CHECK(records_of_readers(f.server) == 0);
    CHECK(theirs.lease_shared().still_held());
}

TEST_CASE("an operator without a right to the keys of readers sees until when they have the lock")
{
    auto const keys = holdfast::test::lock_keys_of("orders*") + " " + holdfast::test::queue_keys_of("orders*") + " " +
                      holdfast::test::holder_keys_of("orders*");
    redis_server server{{.config = {"user app on >secret " + keys + " resetchannels +@all"}}};
    client ours{server.url(), named("ours")};
    client operators{server.url("app", "secret"), unhurried()};
    shared_mutex m{ours, "orders", {.ttl = 1h}};
    m.lock_shared();
    auto const seen = operators.holder("orders");
    REQUIRE(seen);
    CHECK(seen->label.empty());
    CHECK(seen->remaining.value() > 50min);
    std::error_code ec;
    CHECK_FALSE(operators.request_release("orders", ec));
    CHECK(ec == errc::misconfigured);
    m.unlock_shared();
    m.lock();
    CHECK(operators.holder("orders").value().label == "ours");
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
