// SPDX-License-Identifier: MIT
//
// Processes share a read-write lock: those that write become readers at the end of a section, without a gap, and those
// that read writers, if they are the only ones. They are killed, and stopped for longer than their leases, while they
// ask for the other side and when they have it. A server is stopped; a Redis forgets what it knew.
#include "everybody.hpp"
#include "rows.hpp"

#include "../crew.hpp"
#include "../site.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::faults::sides {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::size_t writers = 3;
constexpr std::size_t processes = 5;

/// What is done, to whom.
enum class fault { asks_killed, asks_stopped, crossed_killed, crossed_stopped, server_stopped, server_emptied };

struct strike {
    fault what;
    bool writer = true;
};

/// On ZooKeeper, where all takes longer, the short form has the first half; and nothing is forgotten there.
constexpr std::array<strike, 8> strikes{{{fault::asks_killed},
                                         {fault::asks_stopped, false},
                                         {fault::crossed_stopped},
                                         {fault::server_stopped},
                                         {fault::asks_stopped},
                                         {fault::asks_killed, false},
                                         {fault::crossed_killed, false},
                                         {fault::server_emptied}}};

/// How many went over to the other side, and how many of those who asked for that were killed or stopped meanwhile.
struct crossings {
    std::size_t done = 0;
    std::size_t struck = 0;
};

/// Returns: those of writers, and those of readers. Where a client asks for another side than it asks for first, it
/// goes over to that.
std::pair<crossings, crossings> crossings_in(std::vector<record> const& records)
{
    std::pair<crossings, crossings> all;
    std::map<std::uint32_t, bool> reads;
    std::set<std::uint32_t> crossing;
    for (auto const& r : records) {
        if (r.what == event::acquire_begun) reads.emplace(r.client, r.shared);
        auto const who = reads.find(r.client);
        if (who == reads.end()) continue;
        auto& of = who->second ? all.second : all.first;
        if (r.what == event::acquire_begun && r.shared != who->second) crossing.insert(r.client);
        bool const struck = r.what == event::killed || r.what == event::paused;
        if (struck && crossing.contains(r.client)) ++of.struck;
        bool const ends =
            r.what == event::acquire_ok || r.what == event::acquire_failed || r.what == event::acquire_unknown;
        if (ends && crossing.erase(r.client) != 0 && r.what == event::acquire_ok) ++of.done;
    }
    return all;
}

class those_who_cross {
public:
    those_who_cross(run_options const& run, findings& to)
        : run_{run},
          to_{to},
          servers_{open_site(run.on, to.folder("clocks"))},
          workers_{{.where = servers_->where(),
                    .processes = processes,
                    .kind = primitive::readers,
                    .writers = writers,
                    .crosses = run.control ? crossing::with_gap : crossing::without_gap,
                    .patience = 3s,
                    .rest = 3ms},
                   to.folder("journals")}
    {
    }

    void go()
    {
        everybody(workers_, "without faults", unserved_);
        bool const slow = run_.on == place::store::zookeeper;
        auto const kinds = strikes.size() - (slow ? 1 : 0);
        for (std::size_t n = 0; n < run_.count(slow ? 4 : kinds, 200); ++n) go(strikes.at(n % kinds));
        // On a busy machine none may have been struck in time.
        for (int n = 0; n < 20 && crossings_in(workers_.records()).first.struck == 0; ++n) go({fault::asks_killed});
        for (int n = 0; n < 20 && crossings_in(workers_.records()).second.struck == 0; ++n)
            go({fault::asks_stopped, false});
    }

    void finish()
    {
        workers_.end();
        auto records = workers_.records();
        // One that waits to write refuses readers.
        verify(run_, to_, records, refused_by::holder_or_contender, 0, 2 * ttl());
        verify_counters(to_, records, workers_);
        to_.check("K6", unserved_);
        to_.figure("processes killed", workers_.killed());
        auto const [writing, reading] = crossings_in(records);
        auto const both = [](std::size_t one, std::size_t two) {
            return std::to_string(one) + ", " + std::to_string(two);
        };
        to_.figure("writers that became readers, readers that became the writer", both(writing.done, reading.done));
        to_.figure("struck at that moment", both(writing.struck, reading.struck));
        to_.require(writing.done != 0 && reading.done != 0, "none came to the other side");
        to_.require(writing.struck != 0 && reading.struck != 0, "none was struck on the way to the other side");
        // A server remembers that a writer waits for as long as that would have waited.
        to_.check("K7", check_remains(servers_->left(2 * ttl() + 10s + 1min, waiters::killed)));
        to_.show(std::move(records));
    }

private:
    [[nodiscard]] std::chrono::milliseconds ttl() const noexcept { return servers_->where().ttl; }

    void keep(std::size_t who)
    {
        workers_.of(who).ask_to_stay();
        if (!eventually([&] { return workers_.of(who).staying.load(); }, 3min))
            throw std::runtime_error{"a worker does not get the lock"};
    }

    void go(strike const& one)
    {
        switch (one.what) {
        case fault::asks_killed: return while_it_asks(any(one.writer), true);
        case fault::asks_stopped: return while_it_asks(any(one.writer), false);
        case fault::crossed_killed: return when_it_has_it(any(one.writer), true);
        case fault::crossed_stopped: return when_it_has_it(any(one.writer), false);
        case fault::server_stopped: return stop_server();
        case fault::server_emptied: return empty_server();
        }
    }

    [[nodiscard]] std::size_t any(bool writer)
    {
        return writer ? random_() % writers : writers + random_() % (processes - writers);
    }

    /// What it asks for is answered when it is dead, or has been stopped.
    void while_it_asks(std::size_t who, bool dies)
    {
        keep(who);
        auto const& servers = servers_->where().servers;
        workers_.note(event::fault_begun);
        for (std::size_t i = 0; i < servers.size(); ++i) servers_->pause(i);
        workers_.of(who).stay = false;
        static_cast<void>(eventually([&] { return workers_.of(who).asking.load(); }));
        dies ? workers_.kill(who) : workers_.pause(who);
        for (std::size_t i = 0; i < servers.size(); ++i) servers_->resume(i);
        workers_.note(event::fault_ended);
        bring_back(who, "on its way to the other side", dies);
    }

    void when_it_has_it(std::size_t who, bool dies)
    {
        keep(who);
        workers_.of(who).stay = false;
        static_cast<void>(eventually([&] { return !workers_.of(who).staying; }));
        keep(who);
        dies ? workers_.kill(who) : workers_.pause(who);
        bring_back(who, "on the other side", dies);
    }

    /// Effects: who is stopped, is so for longer than its leases.
    void bring_back(std::size_t who, std::string const& where, bool dies)
    {
        if (!dies) a_while();
        workers_.of(who).stay = false;
        auto const what = "one is " + std::string{dies ? "killed " : "stopped "} + where;
        everybody(workers_, what, unserved_, {who});
        dies ? workers_.replace(who) : workers_.resume(who);
        everybody(workers_, what + ", and back", unserved_);
    }

    void a_while() { std::this_thread::sleep_for(ttl() * 3 / 2 + std::chrono::milliseconds{random_() % 200}); }

    [[nodiscard]] std::size_t any_server() { return random_() % servers_->where().servers.size(); }

    void stop_server()
    {
        auto const which = any_server();
        workers_.note(event::fault_begun, which);
        servers_->pause(which);
        a_while();
        servers_->resume(which);
        workers_.note(event::fault_ended, which);
        everybody(workers_, "a server was stopped", unserved_);
    }

    void empty_server()
    {
        auto const which = any_server();
        workers_.note(event::fault_begun, which);
        servers_->restart(which);
        everybody(workers_, "a server forgot what it knew", unserved_);
        workers_.note(event::fault_ended, which);
    }

    run_options const& run_;
    findings& to_;
    std::unique_ptr<site> servers_;
    crew workers_;
    std::mt19937_64 random_{run_.seed};
    breaches unserved_;
};

}  // namespace

void go(run_options const& run, findings& to)
{
    those_who_cross all{run, to};
    all.go();
    all.finish();
}

}  // namespace holdfast::faults::sides
