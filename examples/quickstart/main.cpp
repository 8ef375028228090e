// SPDX-License-Identifier: MIT
//
// Eight processes guard one critical section with a lock on five Redis masters, while masters are killed and a process
// is stopped past its lease. Start it with examples/quickstart.sh. The critical section is in worker.cpp.
#include "board.hpp"
#include "findings.hpp"
#include "picture.hpp"
#include "progress.hpp"
#include "run.hpp"
#include "table.hpp"

#include <support/shared.hpp>

#include <CLI/CLI.hpp>

#include <exception>
#include <filesystem>
#include <iostream>
#include <string>

namespace {

constexpr int good = 0;
constexpr int bad = 1;         // an update was lost, or a stale write accepted
constexpr int failed = 2;      // it could not be tried
constexpr int interrupted = 130;

int run(quickstart::run_settings const& settings, std::filesystem::path const& picture)
{
    holdfast::test::shared<quickstart::board> shared;
    quickstart::progress out;
    auto const done = quickstart::run(settings, *shared, out);
    out.live("");
    if (!done) {
        std::cerr << "interrupted\n";
        return interrupted;
    }
    auto const found = quickstart::judge(*shared, *done);
    out.say("");
    quickstart::print_table(found, *done);
    quickstart::draw(found, *done, picture);
    out.say("  who held the lock when: " + std::filesystem::absolute(picture).lexically_normal().string());
    if (!found.good()) std::cerr << "The lock did not hold.\n";
    return found.good() ? good : bad;
}

}  // namespace

int main(int argc, char** argv)
try {
    quickstart::run_settings settings;
    long seconds = 10;
    std::filesystem::path picture = "holdfast-quickstart.svg";
    bool no_lock = false;

    CLI::App app{"Eight processes, one critical section, a Redlock over five Redis masters, and faults."};
    app.add_option("--seconds", seconds, "How long to run")->check(CLI::Range(5, 60))->capture_default_str();
    // Whoever is on this machine can read the arguments of a process, and its environment only who it belongs to.
    app.add_option(
           "--masters", settings.masters,
           "Your own servers, redis://host:port,…; none of them is killed. Those with a password better in the environment")
        ->delimiter(',')
        ->envname("QUICKSTART_MASTERS");
    long guard = 60;
    app.add_option("--restart-guard", guard,
                   "Your own masters have no vote for so many seconds after their start; 0 for some that are new")
        ->check(CLI::Range(0, 3600))
        ->capture_default_str();
    std::string hosts;
    auto const* const zookeeper =
        app.add_option("--zookeeper", hosts,
                       "A lock on ZooKeeper: your own servers, host:port,…; none given: three of its own")
            ->expected(0, 1);
    app.add_option("--svg", picture, "Where the picture goes")->capture_default_str();
    app.add_flag("--no-lock", no_lock, "Guard nothing, to see that it shows")->group("");
    CLI11_PARSE(app, argc, argv);

    settings.length = std::chrono::seconds{seconds};
    settings.guarded = !no_lock;
    settings.restart_guard = std::chrono::seconds{guard};
    if (zookeeper->count() > 0) settings.zookeeper = hosts;
    quickstart::defer_interrupts();
    return run(settings, picture);
} catch (std::exception const& e) {
    std::cerr << "quickstart: " << e.what() << '\n';
    return failed;
}
