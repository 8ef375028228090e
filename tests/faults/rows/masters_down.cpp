// SPDX-License-Identifier: MIT
//
// One, two and three of five masters are killed, stopped and cut off.
#include "rows.hpp"

#include "../network.hpp"
#include "../place.hpp"

#include <support/eventually.hpp>
#include <support/redis_server.hpp>

#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace holdfast::faults::masters_down {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::chrono::milliseconds ttl{90'000};  // so that what is found left behind later is not over by then
constexpr std::chrono::milliseconds deadline{200};
constexpr std::chrono::milliseconds slack{50};  // what is aimed at

struct limits {
    std::chrono::milliseconds node_timeout;
    std::chrono::milliseconds failure;  ///< beyond that, what takes this long is taken for a failure
    bool again;  ///< whether what failed as answers were late is asked for once more, until then
};

/// Returns: those of the counts of a release; in the short form, those for a machine that does other things. A control,
/// in which calls fail, need not wait for so long.
constexpr limits limits_of(run_options const& run)
{
    return run.full || run.control ? limits{500ms, 3s, false} : limits{2s, 30s, true};
}

enum class manner { killed, stopped, cut };
constexpr std::array<char const*, 3> words{"killed", "stopped", "cut off"};

std::int64_t ns(boot_clock::duration d) { return d.count(); }

class five_masters {
public:
    explicit five_masters(bool own_network) : ways_{servers_.ports(), own_network} {}

    void strike(std::size_t i, manner how)
    {
        if (how == manner::killed) servers_.kill(i);
        if (how == manner::stopped) servers_.pause(i);
        if (how == manner::cut) ways_.cut(i);
    }

    void mend(std::size_t i, manner how)
    {
        if (how == manner::killed) servers_.restart(i);
        if (how == manner::stopped) servers_.resume(i);
        if (how == manner::cut) ways_.mend(i);
    }

    /// Returns: on how many of the masters the key is that are not among the first `down` of `order`.
    [[nodiscard]] long copies(std::string const& key, std::array<std::size_t, 5> const& order, std::size_t down)
    {
        long sum = 0;
        for (std::size_t i = down; i < order.size(); ++i)
            sum += static_cast<long>(servers_[order[i]].command({"EXISTS", key}).integer);
        return sum;
    }

    [[nodiscard]] ways const& network() const noexcept { return ways_; }

private:
    test::redis_fleet servers_{5};
    ways ways_;
};

struct results {
    std::vector<std::int64_t> minority;  ///< the longest of the calls of a trial
    std::vector<std::int64_t> majority;  ///< beyond the deadline
    breaches found;
};

template <class F>
std::int64_t timed(F&& f)
{
    auto const begun = boot_clock::now();
    f();
    return ns(boot_clock::now() - begun);
}

void with_a_minority_down(mutex& lock, limits const& of, std::string const& what, results& to)
try {
    std::error_code ec;
    bool got = false;
    auto longest = timed([&] { got = lock.try_lock_for(of.node_timeout + of.failure); });
    if (!got) return to.found.push_back(what + ": the lock was refused");
    longest = std::max(longest, timed([&] {
        auto const end = boot_clock::now() + of.failure - of.node_timeout;
        for (bool late = true; late;) {  // two questions, one after the other
            auto const asked = boot_clock::now();
            ec.clear();
            static_cast<void>(lock.extend(ttl, ec));
            auto const answered = boot_clock::now();
            late = ec && of.again && answered - asked >= of.node_timeout && answered < end;
        }
    }));
    if (ec) to.found.push_back(what + ": extend: " + ec.message());
    auto const released_in = timed([&] { lock.unlock(ec); });
    longest = std::max(longest, released_in);
    bool const late = of.again && released_in >= ns(of.node_timeout);  // its key has to go all the same
    if (ec && !late) to.found.push_back(what + ": release: " + ec.message());
    to.minority.push_back(longest);
    if (longest > ns(of.node_timeout + of.failure)) to.found.push_back(what + ": a call took too long");
} catch (error const& e) {
    to.found.push_back(what + ": " + e.what());
}

void with_a_majority_down(mutex& lock, limits const& of, std::string const& what, results& to)
{
    std::error_code code;
    bool got = false;
    auto const took = timed([&] {
        try {
            got = lock.try_lock_for(deadline);
        } catch (error const& e) {
            code = e.code();
        }
    });
    if (got || code != errc::unavailable)
        to.found.push_back(what + ": " + (got ? "granted" : "not unavailable: " + code.message()));
    to.majority.push_back(std::max<std::int64_t>(took - ns(deadline), 0));
    if (took > ns(deadline + of.node_timeout + of.failure)) to.found.push_back(what + ": the call came back too late");
}

/// Returns: whether the lock could be taken within `limit`; it is given back at once.
bool try_once(mutex& lock, std::chrono::milliseconds limit)
try {
    std::error_code ec;
    if (!lock.try_lock_for(limit)) return false;
    lock.unlock(ec);
    return true;
} catch (error const&) {
    return false;
}

}  // namespace

void go(run_options const& run, findings& to)
{
    auto const of = limits_of(run);
    five_masters five{run.own_network};
    auto const client = connect(
        {.what = place::store::redlock, .servers = five.network().urls(), .operation_timeout = of.node_timeout});
    mutex lock{client, "faults/0", {.ttl = ttl}};
    mutex probe{client, "faults/1", {.ttl = ttl}};
    std::mt19937_64 random{run.seed};
    results all;
    auto const trials = run.control ? 1 : run.count(3, 100);  // of each manner with one, two and three masters
    std::array<std::size_t, 5> order{};
    std::iota(order.begin(), order.end(), 0);

    for (auto const how : {manner::killed, manner::stopped, manner::cut})
        for (std::size_t down = 1; down <= 3; ++down)
            for (std::size_t n = 0; n < trials; ++n) {
                auto const what = std::to_string(down) + " " + words[static_cast<std::size_t>(how)];
                std::shuffle(order.begin(), order.end(), random);
                bool const all_well = eventually(
                    [&] {
                        return try_once(probe, 5s) &&
                               five.copies("faults/0", order, 0) + five.copies("faults/1", order, 0) == 0;
                    },
                    2min);
                if (!all_well) throw std::runtime_error{"the masters do not come back"};
                auto const struck = run.control ? std::max<std::size_t>(down, 3) : down;
                for (std::size_t i = 0; i < struck; ++i) five.strike(order[i], how);
                if (down < 3)
                    with_a_minority_down(lock, of, what, all);
                else
                    with_a_majority_down(lock, of, what, all);
                // A roll-back that found no connection goes with the next call that makes one.
                auto const rolled_back = [&] {
                    static_cast<void>(try_once(probe, 0ms));
                    return five.copies("faults/0", order, struck) == 0;
                };
                if (!eventually(rolled_back, 1min))
                    all.found.push_back(what + ": a key is left on a master that can be reached");
                for (std::size_t i = 0; i < struck; ++i) five.mend(order[i], how);
            }
    to.figure("masters are cut off by", std::string{five.network().how()});
    to.figure("trials each: 1, 2, 3 of 5 killed, stopped, cut off", trials);
    to.demanded_times(run, "longest call with a minority down", all.minority, ns(of.node_timeout + slack));
    to.demanded_times(run, "beyond the deadline with a majority down", all.majority, ns(of.node_timeout + slack));
    to.check("minority: no failure; majority: unavailable, rolled back", all.found);
}

}  // namespace holdfast::faults::masters_down
