// SPDX-License-Identifier: MIT
//
// A lock is on three of five masters. One of them is killed and comes back without its memory, so that three know
// nothing of the lock: with the restart guard it has no vote before the lock's lease is over.
#include "rows.hpp"

#include "../journal.hpp"
#include "../place.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>
#include <support/redis_server.hpp>

#include <holdfast/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

namespace holdfast::faults::lost_memory {
namespace {

using namespace std::chrono_literals;
using test::eventually;


/// Effects: takes the lock, writing that down. Returns: whether it has it.
bool acquire(mutex& lock, journal& into, std::uint32_t hold, std::uint32_t which, std::chrono::milliseconds limit)
{
    auto const note = [&](record r) {
        r.hold = hold;
        r.lock = which;
        into.write(r);
    };
    note({.what = event::acquire_begun});
    try {
        if (!lock.try_lock_for(limit)) {
            note({.what = event::acquire_failed});
            return false;
        }
    } catch (error const&) {
        note({.what = event::acquire_unknown});
        return false;
    }
    auto const granted = monotonic_now();
    auto const l = lock.lease();
    note({.at = granted,
          .valid_until = to_monotonic(l.expires_at()),
          .token = l.fencing_token(),
          .what = event::acquire_ok});
    return true;
}

}  // namespace

void go(run_options const& run, findings& to)
{
    std::chrono::milliseconds const ttl =
        run.control ? 20s : 1500ms;  // without a guard the rival has to be granted the lock before it is over
    test::redis_fleet servers{5};
    place const where{.what = place::store::redlock, .servers = servers.urls(), .ttl = ttl, .operation_timeout = 300ms,
                      .restart_guard = run.control ? 0ms : ttl};
    auto const folder = to.folder("journals");
    journal first{folder, 1};
    journal second{folder, 2};
    journal faults{folder, director};
    auto const one = connect(where);
    auto const other = connect(where);
    std::mt19937_64 random{run.seed};
    std::size_t tried = 0;
    std::size_t guarded = 0;

    auto const trials = static_cast<std::uint32_t>(run.count(3, 60));
    for (std::uint32_t n = 1; tried < trials && n <= 20 * trials; ++n) {
        auto const name = "faults/" + std::to_string(n);
        mutex holder{one, name, {.ttl = ttl, .renew = false}};
        mutex rival{other, name, {.ttl = ttl, .renew = false, .retry = {.most = 20ms}}};
        auto const on_all = [&] {
            auto const copies = servers.command({"EXISTS", name});
            return std::count_if(copies.begin(), copies.end(), [](auto const& r) { return r.integer == 1; }) == 5;
        };
        // With the votes of all, so that every master has been up for longer than the guard.
        std::error_code ec;
        if (!eventually([&] {
                try {
                    if (holder.try_lock() && eventually(on_all, 200ms)) return true;
                    holder.unlock(ec);
                } catch (error const&) {
                }
                std::this_thread::sleep_for(20ms);
                return false;
            }, 60s))
            throw std::runtime_error{"the masters do not all come to vote"};
        holder.unlock(ec);
        if (!acquire(holder, first, n, n, 1min)) continue;
        std::stop_callback const on_loss{holder.lease().lost_token(),
                                         [&] { first.write({.lock = n, .hold = n, .what = event::loss_announced}); }};
        if (!eventually(on_all,
                        200ms)) {  // one that has yet to grant it would do so after it was made to forget: once more
            first.write({.lock = n, .hold = n, .what = event::release_begun});
            holder.unlock(ec);
            first.write({.value = static_cast<std::uint64_t>(ec ? release_result::unknown : release_result::freed),
                         .lock = n,
                         .hold = n,
                         .what = event::release_done});
            continue;
        }
        auto const victim = random() % 5;
        for (std::size_t spared = 0, i = (victim + 1) % 5; spared < 2; ++spared, i = (i + 1) % 5)
            servers[i].command({"DEL", name});
        faults.write({.value = n, .what = event::fault_begun});
        servers.restart(victim);
        ++tried;
        // The rival tries until it has the lock: when the lease is over, or, without the guard, at once.
        bool const got = acquire(rival, second, n, n, 1min);
        to.require(got, "the rival never gets the lock");
        if (got && !holder.lease().still_held()) ++guarded;
        faults.write({.value = n, .what = event::fault_ended});
        rival.unlock(ec);
        second.write({.lock = n, .hold = n, .what = event::release_begun});
        second.write({.value = static_cast<std::uint64_t>(ec ? release_result::unknown : release_result::freed),
                      .lock = n,
                      .hold = n,
                      .what = event::release_done});
        holder.unlock(ec);
    }
    to.figure("masters restarted without their memory", tried);
    to.figure("granted to the rival only when the lease was over", guarded);
    to.require(tried == trials, "a lock was hardly ever on all masters: only " + std::to_string(tried) + " cases of " +
                                    std::to_string(trials));
    auto records = read_journals(folder);
    verify(run, to, records, refused_by::holder_or_contender);
    to.show(std::move(records));
}

}  // namespace holdfast::faults::lost_memory
