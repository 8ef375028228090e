// SPDX-License-Identifier: MIT
//
// Somebody sets the wall clocks, by 2 and by 10 minutes, forward and back: a client's, that of one of five masters,
// those of three.
#include "rows.hpp"

#include "../alone.hpp"
#include "../crew.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>
#include <support/redis_server.hpp>
#include <support/wall_clock.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::faults::wall_clocks {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::array jumps{120s, -120s, 600s, -600s};

void of_a_client(run_options const& run, findings& to)
{
    test::redis_server server;
    place const where{.servers = {server.url()}, .ttl = 10s, .operation_timeout = 5s};  // a busy machine loses no lease
    auto const folder = to.folder("client");
    test::wall_clock clock{folder / "offset"};
    constexpr std::uint32_t shifted = 1000;
    auto const length = std::chrono::milliseconds{run.count(4000, 60000)};
    crew workers{{.where = where, .processes = 3, .rest = 2ms}, folder};
    auto one = start_alone({.where = where, .folder = folder, .clients = {shifted}}, length, clock.environment());
    for (auto const end = boot_clock::now() + length; boot_clock::now() < end;)
        for (auto const ahead : jumps) {
            clock.set(ahead);
            workers.note(event::fault_begun);
            std::this_thread::sleep_for(250ms);
            workers.note(event::fault_ended);
        }
    to.require(one.wait_for(20s) == 0, "the client whose clock was set did not end well");
    workers.end();
    auto const seen = wall_clocks_seen(folder);
    for (auto const ahead : jumps)
        to.require(
            std::any_of(seen.begin(), seen.end(),
                        [&](auto was) {
                            return std::abs(was - wall_clock_ahead() - std::chrono::milliseconds{ahead}.count()) < 5000;
                        }),
            "the client did not see its clock set by " + std::to_string(ahead.count()) + " s: the row shows nothing");
    to.figure("jumps that the client saw", seen.size() - std::min<std::size_t>(seen.size(), 1));
    auto records = workers.records();
    // What it guarded was its own.
    std::erase_if(records, [](record const& r) {
        return r.client == shifted && (r.what == event::write_taken || r.what == event::write_refused);
    });
    std::size_t holds = 0;
    breaches found;
    for (auto const& r : records) {
        if (r.client != shifted) continue;
        holds += r.what == event::acquire_ok ? 1U : 0U;
        if (r.what == event::loss_announced || r.what == event::acquire_unknown ||
            (r.what == event::answered && r.value == 0))
            found.push_back("it lost a lease, or could not ask, in hold " + std::to_string(r.hold));
    }
    to.figure("holds of the client whose clock jumped", holds);
    to.require(holds > 10, "the client whose clock jumped hardly got the lock");
    to.check("the client: no effect", found);
    verify(run, to, records, refused_by::holder);
}

/// Effects: waits until a worker is in its section and has the lock on every server: contenders may leave it no more
/// than a majority, of which no clock may jump; a lock on all of them outlives the jump of one. Leaves the worker in
/// its section.
void wait_for_all_votes(crew& workers, slot& of, std::vector<test::redis_server>& servers)
{
    auto const on_all = [&] {
        auto const value = servers[0].command({"GET", "faults/0"}).text;
        return !value.empty() && std::all_of(servers.begin(), servers.end(), [&](auto& one) {
            return one.command({"GET", "faults/0"}).text == value;
        });
    };
    for (auto const end = boot_clock::now() + 60s; boot_clock::now() < end;) {
        of.ask_to_stay();
        if (!eventually([&] { return of.staying.load(); }, 20s)) break;
        if (eventually(on_all, 20ms)) return;
        auto const sections = workers.sections();
        of.stay = false;
        static_cast<void>(eventually([&] { return workers.sections() > sections + 3; }, 5s));
    }
    throw std::runtime_error{"nobody gets the lock from all masters"};
}

/// Effects: has `count` of five masters jump there and back, again and again, while somebody holds the lock. Returns:
/// what happened.
std::vector<record> of_masters(run_options const& run, findings& to, std::size_t count, std::string const& name)
{
    auto const folder = to.folder(name);
    std::vector<test::wall_clock> clocks;
    std::vector<test::redis_server> servers;
    // A holder who loses its lease while one clock is away leaves the lock to votes of which one is about to jump.
    // Where three jump, it is to see its loss before it writes.
    place where{.what = place::store::redlock,
                .servers = {},
                .ttl = count > 1 ? 600ms : 3s,
                .operation_timeout = count > 1 ? 200ms : 1s};
    for (std::size_t i = 0; i < 5; ++i) {
        auto& clock = clocks.emplace_back(folder / ("offset" + std::to_string(i)));
        where.servers.push_back(servers.emplace_back(test::redis_options{.environment = clock.environment()}).url());
    }
    clocks[0].set(1h);
    auto const said = std::stod(servers[0].command({"TIME"}).elements.at(0).text);
    to.require(std::abs(said - static_cast<double>(std::time(nullptr)) - 3600) < 100,
               "a server does not see its clock set");
    clocks[0].set(0s);

    crew workers{{.where = where, .processes = 4, .rest = 2ms}, folder};
    // Where three jump, nobody happens to get through about one time in three: a control has to see it happen once.
    auto const trials = run.control ? run.count(12, 100) : run.count(4, 100);
    for (std::size_t n = 0; n < trials; ++n) {
        if (!eventually([&] { return workers.sections() > 10 * (n + 1); }, 60s))
            throw std::runtime_error{"no sections are done"};
        auto& of = workers.of(n % workers.size());
        wait_for_all_votes(workers, of, servers);
        auto const sections = workers.sections();
        workers.note(event::fault_begun, n);
        for (std::size_t i = 0; i < count; ++i) clocks[(n + i) % clocks.size()].set(jumps[n % jumps.size()]);
        // A waiter looks again after half a second at the latest; where the lock holds, nobody does a section.
        static_cast<void>(eventually([&] { return workers.sections() != sections; }, count > 1 ? 2000ms : 700ms));
        for (auto& clock : clocks) clock.set(0s);
        workers.note(event::fault_ended, n);
        std::this_thread::sleep_for(150ms);
        of.stay = false;
        // What was written under a clock that was ahead would stay for as long: somebody tidies up.
        if (count > 1)
            for (auto& one : servers)
                if (one.command({"PTTL", "faults/0"}).integer > 2 * where.ttl.count()) one.command({"DEL", "faults/0"});
    }
    workers.end();
    to.figure(name + ": jumps", trials);
    return workers.records();
}

}  // namespace

void go(run_options const& run, findings& to)
{
    of_a_client(run, to);
    auto one = of_masters(run, to, run.control ? 3 : 1, "one of five masters");
    verify(run, to, one, refused_by::holder_or_contender);
    auto const three = of_masters(run, to, 3, "three of five masters");
    to.figure("three of five masters: overlapping holds, as documented", check_exclusion(three).size());
    auto const k3 = check_fenced_writes(three);
    to.check("K2 of a majority", check_fencing(three));
    to.require(k3.stale_taken == 0, "K3 of a majority: the register took a stale write");
    to.figure("three of five masters: stale writes refused", k3.stale_refused);
    to.show(std::move(one));
}

}  // namespace holdfast::faults::wall_clocks
