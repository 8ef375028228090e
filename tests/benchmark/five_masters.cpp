// SPDX-License-Identifier: MIT
//
// P2: lock and unlock over five masters, without fencing tokens, as the rivals, and with them, as is the default. The
// fan-out by hand goes on with a majority's answers, too; asking one master after the other is what most Redlock
// clients do. The same scripts by hand are the limit that is left, as the servers and the client share the processors.
#include "bare_lock.hpp"
#include "masters.hpp"
#include "paired.hpp"
#include "workloads.hpp"

#include <holdfast/redlock.hpp>

#include <mutex>
#include <optional>
#include <string>

namespace holdfast::benchmark {

void five_masters(run_options const& options, report& to)
{
    masters_in_service servers;
    redlock::masters masters{servers.urls(), {.restart_guard = servers.guard}};
    redlock::mutex plain{masters, "orders/1", {.ttl = servers.guard, .fencing = false}};
    redlock::mutex fenced{masters, "orders/4", {.ttl = servers.guard}};
    bare_masters<least_commands> fan{servers.ports()};
    bare_masters<least_commands> one_by_one{servers.ports()};
    bare_masters<own_scripts> scripted{servers.ports()};
    bare_masters<least_commands> others{servers.ports()};

    // A majority's answers are enough, so the others are still at work when a call returns: they are not to slow the
    // next contender down.
    auto const from_rest = [&](auto const& call) {
        return [&] {
            others.settle();
            return seconds_of(call);
        };
    };
    auto const take = [](redlock::mutex& m) { return [&m] { std::scoped_lock hold{m}; }; };
    auto const take_by_fan = [](auto& nodes, auto const& commands) {
        nodes.lock(commands);
        nodes.unlock(commands);
    };
    auto const take_known_by_fan = [&, known = least_commands{"orders/2"}] { take_by_fan(fan, known); };
    auto const take_known_one_by_one = [&, known = least_commands{"orders/3"}] {
        one_by_one.lock_in_turn(known);
        one_by_one.unlock_in_turn(known);
    };
    auto const take_by_scripts = [&, known = own_scripts{"orders/5"}] { take_by_fan(scripted, known); };
    int names = 0;
    auto const take_new = [&](bool fencing) {
        return [&, fencing] {
            redlock::mutex fresh{
                masters, "orders/new/" + std::to_string(++names), {.ttl = servers.guard, .fencing = fencing}};
            std::scoped_lock hold{fresh};
        };
    };
    auto const take_new_by_fan = [&] { take_by_fan(fan, least_commands{"orders/bare/" + std::to_string(++names)}); };

    schedule const turns{.repetitions = 7, .turns = options.quick ? 150 : 2500, .warm_up = 200};
    auto const [off, on, fanned, in_turn, by_scripts, new_off, new_on, new_fanned] =
        take_turns(turns, from_rest(take(plain)), from_rest(take(fenced)), from_rest(take_known_by_fan),
                   from_rest(take_known_one_by_one), from_rest(take_by_scripts), from_rest(take_new(false)),
                   from_rest(take_new(true)), from_rest(take_new_by_fan));

    std::string const by_hand = "hiredis, five connections, fan-out by hand";
    to.add(
        compare_times("P2", "lock + unlock, five masters, fencing off", by_hand, off, fanned, target::at_most(1.10)));
    to.add(compare_times("P2", "lock + unlock, five masters, fencing on", by_hand, on, fanned, target::at_most(1.35)));
    to.add(compare_times("P2", "a name's first use, fencing off", by_hand, new_off, new_fanned, target::at_most(1.25)));
    to.add(compare_times("P2", "a name's first use, fencing on", by_hand, new_on, new_fanned, target::at_most(1.6)));
    to.add(compare_times("P2", "lock + unlock, five masters, fencing on", "hiredis, one master after the other", on,
                         in_turn, target::at_most(0.5)));
    to.add(compare_times("P2", "lock + unlock, five masters, fencing off", by_hand + ", the same scripts", off,
                         by_scripts, std::nullopt));
}

}  // namespace holdfast::benchmark
