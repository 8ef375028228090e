// SPDX-License-Identifier: MIT
//
// Eight processes with four locks each, and every two seconds something else goes wrong.
#include "rows.hpp"

#include "../check/counter.hpp"
#include "../check/takeover.hpp"
#include "../crew.hpp"
#include "../network.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>
#include <support/proxy.hpp>
#include <support/redis_server.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::faults {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::uint32_t locks = 4;
constexpr auto every = 2s;
constexpr std::chrono::milliseconds busy_machine{6000};

std::chrono::seconds length(run_options const& run) { return std::chrono::seconds{run.control ? 5 : run.count(14, 1800)}; }

/// Something that goes wrong with servers or network, for some time that it is given.
using server_fault = std::function<void(std::chrono::milliseconds)>;

class soak {
public:
    soak(run_options const& run, findings& to, place const& where, refused_by whom, std::vector<std::pair<std::string, server_fault>> faults)
        : to_{to}, ttl_{where.ttl}, whom_{whom}, faults_{std::move(faults)}, random_{run.seed},
          workers_{{.where = where, .processes = 8, .locks = locks, .guarded = !run.control, .rest = run.full ? 40ms : 10ms}, to.folder("journals")}
    {
        auto const pause_one = [this](std::chrono::milliseconds length) {
            auto const who = random_() % workers_.size();
            workers_.pause(who);
            std::this_thread::sleep_for(length);
            workers_.resume(who);
        };
        faults_.emplace_back("a worker is stopped", pause_one);
        faults_.emplace_back("a worker is killed", [this](std::chrono::milliseconds) {
            auto const who = random_() % workers_.size();
            workers_.kill(who);
            workers_.replace(who);
        });
    }

    void go(std::chrono::seconds length)
    {
        if (!eventually([&] { return workers_.sections() > 300; }, 60s)) throw std::runtime_error{"no sections are done"};
        std::this_thread::sleep_for(1s);
        workers_.shared().warmed = true;
        auto const begun = boot_clock::now();
        std::size_t n = random_();
        for (auto next = begun + every; next < begun + length; next += every, ++n) {
            std::this_thread::sleep_until(next);
            auto& [name, fault] = faults_[n % faults_.size()];
            ++counts_[name];
            workers_.note(event::fault_begun, n);
            fault(ttl_ * 3 / 2 + std::chrono::milliseconds{random_() % static_cast<std::uint64_t>(ttl_.count())});
            workers_.note(event::fault_ended, n);
        }
        auto const sections = workers_.sections();
        if (!eventually([&] { return workers_.sections() > sections + 100; }, 30s)) to_.check("goes on", {"after the faults nothing goes on"});
        std::this_thread::sleep_for(1s);
        workers_.end();
    }

    void judge(std::vector<std::reference_wrapper<test::redis_server>> const& servers)
    {
        auto records = workers_.records();
        verify(to_, records, whom_);
        counters(records);
        auto const k6 = check_takeover(records, std::chrono::nanoseconds{ttl_ + busy_machine}.count());
        to_.check("K6", k6.found);
        to_.times("from a death to the next grant", k6.times, std::chrono::nanoseconds{ttl_ + 100ms}.count());
        for (auto const& one : servers) to_.check("K7", check_remains(remains_on(one, 2 * ttl_ + 10s)));
        footprints();
        std::string all;
        for (auto const& [name, count] : counts_) all.append(all.empty() ? "" : ", ").append(name + ": " + std::to_string(count));
        to_.figure("faults", all);
        to_.show(std::move(records));
    }

private:
    /// A worker that was stopped between its last look at the lease and its write has written late: that lock's counter says nothing.
    void counters(std::vector<record> const& records)
    {
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> over;
        for (auto const& [lock, holds] : holds_of(records))
            for (auto const& h : holds) over[{h.client, h.number}] = h.over();
        std::array<bool, locks> late{};
        for (auto const& r : records)
            if (r.what == event::counter_written && r.at > over[{r.client, r.hold}]) late[r.lock] = true;
        for (std::uint32_t l = 0; l < locks; ++l)
            if (!late[l]) to_.check("K4", check_counter(records, l, workers_.shared().resources[l].counter, workers_.killed()));
        to_.figure("counters that a stopped worker spoilt", static_cast<std::size_t>(std::count(late.begin(), late.end(), true)));
    }

    void footprints()
    {
        std::size_t lasted = 0;
        long most = 0;
        for (std::size_t i = 0; i < workers_.size(); ++i) {
            if (!workers_.lasted(i)) continue;
            ++lasted;
            auto const& before = workers_.shared().warm[i * locks];
            auto const& after = workers_.shared().late[i * locks];
            most = std::max(most, after.resident - before.resident);
            to_.check("K7", check_footprint("worker " + std::to_string(i), before, after));
        }
        to_.figure("workers that lasted, most memory more", std::to_string(lasted) + ", " + std::to_string(most / 1024) + " KiB");
    }

    findings& to_;
    std::chrono::milliseconds ttl_;
    refused_by whom_;
    std::vector<std::pair<std::string, server_fault>> faults_;
    std::mt19937_64 random_;
    std::map<std::string, std::size_t> counts_;
    crew workers_;
};

}  // namespace

void soak_redis(run_options const& run, findings& to)
{
    test::redis_server server;
    test::proxy way{server.port()};
    place const where{.servers = {way.url()}, .ttl = 600ms, .operation_timeout = 150ms};
    soak all{run, to, where, refused_by::holder, {
        {"connections cut", [&](auto) { way.cut_all(); }},
        {"no answers", [&](auto length) {
            way.blackhole();
            std::this_thread::sleep_for(length / 2);
            way.pass();
            way.cut_all();
        }},
        {"slow network", [&](auto length) {
            way.delay(20ms, 20ms);
            std::this_thread::sleep_for(length);
            way.delay(0ms, 0ms);
        }},
        {"server stopped", [&](auto length) {
            server.pause();
            std::this_thread::sleep_for(length);
            server.resume();
        }},
    }};
    all.go(length(run));
    all.judge({server});
}

void soak_redlock(run_options const& run, findings& to)
{
    test::redis_fleet servers{5};
    std::vector<std::uint16_t> ports;
    for (auto const& one : servers) ports.push_back(one.port());
    ways network{ports, run.own_network};
    place const where{.what = place::store::redlock, .servers = network.urls(), .ttl = 1000ms, .operation_timeout = 150ms, .restart_guard = 1000ms};
    std::mt19937_64 random{run.seed};
    soak all{run, to, where, refused_by::holder_or_contender, {
        {"a master killed", [&](auto length) {
            auto const i = random() % 5;
            servers.kill(i);
            std::this_thread::sleep_for(length / 2);
            servers.restart(i);
        }},
        {"a master stopped", [&](auto length) {
            auto const i = random() % 5;
            servers.pause(i);
            std::this_thread::sleep_for(length);
            servers.resume(i);
        }},
        {"two masters cut off", [&](auto length) {
            auto const i = random() % 5;
            network.cut(i);
            network.cut((i + 1) % 5);
            std::this_thread::sleep_for(length);
            network.mend(i);
            network.mend((i + 1) % 5);
        }},
    }};
    all.go(length(run));
    std::vector<std::reference_wrapper<test::redis_server>> each;
    for (auto& one : servers) each.emplace_back(one);
    all.judge(each);
}

}  // namespace holdfast::faults
