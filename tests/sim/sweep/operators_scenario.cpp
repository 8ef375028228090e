// SPDX-License-Identifier: MIT
//
// What operators ask of a lock, with the shipped operations, while simulated processes use it; and a job that these
// processes run once in a period.
#include "exclusion.hpp"
#include "fencing.hpp"
#include "min_hold.hpp"
#include "process_scenario.hpp"

#include <holdfast/adapters/run_once.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/redis/operator_questions.hpp>

#include <algorithm>
#include <chrono>
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

/// Processes take one lock. One of them takes no lock, but breaks it, asks for its release, asks who has it, and lists
/// all locks. What its holder was promised does not count from the moment on at which the lock may be broken.
class operators_scenario final : public process_scenario {
public:
    operators_scenario(std::uint64_t seed, run_options const& options) : process_scenario{seed, options}
    {
        schedule_chance periods{seed ^ 0x7065'7269'6f64U};
        period_ = periods.ms(ttl_.count() / 4, ttl_.count() * 2);
        static_cast<redis_site&>(*site_).servers().options.holder = "a process";
    }

private:
    /// One thing that the operator did.
    struct deed {
        enum class kind : std::uint8_t { force, request } what;
        time_point begun{};
        time_point done = time_point::max();
        bool held = false;     ///< it was told that the lock was held
        bool certain = false;  ///< it was told at all
    };

    /// A hold, and how it was for its holder.
    struct hold {
        claim what;
        time_point wanted{};
        time_point left = time_point::max();   ///< until then it was held, as far as the process knew
        time_point over = time_point::max();   ///< when it was given back
        time_point asked = time_point::max();  ///< when it knew that it is asked to release the lock
    };

    /// A question who has the lock, or which locks are held.
    struct question {
        time_point begun{};
        time_point done{};   ///< the epoch: it was not answered
        bool named = false;  ///< the holder, or the lock
        bool exact = true;   ///< what is named is of one owner
    };

    void live(lock_client& one, std::uint8_t number) override
    {
        auto& me = redis_site::client_of(one);
        process_mutex orders{me, "orders", {.ttl = ttl_}};
        auto& process = me.host();
        for (std::uint32_t round = 0; !over(); ++round) {
            threads::sleep_until(process.present() + process.up_to(process.below(4) == 0 ? duration{ttl_} : 10ms));
            if (over()) return;
            if (!world_.comes_true({kind::operation, number, nobody, round})) continue;
            auto const begun = process.present();
            try {
                number == 0 ? operate(me, orders) : process.below(8) == 0 ? work_once(me) : section(process, orders);
            } catch (error const& e) {
                // A try whose lock is broken before it is confirmed has asked in vain.
                if (e.code() != errc::unavailable || !broken_between(begun, process.present())) on_error(e);
            }
            if (number != 0) tried_.push_back(process.present());
        }
    }

    void operate(sim::client& me, mutex& orders)
    {
        auto& process = me.host();
        auto const what = process.below(4);
        if (what == 0) {
            auto& mine = questions_.emplace_back(question{.begun = process.present()});
            try {
                auto const who = orders.holder();
                if (who && !holds_.empty() && who->since && !who->remaining) breach("holder", "a lease without an end");
                mine.named = who.has_value();
            } catch (error const& e) {  // while it passes on, the masters may not agree
                if (e.code() != errc::unavailable) throw;
            }
            mine.done = process.present();
            return;
        }
        if (what == 1) {
            auto& mine = questions_.emplace_back(question{.begun = process.present(), .exact = me.way().size() == 1});
            redis::list_operation asking{me.way(), "", "ord"};
            auto const names = thread_waits::result_of(asking, "orders");
            if (names.size() > 1 || (names.size() == 1 && names.front() != "orders"))
                breach("list", "a lock is listed that there is not");
            mine.named = !names.empty();
            mine.done = process.present();
            return;
        }
        auto& mine = deeds_.emplace_back(deed{what == 2 ? deed::kind::force : deed::kind::request, process.present()});
        try {
            mine.held = what == 2 ? orders.force_unlock() : orders.request_release();
        } catch (error const& e) {  // nobody was asked to break it: then nothing may come of it
            if (what == 2 && e.code() == errc::unavailable) deeds_.pop_back();
            throw;
        }
        mine.certain = true;
        mine.done = process.present();
    }

    void section(sim::host& process, mutex& orders)
    {
        auto const wanted = process.present();
        auto const way = any_way(process);
        bool const got = way == how::once       ? orders.try_lock()
                         : way == how::for_ever ? (orders.lock(), true)
                                                : orders.try_lock_for(way == how::shortly ? process.up_to(20ms) : 2s);
        if (threads::ending()) return;
        if (!got) {
            ++verdict_.refused;
            return;
        }
        ++verdict_.acquired;
        auto const now = process.present();
        auto const lease = orders.lease();
        if (way != how::once) waits_.emplace_back(wanted, now);
        auto& mine = holds_.emplace_back(hold{.what = {.client = process.index(),
                                                       .granted = now,
                                                       .first_fence = lease.fencing_token(),
                                                       .last_fence = lease.fencing_token()},
                                              .wanted = wanted});
        auto const asked = lease.release_requested();
        auto const leave = now + process.up_to(process.below(3) == 0 ? 3 * ttl_ : 10ms);
        auto const held = [&] {
            if (asked.stop_requested()) mine.asked = std::min(mine.asked, process.present());
            return lease.still_held();
        };
        bool const to_the_end = keep(process, {&mine.what}, leave, held, [&] { return lease.expires_at(); });
        mine.left = process.present();
        if (!to_the_end && process.below(2) == 0) threads::sleep_until(process.present() + process.up_to(ttl_));
        std::error_code ec;
        orders.unlock(ec);
        mine.over = process.present();
        bool const broken = std::any_of(deeds_.begin(), deeds_.end(), [&](deed const& d) {
            return d.what == deed::kind::force && d.begun < process.present() && d.done > wanted;
        });
        if (calm_ && to_the_end && ec && !broken && !threads::ending())
            breach("release", "a release failed: " + ec.message());
    }

    /// A job that fails is not counted.
    void work_once(sim::client& me)
    {
        struct failed {};
        auto& process = me.host();
        bool const fails = process.below(4) == 0;
        try {
            bool const ran = run_once(
                store{std::make_shared<process_locks>(me)}, "job", period_,
                [&](lease const& l) {
                    if (threads::ending()) return;
                    auto& mine = jobs_.emplace_back(claim{.client = process.index(),
                                                          .granted = process.present(),
                                                          .first_fence = l.fencing_token(),
                                                          .last_fence = l.fencing_token()});
                    auto const leave = mine.granted + process.up_to(process.below(8) == 0 ? duration{ttl_} : 10ms);
                    bool const held = keep(
                        process, {&mine}, leave, [&] { return l.still_held(); }, [&] { return l.expires_at(); });
                    if (fails) throw failed{};
                    // From its grant on, by the clock of the process.
                    if (held) mine.kept_until = mine.granted + duration{period_} * 99 / 100 - node_timeout;
                },
                {.ttl = ttl_});
            ++(ran ? verdict_.acquired : verdict_.refused);
        } catch (failed const&) {
            ++verdict_.acquired;
        }
    }

    void inherit(lock_client& me) override
    {
        process_mutex orders{me, "orders", {.ttl = ttl_}};
        orders.lock();
        if (threads::ending()) return;
        if (!orders.lease().still_held()) breach("K6", "the heir's lease was lost at once");
        std::error_code ec;
        orders.unlock(ec);
        if (ec && !threads::ending()) breach("release", "the heir's release failed: " + ec.message());
    }

    /// Returns: until when a command of `d` may have an effect.
    [[nodiscard]] time_point effective_until(deed const& d) const
    {
        if (calm_) return d.done;
        return d.begun + 4 * node_timeout + duration{redis_site::guard} + world_.wrong().very_late + 6 * ttl_;
    }

    void judge() override
    {
        history claims;
        for (auto const& one : holds_) {
            auto c = one.what;
            for (auto const& d : deeds_)  // also one that was granted before its answer came
                if (d.what == deed::kind::force && d.begun < c.over() && effective_until(d) > one.wanted)
                    c.ended = std::min(c.ended, std::max(c.granted, d.begun));
            if (c.over() > c.granted) claims.push_back(c);
        }
        if (auto const b = exclusion::breach(claims)) breach("K1", *b);
        if (auto const b = fencing::breach(claims)) breach("K2", *b);
        judge_jobs();
        if (calm_) judge_deeds();
        if (calm_) judge_questions();
        if (calm_) judge_idleness();
        if (verdict_.breaches.empty()) judge_remains({"orders"});
    }

    /// A job is not run twice at a time; and where nothing goes wrong, not again in its period.
    void judge_jobs()
    {
        history jobs{jobs_.begin(), jobs_.end()};
        std::erase_if(jobs, [](claim const& c) { return c.over() <= c.granted; });
        if (auto const b = exclusion::breach(jobs)) breach("K1", "job: " + *b);
        if (auto const b = fencing::breach(jobs)) breach("K2", "job: " + *b);
        std::erase_if(jobs, [&](claim const& c) { return killed_client(c.client); });
        if (!calm_) return;
        if (auto const b = min_hold::breach(jobs)) breach("min_hold", "job: " + *b);
    }

    /// Where nothing goes wrong, a broken lock is lost to its holder before its lease would have ended, and a holder
    /// that is asked for the lock knows it with its next renewal.
    void judge_deeds()
    {
        for (auto const& d : deeds_)
            for (auto const& h : holds_) {
                if (!d.certain || h.what.granted >= d.begun || killed_client(h.what.client)) continue;
                bool const all_the_time = h.left > d.done;
                if (!all_the_time || broken_between(h.wanted, d)) continue;
                if (!d.held) breach("operator", "was told that the lock is free while it was held");
                if (d.what == deed::kind::force && h.left > d.done + ttl_)
                    breach("operator", "a lock that was broken was held for longer than its lease");
                bool const long_enough = h.left > d.done + duration{ttl_} * 3 / 4 && !broken_between(d.begun, h.left);
                if (d.what == deed::kind::request && long_enough && h.asked > d.done + duration{ttl_} * 3 / 4)
                    breach("operator", "a holder was not told that it is asked for the lock");
            }
    }

    /// Where nothing goes wrong, who holds the lock all the time that a question takes is named, and the lock listed. A
    /// lock that is free all that time is not.
    void judge_questions()
    {
        for (auto const& q : questions_)
            if (q.done != time_point{} && q.named && q.exact && killed().empty() && !may_be_held(q))
                breach("operator", "was told of a holder of a lock that was free all the time");
        for (auto const& q : questions_)
            for (auto const& h : holds_)
                if (q.done != time_point{} && !q.named && h.what.granted < q.begun && h.left > q.done &&
                    !killed_client(h.what.client) && !broken_between(h.wanted, q.done))
                    breach("operator", "was not told of a holder that had the lock all the time");
    }

    /// Returns: whether the lock may have been held at any time while `q` was asked: also by one that asked in vain,
    /// and was granted the lock too late.
    [[nodiscard]] bool may_be_held(question const& q) const
    {
        constexpr auto on_the_way = 20 * longest_delay;
        auto const overlaps = [&](time_point from, time_point until) {
            return from < q.done + on_the_way && until + on_the_way > q.begun;
        };
        return std::any_of(holds_.begin(), holds_.end(),
                           [&](hold const& h) {
                               auto const over = h.over == time_point::max() ? h.over - on_the_way : h.over;
                               return overlaps(h.what.granted, over);
                           }) ||
               std::any_of(tried_.begin(), tried_.end(), [&](time_point t) { return overlaps(t, t); });
    }

    [[nodiscard]] bool killed_client(unsigned client) const
    {
        return std::find(killed().begin(), killed().end(), client) != killed().end();
    }

    [[nodiscard]] bool broken_between(time_point from, time_point until) const
    {
        return std::any_of(deeds_.begin(), deeds_.end(), [&](deed const& d) {
            return d.what == deed::kind::force && d.begun < until && d.done > from;
        });
    }
    [[nodiscard]] bool broken_between(time_point from, deed const& but) const
    {
        return std::any_of(deeds_.begin(), deeds_.end(), [&](deed const& d) {
            return &d != &but && d.what == deed::kind::force && d.begun < but.done && d.done > from;
        });
    }

    /// While one waits, a lock that was given back or broken is free for a moment only.
    void judge_idleness()
    {
        for (auto const& d : deeds_) {
            if (d.what != deed::kind::force || !d.held) continue;
            auto const waited = std::any_of(waits_.begin(), waits_.end(), [&](auto const& w) {
                return w.first + 20ms < d.begun && w.second > d.done + calm_idleness();
            });
            auto const taken = std::any_of(holds_.begin(), holds_.end(), [&](hold const& h) {
                return h.what.granted >= d.begun && h.what.granted <= d.done + calm_idleness();
            });
            if (waited && !taken && d.done + calm_idleness() < quiet_since())
                breach("idle", "a lock that was broken was free for longer than " + text(calm_idleness()) +
                                   " while one waited");
        }
    }

    std::deque<deed> deeds_;
    std::deque<hold> holds_;
    std::deque<question> questions_;
    std::deque<claim> jobs_;
    milliseconds period_{};          // of the job
    std::vector<time_point> tried_;  // when attempts were over
    std::vector<std::pair<time_point, time_point>> waits_;
};

shipped_machine const operators{
    {"operators",
     "a lock that operators break, and ask for: one Redis, three or five masters",
     [](std::uint64_t seed, run_options const& o) {
         return operators_scenario{seed, o}.run();
     },
     {sim::decision::kind::late, sim::decision::kind::lost_request, sim::decision::kind::lost_reply,
      sim::decision::kind::cut, sim::decision::kind::lost_report, sim::decision::kind::pause,
      sim::decision::kind::crash, sim::decision::kind::hang, sim::decision::kind::asleep, sim::decision::kind::kill,
      sim::decision::kind::refusal}}};

}  // namespace

}  // namespace holdfast::test
