// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/lock/failure_reports.hpp>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::failure;
using holdfast::detail::error_hook;
using holdfast::detail::failure_reports;

namespace {

struct client {
    failure_reports reports;
    std::vector<std::string> told;
    error_hook hooked = [this](holdfast::error const& e) { told.emplace_back(e.what()); };
    failure down{make_error_code(errc::unavailable), "renewal: redis://a:1", "redis://a:1"};

    /// Effects: waits until what failed is long ago.
    static void rest() { std::this_thread::sleep_for(failure_reports::quiet + 10ms); }
};

}  // namespace

TEST_CASE("of a cause that many locks meet the first is told, and its end once")
{
    client c;
    for (auto const* name : {"a", "b", "c"}) c.reports.failed(c.hooked, name, c.down);
    CHECK(c.told == std::vector<std::string>{"lock \"a\": renewal: redis://a:1: no quorum of servers could be asked"});
    client::rest();
    c.reports.went_well(c.hooked, "b");
    c.reports.went_well(c.hooked, "c");
    REQUIRE(c.told.size() == 2);
    CHECK(
        c.told[1] ==
        "lock \"b\": redis://a:1: leases are granted and renewed again; this is over: no quorum of servers could be asked");
    c.reports.failed(c.hooked, "c", c.down);
    CHECK(c.told.size() == 3);
}

TEST_CASE("another code, or another server, is another cause")
{
    client c;
    c.reports.failed(c.hooked, "a", c.down);
    c.reports.failed(c.hooked, "a", {make_error_code(errc::outcome_unknown), "renewal", "redis://a:1"});
    c.reports.failed(c.hooked, "a", {make_error_code(errc::unavailable), "renewal", "redis://b:1"});
    CHECK(c.told.size() == 3);
    client::rest();
    c.reports.went_well(c.hooked, "a");
    CHECK(c.told.size() == 6);
}

TEST_CASE("it is not over while a lease is left that could not be renewed, nor when something has just failed")
{
    client c;
    bool counted = false;
    c.reports.failed(c.hooked, "a", c.down);
    c.reports.count(counted, true);
    c.reports.count(counted, true);
    c.reports.went_well(c.hooked, "b");  // too early in two ways, where this thread goes on
    client::rest();
    c.reports.went_well(c.hooked, "b");
    CHECK(c.told.size() == 1);
    c.reports.count(counted, false);
    c.reports.went_well(c.hooked, "b");
    CHECK(c.told.size() == 2);
}

TEST_CASE("a lock without a hook takes no report from the others")
{
    client c;
    error_hook const deaf;
    c.reports.failed(deaf, "a", c.down);
    c.reports.failed(c.hooked, "b", c.down);
    CHECK(c.told.size() == 1);
    client::rest();
    c.reports.went_well(deaf, "a");
    CHECK(c.told.size() == 1);
    c.reports.went_well(c.hooked, "b");
    CHECK(c.told.size() == 2);
}

TEST_CASE("an unlock that found its lock lost, or not locked, is always told")
{
    client c;
    for (int i = 0; i < 2; ++i) {
        c.reports.unlock_failed(c.hooked, "a", {make_error_code(errc::lease_lost), {}});
        c.reports.unlock_failed(c.hooked, "a", {make_error_code(errc::not_owner), {}});
        c.reports.unlock_failed(c.hooked, "a", {make_error_code(errc::unavailable), "redis://a:1", "redis://a:1"});
    }
    CHECK(c.told == std::vector<std::string>{"lock \"a\": unlock: the lease was lost",
                                             "lock \"a\": unlock: the lock is not held by the caller",
                                             "lock \"a\": unlock: redis://a:1: no quorum of servers could be asked",
                                             "lock \"a\": unlock: the lease was lost",
                                             "lock \"a\": unlock: the lock is not held by the caller"});
}
