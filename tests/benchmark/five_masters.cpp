// SPDX-License-Identifier: MIT
//
// P2: lock and unlock over five masters, without fencing tokens, as the rivals, and with them, as is the default. The
// fan-out by hand goes on with a majority's answers, too; asking one master after the other is what most Redlock
// clients do. The same scripts by hand are the limit that is left, as the servers and the client share the processors.
// Over a distance of 1 ms each way, the round trips are.
#include "bare_lock.hpp"
#include "bare_redis.hpp"
#include "distance.hpp"
#include "masters.hpp"
#include "paired.hpp"
#include "unnamed.hpp"
#include "workloads.hpp"

#include <holdfast/redlock.hpp>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::benchmark {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view by_hand = "hiredis, five connections, fan-out by hand";

/// A client, and what it takes and gives back: locks that it knows, and new ones.
class our_locks {
public:
    our_locks(std::vector<std::string> urls, redlock::masters_options const& how, std::string names)
        : masters_{std::move(urls), how},
          ttl_{how.restart_guard},
          names_{std::move(names)},
          plain_{masters_, names_ + "/plain", options(false)},
          fenced_{masters_, names_ + "/fenced", options(true)}
    {
    }

    void take_plain() { std::scoped_lock hold{plain_}; }
    void take_fenced() { std::scoped_lock hold{fenced_}; }
    void take_new_plain() { take_new(false); }
    void take_new_fenced() { take_new(true); }

private:
    [[nodiscard]] lock_options options(bool fencing) const { return {.ttl = ttl_, .fencing = fencing}; }

    void take_new(bool fencing)
    {
        redlock::mutex fresh{masters_, names_ + "/new/" + std::to_string(++new_names_), options(fencing)};
        std::scoped_lock hold{fresh};
    }

    redlock::masters masters_;
    std::chrono::milliseconds ttl_;
    std::string names_;
    redlock::mutex plain_;
    redlock::mutex fenced_;
    int new_names_ = 0;
};

void take_by_fan(auto& nodes, auto const& commands)
{
    nodes.lock(commands);
    nodes.unlock(commands);
}

/// A majority's answers are enough, so the others are still at work when a call returns: they are not to slow the next
/// contender down.
class rest {
public:
    explicit rest(masters_in_service const& servers) : servers_{servers.ports()} {}

    [[nodiscard]] auto then(auto call)
    {
        return [this, call] {
            servers_.settle();
            return seconds_of(call);
        };
    }

private:
    bare_masters<least_commands> servers_;
};

void near(run_options const& options, report& to, masters_in_service const& servers)
{
    our_locks ours{servers.urls(), unnamed_masters(servers.guard), "orders"};
    our_locks named{servers.urls(), {.restart_guard = servers.guard}, "orders/named"};
    bare_masters<least_commands> fan{servers.ports()};
    bare_masters<least_commands> one_by_one{servers.ports()};
    bare_masters<own_scripts> scripted{servers.ports()};
    rest from{servers};

    auto const take_known_one_by_one = [&, known = least_commands{"orders/3"}] {
        one_by_one.lock_in_turn(known);
        one_by_one.unlock_in_turn(known);
    };
    int names = 0;
    auto const take_new_by_fan = [&] { take_by_fan(fan, least_commands{"orders/bare/" + std::to_string(++names)}); };

    schedule const turns{.repetitions = 7, .turns = options.quick ? 150 : 2500, .warm_up = 200};
    auto const [off, on, known_holder, fanned, in_turn, by_scripts, new_off, new_on, new_fanned] =
        take_turns(turns, from.then([&] { ours.take_plain(); }), from.then([&] { ours.take_fenced(); }),
                   from.then([&] { named.take_fenced(); }),
                   from.then([&, known = least_commands{"orders/2"}] { take_by_fan(fan, known); }),
                   from.then(take_known_one_by_one),
                   from.then([&, known = own_scripts{"orders/5"}] { take_by_fan(scripted, known); }),
                   from.then([&] { ours.take_new_plain(); }), from.then([&] { ours.take_new_fenced(); }),
                   from.then(take_new_by_fan));

    std::string const fan_out{by_hand};
    to.add(
        compare_times("P2", "lock + unlock, five masters, fencing off", fan_out, off, fanned, target::at_most(1.10)));
    to.add(compare_times("P2", "lock + unlock, five masters, fencing on", fan_out, on, fanned, target::at_most(1.35)));
    to.add(compare_times("P2", "a name's first use, fencing off", fan_out, new_off, new_fanned, target::at_most(1.25)));
    to.add(compare_times("P2", "a name's first use, fencing on", fan_out, new_on, new_fanned, target::at_most(1.6)));
    to.add(compare_times("P2", "lock + unlock, five masters, fencing on", "hiredis, one master after the other", on,
                         in_turn, target::at_most(0.5)));
    to.add(compare_times("P2", "lock + unlock, five masters, fencing off", fan_out + ", the same scripts", off,
                         by_scripts, std::nullopt));
    to.add(compare_times("P2", "lock + unlock, five masters, fencing on, with the record of the holder",
                         "the same without", known_holder, on, std::nullopt));
}

void far(run_options const& options, report& to, masters_in_service const& servers)
{
    distance between{servers.ports(), 1000us};
    our_locks ours{between.urls(), unnamed_masters(servers.guard), "far"};
    bare_masters<least_commands> fan{between.ports()};
    bare_redis one{between.ports()[0]};
    rest from{servers};

    schedule const turns{.repetitions = 7, .turns = options.quick ? 15 : 60, .warm_up = 20};
    auto const [off, on, new_off, new_on, fanned, round_trips] =
        take_turns(turns, from.then([&] { ours.take_plain(); }), from.then([&] { ours.take_fenced(); }),
                   from.then([&] { ours.take_new_plain(); }), from.then([&] { ours.take_new_fenced(); }),
                   from.then([&, known = least_commands{"far/bare"}] { take_by_fan(fan, known); }), from.then([&] {
                       one.ping();
                       one.ping();
                   }));

    auto const add = [&](std::string const& what, series const& times) {
        auto const where = what + ", five masters 2 ms away";
        to.add(compare_times("P2", where, "two round trips to one of them", times, round_trips, target::at_most(1.05)));
        to.add(compare_times("P2", where, std::string{by_hand}, times, fanned, std::nullopt));
    };
    add("lock + unlock, fencing off", off);
    add("lock + unlock, fencing on", on);
    add("a name's first use, fencing off", new_off);
    add("a name's first use, fencing on", new_on);
}

}  // namespace

void five_masters(run_options const& options, report& to)
{
    masters_in_service const servers;
    near(options, to, servers);
    far(options, to, servers);
}

}  // namespace holdfast::benchmark
