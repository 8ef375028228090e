// SPDX-License-Identifier: MIT
//
// Does one row of the table of faults to locks on real servers, and says what it found. See run.sh.
#include "alone.hpp"
#include "network.hpp"
#include "report.hpp"
#include "row.hpp"

#include <support/temporary_folder.hpp>

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace {

constexpr int good = 0;
constexpr int bad = 1;     // a breach; of a control, that there was none of its kind
constexpr int failed = 2;  // it could not be done

}  // namespace

int main(int argc, char** argv)
try {
    using namespace holdfast::faults;

    run_options options;
    std::string name;
    std::filesystem::path results;
    bool list = false;
    CLI::App app{"Does one row of the table of faults to locks on real servers."};
    app.add_option("row", name, "Which one");
    app.add_flag("--list", list, "Say which there are");
    app.add_flag("--full", options.full, "With the counts of a release");
    app.add_flag("--control", options.control, "With what the row is about switched off: it has to find that");
    app.add_option("--seed", options.seed, "Of lengths and choices")->capture_default_str();
    app.add_option("--results", results, "A folder for a line of the report and a picture");
    std::vector<std::string> alone;
    app.add_option("--alone", alone, "Be a worker that is a program of its own")->expected(6)->group("");
    CLI11_PARSE(app, argc, argv);

    if (!alone.empty()) {
        auto const ms = [&](std::size_t i) { return std::chrono::milliseconds{std::stol(alone.at(i))}; };
        return work_alone({.servers = {alone[0]}, .ttl = ms(4), .operation_timeout = ms(5)}, alone[1],
                          static_cast<std::uint32_t>(std::stoul(alone[2])), ms(3));
    }

    if (list) {
        for (auto const& one : all_rows())
            std::cout << one.name << (one.control.without.empty() ? "" : " control") << '\n';
        return good;
    }
    auto const& rows = all_rows();
    auto const chosen = std::find_if(rows.begin(), rows.end(), [&](row const& r) { return r.name == name; });
    if (chosen == rows.end() || (options.control && chosen->control.without.empty())) {
        std::cerr << "there is no such row, or it has no control; see --list\n";
        return failed;
    }

    std::signal(SIGPIPE, SIG_IGN);
    options.on = chosen->on;
    options.own_network = enter_own_network();
    // Journals are mapped, and whoever writes to a page of a disk's file may have to wait until the disk has written
    // it: in memory, where that is.
    holdfast::test::temporary_folder folder{::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"};
    findings found{folder.path()};
    auto const begun = std::chrono::steady_clock::now();
    chosen->run(options, found);
    auto const took = std::chrono::duration<double>{std::chrono::steady_clock::now() - begun};
    print(*chosen, options, found, took);
    if (!results.empty()) write_results(*chosen, options, found, took, results);
    bool const as_it_must = options.control ? breaches_to_find(*chosen, found) != 0 : found.wrong().empty();
    return as_it_must ? good : bad;
} catch (std::exception const& e) {
    std::cerr << "failed: " << e.what() << '\n';
    return failed;
}
