// SPDX-License-Identifier: MIT
//
// P11: what a file costs that locks, and the one that makes a client. Processor time of the compiler, as nothing else
// in it waits.
#include "paired.hpp"
#include "support/temporary_folder.hpp"
#include "workloads.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

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
    std::string const ours = " " HOLDFAST_COMPILE_OPTIONS;
    std::string const before = HOLDFAST_VERSION_0_1;
    for (std::string const level : {"-O2", "-O0"}) {
        compiler const locks{"locks.cpp", level + ours};
        compiler const standard{"standard.cpp", level};
        compiler const bare{"bare.cpp", level + ours};
        compiler const separate{"client.cpp", level + ours + " -DHOLDFAST_COMPILED"};
        compiler const client{"client.cpp", level + ours};
        auto const [locking, headers, hiredis, apart, whole] =
            take_turns(turns, locks, standard, bare, separate, client);
        auto const what_locks = "compile a file that only locks, " + level;
        auto const what_makes = "compile the file that makes a client, " + level;
        to.add(compare_times("P11", what_locks, "the standard headers that it names", locking, headers,
                             target::at_most(1.3)));
        to.add(compare_times("P11", what_makes + ", separately", "hiredis and standard headers", apart, hiredis,
                             std::nullopt));
        to.add(compare_times("P11", what_makes, "hiredis and standard headers", whole, hiredis, std::nullopt));
        if (!before.empty()) {
            compiler const old{"client.cpp", level + " -I'" + before + "'" + ours};
            auto const [now, then] = take_turns(turns, client, old);
            to.add(compare_times("P11", what_makes, "version 0.1", now, then, target::at_most(0.7)));
        }
        if (options.redis_plus_plus.empty()) continue;
        compiler const theirs{"redis_plus_plus.cpp", level + ours + " " + options.redis_plus_plus};
        auto const [now, redis_plus_plus] = take_turns(turns, locks, theirs);
        to.add(compare_times("P11", what_locks, "redis-plus-plus", now, redis_plus_plus, target::at_most(0.6)));
    }
    if (before.empty())
        to.skip("P11", "not compared with version 0.1, which is not in the history of this source tree");
    if (options.redis_plus_plus.empty())
        to.skip(
            "P11",
            "not compared with redis-plus-plus, which Debian does not package; --redis-plus-plus FOLDER says where it is");
}

}  // namespace holdfast::benchmark
