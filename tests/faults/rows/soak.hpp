// SPDX-License-Identifier: MIT
#pragma once

#include "../check/takeover.hpp"
#include "../crew.hpp"
#include "../row.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::faults {

/// Something that goes wrong with servers or network, for some time that it is given.
using server_fault = std::function<void(std::chrono::milliseconds)>;

struct soak_options {
    std::vector<place> ways_there{};           ///< the workers take them in turn; they differ in their servers only
    std::chrono::milliseconds freed_within{};  ///< how soon the lock of a dead holder is to be free
    refused_by whom = refused_by::holder;
    std::vector<std::pair<std::string, server_fault>> faults{};
};

/// Eight processes with four locks each, and every two seconds something else goes wrong: what the options name, a
/// worker that is stopped, one that is killed while it has a lock.
class soak {
public:
    static constexpr std::uint32_t locks = 4;

    soak(run_options const& run, findings& to, soak_options options)
        : to_{to},
          run_{run},
          freed_within_{options.freed_within},
          ttl_{options.ways_there.at(0).ttl},
          whom_{options.whom},
          faults_{std::move(options.faults)},
          random_{run.seed},
          workers_{{.ways_there = std::move(options.ways_there),
                    .processes = 8,
                    .locks = locks,
                    .guarded = !run.control,
                    .rest = std::chrono::milliseconds{run.full ? 40 : 20}},
                   to.folder("journals")}
    {
        auto const pause_one = [this](std::chrono::milliseconds length) {
            auto const who = random_() % workers_.size();
            workers_.pause(who);
            std::this_thread::sleep_for(length);
            workers_.resume(who);
        };
        faults_.emplace_back("a worker is stopped", pause_one);
        faults_.emplace_back("a holder is killed", [this](std::chrono::milliseconds) {
            auto const who = keep_one();
            workers_.kill(who);
            workers_.replace(who);
            for (std::size_t i = 0; i < workers_.size() * locks; ++i)
                workers_.of(i / locks, static_cast<std::uint32_t>(i % locks)).stay = false;
        });
    }

    /// Effects: everything goes wrong at least once, in a control what there is time for; then the workers end.
    /// Throws: `std::runtime_error` where they do not even begin.
    void go()
    {
        using namespace std::chrono_literals;
        using test::eventually;
        if (!eventually([&] { return workers_.sections() > 300; }, 60s))
            throw std::runtime_error{"no sections are done"};
        std::this_thread::sleep_for(1s);
        workers_.shared().warmed = true;
        auto const end = boot_clock::now() + std::chrono::seconds{run_.control ? 5 : run_.count(14, 1800)};
        std::shuffle(faults_.begin(), faults_.end(), random_);  // each once, and then by chance
        auto const all = faults_.size();
        std::size_t n = 0;
        for (auto next = boot_clock::now() + every; next < end || (!run_.control && n < all);
             next = std::max(next + every, boot_clock::now()), ++n) {
            std::this_thread::sleep_until(next);
            auto& [name, fault] = faults_[n < all ? n : random_() % all];
            ++counts_[name];
            workers_.note(event::fault_begun, n);
            fault(ttl_ * 3 / 2 + std::chrono::milliseconds{random_() % static_cast<std::uint64_t>(ttl_.count())});
            workers_.note(event::fault_ended, n);
        }
        for (std::uint32_t lock = 0; lock < locks; ++lock) {
            auto const before = sections_of(lock);
            bool const goes_on = eventually([&] { return sections_of(lock) > before + 20; }, 30s);
            to_.check("goes on", goes_on
                                     ? breaches{}
                                     : breaches{"lock " + std::to_string(lock) + ": nobody gets it after the faults"});
        }
        std::this_thread::sleep_for(1s);
        workers_.end();
    }

    /// Effects: K1 to K6, and of K7 what the workers use.
    void judge()
    {
        auto records = workers_.records();
        verify(run_, to_, records, whom_, 0, ttl_);
        verify_counters(to_, records, workers_, locks);
        auto const k6 = check_takeover(records, std::chrono::nanoseconds{freed_within_ + busy_machine()}.count());
        to_.check("K6", k6.found);
        to_.demanded_times(run_, "from a death to the next grant", k6.times,
                           std::chrono::nanoseconds{freed_within_}.count());
        footprints();
        std::string all;
        for (auto const& [name, count] : counts_)
            all.append(all.empty() ? "" : ", ").append(name + ": " + std::to_string(count));
        to_.figure("faults", all);
        to_.show(std::move(records));
    }

private:
    static constexpr std::chrono::seconds every{2};
    [[nodiscard]] std::chrono::seconds busy_machine() const
    {
        return std::chrono::seconds{run_.full ? 6 : 30};
    }  // beyond it a lock is taken for one that is not freed

    [[nodiscard]] std::uint64_t sections_of(std::uint32_t lock)
    {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < workers_.size(); ++i) sum += workers_.of(i, lock).sections;
        return sum;
    }

    /// Effects: whoever gets one of the locks next stays in its section. Returns: a worker who does; any, where nobody
    /// gets it for long, nor hardly any other lock, as on a machine that is too busy for the timeouts of the row. That
    /// nobody gets this one is a breach.
    std::size_t keep_one()
    {
        auto const lock = static_cast<std::uint32_t>(random_() % locks);
        auto const others = [&] { return workers_.sections() - sections_of(lock); };
        auto const before = others();
        for (std::size_t i = 1; i < workers_.size(); ++i)
            workers_.of(i, lock).ask_to_stay();  // the first lasts: to see what it uses in the end
        std::size_t who = 0;
        auto const held = [&] {
            for (who = 1; who < workers_.size(); ++who)
                if (workers_.of(who, lock).staying) return true;
            return false;
        };
        if (test::eventually(held, std::chrono::seconds{30})) return who;
        if (others() > before + 300)
            to_.check("goes on",
                      {"lock " + std::to_string(lock) + ": nobody gets it, while others are taken again and again"});
        return 1 + random_() % (workers_.size() - 1);
    }

    void footprints()
    {
        std::size_t lasted = 0;
        long most = 0;
        for (std::size_t i = 0; i < workers_.size(); ++i) {
            if (!workers_.lasted(i)) continue;
            ++lasted;
            auto const& before = workers_.shared().warm[i * locks];
            auto const& after = workers_.shared().late[i * locks];
            most = std::max(most, after.resident - before.resident);
            to_.check("K7", check_footprint("worker " + std::to_string(i), before, after));
        }
        to_.check("K7", lasted != 0 ? breaches{} : breaches{"no worker lasted: what they use was not looked at"});
        to_.figure("workers that lasted, most memory more",
                   std::to_string(lasted) + ", " + std::to_string(most / 1024) + " KiB");
    }

    findings& to_;
    run_options run_;
    std::chrono::milliseconds freed_within_;
    std::chrono::milliseconds ttl_;
    refused_by whom_;
    std::vector<std::pair<std::string, server_fault>> faults_;
    std::mt19937_64 random_;
    std::map<std::string, std::size_t> counts_;
    crew workers_;
};

}  // namespace holdfast::faults
