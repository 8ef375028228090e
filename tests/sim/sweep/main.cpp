// SPDX-License-Identifier: MIT
//
// Runs the shipped locks through many schedules of faults in virtual time. Exit status 1: a guarantee was broken; the
// seed is cut down to what it needs for that, and printed with the command that replays just that. 3: so little
// happened that it means nothing.
#include "machine.hpp"
#include "replay.hpp"
#include "totals.hpp"

#include <CLI/CLI.hpp>

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace holdfast;

namespace {

double cpu_seconds()
{
    ::timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Runs the seeds of one machine on several threads, up to the first one that fails.
class sweep {
public:
    sweep(test::machine const& m, std::uint64_t first, std::uint64_t seeds)
        : machine_{m}, first_{first}, seeds_{seeds}, next_{0}
    {
    }

    void run(unsigned jobs)
    {
        std::vector<std::thread> others;
        for (unsigned i = 1; i < jobs; ++i) others.emplace_back([this] { work(); });
        work();
        for (auto& one : others) one.join();
    }

    [[nodiscard]] test::totals const& sum() const noexcept { return sum_; }

    /// Returns: the least seed that failed, and why; no reason where none did.
    [[nodiscard]] std::pair<std::uint64_t, std::string> const& failure() const noexcept { return failure_; }

private:
    static constexpr std::uint64_t batch = 50;

    void work()
    {
        test::totals mine;
        auto const begin = cpu_seconds();
        for (auto from = next_.fetch_add(batch); from < seeds_ && !failed_; from = next_.fetch_add(batch)) {
            for (auto i = from; i < std::min(from + batch, seeds_); ++i) {
                auto const v = machine_.run(first_ + i, {});
                mine.add(v);
                if (!v.breaches.empty())
                    fail(first_ + i, std::string{v.breaches.front().which} + ": " + v.breaches.front().what);
            }
            if (seeds_ >= 20 * batch && from / batch % (seeds_ / batch / 10) == 0)
                std::fprintf(stderr, "%.*s: %3llu %%\n", static_cast<int>(machine_.name.size()), machine_.name.data(),
                             static_cast<unsigned long long>(100 * from / seeds_));
        }
        mine.seconds = cpu_seconds() - begin;
        std::scoped_lock guard{mutex_};
        sum_ += mine;
    }

    void fail(std::uint64_t seed, std::string why)
    {
        std::scoped_lock guard{mutex_};
        if (!failed_.exchange(true) || seed < failure_.first) failure_ = {seed, std::move(why)};
    }

    test::machine const& machine_;
    std::uint64_t first_;
    std::uint64_t seeds_;
    std::atomic<std::uint64_t> next_;
    std::atomic<bool> failed_{false};
    std::mutex mutex_;
    test::totals sum_;
    std::pair<std::uint64_t, std::string> failure_;
};

void explain(test::machine const& m, std::uint64_t seed)
{
    auto const keep = test::shortest_failure(m, seed);
    if (!keep) return;
    std::printf("\nThe least with which it fails, of all that the seed decides:\n\n");
    static_cast<void>(test::replay(m, seed, *keep));
    std::printf(
        "\nTo see just this again:\n  tests/simulate.sh --machine %.*s --seed %llu --keep %s\nand all of it:\n  tests/simulate.sh --machine %.*s --seed %llu\n",
        static_cast<int>(m.name.size()), m.name.data(), static_cast<unsigned long long>(seed),
        test::text(*keep).c_str(), static_cast<int>(m.name.size()), m.name.data(),
        static_cast<unsigned long long>(seed));
}

}  // namespace

int main(int argc, char** argv)
{
    std::uint64_t seeds = 20'000;
    std::uint64_t first = 1;
    std::uint64_t one = 0;
    unsigned jobs = 1;
    std::string name = "all";
    std::string keep;
    bool brief = false;
    CLI::App app{"Simulates clients of a lock in virtual time while things go wrong"};
    std::vector<std::string> names{"all"};
    std::string about = "The locks:";
    for (auto const& m : test::machines()) {
        names.emplace_back(m.name);
        about += "\n  " + std::string{m.name} + ": " + std::string{m.about};
    }
    app.footer(about);
    app.add_option("--machine", name, "Which lock")->check(CLI::IsMember(names))->capture_default_str();
    app.add_option("--seeds", seeds, "How many schedules to run of each")->capture_default_str();
    app.add_option("--first", first, "The seed of the first")->capture_default_str();
    app.add_option("--jobs", jobs, "How many threads")->check(CLI::Range(1U, 1024U))->capture_default_str();
    auto* const seed = app.add_option("--seed", one, "Run this one, and print what happens");
    app.add_option("--keep", keep, "Of what that seed decides, let only this come true; none: nothing")->needs(seed);
    app.add_flag("--brief", brief, "Do not cut down a seed that fails");
    CLI11_PARSE(app, argc, argv);

    std::vector<test::machine const*> chosen;
    for (auto const& m : test::machines())
        if (name == "all" || name == m.name) chosen.push_back(&m);
    std::optional<std::vector<sim::decision>> kept;
    if (!keep.empty() && !(kept = test::decisions_from(keep))) {
        std::fprintf(stderr, "--keep: there is no such decision\n");
        return 2;
    }
    if (seed->count() > 0) {
        if (chosen.size() > 1) {
            std::fprintf(stderr, "--seed: of which machine? See --machine\n");
            return 2;
        }
        return test::replay(*chosen.front(), one, kept) ? 0 : 1;
    }

    std::vector<std::pair<std::string_view, test::totals>> all;
    int status = 0;
    for (auto const* const m : chosen) {
        sweep s{*m, first, seeds};
        s.run(jobs);
        all.emplace_back(m->name, s.sum());
        if (auto const& [which, why] = s.failure(); !why.empty()) {
            std::printf("%.*s, seed %llu: %s\n", static_cast<int>(m->name.size()), m->name.data(),
                        static_cast<unsigned long long>(which), why.c_str());
            if (!brief) explain(*m, which);
            status = 1;
            break;
        }
        auto const missing = s.sum().missing(m->faults, m->long_holds);
        if (seeds >= 1000 && !missing.empty()) {
            std::printf("%.*s: too little happened for this to mean anything:%s\n", static_cast<int>(m->name.size()),
                        m->name.data(), missing.c_str());
            status = 3;
        }
    }
    test::print_table(all);
    return status;
}
