// SPDX-License-Identifier: MIT
//
// Processes share a read-write lock: some write, some read, one of them in several threads. One that reads, one that
// writes, one that waits to write, and all that wait to write are killed, or stopped for longer than their leases.
// Those that live are served meanwhile, and after it.
#include "everybody.hpp"
#include "rows.hpp"

#include "../check/at_once.hpp"
#include "../check/service.hpp"
#include "../check/takeover.hpp"
#include "../crew.hpp"
#include "../site.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::faults::readers {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::size_t writers = 3;
constexpr std::size_t processes = 7;
constexpr std::uint64_t most_sections = 400'000;     // the register takes them, and those of a round
constexpr std::chrono::milliseconds patience{3000};  // of a writer

/// Beyond which it is taken for a failure: a reader that nothing wakes waits for a minute.
constexpr std::chrono::seconds busy_machine(run_options const& run) { return std::chrono::seconds{run.full ? 3 : 30}; }

std::int64_t ns(std::chrono::nanoseconds d) { return d.count(); }

class readers_and_writers {
public:
    readers_and_writers(run_options const& run, findings& to)
        : run_{run},
          to_{to},
          servers_{open_site(run.on)},
          workers_{{.where = servers_->where(),
                    .processes = processes,
                    .threads_of_last = 4,
                    .kind = primitive::readers,
                    .writers = writers,
                    .patience = 1min,
                    .patience_of_writers = patience,
                    .guarded = !run.control,
                    .rest = 3ms},
                   to.folder("journals")}
    {
    }

    void go()
    {
        everybody(workers_, "without faults", unserved_);
        auto const kinds = run_.control ? 2U : 4U;  // with locks of their own, none waits
        for (std::size_t n = 0; n < run_.count(2 * kinds, 200) && workers_.sections() < most_sections; ++n) {
            bool const dies = n % 2 == 0;
            std::string const end = dies ? " killed" : " stopped";
            switch (n / 2 % kinds) {
            case 0: one_that_has_it(any_reader(), "a reader is" + end, dies); break;
            case 1: one_that_has_it(any_writer(), "a writer is" + end, dies); break;
            case 2: those_who_wait({any_writer()}, "a writer that waits is" + end, dies); break;
            default: those_who_wait({0, 1, 2}, "all writers that wait are" + end, dies); break;
            }
        }
    }

    void finish()
    {
        auto const over = monotonic_now();
        workers_.end();
        auto records = workers_.records();
        verify(run_, to_, records, refused_by::holder_or_contender);  // one that waits to write refuses readers
        verify_counters(to_, records, workers_);
        to_.figure("processes killed", workers_.killed());
        takeover(records, event::killed, "death");
        takeover(records, event::paused, "stop");
        waits(records, over);
        auto const most = most_at_once(records);
        to_.figure("the most readers at a time", most);
        to_.require(most > 1, "no two read together");
        to_.figure("attempts that threw", workers_.failures());
        // A server remembers for a minute that one waits, also if that was killed; then nothing may be left of it.
        to_.check("K7", check_remains(servers_->left(2 * ttl() + 10s + 1min, waiters::killed)));
        to_.show(std::move(records));
    }

private:
    [[nodiscard]] std::chrono::milliseconds ttl() const noexcept { return servers_->where().ttl; }
    std::size_t any_writer() { return random_() % writers; }
    std::size_t any_reader() { return writers + random_() % (processes - writers); }

    void keep(std::size_t who)
    {
        workers_.of(who).ask_to_stay();
        if (!eventually([&] { return workers_.of(who).staying.load(); }, 3min))
            throw std::runtime_error{"a worker does not get the lock"};
    }

    void one_that_has_it(std::size_t who, std::string const& what, bool dies)
    {
        keep(who);
        strike({who}, dies, 150ms);
        stand_still(dies);
        everybody(workers_, what, unserved_, {who});
        bring_back({who}, what);
    }

    /// While a reader stays, which keeps the writers waiting, and these other readers.
    void those_who_wait(std::set<std::size_t> const& whom, std::string const& what, bool dies)
    {
        auto const reader = any_reader();
        keep(reader);
        auto const all_wait = [&] {
            return std::all_of(whom.begin(), whom.end(), [&](auto i) { return workers_.of(i).asking.load(); });
        };
        if (!eventually(all_wait, 3min)) throw std::runtime_error{"a writer does not wait"};
        strike(whom, dies, 300ms);  // readers whose turn it was may come for 100 ms more
        auto away = whom;
        if (whom.size() == writers)
            away.insert(reader);
        else
            workers_.of(reader).stay = false;
        stand_still(dies);
        everybody(workers_, what, unserved_, away);
        workers_.of(reader).stay = false;
        bring_back(whom, what);
    }

    /// Effects: kills these, or stops them, at any time in the next `within`.
    void strike(std::set<std::size_t> const& whom, bool dies, std::chrono::nanoseconds within)
    {
        std::this_thread::sleep_for(std::chrono::nanoseconds{random_() % static_cast<std::uint64_t>(within.count())});
        for (auto const i : whom) dies ? workers_.kill(i) : workers_.pause(i);
    }

    /// Effects: who is stopped, is so for longer than its leases.
    void stand_still(bool dies)
    {
        if (!dies) std::this_thread::sleep_for(ttl() * 3 / 2 + std::chrono::milliseconds{random_() % 200});
    }

    void bring_back(std::set<std::size_t> const& whom, std::string const& what)
    {
        for (auto const i : whom) {
            workers_.of(i).stay = false;
            workers_.process(i).paused() ? workers_.resume(i) : workers_.replace(i);
        }
        everybody(workers_, what + ", and back", unserved_);
    }

    /// K6, of those that had the lock when they were killed or stopped.
    void takeover(std::vector<record> const& records, event end, std::string const& what)
    {
        auto const soon = servers_->freed_within();
        auto const k6 = check_takeover(records, ns(soon + busy_machine(run_)), end);
        to_.check("K6", k6.found);
        to_.demanded_times(run_, "from a " + what + " to the next grant, ttl " + std::to_string(ttl().count()) + " ms",
                           k6.times, ns(soon));
        to_.require(!k6.times.empty(), "nobody took over after a " + what);
    }

    /// K6, of those that wait: also beside writers that stand still or are dead, which are remembered as long as they
    /// would have waited. A client that was told how long asks up to an eighth later, so that not all ask at once.
    void waits(std::vector<record> const& records, std::int64_t over)
    {
        auto const aim = ns(patience * 9 / 8 + servers_->where().operation_timeout + 100ms);
        std::set<std::uint32_t> reading;
        for (auto const& r : records)
            if (r.shared) reading.insert(r.client);
        std::vector<std::int64_t> of_writers;
        std::vector<std::int64_t> of_readers;
        for (auto const& [client, had] : service_of(records, 0, over)) {
            (reading.contains(client) ? of_readers : of_writers).push_back(had.longest);
            if (had.longest > aim + ns(busy_machine(run_)))
                unserved_.push_back("client " + std::to_string(client) + " waited for " + milliseconds(had.longest));
        }
        to_.check("K6", unserved_);
        to_.demanded_times(run_, "the longest wait of each writer", std::move(of_writers), aim);
        to_.demanded_times(run_, "the longest wait of each reader", std::move(of_readers), aim);
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
    readers_and_writers all{run, to};
    all.go();
    all.finish();
}

}  // namespace holdfast::faults::readers
