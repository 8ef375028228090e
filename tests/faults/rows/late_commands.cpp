// SPDX-License-Identifier: MIT
//
// A release or a renewal is kept on the way until its lease is over and another has the lock, and arrives then. An
// acquire whose caller was told that its outcome is unknown must not arrive at all. Of five masters, every one gets it
// late.
#include "lock_requests.hpp"
#include "rows.hpp"

#include "../check/leftovers.hpp"
#include "../network.hpp"
#include "../place.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>
#include <support/proxy.hpp>
#include <support/redis_server.hpp>

#include <holdfast/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::faults::late_commands {
namespace {

using namespace std::chrono_literals;
using test::containing;
using test::eventually;

constexpr std::chrono::milliseconds ttl{1500};

enum class late { release, renewal, extend };

/// Effects: cuts a client off while it acquires. The system goes on trying to deliver what it was given, for minutes;
/// the client has to have seen to it that it does not, for nobody would roll that back.
void acquires_of_one_cut_off(run_options const& run, findings& to)
{
    test::redis_server server;
    ways network{{server.port()}, true};
    auto const client = connect({.servers = {network.url(0)}, .operation_timeout = 300ms});
    mutex lock{client, "faults/0", {.ttl = 30s}};
    breaches found;
    auto const trials = run.count(2, 20);
    for (std::size_t n = 0; n < trials; ++n) {
        std::error_code ec;
        if (!lock.try_lock_for(1min)) throw std::runtime_error{"no lock without a fault"};
        lock.unlock(ec);
        if (!eventually([&] { return server.command({"EXISTS", "faults/0"}).integer == 0; }))
            throw std::runtime_error{"a lock that was released stays"};
        network.cut(0);
        try {
            static_cast<void>(lock.try_lock());
            found.push_back("the outcome is not unknown");
        } catch (error const&) {
        }
        network.mend(0);
        if (eventually([&] { return server.command({"EXISTS", "faults/0"}).integer != 0; }, 3s))
            found.push_back("it arrived, and its lock is left behind");
    }
    to.figure("acquires of one who was cut off", trials);
    to.check("nothing is left behind", found);
}

/// One Redis or five masters, and a way to each on which commands are kept.
class kept_commands {
public:
    explicit kept_commands(std::size_t masters) : servers_{masters}
    {
        for (std::size_t i = 0; i < masters; ++i) ways_.emplace_back(servers_[i].port());
    }

    [[nodiscard]] place around()
    {
        return {.what = what(), .servers = servers_.urls(), .operation_timeout = 5s, .connect_timeout = 1min};
    }
    [[nodiscard]] place through()
    {
        place where{.what = what(), .servers = {}, .operation_timeout = 300ms, .connect_timeout = 1min};
        where.servers = test::urls(ways_);
        return where;
    }

    void hold(std::string const& name)
    {
        for (auto& one : ways_) one.hold(containing(name));
    }
    void let_go()
    {
        for (auto& one : ways_) {
            one.let_go();
            one.heal();
        }
    }
    [[nodiscard]] bool all_hold() const
    {
        return std::all_of(ways_.begin(), ways_.end(), [](auto const& one) { return one.held() > 0; });
    }
    /// Returns: how many requests each server has seen.
    [[nodiscard]] std::vector<long> requests()
    {
        std::vector<long> all;
        for (auto& one : servers_) all.push_back(lock_requests(one));
        return all;
    }

    /// Returns: whose the lock is on each server; empty where it is nobody's.
    [[nodiscard]] std::vector<std::string> owners(std::string const& name)
    {
        std::vector<std::string> all;
        for (auto const& one : servers_.command({"GET", name})) all.push_back(one.text);
        return all;
    }
    /// Returns: whether the lock is on every server.
    [[nodiscard]] bool on_all(std::string const& name)
    {
        auto const all = owners(name);
        return std::none_of(all.begin(), all.end(), [](auto const& one) { return one.empty(); });
    }
    /// Returns: whether whoever had the lock on most servers, when `before` was what they said, still has it on all of
    /// these.
    [[nodiscard]] bool still(std::string const& name, std::vector<std::string> const& before)
    {
        std::map<std::string, std::size_t> votes;
        for (auto const& one : before) ++votes[one];
        votes.erase(std::string{});
        auto const successor =
            std::find_if(votes.begin(), votes.end(), [&](auto const& one) { return one.second > before.size() / 2; });
        if (successor == votes.end()) return false;
        auto const now = owners(name);
        for (std::size_t i = 0; i < now.size(); ++i)
            if (before[i] == successor->first && now[i] != before[i]) return false;
        return true;
    }
    /// Returns: whether each server that has the lock keeps it for some time, and for `longest` at most.
    [[nodiscard]] bool expires_within(std::string const& name, std::chrono::milliseconds longest)
    {
        auto const left = servers_.command({"PTTL", name});
        return std::all_of(left.begin(), left.end(), [&](auto const& one) {
            return one.integer == -2 || (one.integer >= 0 && one.integer <= longest.count());
        });
    }
    void command(std::vector<std::string> const& words) { servers_.command(words); }

    [[nodiscard]] breaches left(std::chrono::milliseconds limit)
    {
        breaches all;
        for (auto& one : servers_)
            for (auto& what : check_remains(remains_on(one, limit, waiters::ended))) all.push_back(std::move(what));
        return all;
    }

private:
    [[nodiscard]] place::store what() const noexcept
    {
        return servers_.size() == 1 ? place::store::redis : place::store::redlock;
    }

    test::redis_fleet servers_;
    std::vector<test::proxy> ways_;
};

}  // namespace

void go(run_options const& run, findings& to)
{
    bool const one_redis = run.on == place::store::redis;
    kept_commands store{one_redis ? std::size_t{1} : std::size_t{5}};
    auto const here = connect(store.through());
    auto const there = connect(store.around());
    mutex probe{here, "probe", {.ttl = 30s}};
    breaches found;
    std::size_t arrived = 0;

    auto const trials = run.count(one_redis ? 8 : 3, 70);
    for (std::size_t n = 0; n < 3 * trials; ++n) {
        auto const what = static_cast<late>(n % 3);
        auto const name = "faults/" + std::to_string(n);
        auto const say = [&](std::string const& wrong) {
            found.push_back((what == late::release   ? "release "
                             : what == late::renewal ? "renewal "
                                                     : "extend ") +
                            std::to_string(n) + ": " + wrong);
        };
        mutex holder{here, name, {.ttl = ttl, .renew = what == late::renewal, .unavailable_after = 1min}};
        mutex rival{there, name, {.ttl = 20s, .retry = {.most = 1h}}};
        std::error_code ec;
        std::error_code ignored;
        // Only a server that has the lock is asked for its release; one may not have been connected yet.
        bool const on_all = eventually([&] {
            holder.lock();
            if (eventually([&] { return store.on_all(name); }, 1s)) return true;
            holder.unlock(ignored);
            return false;
        });
        if (!on_all) say("the holder did not get the lock on every server");
        auto lease = holder.lease();
        store.hold(name);
        if (what == late::release) holder.unlock(ec);
        if (what == late::extend && holder.extend(ttl - 50ms, ec)) ec = {};
        if (what != late::renewal && !eventually([&] { return store.all_hold(); })) say("never sent");
        if (what == late::renewal) {
            bool const sent = eventually([&] {
                if (store.all_hold()) return true;
                if (lease.still_held()) return false;
                store.let_go();  // it was over before it was to be renewed: once more
                holder.unlock(ignored);
                holder.lock();
                lease = holder.lease();
                store.hold(name);
                return false;
            });
            if (!sent) say("never sent");
            if (!eventually([&] { return lease.lost_token().stop_requested(); }))
                say("the holder was not told of its loss");
            ec = make_error_code(errc::lease_lost);
        }
        if (!ec) say("the caller was told that it is done");
        if (!rival.try_lock_for(1min)) say("the successor does not get the lock");
        auto const owners = store.owners(name);
        if (run.control) store.command({what == late::release ? "DEL" : "PERSIST", name});  // without compare
        auto const before = store.requests();
        store.let_go();
        bool const came = eventually([&] {
            auto const now = store.requests();
            return std::equal(now.begin(), now.end(), before.begin(), std::greater{});
        });
        came ? static_cast<void>(++arrived) : say("what was kept did not arrive");
        if (!probe.try_lock_for(1min)) say("no lock could be taken afterwards");
        probe.unlock(ignored);
        if (!store.still(name, owners)) say("it freed the successor's lock");
        if (!store.expires_within(name, 20s)) say("it changed how long the successor has the lock");
        if (!rival.lease().still_held()) say("the successor lost its lease");
        rival.unlock(ec);
        if (ec) say("the successor could not release: " + ec.message());
        holder.unlock(ignored);
    }
    to.figure("late releases, renewals, extends", trials);
    to.figure("arrived behind the successor's grant", arrived);
    to.check("the successor untouched, the caller told", found);
    if (run.own_network && one_redis) acquires_of_one_cut_off(run, to);
    to.check("K7", store.left(ttl + 5s));
}

}  // namespace holdfast::faults::late_commands
