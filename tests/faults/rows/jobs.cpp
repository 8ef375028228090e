// SPDX-License-Identifier: MIT
//
// Processes call for a job that runs once in a period, again and again. The one that runs it is killed, or stopped for
// longer than its lease; one that has just done it is killed.
#include "rows.hpp"

#include "../crew.hpp"
#include "../site.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::faults::jobs {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::size_t processes = 4;

/// Returns: the process for which `f` is true, when there is one.
template <class F>
std::size_t one_that(F const& f)
{
    std::size_t found = processes;
    auto const look = [&] {
        for (std::size_t i = 0; i < processes && found == processes; ++i)
            if (f(i)) found = i;
        return found != processes;
    };
    if (!eventually(look, 3min)) throw std::runtime_error{"the job does not run"};
    return found;
}

}  // namespace

void go(run_options const& run, findings& to)
{
    auto const servers = open_site(run.on);
    auto where = servers->where();
    // A server has to be asked for the period before the lease is over, on a busy machine, too.
    where.ttl = std::max<std::chrono::milliseconds>(where.ttl, 1500ms);
    auto const ttl = where.ttl;
    auto const period = ttl + 500ms;
    crew workers{{.where = where,
                  .processes = processes,
                  .kind = primitive::job,
                  .period = period,
                  .period_asked = run.control ? ttl / 10 : period,
                  .rest = 10ms},
                 to.folder("journals")};
    std::mt19937_64 random{run.seed};
    auto const stay = [&](bool whether) {
        for (std::size_t i = 0; i < processes; ++i)
            whether ? workers.of(i).ask_to_stay() : void(workers.of(i).stay = false);
    };
    auto const next = [&](std::size_t who) {
        auto const before = workers.sections() - workers.of(who).sections;
        if (!eventually([&] { return workers.sections() - workers.of(who).sections != before; }, 1min))
            throw std::runtime_error{"the job does not run any more"};
    };
    // On ZooKeeper a job that is done is kept from running again only while its process lives.
    std::size_t const kinds = run.on == place::store::zookeeper ? 2 : 3;
    for (std::size_t n = 0; n < run.count(kinds, 200); ++n) {
        auto const kind = n % kinds;
        bool const dies = kind != 1;
        std::size_t who = 0;
        if (kind < 2) {
            stay(true);
            who = one_that([&](std::size_t i) { return workers.of(i).staying.load(); });
            std::this_thread::sleep_for(std::chrono::microseconds{random() % 100'000});
        } else {
            std::array<std::uint32_t, processes> before{};
            for (std::size_t i = 0; i < processes; ++i) before.at(i) = workers.of(i).sections;
            who = one_that([&](std::size_t i) { return workers.of(i).sections != before.at(i); });
        }
        dies ? workers.kill(who) : workers.pause(who);
        stay(false);
        next(who);
        dies ? workers.replace(who) : workers.resume(who);
    }
    // One that ends on ZooKeeper keeps nothing any more.
    auto const over = monotonic_now();
    workers.end();
    auto records = workers.records();
    std::erase_if(records, [&](record const& r) { return r.at >= over; });
    verify(run, to, records, servers->whom());
    to.figure("jobs done", workers.sections());
    to.figure("processes killed", workers.killed());
    to.figure("attempts that threw", workers.failures());
    to.check("K7", check_remains(servers->left(2 * ttl + period + 10s, waiters::killed)));
    to.show(std::move(records));
}

}  // namespace holdfast::faults::jobs
