// SPDX-License-Identifier: MIT
//
// Eight processes want one lock; the one that has it is killed, again and again.
#include "rows.hpp"

#include "../check/counter.hpp"
#include "../check/takeover.hpp"
#include "../crew.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>
#include <support/redis_server.hpp>

#include <chrono>
#include <random>
#include <thread>

namespace holdfast::faults {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::chrono::milliseconds slack{100};        // what is aimed at
constexpr std::chrono::milliseconds busy_machine{3000};  // what is taken for a failure: a waiter that nothing wakes waits for ever

std::int64_t ns(std::chrono::nanoseconds d) { return d.count(); }

}  // namespace

void killed_holder(run_options const& run, findings& to)
{
    test::redis_server server;
    place const where{.servers = {server.url()}};
    crew workers{{.where = where, .processes = 8, .patience = 8s, .guarded = !run.control}, to.folder("journals")};
    std::mt19937_64 random{run.seed};
    auto const kills = run.count(16, 500);
    for (std::size_t n = 0; n < kills; ++n) {
        auto const who = random() % workers.size();
        auto& of = workers.of(who);
        of.stay = true;
        if (!eventually([&] { return of.in_section != 0; }, 30s)) throw std::runtime_error{"a worker does not get the lock"};
        std::this_thread::sleep_for(std::chrono::microseconds{random() % 150'000});
        auto const others = workers.sections();
        workers.kill(who);
        workers.replace(who);
        if (!eventually([&] { return workers.sections() != others; }, where.ttl + busy_machine + 1s)) break;  // that is enough for K6
    }
    workers.end();
    auto records = workers.records();
    verify(run, to, records, refused_by::holder);
    to.check("K4", check_counter(records, 0, workers.shared().resources[0].counter, workers.killed()));
    auto const k6 = check_takeover(records, ns(where.ttl + busy_machine));
    to.check("K6", k6.found);
    to.figure("holders killed", workers.killed());
    to.times("from the death to the next grant, ttl 400 ms", k6.times, ns(where.ttl + slack));
    to.require(!k6.times.empty(), "nobody took over from a dead holder");
    to.check("K7", check_remains(remains_on(server, where.ttl + 5s)));
    to.show(std::move(records));
}

}  // namespace holdfast::faults
