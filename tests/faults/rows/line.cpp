// SPDX-License-Identifier: MIT
//
// Many processes wait in line for one lock, plain or fair, one of them with many threads, a third asynchronously, beside
// a client of another library that only polls. Waiters and holders are killed and stopped, a server is stopped, and
// comes back empty; of five masters, no two clocks agree. Whatever happens, each that lives gets the lock. When is not
// judged: the waits are figures.
#include "rows.hpp"

#include "poller.hpp"

#include "../check/service.hpp"
#include "../crew.hpp"
#include "../old_masters.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>
#include <support/redis_server.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::faults::line {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::chrono::milliseconds ttl{800};
constexpr std::uint64_t most_sections = 400'000;  // the register takes them, and those of a round

enum class lock_kind { plain, fair };

place where(run_options const& run, old_masters const& servers, lock_kind kind)
{
    bool const one = run.on == place::store::redis;
    return {.what = run.on,
            .servers = servers.urls(),
            .ttl = ttl,
            .operation_timeout = 300ms,
            .restart_guard = one ? ttl : 1min,  // with that of masters, clocks may differ by half of it
            .fair = kind == lock_kind::fair};
}

/// Returns: how many threads the last process has. A process has one place among those that wait for a fair lock, which
/// its threads take in turn: each is served once in as many rounds.
std::uint32_t threads_of_last(run_options const& run, lock_kind kind)
{
    return static_cast<std::uint32_t>(kind == lock_kind::fair ? run.count(4, 16) : run.count(16, 256));
}

class waiting_crowd {
public:
    waiting_crowd(run_options const& run, findings& to, lock_kind kind)
        : run_{run},
          to_{to},
          servers_{run.on == place::store::redis ? 1U : 5U, to.folder("clocks"), 10s},
          workers_{{.where = where(run, servers_, kind),
                    .processes = run.count(12, 64),
                    .threads_of_last = threads_of_last(run, kind),
                    .patience = 1h,
                    .asynchronous_in = 3},
                   to.folder("journals")},
          poller_{"faults/0", servers_.ports(), to.folder("poller")},
          guard_{where(run, servers_, kind).restart_guard}
    {
        workers_.shared().warmed = true;  // what they use is not looked at
    }

    void go()
    {
        if (!eventually([&] { return workers_.sections() > 0; }, 2min))
            throw std::runtime_error{"no sections are done"};
        everybody("without faults", run_.control ? 1U : static_cast<std::uint32_t>(run_.count(10, 100)));
        faults_since_ = monotonic_now();
        if (run_.control) return reserve_for_nobody();
        for (std::size_t n = 0; n < run_.count(1, 6) && workers_.sections() < most_sections; ++n) {
            those_who_wait();
            one_who_holds("the holder is killed", &waiting_crowd::kill);
            one_who_holds("the holder is stopped", &waiting_crowd::pause);
            one_with_many_threads();
            kill_some();
            stopped_server(n % servers_.size());
            emptied_server((n + servers_.size() - 1) % servers_.size());  // first the one whose clock is ahead
            kill_some();
        }
    }

    void finish()
    {
        auto const over = monotonic_now();
        workers_.end();
        auto records = workers_.records();
        verify(run_, to_, records, several() ? refused_by::holder_or_contender : refused_by::holder, 0, ttl);
        verify_counters(to_, records, workers_);
        figures(records, over);
        auto const foreign = read_journals(to_.folder("poller"));
        records.insert(records.end(), foreign.begin(), foreign.end());
        std::stable_sort(records.begin(), records.end(), [](auto const& a, auto const& b) { return a.at < b.at; });
        to_.check("K1", check_exclusion(records));
        to_.check("K6", unserved_);
        for (std::size_t i = 0; i < servers_.size(); ++i)
            to_.check("K7", check_remains(remains_on(servers_[i], 2 * ttl + 10s, waiters::killed)));
    }

private:
    [[nodiscard]] bool several() const noexcept { return servers_.size() > 1; }

    /// Returns: a process with one thread.
    std::size_t any() { return random_() % (workers_.size() - 1); }

    /// Effects: waits until everybody who is not away has had the lock so often. Twice: the first time it may have had
    /// it before.
    void everybody(std::string const& what, std::uint32_t times = 2)
    {
        std::vector<std::pair<slot const*, std::uint32_t>> before;
        for (std::size_t i = 0; i < workers_.size(); ++i)
            for (std::uint32_t l = 0; l < workers_.threads(i) && !away_.contains(i); ++l)
                before.emplace_back(&workers_.of(i, l), workers_.of(i, l).sections);
        auto const without = [&] {
            return std::count_if(before.begin(), before.end(),
                                 [&](auto const& one) { return one.first->sections - one.second < times; });
        };
        if (!eventually([&] { return without() == 0; }, run_.control ? 3s : std::chrono::seconds{3min}))
            unserved_.push_back(what + ": " + std::to_string(without()) + " of " + std::to_string(before.size()) +
                                " had no turn");
        auto const turns = poller_.turns();
        if (poller_.asks() && !run_.control && !eventually([&] { return poller_.turns() > turns; }, 3min))
            unserved_.push_back(what + ": who only polls had no turn");
    }

    /// Effects: this one gets the lock, and keeps it, so that the others wait.
    void keep(std::size_t who)
    {
        workers_.of(who).ask_to_stay();
        if (!eventually([&] { return workers_.of(who).staying.load(); }, 3min))
            throw std::runtime_error{"a worker does not get the lock"};
    }

    void kill(std::size_t who)
    {
        workers_.kill(who);
        away_.insert(who);
    }

    void pause(std::size_t who)
    {
        workers_.pause(who);
        away_.insert(who);
    }

    void all_back()
    {
        for (auto const i : away_)
            if (workers_.process(i).paused())
                workers_.resume(i);
            else
                workers_.replace(i);
        away_.clear();
    }

    /// Effects: some that wait, while another has the lock, are killed or stopped.
    void those_who_wait()
    {
        auto const holder = any();
        keep(holder);
        for (std::size_t n = 0; n < std::max<std::size_t>(workers_.size() / 6, 4); ++n) {
            auto const who = any();
            if (who == holder || away_.contains(who)) continue;
            n % 2 == 0 ? kill(who) : pause(who);
        }
        std::this_thread::sleep_for(3 * ttl / 2);
        workers_.of(holder).stay = false;
        everybody("some who wait are killed, some stopped");
        all_back();
        everybody("those who waited are back");
    }

    void one_who_holds(std::string const& what, void (waiting_crowd::*strike)(std::size_t))
    {
        auto const holder = any();
        keep(holder);
        (this->*strike)(holder);
        everybody(what);
        workers_.of(holder).stay = false;
        all_back();
        everybody(what + ", and is back");
    }

    void one_with_many_threads()
    {
        auto const who = workers_.size() - 1;
        pause(who);
        std::this_thread::sleep_for(3 * ttl / 2);
        everybody("one with many threads is stopped");
        all_back();
        everybody("one with many threads goes on");
        kill(who);
        everybody("one with many threads is killed");
        all_back();
        everybody("one with many threads is back");
    }

    /// Effects: kills some one after the other, whatever they are about, and has new ones come at once.
    void kill_some()
    {
        for (std::size_t n = 0; n < workers_.size() / 3; ++n) {
            kill(any());
            all_back();
            std::this_thread::sleep_for(std::chrono::milliseconds{20 + random_() % 80});
        }
        everybody("one after the other is killed");
    }

    void stopped_server(std::size_t which)
    {
        poller_.leave_out(which);
        workers_.note(event::fault_begun, which);
        servers_[which].pause();
        if (several())
            kill_some();
        else
            std::this_thread::sleep_for(3 * ttl / 2);
        servers_[which].resume();
        workers_.note(event::fault_ended, which);
        poller_.take_in(which);
        everybody("a server was stopped");
    }

    /// The one that was emptied before has its vote again by then. What was granted before has to be over before
    /// somebody without a restart guard asks the server again.
    void emptied_server(std::size_t which)
    {
        if (emptied_ && !eventually([&] { return emptied_->uptime() > guard_ + 3s; }, 5min))
            throw std::runtime_error{"a server does not come back"};
        poller_.leave_out(which);
        workers_.note(event::fault_begun, which);
        servers_[which].kill();
        if (several()) kill_some();
        servers_[which].restart();
        std::this_thread::sleep_for(3 * ttl / 2);
        workers_.note(event::fault_ended, which);
        everybody("a server came back empty");
        poller_.take_in(which);
        emptied_ = &servers_[which];
    }

    /// The lock is reserved for a waiter who does not come, again and again.
    void reserve_for_nobody()
    {
        std::jthread const reserving{[this](std::stop_token const& stop) {
            while (!stop.stop_requested()) {
                for (std::size_t i = 0; i < servers_.size(); ++i)
                    servers_[i].command({"SET", "holdfast:next:{faults/0}", "nobody", "PX", "1000"});
                std::this_thread::sleep_for(std::chrono::milliseconds{50});
            }
        }};
        everybody("reserved for nobody");
    }

    void figures(std::vector<record> const& records, std::int64_t over)
    {
        // Before the faults, the clients have the numbers in which they were begun.
        std::vector<std::size_t> shares;
        std::int64_t longest = 0;
        for (auto const& [client, had] : service_of(records, 0, faults_since_)) {
            if (client < workers_.size()) shares.push_back(had.grants);
            longest = std::max(longest, had.longest);
        }
        char index[16];
        std::snprintf(index, sizeof index, "%.4f", fairness(shares));
        auto const [least, most] = std::minmax_element(shares.begin(), shares.end());
        to_.figure("processes, threads of one more",
                   std::to_string(workers_.size() - 1) + ", " + std::to_string(workers_.threads(workers_.size() - 1)));
        to_.figure("sections of a process without faults: least, most, fairness",
                   std::to_string(*least) + ", " + std::to_string(*most) + ", " + index);
        to_.figure("the longest wait without faults", milliseconds(longest));
        std::vector<std::int64_t> waits;
        for (auto const& [client, had] : service_of(records, faults_since_, over)) waits.push_back(had.longest);
        to_.times("the longest wait of each with faults", waits, std::chrono::nanoseconds{10s}.count());
        to_.figure("who polls: turns, attempts",
                   std::to_string(poller_.turns()) + ", " + std::to_string(poller_.attempts()));
        to_.figure("processes killed", workers_.killed());
    }

    run_options const& run_;
    findings& to_;
    old_masters servers_;
    crew workers_;
    poller poller_;
    std::chrono::milliseconds guard_;
    std::mt19937_64 random_{run_.seed};
    std::set<std::size_t> away_;
    test::redis_server* emptied_ = nullptr;  ///< the last one
    std::int64_t faults_since_ = never;
    breaches unserved_;
};

void run_line(run_options const& run, findings& to, lock_kind kind)
{
    waiting_crowd all{run, to, kind};
    all.go();
    all.finish();
}

}  // namespace

void go(run_options const& run, findings& to) { run_line(run, to, lock_kind::plain); }

void fair(run_options const& run, findings& to) { run_line(run, to, lock_kind::fair); }

}  // namespace holdfast::faults::line
