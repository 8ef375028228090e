// SPDX-License-Identifier: MIT
//
// The shipped multi_mutex and the holds of several locks, in simulated processes that block.
#include "announcements.hpp"
#include "exclusion.hpp"
#include "fencing.hpp"
#include "process_scenario.hpp"
#include "stop_margin.hpp"
#include "zookeeper_site.hpp"

#include <holdfast/adapters/multi_mutex.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;

class multi_scenario final : public process_scenario {
public:
    /// `excuses`: a holder may be warned when so much of its lease is left, though no renewal failed: this part of what
    /// it may use.
    multi_scenario(std::uint64_t seed, run_options const& options, maker site, double excuses = 0)
        : process_scenario{seed, options, site}, excuses_{excuses}
    {
        auto const many = 2 + below(3);
        for (std::size_t i = 0; i < many; ++i) names_.push_back("fork/" + std::to_string(i));
    }

private:
    /// One of the locks, held with others.
    struct part {
        std::size_t lock = 0;
        claim what;
    };

    /// The locks of one process, in the order of their names.
    struct table {
        std::deque<process_mutex> locks;

        /// Returns: which of them is held; nothing of none.
        [[nodiscard]] std::string held() const
        {
            std::string all;
            for (auto const& one : locks)
                if (!(one.lease() == lease{})) all += ' ' + one.name();
            return all;
        }
    };

    void lay(table& to, lock_client& me)
    {
        for (auto const& name : names_) to.locks.emplace_back(me, name, options());
    }

    void live(lock_client& me, std::uint8_t number) override
    {
        auto& process = me.host();
        table mine;
        lay(mine, me);
        for (std::uint32_t round = 0; !over(); ++round) {
            threads::sleep_until(process.present() + process.up_to(process.below(4) == 0 ? duration{ttl_} : 5ms));
            if (over()) return;
            if (!world_.comes_true({kind::operation, number, nobody, round})) continue;
            try {
                section(me, mine);
            } catch (error const& e) {
                on_error(e);
            }
            if (threads::ending()) return;
            if (auto const left = mine.held(); !left.empty())
                breach("all or none", "after a section or an attempt a process still has" + left);
        }
    }

    /// Returns: some of the locks, in any order; now and then one of them twice.
    [[nodiscard]] std::vector<std::size_t> chosen(sim::host& process) const
    {
        std::vector<std::size_t> all;
        for (std::size_t i = 0; i < names_.size(); ++i) all.push_back(i);
        for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[process.below(i)]);
        all.resize(1 + std::max(process.below(all.size()), process.below(all.size())));
        if (process.below(8) == 0) all.push_back(all.front());
        return all;
    }

    void section(lock_client& me, table& mine)
    {
        auto& process = me.host();
        auto const wanted = process.present();
        auto const some = chosen(process);
        std::vector<mutex*> locks;
        for (auto const i : some) locks.push_back(&mine.locks[i]);
        multi_mutex all{locks};
        auto const way = any_way(process);
        auto const d = way == how::shortly ? process.up_to(20ms) : duration{2s};
        bool got = true;
        if (way == how::for_ever)
            all.lock();
        else
            got = way == how::once ? all.try_lock() : all.try_lock_for(d);
        if (threads::ending()) return;
        bool const timed = way == how::shortly || way == how::long_enough;
        // An attempt and the release of each that was taken before it.
        auto const longest = d + node_timeout + 20 * longest_delay * static_cast<int>(names_.size());
        if (calm_ && timed && process.present() - wanted > longest)
            breach("deadline", "a wait for " + text(d) + " took " + text(process.present() - wanted));
        if (!got) {
            ++verdict_.refused;
            return;
        }
        ++verdict_.acquired;
        auto const leave = process.present() + process.up_to(process.below(6) == 0 ? 2 * ttl_ : 5ms);
        std::vector<claim*> claims;
        for (std::size_t i = 0; i < mine.locks.size(); ++i) {
            auto const fence = all.lease_of(mine.locks[i]).fencing_token();
            bool const asked_for = std::find(some.begin(), some.end(), i) != some.end();
            if (asked_for != (fence != 0))
                breach("all or none", names_[i] + (asked_for ? " is not held" : " is held, too"));
            if (!asked_for) continue;
            auto& one = parts_.emplace_back(part{.lock = i,
                                                 .what = {.client = process.index(),
                                                          .granted = process.present(),
                                                          .first_fence = fence,
                                                          .last_fence = fence}});
            claims.push_back(&one.what);
        }
        announcements heard{process, all.lease(),
                            std::chrono::duration_cast<duration>(excuses_ * (ttl_ - stop_margin_))};
        auto const held = [&] {
            bool const whole = all.lease().still_held();
            if (whole) see_risk(heard, claims.size() == 1);
            for (auto const i : some)
                if (whole && !all.lease_of(mine.locks[i]).still_held())
                    breach("all or none", names_[i] + " is lost, and the hold of all goes on");
            return whole;
        };
        bool const to_the_end = keep(
            process, claims, leave, held, [&] { return all.lease().expires_at(); }, stop_margin_,
            [&] { see_loss(me, heard); });
        if (!to_the_end && !threads::ending() && process.below(2) == 0)
            threads::sleep_until(process.present() + process.up_to(ttl_));
        std::error_code ec;
        all.unlock(ec);
        if (calm_ && to_the_end && ec && !threads::ending()) breach("release", "a release failed: " + ec.message());
    }

    /// What is renewed is at risk no more, and what never fails is never. `alone`: it is one lock.
    void see_risk(announcements& heard, bool alone)
    {
        bool const too_worried = heard.too_worried();
        if (alone && too_worried) breach("at_risk", "a holder is warned although its lease was renewed");
        if (calm_ && heard.warned()) breach("at_risk", "a holder is warned although no renewal failed");
    }

    /// A loss is announced at its time.
    void see_loss(lock_client& me, announcements const& heard)
    {
        auto& process = me.host();
        auto const seen = process.present();
        auto of = heard.lost();
        threads::sleep_until(seen + 2ms);
        if (threads::ending() || process.awake_since() > seen) return;
        of.at_risk = heard.lost().at_risk;
        of.told = heard.lost().told;
        if (auto const b = announcements::breach(of, ttl_)) breach("announced", *b);
    }

    /// Takes all.
    void inherit(lock_client& me) override
    {
        table mine;
        lay(mine, me);
        std::vector<mutex*> locks;
        for (auto& one : mine.locks) locks.insert(locks.begin(), &one);
        multi_mutex all{locks};
        all.lock();
        if (threads::ending()) return;
        if (!all.lease().still_held()) breach("K6", "what the heir took was lost at once");
        std::error_code ec;
        all.unlock(ec);
        if (ec && !threads::ending()) breach("release", "the heir's release failed: " + ec.message());
    }

    void judge() override
    {
        std::vector<history> locks(names_.size());
        for (auto const& p : parts_)
            if (p.what.valid_until > p.what.granted) locks[p.lock].push_back(p.what);
        for (std::size_t i = 0; i < locks.size(); ++i) {
            if (auto const b = exclusion::breach(locks[i])) breach("K1", names_[i] + ": " + *b);
            if (auto const b = stop_margin::breach(locks[i])) breach("stop_margin", names_[i] + ": " + *b);
            if (auto const b = fencing::breach(locks[i])) breach("K2", names_[i] + ": " + *b);
        }
        if (verdict_.breaches.empty()) judge_remains(names_);
    }

    [[nodiscard]] std::string about() const override { return ", " + std::to_string(names_.size()) + " locks"; }

    double excuses_;
    std::vector<std::string> names_;
    std::deque<part> parts_;
};

shipped_machine const several{
    {"multi",
     "several locks at once: one Redis, three or five masters",
     [](std::uint64_t seed, run_options const& o) {
         return multi_scenario{seed, o, &redis_site::make}.run();
     },
     {sim::decision::kind::late, sim::decision::kind::lost_request, sim::decision::kind::lost_reply,
      sim::decision::kind::cut, sim::decision::kind::lost_report, sim::decision::kind::pause,
      sim::decision::kind::crash, sim::decision::kind::hang, sim::decision::kind::asleep, sim::decision::kind::kill,
      sim::decision::kind::refusal}}};

// A session that has only waited for a while proves little at first: with a large `stop_margin`, renewals may be granted
// that make its leases no longer while little is left of them.
shipped_machine const several_of_sessions{{"zookeeper-multi", "several locks at once in an ensemble",
                                           [](std::uint64_t seed, run_options const& o) {
                                               return multi_scenario{seed, o, &zookeeper_site::make, 1.0 / 8}.run();
                                           },
                                           zookeeper_site::faults()}};

}  // namespace

}  // namespace holdfast::test
