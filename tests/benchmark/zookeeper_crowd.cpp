// SPDX-License-Identifier: MIT
//
// P10: how many sections a second threads have that all want one lock on ZooKeeper, each over a session of its own, so
// that all but one wait; against Curator, in turn with it.
#include "crew.hpp"
#include "foreign_crowd.hpp"
#include "paired.hpp"
#include "support/curator.hpp"
#include "support/zookeeper_server.hpp"
#include "workloads.hpp"

#include <holdfast/zookeeper.hpp>

#include <chrono>
#include <cstdio>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::benchmark {
namespace {

using namespace std::chrono_literals;

/// Curator's crowd, which runs when it is told to.
class curator_crowd {
public:
    curator_crowd(std::string const& program, std::string const& hosts, unsigned threads,
                  std::chrono::duration<double> slice)
        : process_{command(program, {hosts, "/curator", std::to_string(threads), std::to_string(slice.count())})}
    {
        if (process_.line() != "ready\n") throw std::runtime_error{program + " cannot be run"};
    }

    /// Returns: sections per second, of all threads together.
    double rate()
    {
        process_.go();
        double sections = 0;
        double seconds = 0;
        if (std::sscanf(process_.line().c_str(), "%lf %lf", &sections, &seconds) != 2)
            throw std::runtime_error{"Curator's crowd ended early"};
        return sections / seconds;
    }

private:
    static std::vector<std::string> command(std::string const& program, std::vector<std::string> const& arguments)
    {
        auto words = test::java_with_curator(program, {"-Xmx512m"});
        words.insert(words.end(), arguments.begin(), arguments.end());
        return words;
    }

    foreign_process process_;
};

}  // namespace

void zookeeper_crowd(run_options const& options, report& to)
{
    if (options.curator.empty()) return to.skip("P10", "Curator is not there");
    to.note("P10",
            "Curator: an InterProcessMutex for each thread, with a client of its own, all in one Java virtual machine");
    auto const slice = options.quick ? 200ms : 2000ms;
    schedule const turns{.repetitions = options.quick ? 1 : 5, .turns = 1, .warm_up = 1};
    test::zookeeper_server server{{.java = {"-XX:TieredStopAtLevel=4"}}};
    for (unsigned const waiters : {1U, 10U, 100U}) {
        auto const threads = waiters + 1;
        curator_crowd curator{options.curator, server.address(), threads, slice};
        std::deque<zookeeper::session> sessions;
        std::deque<zookeeper::mutex> locks;
        for (unsigned i = 0; i < threads; ++i) {
            auto& own = sessions.emplace_back(server.address(), zookeeper::session_options{.session_timeout = 60s});
            locks.emplace_back(own, "/holdfast").lock();
            locks.back().unlock();
        }
        crew workers{threads};
        auto const [ours, theirs] = take_turns(
            turns, [&] { return workers.rate([&](unsigned i) { std::scoped_lock hold{locks[i]}; }, slice); },
            [&] { return curator.rate(); });
        to.add(compare_rates(
            "P10", std::to_string(waiters) + (waiters == 1 ? " waiter" : " waiters") + " on ZooKeeper: sections",
            "Curator", ours, theirs, target::at_least(1.5)));
    }
}

}  // namespace holdfast::benchmark
