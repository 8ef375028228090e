// SPDX-License-Identifier: MIT
//
// The shipped semaphore, with `permit_steps` and `slot_wait`, in simulated processes that block. In a quarter of the
// schedules some of them take several permits at once. In some, one of them says another number of permits.
#include "exclusion.hpp"
#include "fencing.hpp"
#include "permit_idleness.hpp"
#include "permit_limit.hpp"
#include "process_scenario.hpp"
#include "program_waits.hpp"
#include "stop_margin.hpp"

#include <holdfast/semaphore.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;

class semaphore_scenario final : public process_scenario {
public:
    semaphore_scenario(std::uint64_t seed, run_options const& options)
        : process_scenario{seed, options},
          permits_{1 + below(4)},
          most_{permits_},
          resizes_{one_in(3)},
          batches_{seed % 8 < 2}
    {
        schedule_chance numbers{seed ^ 0x6e75'6d62'6572U};
        if (resizes_ || !numbers.one_in(4)) return;
        other_ = 1 + (permits_ + numbers.below(3)) % 4;
        most_ = std::max(permits_, *other_);
    }

private:
    /// A permit that was claimed.
    struct permit_claim {
        std::size_t slot = 0;
        claim what;  // `permits`: as its client said then
    };

    /// While one client wants several permits, it may have some of them.
    struct batch {
        unsigned client = 0;
        time_point wanted{};
        time_point over = time_point::max();
    };

    /// A change of the number of permits.
    struct change {
        std::uint64_t to = 0;
        time_point begun{};
        time_point done = time_point::max();
        bool certain = false;  ///< it was told to be done
    };

    void live(lock_client& one, std::uint8_t number) override
    {
        auto& me = redis_site::client_of(one);
        auto const said = number == 0 ? other_.value_or(permits_) : permits_;
        process_semaphore jobs{me, "jobs", static_cast<std::ptrdiff_t>(said), options()};
        process_thread other;
        if (one_in(3)) other = process_thread{[&] { use(me, jobs, number, 1); }};
        use(me, jobs, number, 0);
        if (other.joinable()) other.join();
    }

    void use(sim::client& me, semaphore& jobs, std::uint8_t number, std::uint32_t thread)
    {
        auto& process = me.host();
        for (std::uint32_t round = 0; !over(); ++round) {
            threads::sleep_until(process.present() + process.up_to(process.below(4) == 0 ? duration{ttl_} : 10ms));
            if (over()) return;
            if (!world_.comes_true({kind::operation, number, nobody, 2 * round + thread})) continue;
            try {
                if (resizes_ && number == 0 && thread == 0 && process.below(8) == 0)
                    resize(process, jobs, 1 + process.below(4));
                bool const batch_wanted = batches_ && jobs.max() > 1 && process.below(4) == 0;
                batch_wanted ? batch_section(process, jobs) : section(process, jobs);
            } catch (error const& e) {
                bool const told = (resizes_ || other_) && e.code() == errc::misconfigured;
                told ? follow(process, jobs) : on_error(e);
            }
        }
    }

    /// Changes the number of permits.
    void resize(sim::host& process, semaphore& jobs, std::uint64_t to)
    {
        permits_ = to;
        most_ = std::max(most_, to);
        auto& mine = changes_.emplace_back(change{.to = to, .begun = process.present()});
        jobs.resize(static_cast<std::ptrdiff_t>(to));
        mine.done = process.present();
        mine.certain = true;
    }

    /// Takes over the number that was decided last, after one that was told of another one. If none is decided, it
    /// goes on with its own.
    void follow(sim::host& process, semaphore& jobs)
    try {
        ++verdict_.refused;
        if (resizes_) resize(process, jobs, permits_);
    } catch (error const& e) {
        on_error(e);
    }

    /// Where nothing goes wrong, nobody gets a permit of another number after a change of it, until the next change.
    void judge_number(std::uint64_t number, time_point asked, time_point granted)
    {
        auto const last = std::find_if(changes_.rbegin(), changes_.rend(),
                                       [&](change const& c) { return c.certain && c.done < asked; });
        if (!calm_ || last == changes_.rend() || last->to == number) return;
        bool const forgotten = asked - last->done > ttl_;
        bool const alone = std::none_of(changes_.begin(), changes_.end(), [&](change const& c) {
            return c.to != last->to && c.begun < granted && c.done > last->begun;
        });
        if (alone && !forgotten)
            breach("number", "a permit of " + std::to_string(number) + " was granted after the number was " +
                                 std::to_string(last->to));
    }

    void section(sim::host& process, semaphore& jobs)
    {
        auto const wanted = process.present();
        auto const way = any_way(process);
        auto const d = way == how::shortly ? process.up_to(20ms) : duration{2s};
        auto const number = jobs.max();
        leased_permit permit = way == how::once       ? leased_permit{jobs, std::try_to_lock}
                               : way == how::for_ever ? leased_permit{jobs}
                                                      : leased_permit{jobs, d};
        if (threads::ending()) return;
        judge_deadline(process, way, wanted, d + node_timeout + 20 * longest_delay);
        if (!permit) {
            ++verdict_.refused;
            return;
        }
        ++verdict_.acquired;
        if (jobs.max() == number) judge_number(static_cast<std::uint64_t>(number), wanted, process.present());
        if (way != how::once) note_wait(process, jobs, wanted, 1);
        auto& mine = claim_of(process, jobs, permit.slot(), permit.fencing_token());
        auto const leave = process.present() + process.up_to(process.below(6) == 0 ? 2 * ttl_ : 10ms);
        bool const held = keep(
            process, {&mine}, leave, [&] { return permit.still_held(); }, [&] { return permit.expires_at(); },
            stop_margin_, [] {});
        if (!held && process.below(2) == 0) threads::sleep_until(process.present() + process.up_to(ttl_));
        std::error_code ec;
        permit.release(ec);
        if (calm_ && held && ec && !threads::ending()) breach("release", "a release failed: " + ec.message());
    }

    /// Takes several permits or none.
    void batch_section(sim::host& process, semaphore& jobs)
    {
        auto const wanted = process.present();
        auto const way = any_way(process);
        auto const d = way == how::shortly ? process.up_to(20ms) : duration{2s};
        auto const number = jobs.max();
        auto const n = 2 + static_cast<std::ptrdiff_t>(process.below(static_cast<std::uint64_t>(number - 1)));
        auto& mine = batches_wanted_.emplace_back(batch{process.index(), wanted});
        auto taken = [&]() -> leased_permits {
            try {
                if (way == how::once) return {jobs, n, std::try_to_lock};
                if (way == how::for_ever) return {jobs, n};
                return {jobs, n, d};
            } catch (...) {
                mine.over = process.present();
                throw;
            }
        }();
        if (threads::ending()) return;
        mine.over = process.present();
        // After its time it tries each slot once more, and gives back what it had.
        judge_deadline(process, way, wanted, d + node_timeout + 20 * (n + 1) * longest_delay);
        if (!taken) {
            ++verdict_.refused;
            if (!taken.slots().empty()) breach("all or none", "some of several permits were granted");
            return;
        }
        ++verdict_.acquired;
        if (jobs.max() == number) judge_number(static_cast<std::uint64_t>(number), wanted, process.present());
        if (way != how::once) note_wait(process, jobs, wanted, static_cast<std::size_t>(n));
        if (std::set(taken.slots().begin(), taken.slots().end()).size() != static_cast<std::size_t>(n))
            breach("all or none", std::to_string(taken.slots().size()) + " slots were granted, not " +
                                      std::to_string(n) + " different ones");
        std::vector<claim*> parts;
        for (std::size_t i = 0; i < taken.slots().size(); ++i)
            parts.push_back(&claim_of(process, jobs, taken.slots()[i], taken.lease_of(i).fencing_token()));
        auto const each_held = [&] {
            bool const all = taken.still_held();
            for (std::size_t i = 0; all && i < parts.size(); ++i)
                if (!taken.lease_of(i).still_held()) breach("all or none", "a hold outlived one of its permits");
            return all;
        };
        auto const leave = process.present() + process.up_to(process.below(6) == 0 ? 2 * ttl_ : 10ms);
        bool const held = keep(
            process, parts, leave, each_held, [&] { return taken.expires_at(); }, stop_margin_, [] {});
        if (!held && process.below(2) == 0) threads::sleep_until(process.present() + process.up_to(ttl_));
        taken.release();
    }

    /// Notes a wait that has ended with a grant. How many are free is judged by the number that most say.
    void note_wait(sim::host& process, semaphore& jobs, time_point wanted, std::size_t n)
    {
        if (other_ && jobs.max() != static_cast<std::ptrdiff_t>(permits_)) return;
        waits_.push_back({.client = process.index(), .asked = wanted, .over = process.present(), .permits = n});
    }

    /// Returns: the claim to a permit that was granted now.
    claim& claim_of(sim::host& process, semaphore& jobs, std::size_t slot, std::uint64_t token)
    {
        if (slot >= most_) breach("K1", "a permit of the slot " + std::to_string(slot));
        return claims_
            .emplace_back(permit_claim{.slot = slot,
                                       .what = {.client = process.index(),
                                                .granted = process.present(),
                                                .first_fence = token,
                                                .last_fence = token,
                                                .permits = static_cast<std::size_t>(jobs.max())}})
            .what;
    }

    /// Where nothing goes wrong a wait with a deadline takes `most` at most.
    void judge_deadline(sim::host& process, how way, time_point wanted, duration most)
    {
        bool const timed = way == how::shortly || way == how::long_enough;
        if (calm_ && timed && process.present() - wanted > most)
            breach("deadline", "a wait of at most " + text(most) + " took " + text(process.present() - wanted));
    }

    /// Takes all permits, one after the other or at once, and then there is none.
    void inherit(lock_client& me) override
    try {
        process_semaphore jobs{redis_site::client_of(me), "jobs", static_cast<std::ptrdiff_t>(permits_), options()};
        if (resizes_ || other_) jobs.resize(static_cast<std::ptrdiff_t>(permits_));
        leased_permits at_once;
        if (batches_) at_once = leased_permits{jobs, static_cast<std::ptrdiff_t>(permits_)};
        if (batches_ && !threads::ending() && !at_once.still_held())
            breach("K6", "a permit of the heir was lost at once");
        std::vector<leased_permit> all;
        while (!batches_ && all.size() < permits_) {
            all.emplace_back(jobs);
            if (threads::ending()) return;
            all.back().still_held() ? void() : breach("K6", "a permit of the heir was lost at once");
        }
        if (leased_permit one_more{jobs, std::try_to_lock}) breach("K1", "one permit more than there are");
        for (auto& one : all) {
            std::error_code ec;
            one.release(ec);
            if (ec && !threads::ending()) breach("release", "the heir's release failed: " + ec.message());
        }
    } catch (error const& e) {  // it waits in vain when the schedule ends
        if (!threads::ending()) breach("K6", std::string{"the heir's wait failed: "} + e.what());
    }

    void judge() override
    {
        if (auto const b = permit_limit::breach(claimed())) breach("K1", *b);
        std::map<std::size_t, history> slots;
        for (auto const& c : claims_)
            if (c.what.valid_until > c.what.granted) slots[c.slot].push_back(c.what);
        for (auto const& [slot, claims] : slots) {
            auto const of = "slot " + std::to_string(slot) + ": ";
            if (auto const b = exclusion::breach(claims)) breach("K1", of + *b);
            if (auto const b = stop_margin::breach(claims)) breach("stop_margin", of + *b);
            if (auto const b = fencing::breach(claims)) breach("K2", of + *b);
        }
        if (calm_ && changes_.empty()) judge_idleness();
        std::vector<std::string> names;
        if (batches_) names.emplace_back("jobs#batch");
        for (std::size_t i = 0; i < most_; ++i) names.push_back("jobs#" + std::to_string(i));
        if (verdict_.breaches.empty()) judge_remains(names);
    }

    /// Returns: the claims to all slots. While the number changes, permits of two are held at a time.
    [[nodiscard]] history claimed() const
    {
        history all;
        for (auto const& [slot, c] : claims_) {
            all.push_back(c);
            if (resizes_) all.back().permits = most_;
        }
        return all;
    }

    /// Another one that wants several may have some of what is free meanwhile: then nothing is said.
    void judge_idleness()
    {
        auto waits = waits_;
        std::erase_if(waits, [&](wait const& w) {
            return std::any_of(batches_wanted_.begin(), batches_wanted_.end(), [&](batch const& b) {
                return (b.client != w.client || b.wanted != w.asked) && b.wanted < w.over && b.over > w.asked;
            });
        });
        if (auto const b = permit_idleness::breach(claimed(), waits, permits_, calm_idleness())) breach("idle", *b);
    }

    [[nodiscard]] std::string about() const override
    {
        return ", " + std::to_string(permits_) + " permits" + (batches_ ? ", several at once" : "") +
               (other_ ? ", client 0 says " + std::to_string(*other_) : "");
    }

    std::uint64_t permits_;  // as was decided last
    std::uint64_t most_;     // of all numbers
    bool resizes_;
    bool batches_;
    std::optional<std::uint64_t> other_;  // what the first process says, if that is another number
    std::deque<batch> batches_wanted_;
    std::deque<change> changes_;
    std::deque<permit_claim> claims_;
    std::vector<wait> waits_;
};

shipped_machine const permits{
    {"semaphore",
     "permits: one Redis, three or five masters",
     [](std::uint64_t seed, run_options const& o) {
         return semaphore_scenario{seed, o}.run();
     },
     {sim::decision::kind::late, sim::decision::kind::lost_request, sim::decision::kind::lost_reply,
      sim::decision::kind::cut, sim::decision::kind::lost_report, sim::decision::kind::pause,
      sim::decision::kind::crash, sim::decision::kind::hang, sim::decision::kind::asleep, sim::decision::kind::kill,
      sim::decision::kind::refusal}}};

}  // namespace

}  // namespace holdfast::test
