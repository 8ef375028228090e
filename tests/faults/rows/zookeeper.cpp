// SPDX-License-Identifier: MIT
//
// Sessions that are ended behind their owner's back, holders that are cut off, an ensemble whose leader hangs.
#include "rows.hpp"

#ifdef HOLDFAST_TEST_ZOOKEEPER
#include "zookeeper_nodes.hpp"

#include "../crew.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>
#include <support/proxy.hpp>
#include <support/zookeeper_server.hpp>
#include <support/zookeeper_tree.hpp>

#include <holdfast/zookeeper/node_name.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#endif

#include <stdexcept>

namespace holdfast::faults::zookeeper_ensemble {

#ifdef HOLDFAST_TEST_ZOOKEEPER
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::chrono::milliseconds session_timeout{1600};
constexpr char const* path = "/faults/0";

place at(std::string const& address, std::chrono::milliseconds session = session_timeout)
{
    return {.what = place::store::zookeeper, .servers = {address}, .ttl = session, .operation_timeout = 1000ms};
}

/// Effects: waits until this worker is in its section, and stays there.
void wait_for_holder(slot& of)
{
    of.ask_to_stay();
    if (!eventually([&] { return of.staying.load(); }, 60s)) throw std::runtime_error{"a worker does not get the lock"};
}

/// Effects: says of each fault, which struck the holder at that time, how long before the next grant its loss was
/// announced. Where `demanded`, one that came later, or never, is a breach.
void look_at_losses(findings& to, std::vector<record> const& records, std::chrono::nanoseconds session, bool demanded)
{
    auto const holds = holds_of(records);
    std::vector<std::int64_t> after_fault;
    std::size_t before_grant = 0;
    std::size_t struck = 0;
    std::int64_t latest = 0;
    breaches found;
    for (auto const& r : records) {
        if (r.what != event::fault_begun || holds.empty()) continue;
        auto const& all = holds.begin()->second;
        auto const next = std::find_if(all.begin(), all.end(), [&](hold const& h) { return h.granted > r.at; });
        if (next == all.begin() || next == all.end()) continue;
        auto const& holder = *std::prev(next);
        if (holder.release_begun < r.at) continue;
        ++struck;
        if (holder.lost == never) {
            found.push_back(holder.name() + ": its loss was never announced");
            continue;
        }
        after_fault.push_back(holder.lost - r.at);
        if (holder.lost < next->granted)
            ++before_grant;
        else
            latest = std::max(latest, holder.lost - next->granted);
        if (demanded && holder.lost >= next->granted)
            found.push_back(holder.name() + ": its loss was announced " + milliseconds(holder.lost - next->granted) +
                            " after " + next->name() + " was granted the lock");
    }
    to.figure("loss announced before the rival's grant",
              std::to_string(before_grant) + " of " + std::to_string(struck) +
                  (latest > 0 ? ", at most " + milliseconds(latest) + " after it" : std::string{}));
    to.times("from the fault to the announced loss", after_fault, session.count());
    to.require(struck > 0, "no fault struck a holder");
    to.check("loss announced", found);
}

}  // namespace

void zookeeper_expiry(run_options const& run, findings& to)
{
    test::zookeeper_server server{{.tick = 200ms}};
    auto const where = at(server.address());
    crew workers{{.where = where, .processes = 2, .tokens_checked = !run.control, .rest = 5ms}, to.folder("journals")};
    auto const trials = run.count(6, 200);
    for (std::size_t n = 0; n < trials; ++n) {
        auto& of = workers.of(n % 2);
        auto& rival = workers.of((n + 1) % 2);
        wait_for_holder(of);
        auto const before = rival.sections.load();
        auto const losses = of.losses.load();
        workers.note(event::fault_begun, n);
        {
            test::zookeeper_tree tree{server.address()};
            auto const line = zookeeper::contenders_among(tree.children(path));
            auto const owner = line.empty() ? std::nullopt : tree.owner_of(std::string{path} + '/' + line.front().name);
            if (owner) tree.end_session(*owner);
        }
        static_cast<void>(eventually([&] { return rival.sections != before && of.losses != losses; }, 20s));
        workers.note(event::fault_ended, n);
        of.stay = false;
    }
    workers.end();
    auto records = workers.records();
    to.figure("sessions ended by a duplicate", trials);
    // Nothing tells the holder before the servers may grant the lock to another: that is what its token is for.
    to.figure("overlapping holds, as documented", check_exclusion(records).size());
    look_at_losses(to, records, session_timeout, false);
    to.check("K2", check_fencing(records));
    to.check("K3", check_fenced_writes(records, trials / 2).found);
    to.check("K7", check_remains(remains_below(path, server.address(), 2 * session_timeout + 10s)));
    to.show(std::move(records));
}

void zookeeper_cut_off(run_options const& run, findings& to)
{
    test::zookeeper_server server{{.tick = 200ms}};
    test::proxy one{server.port(), test::zookeeper_packets};
    test::proxy two{server.port(), test::zookeeper_packets};
    // From the loss to the rival's grant it is half of it: a holder that stands still for longer announces it too late.
    auto const session = run.full ? session_timeout : 6s;
    crew workers{{.ways_there = {at(one.address(), session), at(two.address(), session), at(server.address(), session)},
                  .processes = 3, .guarded = !run.control, .rest = 5ms},
                 to.folder("journals")};
    auto const trials = run.control ? 2 : run.count(4, 200);
    for (std::size_t n = 0; n < trials; ++n) {
        auto& of = workers.of(n % 2);
        auto& way = n % 2 == 0 ? one : two;
        wait_for_holder(of);
        auto const others = workers.sections();
        workers.note(event::fault_begun, n);
        way.freeze();
        static_cast<void>(eventually([&] { return workers.sections() > others + 1; }, 20s));
        workers.note(event::fault_ended, n);
        way.pass();
        of.stay = false;
        auto const done = of.sections.load();
        static_cast<void>(eventually([&] { return of.sections > done; }, 20s));
    }
    workers.end();
    auto records = workers.records();
    to.figure("holders cut off until their session has expired", trials);
    look_at_losses(to, records, session, true);
    verify(run, to, records, refused_by::holder_or_contender);
    to.check("K7", check_remains(remains_below(path, server.address(), 2 * session + 10s)));
    to.show(std::move(records));
}

void zookeeper_leader_stopped(run_options const& run, findings& to)
{
    // Followers leave a leader that is silent for a second. One whom a voter left at the last moment, for the old
    // leader who is back, waits as leader for initLimit before there is another election (ZOOKEEPER-3109).
    test::zookeeper_ensemble servers{3, {.tick = 200ms, .config = {"syncLimit=5", "initLimit=50"}}};
    crew workers{{.where = at(servers.addresses()), .processes = 3, .guarded = !run.control, .rest = 5ms},
                 to.folder("journals")};
    std::mt19937_64 random{run.seed};
    auto const trials = run.control ? 1 : run.count(3, 200);
    std::vector<std::int64_t> recovery;
    std::size_t elections = 0;
    std::size_t jams = 0;
    constexpr std::size_t spare =
        6;  // more trials where nobody took over: on a busy machine an election takes longer than the leader is away
    std::size_t n = 0;
    for (; n < trials || (!run.control && elections == 0 && n < trials + spare); ++n) {
        auto const leader = servers.leader();
        auto const before = workers.sections();
        if (!eventually([&] { return workers.sections() > before + 10; }, 5min))
            throw std::runtime_error{"no sections are done"};
        auto& of = workers.of(random() % workers.size());
        wait_for_holder(of);
        if (run.control) {  // where nothing is guarded, others go on beside the holder
            auto const others = workers.sections();
            static_cast<void>(eventually([&] { return workers.sections() > others + 3; }, 5min));
        }
        workers.note(event::fault_begun, n);
        servers[leader].pause();
        std::this_thread::sleep_for(session_timeout / 2 +
                                    std::chrono::milliseconds{n % 3 == 0 || n >= trials ? 4000 : random() % 3000});
        of.stay = false;
        servers[leader].resume();
        workers.note(event::fault_ended, n);
        auto const resumed = monotonic_now();
        auto const then = workers.sections();
        auto const goes_on = [&] { return workers.sections() > then + 3; };
        if (!eventually(goes_on, 20s)) {
            // Servers that have a leader again and decide nothing do so for nobody.
            if (auto const stuck = jammed(servers)) {
                ++jams;
                servers[*stuck].kill();
                servers[*stuck].restart();
            }
            if (!eventually(goes_on, 5min)) throw std::runtime_error{"nothing goes on after a leader was stopped"};
        }
        recovery.push_back(monotonic_now() - resumed);
        if (servers.leader() != leader) ++elections;
    }
    workers.end();
    auto records = workers.records();
    to.figure("leaders stopped, of which replaced", std::to_string(n) + ", " + std::to_string(elections));
    to.figure("ensembles that decided nothing at all until their leader was started again", jams);
    to.check("elections", elections != 0 || run.control
                              ? breaches{}
                              : breaches{"no other leader was elected: the row shows nothing"});
    to.times("until sections are done again", recovery, 2'000'000'000);
    verify(run, to, records, refused_by::holder_or_contender);
    to.check("K7", check_remains(remains_below(path, servers.addresses(), 2 * session_timeout + 10s)));
    to.show(std::move(records));
}

#else

namespace {
[[noreturn]] void missing() { throw std::runtime_error{"this program was built without ZooKeeper"}; }
}  // namespace

void zookeeper_expiry(run_options const&, findings&) { missing(); }
void zookeeper_cut_off(run_options const&, findings&) { missing(); }
void zookeeper_leader_stopped(run_options const&, findings&) { missing(); }

#endif

}  // namespace holdfast::faults::zookeeper_ensemble
