// SPDX-License-Identifier: MIT
//
// Eight processes want one lock, or to be the leader; the one that has it is killed, again and again.
#include "rows.hpp"

#include "../check/deposed.hpp"
#include "../check/takeover.hpp"
#include "../crew.hpp"
#include "../site.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>

#include <chrono>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::faults::killed_holder {
namespace {

using namespace std::chrono_literals;
using test::eventually;

/// Beyond which it is taken for a failure: a waiter that nothing wakes waits for ever.
constexpr std::chrono::seconds busy_machine(run_options const& run) { return std::chrono::seconds{run.full ? 3 : 30}; }

std::int64_t ns(std::chrono::nanoseconds d) { return d.count(); }

void kill_those_who_have_it(run_options const& run, findings& to, primitive kind)
{
    auto const servers = open_site(run.on);
    auto const soon = servers->freed_within();
    crew workers{{.where = servers->where(), .processes = 8, .kind = kind, .patience = 90s, .guarded = !run.control},
                 to.folder("journals")};
    std::mt19937_64 random{run.seed};
    auto const kills = run.count(run.on == place::store::redis ? 16 : 4, 500);
    for (std::size_t n = 0; n < kills; ++n) {
        auto const who = random() % workers.size();
        auto& of = workers.of(who);
        of.ask_to_stay();
        if (!eventually([&] { return of.staying.load(); }, 2min))
            throw std::runtime_error{"a worker does not get the lock"};
        std::this_thread::sleep_for(std::chrono::microseconds{random() % 150'000});
        auto const others = workers.sections();
        workers.kill(who);
        workers.replace(who);
        if (!eventually([&] { return workers.sections() != others; }, soon + busy_machine(run) + 1s))
            break;  // that is enough for K6
    }
    workers.end();
    to.require(workers.failures() == 0, std::to_string(workers.failures()) + " attempts threw, and no server failed");
    auto records = workers.records();
    verify(run, to, records, servers->whom());
    verify_counters(to, records, workers);
    if (kind == primitive::election) to.check("deposed", check_deposed(records));
    auto const k6 = check_takeover(records, ns(soon + busy_machine(run)));
    to.check("K6", k6.found);
    to.figure("holders killed", workers.killed());
    to.demanded_times(run,
                      "from the death to the next grant, ttl " + std::to_string(servers->where().ttl.count()) + " ms",
                      k6.times, ns(soon));
    to.require(!k6.times.empty(), "nobody took over from a dead holder");
    to.check("K7", check_remains(servers->left(2 * servers->where().ttl + 10s, waiters::killed)));
    to.show(std::move(records));
}

}  // namespace

void go(run_options const& run, findings& to) { kill_those_who_have_it(run, to, primitive::mutex); }

void leader(run_options const& run, findings& to) { kill_those_who_have_it(run, to, primitive::election); }

}  // namespace holdfast::faults::killed_holder
