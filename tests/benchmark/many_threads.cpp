// SPDX-License-Identifier: MIT
//
// P4: threads that each have a lock of their own, over one shared client; against a connection for each thread. The
// target is for fencing off, for the rival counts no fencing tokens either.
#include "bare_lock.hpp"
#include "crew.hpp"
#include "paired.hpp"
#include "support/redis_server.hpp"
#include "unnamed.hpp"
#include "workloads.hpp"

#include <holdfast/redis.hpp>

#include <chrono>
#include <deque>
#include <mutex>
#include <string>

namespace holdfast::benchmark {

void many_threads(run_options const& options, report& to)
{
    using namespace std::chrono_literals;
    auto const slice = options.quick ? 60ms : 250ms;
    schedule const turns{.repetitions = 5, .turns = options.quick ? 1 : 5, .warm_up = 1};
    test::redis_server server;
    struct {
        unsigned threads;
        std::string text;
        double goal;
    } const sizes[] = {
        {1, "1 thread", 1.0}, {8, "8 threads", 1.0}, {64, "64 threads", 1.4}, {1000, "1,000 threads", 1.3}};

    for (auto const& [threads, text, goal] : sizes) {
        redis::client client{server.url(), unnamed};
        std::deque<redis::mutex> plain;
        std::deque<redis::mutex> fenced;
        std::deque<bare_lock<least_commands>> bare;
        std::deque<bare_lock<own_scripts>> scripted;
        for (unsigned i = 0; i < threads; ++i) {
            auto const name = "orders/" + std::to_string(i);
            plain.emplace_back(client, name + "/plain", lock_options{.fencing = false});
            fenced.emplace_back(client, name + "/fenced");
            bare.emplace_back(server.port(), name + "/bare");
            scripted.emplace_back(server.port(), name + "/scripted");
        }

        crew workers{threads};
        auto const pairs = [&](auto& locks) {
            return [&] { return workers.rate([&](unsigned i) { std::scoped_lock hold{locks[i]}; }, slice); };
        };
        auto const [off, on, limit, same] =
            take_turns(turns, pairs(plain), pairs(fenced), pairs(bare), pairs(scripted));

        auto const what = text + ", own locks, one client, fencing ";
        std::string const rival = "hiredis, a connection per thread";
        to.add(compare_rates("P4", what + "off", rival, off, limit, target::at_least(goal)));
        to.add(compare_rates("P4", what + "on", rival, on, limit, std::nullopt));
        to.add(compare_rates("P4", what + "off", rival + ", the same scripts", off, same, std::nullopt));
    }
}

}  // namespace holdfast::benchmark
