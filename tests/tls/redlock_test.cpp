// SPDX-License-Identifier: MIT
//
// Masters that talk TLS, and some that should not be talked to.
#include "redlock/masters.hpp"
#include "support/catch.hpp"
#include "support/certificates.hpp"
#include "support/eventually.hpp"

#include <holdfast/io/tls_error.hpp>
#include <holdfast/redlock.hpp>

#include <chrono>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::authority;
using holdfast::test::code_of;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::redis_server;
using holdfast::test::redis_tls;

namespace {

redis_server master(authority& by)
{
    auto const shown = by.issue();
    return redis_server{{.password = "canary", .tls = redis_tls{shown.certificate, shown.key, by.file()}}};
}

}  // namespace

TEST_CASE("a majority of masters that can be trusted grants a lock, whatever the others are")
{
    authority ours;
    authority theirs{"another"};
    auto one = master(ours);
    auto two = master(ours);
    auto untrusted = master(theirs);
    auto untrusted_too = master(theirs);
    redis_server plain;
    holdfast::redlock::masters_options const options{
        .node_timeout = 10s, .restart_guard = 0ms, .tls = {.ca_file = ours.file()}};

    masters three{{one.url(), two.url(), untrusted.url()}, options};
    mutex m{three, "orders"};
    REQUIRE(m.try_lock_for(30s));
    CHECK(m.lease().fencing_token() > 0);
    m.unlock();
    CHECK(one.command({"DBSIZE"}).integer > 0);
    CHECK(untrusted.command({"DBSIZE"}).integer == 0);  // it has heard nothing

    masters mixed{{one.url(), plain.url(), untrusted.url()}, options};
    mutex n{mixed, "orders"};
    CHECK(n.try_lock_for(30s));
    n.unlock();

    masters mostly_wrong{{one.url(), untrusted.url(), untrusted_too.url()}, options};
    // Neither a day without a quorum is waited for nor is the end of the lease what rolls back.
    mutex o{mostly_wrong, "orders", {.ttl = 1h, .unavailable_after = 24h}};
    std::string what;
    auto const code = code_of([&] { o.lock(); }, &what);
    CHECK(code == holdfast::tls::errc::certificate_untrusted);
    CHECK_THAT(what, contains("no quorum of 3 masters") && contains("rediss://") && !contains("canary"));
    CHECK(eventually([&] {
        return one.command({"EXISTS", "orders"}).integer == 0;
    }));  // two said no before it had said yes
}
