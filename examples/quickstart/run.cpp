// SPDX-License-Identifier: MIT
#include "run.hpp"

#include "worker.hpp"

#include <support/process.hpp>
#include <support/redis_server.hpp>
#include <support/zookeeper_server.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>

namespace quickstart {
namespace {

using namespace std::chrono_literals;
using holdfast::boot_clock;
using duration = boot_clock::duration;

::sigset_t interrupts()
{
    ::sigset_t set;
    ::sigemptyset(&set);
    for (int const s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&set, s);
    return set;
}

struct interrupted {};

std::string unused_name()
{
    std::random_device device;
    return "quickstart/" + std::to_string(device());
}

class director {
public:
    director(run_settings const& settings, board& shared, progress& out)
        : settings_{settings}, shared_{shared}, out_{out}
    {
        work_.masters = settings.masters;
        work_.lock = unused_name();
        work_.guarded = settings.guarded;
    }

    history direct()
    {
        start_masters();
        check(work_);
        for (unsigned i = 0; i < workers; ++i)
            crew_[i] = holdfast::test::child::fork([&, i] { return work(i, work_, shared_); });
        wait_for_votes();

        done_.masters = work_.masters.size();
        done_.ttl = work_.ttl;
        done_.begin = boot_clock::now();
        say("eight workers take turns");
        run_until(at(0.20));
        if (servers_) kill_master(0);
        if (ensemble_) kill_leader();
        run_until(at(0.30));
        stop_worker();
        run_until(at(0.80));
        if (servers_) kill_master(1);
        if (ensemble_) {
            (*ensemble_)[killed_].restart();
            say("the killed server is back");
        }
        run_until(at(1.0));
        done_.end = boot_clock::now();
        end_workers();
        return std::move(done_);
    }

private:
    void start_masters()
    {
        if (settings_.zookeeper) return start_ensemble();
        work_.restart_guard = settings_.restart_guard;
        if (!settings_.masters.empty()) return;
        servers_ = std::make_unique<holdfast::test::redis_fleet>(5);
        work_.masters = servers_->urls();
        work_.unavailable_after = 30s;
        work_.restart_guard = work_.ttl;  // nobody else uses these
        std::string ports;
        for (auto const& one : *servers_) ports += " " + std::to_string(one.port());
        out_.say("Five redis-server of our own on 127.0.0.1, ports" + ports + ".");
    }

    void start_ensemble()
    {
        work_.zookeeper = *settings_.zookeeper;
        done_.kind = "ZooKeeper server";
        if (work_.zookeeper.empty()) {
            out_.live("starting three ZooKeeper servers …");
            // Who takes the lead while the other one still looks for a leader waits for initLimit, in ticks, before
            // they vote again (ZOOKEEPER-3109).
            holdfast::test::zookeeper_options const options{.tick = 200ms, .config = {"initLimit=50"}};
            ensemble_ = std::make_unique<holdfast::test::zookeeper_ensemble>(3, options);
            work_.zookeeper = ensemble_->addresses();
            work_.unavailable_after = 2min;
            out_.say("Three ZooKeeper servers of our own on " + work_.zookeeper + ".");
        }
        work_.masters.assign(
            static_cast<std::size_t>(std::count(work_.zookeeper.begin(), work_.zookeeper.end(), ',')) + 1, {});
    }

    void kill_leader()
    {
        killed_ = ensemble_->leader();
        (*ensemble_)[killed_].kill();
        note("leader killed");
        say("server " + std::to_string(killed_ + 1) + " of 3, the leader, killed");
    }

    void wait_for_votes()
    {
        if (servers_)
            out_.say(
                "Waiting for the restart guard: a fresh master may have forgotten a lock and has no vote for a while, here 2 s, by default a minute.");
        while (shared_.sections() == 0)
            tick(servers_ ? "waiting for the restart guard …" : "waiting for the first section …");
    }

    void kill_master(std::size_t i)
    {
        servers_->kill(i);
        note("master " + std::to_string(i + 1) + " killed");
        say("master " + std::to_string(i + 1) + " of 5 killed");
    }

    void stop_worker()
    {
        shared_.stop_next = true;
        while (shared_.in_section == nobody) tick_live();
        unsigned const who = shared_.in_section;
        auto const name = "worker " + std::to_string(who + 1);
        crew_[who].pause();
        note(name + " stopped");
        auto const stopped = done_.faults.back().at;
        done_.stopped_worker = who;
        done_.stopped = stopped;
        say(name + " stopped inside its section; the others wait until its lease ends");

        auto const others = shared_.sections();
        run_until(stopped + work_.ttl + 400ms);
        while (shared_.sections() == others && boot_clock::now() < stopped + 3 * work_.ttl) tick_live();
        shared_.go_on = true;
        crew_[who].resume();
        note(name + " continued");
        say(name + " continued: its lease is lost, its writes are late");
    }

    void end_workers()
    {
        shared_.stop = true;
        for (unsigned i = 0; i < workers; ++i)
            if (!crew_[i].wait_for(30s)) throw std::runtime_error{"worker " + std::to_string(i + 1) + " does not end"};
        look_after_workers();
    }

    void note(std::string label) { done_.faults.push_back({.at = boot_clock::now(), .label = std::move(label)}); }

    void say(std::string const& what)
    {
        std::array<char, 32> when{};
        std::snprintf(when.data(), when.size(), "%5.1f s  ", seconds_since_begin());
        out_.say(when.data() + what + ".");
    }

    void run_until(time_point t)
    {
        while (boot_clock::now() < t) tick_live();
    }

    void tick_live()
    {
        std::array<char, 160> line{};
        std::snprintf(line.data(), line.size(), "%5.1f of %d s   %zu sections", seconds_since_begin(),
                      static_cast<int>(settings_.length.count()), shared_.sections());
        tick(line.data());
    }

    void tick(std::string const& live)
    {
        out_.live(live);
        look_after_workers();
        auto const set = interrupts();
        timespec const pause{.tv_sec = 0, .tv_nsec = 5'000'000};
        if (::sigtimedwait(&set, nullptr, &pause) > 0) throw interrupted{};
    }

    void look_after_workers()
    {
        for (unsigned i = 0; i < workers; ++i) {
            auto const status = crew_[i].exit_status();
            if (!status || *status == 0) continue;
            auto const why = shared_.journals[i].failure();
            throw std::runtime_error{"worker " + std::to_string(i + 1) + " ended with status " +
                                     std::to_string(*status) + (why.empty() ? "" : ": " + std::string{why})};
        }
    }

    [[nodiscard]] time_point at(double share) const
    {
        return done_.begin + std::chrono::duration_cast<duration>(settings_.length * share);
    }

    [[nodiscard]] double seconds_since_begin() const
    {
        return std::chrono::duration<double>{boot_clock::now() - done_.begin}.count();
    }

    run_settings const& settings_;
    board& shared_;
    progress& out_;
    worker_settings work_;
    history done_{};
    std::unique_ptr<holdfast::test::redis_fleet> servers_;
    std::unique_ptr<holdfast::test::zookeeper_ensemble> ensemble_;
    std::size_t killed_ = 0;
    std::array<holdfast::test::child, workers> crew_;  // last: they end first
};

}  // namespace

void defer_interrupts()
{
    auto const set = interrupts();
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

std::optional<history> run(run_settings const& settings, board& shared, progress& out)
try {
    return director{settings, shared, out}.direct();
} catch (interrupted) {
    return std::nullopt;
}

}  // namespace quickstart
