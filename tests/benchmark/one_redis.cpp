// SPDX-License-Identifier: MIT
//
// P1: lock and unlock, one thread, one Redis, nobody else.
#include "bare_lock.hpp"
#include "paired.hpp"
#include "support/redis_server.hpp"
#include "unnamed.hpp"
#include "workloads.hpp"

#include <holdfast/redis.hpp>

#include <mutex>
#include <optional>

namespace holdfast::benchmark {

void one_redis(run_options const& options, report& to)
{
    test::redis_server server;
    redis::client client{server.url(), unnamed};
    redis::mutex plain{client, "orders/1", {.fencing = false}};
    redis::mutex fenced{client, "orders/2"};
    redis::client named_client{server.url()};
    redis::mutex named{named_client, "orders/4"};
    bare_lock<least_commands> bare{server.port(), "orders/3"};

    auto const time = [](auto& m) { return [&m] { return seconds_of([&m] { std::scoped_lock hold{m}; }); }; };
    schedule const turns{.repetitions = 7, .turns = options.quick ? 300 : 6000, .warm_up = 200};
    auto const [off, on, known, limit] = take_turns(turns, time(plain), time(fenced), time(named), time(bare));

    std::string const rival = "hiredis: SET NX PX, then EVALSHA compare-delete";
    to.add(compare_times("P1", "lock + unlock, one Redis, fencing off", rival, off, limit, target::at_most(1.10)));
    to.add(compare_times("P1", "lock + unlock, one Redis, fencing on", rival, on, limit, target::at_most(1.20)));
    to.add(compare_times("P1", "lock + unlock, one Redis, fencing on, with the record of the holder",
                         "the same without", known, on, std::nullopt));
}

}  // namespace holdfast::benchmark
