// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"
#include "lock_site.hpp"
#include "machine.hpp"
#include "process_lock.hpp"
#include "redis_site.hpp"
#include "threads.hpp"
#include "verdict.hpp"

#include <holdfast/core/random.hpp>
#include <holdfast/sim.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

/// A schedule of what is made of several locks, or runs in threads of its own: a semaphore, several locks at once, an
/// election. Processes use it in blocking code, each in a thread to begin with; the site says on which servers.
///
/// Every other schedule is calm: no message is lost, no server fails and no process stands still, but some are killed.
/// In the others all of that happens, until `over`. Then comes an heir, to which all has to be free soon.
class process_scenario {
public:
    using maker = decltype(&redis_site::make);

    process_scenario(std::uint64_t seed, run_options const& options, maker site = &redis_site::make)
        : chance_{~seed}, calm_{seed % 2 == 0}, ttl_{ms(200, 600)}, world_{seed, calm_ ? sim::faults{} : wrong()}
    {
        if (options.observer) world_.observe(options.observer);
        if (options.keep) world_.decided().keep_only(*options.keep);
        if (options.remember) world_.decided().remember();
        site_ = site(world_, chance_, ttl_, calm_);
        schedule_chance margins{seed ^ 0x6d61'7267'696eU};
        if (margins.one_in(2)) stop_margin_ = margins.ms(1, site_->most_margin().count());
    }

    process_scenario(process_scenario const&) = delete;
    process_scenario& operator=(process_scenario const&) = delete;
    virtual ~process_scenario() = default;

    verdict run()
    {
        auto const many = static_cast<std::uint8_t>(3 + below(4));
        for (std::uint8_t i = 0; i < many; ++i)
            if (world_.comes_true({kind::client, i, nobody, 0})) begin(i);
        for (std::size_t i = 0; i < processes_.size() / 3; ++i) befall(i);
        if (!calm_) well_at_ = site_->disturb(over_, chance_);
        world_.run_until(over_);
        site_->settle();
        auto quiet = world_.wrong().ended();
        world_.become(quiet);
        quiet_since_ = std::max({over_, well_at_, over_ + (calm_ ? duration{} : world_.wrong().very_late)});
        settle();
        auto const last = std::max(world_.now(), quiet_since()) + patience;
        while (!all_done() && world_.step(last)) {
        }
        if (!all_done()) {
            breach("K6", "a process that waits is not served, although nothing goes wrong any more");
        } else if (inherit()) {
            ++verdict_.judged;
        }
        judge();
        verdict_.plan = std::string{calm_ ? "calm" : "faulty"} + ", " + site_->about() + ", " +
                        std::to_string(processes_.size()) + " processes, ttl " + std::to_string(ttl_.count()) +
                        " ms, stop margin " + std::to_string(stop_margin_.count()) + " ms" + about() + "\n";
        verdict_.decisions = world_.decided().taken();
        verdict_.hash = world_.hash();
        verdict_.happened = world_.happened();
        auto told = verdict_;
        threads_.end();
        return told;
    }

protected:
    using kind = sim::decision::kind;
    using time_point = boot_clock::time_point;
    using duration = boot_clock::duration;
    using milliseconds = std::chrono::milliseconds;

    static constexpr auto nobody = sim::decision::nobody;
    static constexpr auto node_timeout = redis_site::node_timeout;
    static constexpr duration patience = std::chrono::seconds{60};
    static constexpr duration longest_delay = std::chrono::microseconds{500};

    /// What a process does, in its first thread, until `over`; then it ends soon. `number`: which it is.
    virtual void live(lock_client& me, std::uint8_t number) = 0;

    /// Called when nothing goes wrong any more; processes may still be at work.
    virtual void settle() {}

    /// What one does who comes at the end. All is to be free to it soon.
    virtual void inherit(lock_client& me) = 0;

    /// Effects: looks at what was noted.
    virtual void judge() = 0;

    /// Returns: what more is to be said of this schedule.
    [[nodiscard]] virtual std::string about() const { return {}; }

    /// Returns: how long something may be free in a calm schedule while one waits for it.
    [[nodiscard]] duration calm_idleness() const { return killed_.empty() ? milliseconds{50} : dead_lease(); }

    /// Returns: whether there is no more to do for those that live, but to end.
    [[nodiscard]] bool over() const { return threads::ending() || world_.now() >= over_; }

    [[nodiscard]] std::uint64_t below(std::uint64_t n) { return chance_.below(n); }
    [[nodiscard]] bool one_in(unsigned n) { return chance_.one_in(n); }
    [[nodiscard]] duration up_to(duration most) { return chance_.up_to(most); }
    [[nodiscard]] milliseconds ms(std::int64_t least, std::int64_t most) { return chance_.ms(least, most); }

    void breach(std::string_view which, std::string what) { verdict_.breaches.push_back({which, std::move(what)}); }

    [[nodiscard]] static std::string text(duration d) { return std::to_string(d.count()) + " ns"; }

    /// Returns: since when nothing goes wrong any more, and every server has its vote. Requires: `over`.
    [[nodiscard]] time_point quiet_since() const noexcept { return quiet_since_; }

    /// Returns: how long a lease of one that died, or whose answer was lost, may be in the way.
    [[nodiscard]] duration dead_lease() const { return site_->dead_lease(); }

    /// Returns: the processes that were killed.
    [[nodiscard]] std::vector<unsigned> const& killed() const noexcept { return killed_; }
    [[nodiscard]] bool killed(sim::host const& process) const
    {
        return std::find(killed_.begin(), killed_.end(), process.index()) != killed_.end();
    }

    /// Returns: the options of a lock.
    [[nodiscard]] lock_options options() const { return {.ttl = ttl_, .stop_margin = stop_margin_}; }

    /// Effects: for as long as `held()`, and until `leave`, all of `mine` are claimed until `until()`, a time of the
    /// process's clock. If they are lost, calls `at_loss()`; if that is as their time is over, the process takes the
    /// time `margin` to stop. Returns: whether they were held to the end.
    template <class Held, class Until, class Function>
    bool keep(sim::host& process, std::vector<claim*> const& mine, time_point leave, Held const& held,
              Until const& until, duration margin, Function const& at_loss)
    {
        auto seen = time_point{};
        bool still = held();
        for (; still && !threads::ending(); still = held()) {
            auto const promised = until();
            if (promised > seen && seen != time_point{}) ++verdict_.renewed;
            seen = std::max(seen, promised);
            for (auto* const one : mine) one->valid_until = std::max(one->valid_until, process.when(seen));
            if (process.present() >= leave) break;
            threads::sleep_until(std::min(leave, process.present() + duration{ttl_} / 12));
        }
        if (!still && !threads::ending()) {
            bool const by_itself = process.now() >= seen;
            at_loss();
            if (by_itself && margin.count() != 0) {
                auto const stops_by = process.when(seen + margin);
                for (auto* const one : mine) one->stops_by = stops_by;
                threads::sleep_until(stops_by);
            }
        }
        for (auto* const one : mine) one->ended = std::min(one->ended, process.present());
        if (!still) ++verdict_.lost;
        return still;
    }
    template <class Held, class Until>
    bool keep(sim::host& process, std::vector<claim*> const& mine, time_point leave, Held const& held,
              Until const& until)
    {
        return keep(process, mine, leave, held, until, {}, [] {});
    }

    /// How one waits.
    enum class how { once, shortly, long_enough, for_ever };
    [[nodiscard]] static how any_way(sim::host& process)
    {
        auto const n = process.below(8);
        return n == 0 ? how::once : n < 3 ? how::shortly : n < 5 ? how::long_enough : how::for_ever;
    }

    /// Effects: what was thrown is told if it should not have been.
    void on_error(error const& e)
    {
        ++verdict_.refused;
        if (calm_) breach("error", e.what());
    }

    /// Effects: looks for what is left when no process has anything any more.
    void judge_remains(std::vector<std::string> const& names)
    {
        for (auto& left : site_->remains(names, calm_ && killed_.empty())) breach("K7", std::move(left));
    }

    schedule_chance chance_;
    bool calm_;
    milliseconds ttl_;
    milliseconds stop_margin_{};
    sim::world world_;
    std::unique_ptr<lock_site> site_;
    std::vector<lock_client*> processes_;
    verdict verdict_;

private:
    [[nodiscard]] sim::faults wrong()
    {
        auto const rate = [&](unsigned most) { return one_in(2) ? 1 + static_cast<unsigned>(below(most)) : 0; };
        sim::faults f;
        f.late = rate(20);
        f.very_late = one_in(2) ? duration{2 * ttl_} : duration{node_timeout};
        f.lost_request = rate(10);
        f.lost_reply = rate(10);
        f.repeated_request = rate(20);
        f.cut = rate(10);
        f.lost_report = rate(100);
        f.pause = rate(6);
        f.longest_pause = one_in(2) ? duration{2 * ttl_} : duration{ttl_ / 2};
        return f;
    }

    void begin(std::uint8_t number)
    {
        auto const ahead = up_to(std::chrono::hours{10});
        auto& one = add({.ahead = ahead, .drift_ppm = ms(-4900, 4900).count()});
        auto& begun = threads_.begin(one.host(), [this, &one, number] {
            threads::sleep_until(one.host().present() + site_->arrival() + up_to(duration{ttl_} / 4));
            if (!threads::ending()) live(one, number);
        });
        lives_.emplace_back(&one, &begun);
    }

    lock_client& add(sim::clock c)
    {
        auto& one = site_->add(c, chance_);
        processes_.push_back(&one);
        return one;
    }

    /// Effects: the process is killed at some time, or its machine sleeps.
    void befall(std::size_t i)
    {
        auto& one = *processes_[i];
        auto const at = world_.now() + up_to(over_ - time_point{});
        bool const dies = one_in(2);
        auto const length = up_to(3 * ttl_);
        auto const number = static_cast<std::uint8_t>(one.host().index());
        if (!dies && calm_) return;
        world_.at(at, [this, &one, dies, length, number] {
            if (!dies) {
                if (world_.comes_true({kind::asleep, number, nobody, 0})) one.host().sleep(length);
                return;
            }
            if (!world_.comes_true({kind::kill, number, nobody, 0})) return;
            killed_.push_back(one.host().index());
            one.kill();
        });
    }

    [[nodiscard]] bool all_done() const
    {
        return std::all_of(lives_.begin(), lives_.end(),
                           [this](auto const& one) { return one.second->ended() || killed(one.first->host()); });
    }

    /// Returns: whether the heir got it.
    bool inherit()
    {
        world_.run_until(std::max(world_.now(), quiet_since()));
        auto& one = add({});
        auto const asked = world_.now();
        auto const& begun = threads_.begin(one.host(), [this, &one] { inherit(one); });
        while (!begun.ended() && world_.step(asked + patience)) {
        }
        if (!begun.ended()) breach("K6", "one who came at the end did not get it");
        if (!begun.ended()) return false;
        auto const most = dead_lease();
        if (world_.now() - asked > most)
            breach("K6", "one who came at the end got it after " + text(world_.now() - asked) + " only");
        return true;
    }

    time_point const over_ = time_point{} + std::chrono::milliseconds{1500};
    time_point well_at_{};
    time_point quiet_since_{};
    std::vector<unsigned> killed_;
    std::vector<std::pair<lock_client*, threads::one*>> lives_;
    test::threads threads_;
};

}  // namespace holdfast::test
