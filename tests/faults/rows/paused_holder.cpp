// SPDX-License-Identifier: MIT
//
// A holder is stopped for 1.5 to 5 ttl inside its section, and goes on. Two processes share a lock, so that the other
// one has it meanwhile.
#include "rows.hpp"

#include "../check/deposed.hpp"
#include "../crew.hpp"
#include "../site.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

namespace holdfast::faults::paused_holder {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::size_t lanes = 4;
constexpr std::int64_t aim = 50'000'000;  // ns

/// Returns: from when on, in ns, an announcement is too late; a worker waits longer than that before it goes on.
constexpr std::int64_t too_late(run_options const& run) { return run.full ? 4'000'000'000 : 30'000'000'000; }

/// Effects: stops the holder of one lane `times` times.
void pause_again_and_again(crew& workers, std::size_t lane, std::size_t times, std::chrono::milliseconds ttl,
                           std::uint64_t seed)
{
    std::mt19937_64 random{seed * lanes + lane};
    std::uniform_int_distribution<std::int64_t> length{ttl.count() * 3 / 2, ttl.count() * 5};
    for (std::size_t n = 0; n < times; ++n) {
        auto const who = lane + lanes * (random() % 2);
        auto& of = workers.of(who);
        of.ask_to_stay();
        if (!eventually([&] { return of.staying.load(); }, 2min))
            throw std::runtime_error{"a worker does not get the lock"};
        std::this_thread::sleep_for(
            std::chrono::milliseconds{static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(ttl.count()))});
        auto const sections = of.sections.load();
        workers.pause(who);
        std::this_thread::sleep_for(std::chrono::milliseconds{length(random)});
        of.stay = false;
        workers.resume(who);
        if (!eventually([&] { return of.sections != sections; }, 2min))
            throw std::runtime_error{"a worker does not go on"};
    }
}

/// Effects: looks at what each paused holder found: a lease that is lost, on the first question, and announced once.
void look_at_holders(run_options const& run, findings& to, std::vector<record> const& records)
{
    struct state {
        std::int64_t continued = 0;
        bool asked = true;
        int announced = 0;  // in this hold
    };
    std::map<std::uint32_t, state> of;
    std::vector<std::int64_t> latencies;
    std::size_t pauses = 0;
    std::size_t early = 0;  // lost before it was stopped, where the machine was busy
    breaches found;
    for (auto const& r : records) {
        auto& s = of[r.client];
        if (r.what == event::acquire_ok) {
            s = {};
        } else if (r.what == event::continued) {
            s.continued = r.at;
            s.asked = false;
            early += static_cast<std::size_t>(s.announced);
            ++pauses;
        } else if (r.what == event::answered && !s.asked) {
            s.asked = true;
            if (r.value != 0)
                found.push_back("client " + std::to_string(r.client) +
                                " was told that it still holds what it has lost");
        } else if (r.what == event::loss_announced) {
            if (++s.announced == 1 && s.continued != 0) latencies.push_back(r.at - s.continued);
        } else if (r.what == event::release_done && s.continued != 0) {
            if (s.announced != 1)
                found.push_back("client " + std::to_string(r.client) + " was told of its loss " +
                                std::to_string(s.announced) + " times");
            if (static_cast<release_result>(r.value) != release_result::lost)
                found.push_back("client " + std::to_string(r.client) +
                                " was not told by its release that the lease was lost");
            s.continued = 0;
        }
    }
    to.figure("pauses of 1.5 to 5 ttl", pauses);
    to.demanded_times(run, "from SIGCONT to the announced loss", latencies, aim);
    if (!latencies.empty() && *std::max_element(latencies.begin(), latencies.end()) > too_late(run))
        found.push_back("a loss was announced too late");
    to.figure("lost before they were stopped", early);
    if (latencies.size() + early != pauses)
        found.push_back(std::to_string(latencies.size()) + " losses were announced after " + std::to_string(pauses) +
                        " pauses");
    to.check("first question, one callback", found);
}

}  // namespace

namespace {

void pause_those_who_have_it(run_options const& run, findings& to, primitive kind)
{
    auto const servers = open_site(run.on);
    auto const ttl = servers->where().ttl;
    crew workers{{.where = servers->where(),
                  .processes = 2 * lanes,
                  .kind = kind,
                  .lanes = lanes,
                  .patience = 8s,
                  .tokens_checked = !run.control},
                 to.folder("journals")};
    auto const each = run.count(run.on == place::store::redis ? 6 : 2, 125);
    {
        std::vector<std::exception_ptr> failed(lanes);
        std::vector<std::jthread> faults;
        for (std::size_t lane = 0; lane < lanes; ++lane)
            faults.emplace_back([&, lane] {
                try {
                    pause_again_and_again(workers, lane, each, ttl, run.seed);
                } catch (...) {
                    failed[lane] = std::current_exception();
                }
            });
        faults.clear();
        for (auto const& one : failed)
            if (one) std::rethrow_exception(one);
    }
    workers.end();
    to.require(workers.failures() == 0, std::to_string(workers.failures()) + " attempts threw, and no server failed");
    auto records = workers.records();
    verify(run, to, records, servers->whom(), each * lanes / 5);
    look_at_holders(run, to, records);
    if (kind == primitive::election) to.check("deposed", check_deposed(records));
    to.check("K7", check_remains(servers->left(2 * ttl + 10s, waiters::ended)));
    to.show(std::move(records));
}

}  // namespace

void go(run_options const& run, findings& to) { pause_those_who_have_it(run, to, primitive::mutex); }

void leader(run_options const& run, findings& to) { pause_those_who_have_it(run, to, primitive::election); }

}  // namespace holdfast::faults::paused_holder
