// SPDX-License-Identifier: MIT
//
// Clients of one name with different ttl, hand-overs and releases; only the restart guard is the same. While one of
// them holds the lock, and is stopped or not, three of five masters are killed and come back without their memory, two
// at once and one. Locks whose key prefixes differ are not of one name, and do not exclude each other.
#include "rows.hpp"

#include "../crew.hpp"
#include "../old_masters.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>

#include <holdfast/core/error.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <vector>

namespace holdfast::faults::options_differ {
namespace {

using namespace std::chrono_literals;
using test::eventually;

bool refuses(place const& where, std::chrono::milliseconds ttl)
try {
    auto const client = connect(where);
    mutex lock{client, "faults/longer", {.ttl = ttl}};
    static_cast<void>(lock.try_lock());
    return false;
} catch (error const& e) {
    return e.code() == errc::misconfigured;
}

}  // namespace

void go(run_options const& run, findings& to)
{
    std::chrono::milliseconds const guard =
        run.control ? 20s : 3s;  // without one, a rival has to be granted the lock before its lease is over
    auto const folder = to.folder("journals");
    old_masters servers{5, folder};
    auto const with = [&](std::chrono::milliseconds ttl, unsigned handoffs, bool deferred) {
        return place{.what = place::store::redlock,
                     .servers = servers.urls(),
                     .ttl = ttl,
                     .operation_timeout = 300ms,
                     .restart_guard = guard,
                     .max_local_handoffs = handoffs,
                     .deferred_release = deferred};
    };
    std::vector<place> ways{with(guard, 63, false), with(guard / 4, 0, true), with(guard / 2, 4, true),
                            with(guard, 0, true), with(guard / 4, 63, false)};
    constexpr std::array<std::size_t, 2> longest{0, 3};
    if (run.control) ways[1].restart_guard = 0ms;
    to.require(refuses(ways[0], guard + 1ms), "a ttl that is longer than the guard is not refused");

    crew workers{{.ways_there = ways, .processes = ways.size(), .locks = 2, .one_lock = true, .rest = 2ms}, folder};
    std::mt19937_64 random{run.seed};
    std::array<std::size_t, 5> order{0, 1, 2, 3, 4};
    auto const trials = run.count(3, 60);
    std::size_t stayed = 0;
    std::size_t tried = 0;
    for (std::size_t n = 0; n < trials && (!run.control || tried == stayed); ++n) {
        auto const before = workers.sections();
        if (!eventually([&] { return workers.sections() > before + 10; }, 2min))
            throw std::runtime_error{"no sections are done"};
        auto const holder = longest[n % longest.size()];
        auto& of = workers.of(holder);
        of.ask_to_stay();
        if (!eventually([&] { return of.staying.load(); }, 2min))
            throw std::runtime_error{"a client never gets the lock"};
        bool const stopped = run.control || n % 2 == 0;
        if (stopped) workers.pause(holder);
        workers.note(event::fault_begun, n);
        auto const sections = workers.sections();
        std::shuffle(order.begin(), order.end(), random);
        servers[order[0]].kill();
        servers[order[1]].kill();
        servers[order[0]].restart();
        servers[order[1]].restart();
        servers[order[2]].restart();
        if (!eventually([&] { return workers.sections() > sections + 3; },
                        run.control ? std::chrono::milliseconds{10s} : guard))
            ++stayed;
        ++tried;
        if (stopped) workers.resume(holder);
        workers.note(event::fault_ended, n);
        of.stay = false;
    }
    workers.end();
    to.figure("times that three masters forgot a lock that was held", tried);
    to.figure("nobody else was granted it for a guard", stayed);
    auto records = workers.records();
    verify(run, to, records, refused_by::holder_or_contender, 0, guard);
    to.show(std::move(records));
}

}  // namespace holdfast::faults::options_differ
