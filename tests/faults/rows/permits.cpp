// SPDX-License-Identifier: MIT
//
// Processes share the permits of a semaphore. Some that have a permit are stopped for longer than its lease, or killed,
// and new ones come. Each slot is a lock of the journals.
#include "everybody.hpp"
#include "rows.hpp"

#include "../check/at_once.hpp"
#include "../crew.hpp"
#include "../site.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::faults::permits {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::uint32_t permits = 3;
constexpr std::size_t processes = 8;

/// Effects: has as many processes as there are permits be in their sections at once, as the journals have it: on a busy
/// machine they seldom are by chance. They begin again if one of them loses its lease before the last one comes.
void all_at_once(crew& workers)
{
    auto const again = [&] {
        for (std::size_t i = 0; i < permits; ++i) workers.of(i).ask_to_stay();
        static_cast<void>(eventually(
            [&] {
                std::size_t here = 0;
                for (std::size_t i = 0; i < permits; ++i) here += workers.of(i).staying ? 1U : 0U;
                return here == permits;
            },
            30s));
        bool const seen = most_at_once(workers.records()) >= permits;
        for (std::size_t i = 0; i < permits; ++i) workers.of(i).stay = false;
        return seen;
    };
    static_cast<void>(eventually(again, 5min));
}

}  // namespace

void go(run_options const& run, findings& to)
{
    auto const servers = open_site(run.on);
    auto const ttl = servers->where().ttl;
    crew workers{{.where = servers->where(),
                  .processes = processes,
                  .kind = primitive::semaphore,
                  .permits = permits,
                  .patience = 8s,
                  .guarded = !run.control},
                 to.folder("journals")};
    std::mt19937_64 random{run.seed};
    breaches unserved;
    everybody(workers, "without faults", unserved);
    for (std::size_t n = 0; n < run.count(6, 200); ++n) {
        auto const who = random() % workers.size();
        auto& of = workers.of(who);
        of.ask_to_stay();
        if (!eventually([&] { return of.staying.load(); }, 3min)) throw std::runtime_error{"a worker gets no permit"};
        bool const dies = n % 2 == 0;
        dies ? workers.kill(who) : workers.pause(who);
        std::this_thread::sleep_for(ttl * 3 / 2 + std::chrono::milliseconds{random() % 200});
        of.stay = false;
        dies ? workers.replace(who) : workers.resume(who);
        everybody(workers, dies ? "a holder is killed" : "a holder is stopped", unserved);
    }
    if (!run.control) all_at_once(workers);
    workers.end();
    to.require(workers.failures() == 0, std::to_string(workers.failures()) + " attempts threw, and no server failed");
    auto records = workers.records();
    verify(run, to, records, servers->whom());
    to.check("K6", unserved);
    auto const most = most_at_once(records);
    to.figure("the most permits at a time", most);
    if (!run.control) to.require(most == permits, "not all permits were taken at a time");
    to.check("K7", check_remains(servers->left(2 * ttl + 10s, waiters::killed)));
    to.show(std::move(records));
}

}  // namespace holdfast::faults::permits
