// SPDX-License-Identifier: MIT
//
// P7 for the other locks of the family: what processes that all want a fair lock, a permit, or to read and to write, do
// in a second, against what the same number does in turn.
#include "crowd_of.hpp"
#include "masters.hpp"
#include "support/redis_server.hpp"
#include "unnamed.hpp"
#include "workloads.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::benchmark {
namespace {

using namespace std::chrono_literals;

/// Where the locks are: what a process makes its client with.
struct place {
    std::string name;
    std::vector<std::uint16_t> servers;
    std::function<std::shared_ptr<store>()> open;
    lock_options options;
};

/// What the processes want.
struct primitive {
    std::string name;
    std::function<contender(place const&, unsigned)> make;
};

contender fair(place const& at, unsigned /*process*/)
{
    auto const lock = std::make_shared<fair_mutex>(*at.open(), "orders", at.options);
    return {[lock] { lock->lock(); }, [lock] { lock->unlock(); }};
}

contender permit(place const& at, unsigned /*process*/)
{
    auto const permits = std::make_shared<semaphore>(*at.open(), "jobs", 4, at.options);
    return {[permits] { permits->acquire(); }, [permits] { permits->release(); }};
}

/// One of ten sections writes.
contender reader_or_writer(place const& at, unsigned process)
{
    struct user {
        user(place const& in, unsigned number) : lock{*in.open(), "prices", in.options}, random{number + 1} {}
        shared_mutex lock;
        std::minstd_rand random;
        bool writes = false;
    };
    auto const one = std::make_shared<user>(at, process);
    return {[one] {
                one->writes = one->random() % 10 == 0;
                one->writes ? one->lock.lock() : one->lock.lock_shared();
            },
            [one] { one->writes ? one->lock.unlock() : one->lock.unlock_shared(); }};
}

void measure(run_options const& options, report& to, place const& at, primitive const& what, unsigned processes,
             std::chrono::microseconds section)
{
    crowd_options o{
        .processes = processes, .section = section, .time = options.quick ? 300ms : 3000ms, .servers = at.servers};
    auto one_by_one = o;
    one_by_one.in_turn = true;
    auto const make = [&](unsigned i) { return what.make(at, i); };
    std::vector<crowd_result> together;
    std::vector<crowd_result> in_turn;
    for (int repetition = 0; repetition < (options.quick ? 1 : 3); ++repetition) {
        together.push_back(run_crowd(o, make));
        in_turn.push_back(run_crowd(one_by_one, make));
    }
    auto const of = [](std::vector<crowd_result> const& all, auto const& figure) {
        series values;
        for (auto const& one : all) values.push_back(figure(one));
        return values;
    };
    auto const rate = [](crowd_result const& r) { return r.sections; };
    auto const where = what.name + " on " + at.name + ", " + std::to_string(processes) + " processes" +
                       (section.count() == 0 ? "" : ", sections of 2 ms");
    to.add(compare_rates("P7", where, "the same in turn", of(together, rate), of(in_turn, rate), std::nullopt));
    if (section.count() != 0) return;
    auto const figure = [&](std::string const& name, auto const& f) {
        to.add({.workload = "P7", .what = where + ": " + name, .values = of(together, f)});
    };
    figure("scripts for a section, each server", [](crowd_result const& r) { return r.requests; });
    figure("Jain's index of the sections", [](crowd_result const& r) { return r.jain; });
    figure("longest wait, in means", [](crowd_result const& r) { return r.longest / r.mean; });
}

}  // namespace

void crowd_family(run_options const& options, report& to)
{
    test::redis_server server;
    masters_in_service masters;
    place const one{
        "one Redis", {server.port()}, [&] { return std::make_shared<redis::client>(server.url(), unnamed); }, {}};
    place const five{"five masters",
                     masters.ports(),
                     [&] { return std::make_shared<redlock::masters>(masters.urls(), unnamed_masters(masters.guard)); },
                     {.ttl = masters.guard}};
    primitive const fair_lock{"a fair lock", &fair};
    primitive const four_permits{"four permits", &permit};
    primitive const readers{"nine readers to a writer", &reader_or_writer};
    for (unsigned const processes : {8U, 64U})
        for (auto const section : {0us, 2000us}) {
            measure(options, to, one, fair_lock, processes, section);
            for (auto const* const what : {&four_permits, &readers})
                for (auto const* const at : {&one, &five}) measure(options, to, *at, *what, processes, section);
        }
}

}  // namespace holdfast::benchmark
