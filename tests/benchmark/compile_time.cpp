// SPDX-License-Identifier: MIT
//
// P11: what a file costs that locks, beside what else is in it. Processor time of the compiler, as nothing else in it
// waits.
#include "paired.hpp"
#include "support/temporary_folder.hpp"
#include "workloads.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

namespace holdfast::benchmark {
namespace {

/// Returns: the processor time of all children that have ended, in seconds.
double time_of_children()
{
    rusage used{};
    ::getrusage(RUSAGE_CHILDREN, &used);
    auto const seconds = [](timeval const& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Compiles a file of the folder compile/.
class compiler {
public:
    compiler(std::string file, std::string options)
        : command_{HOLDFAST_COMPILER " -std=c++20 " + std::move(options) + " -c '" HOLDFAST_COMPILE_FOLDER "/" +
                   std::move(file) + "' -o '" + folder_.path().string() + "/object.o'"}
    {
    }

    double operator()() const
    {
        auto const before = time_of_children();
        if (std::system(command_.c_str()) != 0) throw std::runtime_error{"it does not compile: " + command_};
        return time_of_children() - before;
    }

private:
    test::temporary_folder folder_;
    std::string command_;
};

}  // namespace

void compile_time(run_options const& options, report& to)
{
    schedule const turns{.repetitions = options.quick ? 1 : 5, .turns = 1, .warm_up = options.quick ? 0 : 1};
    ::setenv("CCACHE_DISABLE", "1", 1);
    std::string const what = "compile one file that locks";
    for (std::string const optimisation : {"-O2", "-O0"}) {
        auto const flags = optimisation + " " HOLDFAST_COMPILE_OPTIONS;
        compiler const separate{"holdfast.cpp", flags + " -DHOLDFAST_COMPILED"};
        compiler const header_only{"holdfast.cpp", flags};
        compiler const bare{"bare.cpp", flags};
        auto const [apart, whole, hiredis] = take_turns(turns, separate, header_only, bare);
        for (auto const& [seconds, how] : {std::pair{&apart, ", separately, "}, std::pair{&whole, ", header-only, "}}) {
            auto const name = what + how + optimisation;
            to.add({.workload = "P11", .what = name, .values = *seconds, .unit = "s", .goal = target::at_most(2)});
            to.add(compare_times("P11", name, "hiredis and standard headers", *seconds, hiredis, std::nullopt));
        }
        if (options.redis_plus_plus.empty()) continue;
        compiler const theirs{"redis_plus_plus.cpp", flags + " " + options.redis_plus_plus};
        auto const [ours, redis_plus_plus] = take_turns(turns, separate, theirs);
        to.add(compare_times("P11", what + ", separately, " + optimisation, "redis-plus-plus", ours, redis_plus_plus,
                             target::at_most(0.8)));
    }
    if (options.redis_plus_plus.empty())
        to.skip(
            "P11",
            "not compared with redis-plus-plus, which Debian does not package; --redis-plus-plus FOLDER says where it is");
}

}  // namespace holdfast::benchmark
