// SPDX-License-Identifier: MIT
//
// P7: processes that all want one lock, on one Redis and on five masters: how much is left of what the same processes
// do in turn, what a section costs a server, and whether each gets its share.
#include "bare_queue.hpp"
#include "crowd_of.hpp"
#include "foreign_crowd.hpp"
#include "lua_queue.hpp"
#include "masters.hpp"
#include "support/redis_server.hpp"
#include "unnamed.hpp"
#include "workloads.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::benchmark {
namespace {

using namespace std::chrono_literals;

/// Where a crowd is, and what there is to measure.
struct place {
    std::string name;
    std::vector<std::uint16_t> servers;
    std::function<contender(unsigned)> ours;
    std::chrono::milliseconds ttl;
    double share;     ///< of what is done in turn, at least, with empty sections
    double requests;  ///< of a section, to each server, at most
};

/// The lock of a process of ours. `S` is the store.
template <class S>
contender lock_of(std::shared_ptr<S> client, lock_options const& options)
{
    auto lock = std::make_shared<holdfast::mutex>(*client, "orders", options);
    return {[client, lock] { lock->lock(); }, [lock] { lock->unlock(); }};
}

void measure(run_options const& options, report& to, place const& at, unsigned processes,
             std::chrono::microseconds section)
{
    crowd_options o{
        .processes = processes, .section = section, .time = options.quick ? 300ms : 3000ms, .servers = at.servers};
    auto one_by_one = o;
    one_by_one.in_turn = true;
    bool const empty = section.count() == 0;
    auto const where = at.name + ", " + std::to_string(processes) + " processes" + (empty ? "" : ", sections of 2 ms");
    std::vector<std::pair<std::string, std::function<crowd_result()>>> contenders{
        {"holdfast", [&] { return run_crowd(o, at.ours); }},
        {"in turn", [&] { return run_crowd(one_by_one, at.ours); }}};
    if (at.servers.size() == 1)
        contenders.emplace_back("a Lua queue", [&] {
            return run_crowd(o, [&](unsigned i) -> contender {
                auto const queue = std::make_shared<lua_queue>(at.servers[0], i);
                return {[queue] { queue->lock(); }, [queue] { queue->unlock(); }};
            });
        });
    contenders.emplace_back("the same protocol on bare hiredis", [&] {
        return run_crowd(o, [&](unsigned i) -> contender {
            auto const queue = std::make_shared<bare_queue>(at.servers, i, at.ttl);
            return {[queue] { queue->lock(); }, [queue] { queue->unlock(); }};
        });
    });
    auto const ours_and_limits = contenders.size();
    if (empty && !options.rivals.empty()) {
        auto const folder = options.rivals + "/";
        if (at.servers.size() == 1)
            contenders.emplace_back("redis-py", [&, folder] {
                return run_foreign_crowd(o, {"/usr/bin/python3", folder + "redis_py.py"});
            });
        contenders.emplace_back("node-redlock", [&, folder] {
            return run_foreign_crowd(o, {"node", folder + "node_redlock.cjs"});
        });
    }
    if (empty && !options.redis_plus_plus_rival.empty())
        contenders.emplace_back("redis-plus-plus",
                                [&] { return run_foreign_crowd(o, {options.redis_plus_plus_rival}); });
    // Other libraries take long to begin, and are far away: once is enough.
    std::vector<std::vector<crowd_result>> results(contenders.size());
    for (int repetition = 0; repetition < (options.quick ? 1 : 3); ++repetition)
        for (std::size_t i = 0; i < contenders.size(); ++i) {
            bool const again = repetition == 0 || i < ours_and_limits;
            results[i].push_back(again ? contenders[i].second() : results[i].front());
        }

    auto const of = [](std::vector<crowd_result> const& all, auto const& figure) {
        series values;
        for (auto const& one : all) values.push_back(figure(one));
        return values;
    };
    auto const rate = [](crowd_result const& r) { return r.sections; };
    auto const ours = of(results[0], rate);
    to.add(compare_rates("P7", where, "the same in turn", ours, of(results[1], rate),
                         target::at_least(empty ? at.share : 0.9)));
    for (std::size_t i = 2; i < contenders.size(); ++i)
        to.add(compare_rates("P7", where, contenders[i].first, ours, of(results[i], rate),
                             i == 2 && empty && at.servers.size() == 1 ? std::optional{target::at_least(0.5)}
                                                                       : std::nullopt));
    auto const figure = [&](std::string const& what, std::string const& unit, target goal, auto const& f) {
        to.add(
            {.workload = "P7", .what = where + ": " + what, .values = of(results[0], f), .unit = unit, .goal = goal});
    };
    figure("scripts for a section, each server", "", target::at_most(at.requests),
           [](crowd_result const& r) { return r.requests; });
    figure("Jain's index of the sections", "", target::at_least(0.9), [](crowd_result const& r) { return r.jain; });
    auto const longest = [](crowd_result const& r) { return r.longest / r.mean; };
    figure("longest wait, in means", "", target::at_most(5), longest);
    to.add({.workload = "P7",
            .what = where + ": longest wait of " + contenders[ours_and_limits - 1].first + ", in means",
            .values = of(results[ours_and_limits - 1], longest)});
    for (std::size_t i = ours_and_limits; i < contenders.size(); ++i)
        to.add({.workload = "P7",
                .what = where + ": Jain's index of " + contenders[i].first,
                .values = of({results[i].front()}, [](crowd_result const& r) { return r.jain; })});
}

}  // namespace

void crowd(run_options const& options, report& to)
{
    test::redis_server server;
    masters_in_service masters;
    std::vector<place> const places{
        {"one Redis",
         {server.port()},
         [&](unsigned) { return lock_of(std::make_shared<redis::client>(server.url(), unnamed), {}); },
         lock_options{}.ttl,
         0.5,
         6},
        {"five masters", masters.ports(),
         [&](unsigned) {
             return lock_of(std::make_shared<redlock::masters>(masters.urls(), unnamed_masters(masters.guard)),
                            {.ttl = masters.guard});
         },
         masters.guard, 0.35, 5}};
    if (options.rivals.empty())
        to.skip("P7", "redis-py and node-redlock are not there");
    else
        to.note("P7",
                "redis-py: a lease of 30 s, an attempt every 100 ms; node-redlock: leases of 2 s, its default of 10 "
                "retries 200 ± 100 ms apart, after which it gives its partial votes back and is called again");
    if (options.redis_plus_plus_rival.empty()) to.skip("P7", "redis-plus-plus is not there");
    for (auto const& at : places)
        for (unsigned const processes : {2U, 8U, 32U, 64U})
            for (auto const section : {0us, 2000us}) measure(options, to, at, processes, section);
}

}  // namespace holdfast::benchmark
