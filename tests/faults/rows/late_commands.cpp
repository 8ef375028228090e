// SPDX-License-Identifier: MIT
//
// A release or a renewal is kept on the way until its lease is over and another has the lock, and arrives then. An acquire whose caller was
// told that its outcome is unknown must not arrive at all.
#include "rows.hpp"

#include "../check/leftovers.hpp"
#include "../network.hpp"
#include "../place.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>
#include <support/proxy.hpp>
#include <support/redis_server.hpp>

#include <holdfast/core/error.hpp>

#include <chrono>
#include <stdexcept>
#include <string>

namespace holdfast::faults {
namespace {

using namespace std::chrono_literals;
using test::containing;
using test::eventually;

constexpr std::chrono::milliseconds ttl{300};

enum class late { release, renewal, extend };

/// Effects: cuts a client off while it acquires. The system goes on trying to deliver what it was given, for minutes; the client has to have
/// seen to it that it does not, for nobody would roll that back.
void acquires_of_one_cut_off(run_options const& run, findings& to)
{
    test::redis_server server;
    ways network{{server.port()}, true};
    auto const client = connect({.servers = {network.url(0)}, .operation_timeout = 300ms});
    auto const lock = client->lock("faults/0", {.ttl = 30s});
    breaches found;
    auto const trials = run.count(2, 20);
    for (std::size_t n = 0; n < trials; ++n) {
        std::error_code ec;
        if (!lock->try_lock_for(10s)) throw std::runtime_error{"no lock without a fault"};
        lock->release(ec);
        network.cut(0);
        try {
            static_cast<void>(lock->try_lock());
            found.push_back("the outcome is not unknown");
        } catch (error const&) {
        }
        network.mend(0);
        if (eventually([&] { return server.command({"EXISTS", "faults/0"}).integer != 0; }, 3s)) found.push_back("it arrived, and its lock is left behind");
    }
    to.figure("acquires of one who was cut off", trials);
    to.check("nothing is left behind", found);
}

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
    if (run.own_network) acquires_of_one_cut_off(run, to);
    to.check("K7", check_remains(remains_on(server, ttl + 5s)));
}

}  // namespace holdfast::faults
