// SPDX-License-Identifier: MIT
//
// A release or a renewal is kept on the way until its lease is over and another has the lock, and arrives then.
#include "rows.hpp"

#include "../check/leftovers.hpp"
#include "../place.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>
#include <support/proxy.hpp>
#include <support/redis_server.hpp>

#include <holdfast/core/error.hpp>

#include <chrono>
#include <string>

namespace holdfast::faults {
namespace {

using namespace std::chrono_literals;
using test::containing;
using test::eventually;

constexpr std::chrono::milliseconds ttl{300};

enum class late { release, renewal, extend };

}  // namespace

void late_commands(run_options const& run, findings& to)
{
    test::redis_server server;
    test::proxy way{server.port()};
    auto const here = connect({.servers = {way.url()}, .operation_timeout = 60ms});
    auto const there = connect({.servers = {server.url()}});
    auto const probe = here->lock("probe", {.ttl = 30s});
    breaches found;
    std::size_t arrived = 0;

    auto const trials = run.count(8, 70);
    for (std::size_t n = 0; n < 3 * trials; ++n) {
        auto const what = static_cast<late>(n % 3);
        auto const name = "faults/" + std::to_string(n);
        auto const say = [&](std::string const& wrong) {
            found.push_back((what == late::release ? "release " : what == late::renewal ? "renewal " : "extend ") + std::to_string(n) + ": " + wrong);
        };
        auto const holder = here->lock(name, {.ttl = ttl, .renew = what == late::renewal});
        auto const rival = there->lock(name, {.ttl = 20s, .retry = {.most = 1h}});
        holder->lock();
        auto const lease = holder->lease();
        way.hold(containing(name));
        std::error_code ec;
        if (what == late::release) holder->release(ec);
        if (what == late::extend && holder->extend(250ms, ec)) ec = {};
        if (what == late::renewal) {
            if (!eventually([&] { return way.held() > 0; }, 5s)) say("never sent");
            if (!eventually([&] { return lease.lost_token().stop_requested(); }, 5s)) say("the holder was not told of its loss");
            ec = make_error_code(errc::lease_lost);
        }
        if (!ec) say("the caller was told that it is done");
        if (!rival->try_lock_for(10s)) say("the successor does not get the lock");
        auto const value = server.command({"GET", name}).text;
        if (run.control) server.command({what == late::release ? "DEL" : "PERSIST", name});  // without compare
        auto const before = way.requests();
        way.let_go();
        way.heal();
        // What was kept goes before this on its connection; the other way to see it is that the server has nothing more to read.
        if (!probe->try_lock_for(10s)) say("no lock could be taken afterwards");
        std::error_code ignored;
        probe->release(ignored);
        arrived += way.requests() > before ? 1U : 0U;
        if (server.command({"GET", name}).text != value || value.empty()) say("it freed the successor's lock");
        auto const left = server.command({"PTTL", name}).integer;
        if (left < 0 || left > 20'000) say("it changed how long the successor has the lock");
        if (!rival->lease().still_held()) say("the successor lost its lease");
        rival->release(ec);
        if (ec) say("the successor could not release: " + ec.message());
        holder->release(ignored);
    }
    to.figure("late releases, renewals, extends", trials);
    to.figure("arrived behind the successor's grant", arrived);
    to.check("the successor untouched, the caller told", found);
    to.check("K7", check_remains(remains_on(server, ttl + 5s)));
}

}  // namespace holdfast::faults
