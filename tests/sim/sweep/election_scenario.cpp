// SPDX-License-Identifier: MIT
//
// The shipped election, with its candidate and terms, in simulated processes: each has the threads that it would have.
#include "exclusion.hpp"
#include "fencing.hpp"
#include "process_scenario.hpp"
#include "stop_margin.hpp"
#include "zookeeper_site.hpp"

#include <holdfast/election.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;

class election_scenario final : public process_scenario {
public:
    election_scenario(std::uint64_t seed, run_options const& options, maker site)
        : process_scenario{seed, options, site}, margin_{ms(0, site_->most_margin().count() * 2 / 3)}, pause_{ms(1, 50)}
    {
        // A term ends with both, and is renewed before.
        stop_margin_ = std::min(stop_margin_, site_->most_margin() / 4);
    }

private:
    using candidacy = holdfast::election<process_mutex>;

    /// One process, and what its election has called.
    struct candidate {
        sim::host& process;
        std::unique_ptr<candidacy> election;
        bool alive = false;       ///< the election is there, and may call
        bool elected = false;     ///< `on_elected` was called, and `on_deposed` not yet
        bool in_elected = false;  ///< `on_elected` runs
        bool last = false;        ///< this election is its last
    };

    void live(lock_client& me, std::uint8_t number) override
    {
        auto& process = me.host();
        process_mutex lock{me, "leader", options()};
        candidate mine{.process = process, .election = nullptr};
        for (std::uint32_t round = 0; !over(); ++round) {
            threads::sleep_until(process.present() + process.up_to(10ms));
            if (over()) break;
            if (!world_.comes_true({kind::operation, number, nobody, round})) {
                threads::sleep_until(process.present() + duration{ttl_});
                continue;
            }
            campaign(mine, lock, process.present() + process.up_to(6 * ttl_), false);
        }
        // In the end all that live are candidates, and one of them leads.
        if (!threads::ending()) campaign(mine, lock, time_point::max(), true);
    }

    void campaign(candidate& mine, process_mutex& lock, time_point leave, bool last)
    {
        auto& process = mine.process;
        mine.alive = true;
        mine.elected = mine.in_elected = false;
        mine.last = last;
        bool const destroys = !last && process.below(6) == 0;  // one of the functions destroys the election
        mine.election = std::make_unique<candidacy>(
            lock, election_options{.on_elected = [&](term const& t) { on_elected(mine, t); },
                                   .on_deposed =
                                       [&, destroys] {
                                           on_deposed(mine);
                                           if (!destroys) return;
                                           mine.alive = false;
                                           mine.election.reset();
                                       },
                                   .on_error = [this](error const& e) { on_error(e); },
                                   .stop_margin = margin_,
                                   .pause = pause_,
                                   .retry = {.first = 10ms, .most = 100ms}});
        while (mine.election && !threads::ending() && (last ? !finished_ : !over() && process.present() < leave)) {
            if (!last && mine.elected && process.below(20) == 0 && mine.election->resign()) ++verdict_.refused;
            threads::sleep_until(process.present() + process.up_to(duration{ttl_} / 4) + 1us);
        }
        std::exchange(mine.election, nullptr).reset();
        mine.alive = false;
        if (leader_ == &mine) leader_ = nullptr;
        if (!threads::ending() && !destroys && (mine.elected || mine.in_elected))
            breach("order", "an election has ended without on_deposed");
    }

    void on_elected(candidate& mine, term const& t)
    {
        if (threads::ending()) return;
        auto& process = mine.process;
        if (!mine.alive) breach("zombie", "on_elected after the end of the election");
        if (mine.elected) breach("order", "elected twice without on_deposed between");
        mine.elected = mine.in_elected = true;
        ++verdict_.acquired;
        if (calm_ && leader_ && leader_ != &mine && !killed(leader_->process))
            breach("order", "client " + std::to_string(process.index()) + " is elected before client " +
                                std::to_string(leader_->process.index()) + " is deposed");
        leader_ = &mine;
        auto& what = terms_.emplace_back(claim{.client = process.index(),
                                               .granted = process.present(),
                                               .first_fence = t.fencing_token(),
                                               .last_fence = t.fencing_token()});
        bool const returns_early = !mine.last && process.below(3) == 0;
        auto const leave = returns_early ? process.present() + process.up_to(duration{ttl_}) : time_point::max();
        auto const margin = process.below(2) == 0 ? duration{margin_ + stop_margin_} : duration{};
        bool const held = keep(
            process, {&what}, leave, [&] { return !t.stop_token().stop_requested() && t.still_held(); },
            [&] { return process.now() + t.remaining(); }, margin, [&] { see_announced(process, t); });
        if (!held && process.below(3) == 0) threads::sleep_until(process.present() + process.up_to(duration{ttl_} / 8));
        mine.in_elected = false;
    }

    /// The end of a term is announced at its time, and not only when the lease has ended.
    void see_announced(sim::host& process, term const& t)
    {
        auto const seen = process.present();
        threads::sleep_until(seen + 2ms);
        if (!threads::ending() && process.awake_since() <= seen && !t.stop_token().stop_requested())
            breach("announced", "the end of the term of client " + std::to_string(process.index()) +
                                    " was not announced at " + text(seen.time_since_epoch()));
    }

    void on_deposed(candidate& mine)
    {
        if (threads::ending()) return;
        if (!mine.alive) breach("zombie", "on_deposed after the end of the election");
        if (!mine.elected) breach("order", "on_deposed without on_elected before it");
        if (mine.in_elected) breach("order", "on_deposed while on_elected runs");
        threads::sleep_until(mine.process.present() + mine.process.up_to(2ms));
        mine.elected = false;
        if (leader_ == &mine) leader_ = nullptr;
    }

    /// Soon one of the candidates leads, and then all go. One that stands still knows nothing of the end of its term.
    void settle() override
    {
        auto well = std::max(world_.now(), quiet_since());
        for (auto* const one : processes_)
            if (!killed(one->host())) well = std::max(well, one->host().awake_since());
        auto const at = well + dead_lease() + pause_ + 200ms;
        world_.run_until(at);
        auto const leaders = std::count_if(terms_.begin(), terms_.end(), [&](claim const& c) {
            return c.granted <= at && c.ended > at && std::count(killed().begin(), killed().end(), c.client) == 0;
        });
        if (killed().size() < processes_.size() && leaders != 1)
            breach("K6", std::to_string(leaders) + " candidates lead, although nothing goes wrong any more");
        finished_ = true;
    }

    void inherit(lock_client& me) override
    {
        process_mutex lock{me, "leader", options()};
        lock.lock();
        std::error_code ec;
        lock.unlock(ec);
        if (ec && !threads::ending()) breach("release", "the heir's release failed: " + ec.message());
    }

    void judge() override
    {
        history all;
        for (auto const& one : terms_)
            if (one.valid_until > one.granted) all.push_back(one);
        if (auto const b = exclusion::breach(all)) breach("K1", *b);
        if (auto const b = stop_margin::breach(all)) breach("stop_margin", *b);
        if (auto const b = fencing::breach(all)) breach("K2", *b);
        if (verdict_.breaches.empty()) judge_remains({"leader"});
    }

    [[nodiscard]] std::string about() const override
    {
        return ", that of a term " + std::to_string(margin_.count()) + " ms";
    }

    milliseconds margin_;
    milliseconds pause_;
    std::deque<claim> terms_;
    candidate* leader_ = nullptr;
    bool finished_ = false;
};

shipped_machine const elections{
    {"election",
     "candidates for being the leader: one Redis, three or five masters",
     [](std::uint64_t seed, run_options const& o) {
         return election_scenario{seed, o, &redis_site::make}.run();
     },
     {sim::decision::kind::late, sim::decision::kind::lost_request, sim::decision::kind::lost_reply,
      sim::decision::kind::cut, sim::decision::kind::pause, sim::decision::kind::crash, sim::decision::kind::hang,
      sim::decision::kind::asleep, sim::decision::kind::kill, sim::decision::kind::refusal}}};

shipped_machine const elections_of_sessions{{"zookeeper-election", "candidates for being the leader in an ensemble",
                                             [](std::uint64_t seed, run_options const& o) {
                                                 return election_scenario{seed, o, &zookeeper_site::make}.run();
                                             },
                                             zookeeper_site::faults()}};

}  // namespace

}  // namespace holdfast::test
