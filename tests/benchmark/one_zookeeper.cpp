// SPDX-License-Identifier: MIT
//
// P9: lock and unlock, one thread, one ZooKeeper server, nobody else.
#include "bare_zookeeper.hpp"
#include "paired.hpp"
#include "support/zookeeper_server.hpp"
#include "workloads.hpp"

#include <holdfast/zookeeper.hpp>

#include <mutex>

namespace holdfast::benchmark {

void one_zookeeper(run_options const& options, report& to)
{
    test::zookeeper_server server{{.java = {"-XX:TieredStopAtLevel=4"}}};
    zookeeper::session zk{server.address()};
    zookeeper::mutex confirmed{zk, "/confirmed"};
    zookeeper::mutex deferred{zk, "/deferred", {.deferred_release = true}};
    bare_zookeeper_lock bare{server.address(), "/bare"};

    auto const time = [](auto& m) { return [&m] { return seconds_of([&m] { std::scoped_lock hold{m}; }); }; };
    schedule const turns{.repetitions = 7, .turns = options.quick ? 100 : 1000, .warm_up = options.quick ? 100 : 1000};
    auto const [whole, half, limit] = take_turns(turns, time(confirmed), time(deferred), time(bare));

    std::string const rival = "C client: create, getChildren, delete, one after the other";
    to.add(compare_times("P9", "lock + unlock, one ZooKeeper", rival, whole, limit, target::at_most(0.85)));
    to.add(compare_times("P9", "lock + unlock, deferred release", rival, half, limit, target::at_most(0.65)));
}

}  // namespace holdfast::benchmark
