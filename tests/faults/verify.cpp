// SPDX-License-Identifier: MIT
#include "verify.hpp"

#include "check/announced.hpp"
#include "check/counter.hpp"

#include <support/eventually.hpp>

#include <utility>

namespace holdfast::faults {
namespace {

/// By how much an announcement may be late that comes: the thread that makes it has to have been run.
constexpr std::chrono::seconds busy_machine(run_options const& run) { return std::chrono::seconds{run.full ? 4 : 30}; }

remains look(test::redis_server& server, waiters w)
{
    remains left;
    for (auto const& key : server.command({"KEYS", "*"}).elements) {
        auto const time = server.command({"PTTL", key.text}).integer;
        if (!may_stay(key.text, time, w)) left.keys.push_back(key.text + (time == -1 ? ", without an end" : ""));
    }
    // A client listens to its inbox for as long as it lives.
    for (auto const& channel : server.command({"PUBSUB", "CHANNELS"}).elements)
        left.channels += channel.text.starts_with("holdfast:wake:") ? 0 : 1;
    return left;
}

}  // namespace

void verify(run_options const& run, findings& to, std::vector<record> const& records, refused_by whom,
            std::size_t least_refused, std::chrono::milliseconds ttl)
{
    std::size_t count = 0;
    for (auto const& [lock, holds] : holds_of(records)) count += holds.size();
    to.figure("holds", count);
    to.require(count > 0, "nobody was ever granted a lock");
    to.check("K1", check_exclusion(records));
    to.check("K2", check_fencing(records));
    auto const k3 = check_fenced_writes(records, least_refused);
    to.check("K3", k3.found);
    to.figure("stale writes refused, taken", std::to_string(k3.stale_refused) + ", " + std::to_string(k3.stale_taken));
    to.check("K5", check_linearizable(records, whom, std::chrono::nanoseconds{ttl}.count()));
    auto announced = check_announced(records, std::chrono::nanoseconds{busy_machine(run)}.count());
    to.check("loss announced", announced.found);
    if (!announced.broken.empty())
        to.times("losses announced, after the lock was broken", std::move(announced.broken), 1'000'000'000);
    if (!announced.late.empty())
        to.demanded_times(run, "losses announced, after the rival's grant", std::move(announced.late), 0);
}

void verify_counters(findings& to, std::vector<record> const& records, crew& workers, std::uint32_t locks)
{
    auto const late = spoilt_counters(records);
    for (std::uint32_t l = 0; l < locks; ++l)
        if (!late.contains(l))
            to.check("K4", check_counter(records, l, workers.shared().resources[l].counter, workers.killed()));
    to.figure("counters that a stopped worker spoilt", late.size());
}

remains remains_on(test::redis_server& server, std::chrono::milliseconds limit, waiters w)
{
    remains left;
    static_cast<void>(test::eventually(
        [&] {
            left = look(server, w);
            return left.keys.empty() && left.channels == 0;
        },
        limit));
    return left;
}

}  // namespace holdfast::faults
