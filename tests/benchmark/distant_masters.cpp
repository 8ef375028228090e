// SPDX-License-Identifier: MIT
//
// P3: acquiring over five masters that are 5 ms away, all well and with one of them in trouble, in round trips to one
// of them.
#include "bare_redis.hpp"
#include "distance.hpp"
#include "masters.hpp"
#include "paired.hpp"
#include "support/proxy.hpp"
#include "unnamed.hpp"
#include "workloads.hpp"

#include <holdfast/redlock.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::benchmark {
namespace {

using namespace std::chrono_literals;

struct trouble {
    std::string what;
    std::function<void(test::proxy&)> make;
};

}  // namespace

void distant_masters(run_options const& options, report& to)
{
    masters_in_service servers;
    schedule const turns{.repetitions = 7, .turns = options.quick ? 15 : 60, .warm_up = 20};
    std::vector<trouble> const troubles{
        {"all well", [](test::proxy&) {}},
        {"one silent", [](test::proxy& p) { p.blackhole(); }},
        {"one refusing", [](test::proxy& p) { p.refuse(); }},
        {"one slow by 100 ms", [](test::proxy& p) { p.delay(52500us, 52500us); }},
    };
    for (auto const& [what, make] : troubles) {
        distance between{servers.ports(), 2500us};
        redlock::masters masters{between.urls(), unnamed_masters(servers.guard)};
        redlock::mutex m{masters, "orders/" + what, {.ttl = servers.guard}};
        bare_redis one{between[0].port()};
        m.lock();  // connects; the trouble comes while the lock is in use
        m.unlock();
        make(between[4]);

        auto const [acquire, round_trip] = take_turns(
            turns,
            [&] {
                auto const t = seconds_of([&] { m.lock(); });
                m.unlock();
                return t;
            },
            [&] { return seconds_of([&] { one.ping(); }); });
        to.add(compare_times("P3", "acquire, five masters 5 ms away, " + what, "one round trip to one of them", acquire,
                             round_trip, target::at_most(1.1)));
    }
}

}  // namespace holdfast::benchmark
