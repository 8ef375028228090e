// SPDX-License-Identifier: MIT
#include "awake.hpp"
#include "machine.hpp"
#include "report.hpp"
#include "workloads.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace holdfast::benchmark;

struct workload {
    std::string id;
    std::string name;
    void (*run)(run_options const&, report&);
};

std::vector<workload> const workloads{
    {"P1", "one_redis", &one_redis},
    {"P2", "five_masters", &five_masters},
    {"P3", "distant_masters", &distant_masters},
    {"P4", "many_threads", &many_threads},
    {"P5", "one_lock", &one_lock},
    {"P6", "handover", &handover},
    {"P7", "crowd", &crowd},
    {"P7", "crowd_family", &crowd_family},
    {"P8", "many_locks", &many_locks},
#ifdef HOLDFAST_BENCHMARK_ZOOKEEPER
    {"P9", "one_zookeeper", &one_zookeeper},
    {"P10", "zookeeper_waiters", &zookeeper_waiters},
    {"P10", "zookeeper_crowd", &zookeeper_crowd},
#endif
    {"P11", "compile_time", &compile_time},
#ifdef HOLDFAST_BENCHMARK_ASIO
    {"P12", "in_flight", &in_flight},
#endif
    {"P13", "idle", &idle},
    {"P14", "restart", &restart},
};

void write(std::filesystem::path const& file, std::string const& text)
{
    std::ofstream out{file};
    out << text << std::flush;
    if (!out) throw std::runtime_error{"cannot write " + file.string()};
}

}  // namespace

int main(int argc, char* argv[])
try {
    run_options options;
    std::filesystem::path folder;
    std::string commit = "unknown";
    std::vector<std::string> chosen;
    bool check = false;
    bool no_sleep = false;
    std::set<std::string> names;
    for (auto const& w : workloads) names.insert({w.id, w.name});

    CLI::App app{"Measures holdfast against what limits it, and prints a table"};
    app.add_flag("--quick", options.quick, "Only see whether it works; too short for figures");
    app.add_flag("--check", check, "Exit status 1 where a target is missed");
    app.add_flag("--awake", no_sleep, "Keep the processors from sleeping between the calls");
    app.add_option("--results", folder, "Write benchmark.md and benchmark.json into this folder");
    app.add_option("--commit", commit, "Which commit is measured");
    app.add_option("--rivals", options.rivals, "The folder with the rivals in other languages");
    app.add_option("--redis-plus-plus", options.redis_plus_plus,
                   "Compiler options with which redis-plus-plus is found");
    app.add_option("--redis-plus-plus-rival", options.redis_plus_plus_rival, "The program of a crowd with its mutex");
    app.add_option("--curator", options.curator, "The Java program of a crowd with its mutex");
    app.add_option("workload", chosen, "Which to run; all")->check(CLI::IsMember(names));
    CLI11_PARSE(app, argc, argv);

    std::signal(SIGPIPE, SIG_IGN);
    report results{options.quick};
    describe_machine(results, commit);
    std::optional<awake> loops;
    if (no_sleep) loops.emplace();
    results.machine("between calls the processors", no_sleep ? "are kept awake" : "may sleep");
    for (auto const& w : workloads) {
        auto const is_meant = [&](std::string const& name) { return name == w.id || name == w.name; };
        if (!chosen.empty() && std::none_of(chosen.begin(), chosen.end(), is_meant)) continue;
        std::cerr << w.id << ' ' << w.name << " …" << std::endl;
        w.run(options, results);
    }

    results.print(std::cout);
    if (!folder.empty()) {
        std::filesystem::create_directories(folder);
        write(folder / "benchmark.md", results.markdown());
        write(folder / "benchmark.json", results.json().dump(2) + "\n");
    }
    return check && !results.all_met() ? 1 : 0;
} catch (std::exception const& e) {
    std::cerr << "holdfast_benchmark: " << e.what() << '\n';
    return 2;
}
