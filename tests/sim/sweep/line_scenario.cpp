// SPDX-License-Identifier: MIT
#include "line_scenario.hpp"

#include "exclusion.hpp"
#include "fencing.hpp"
#include "history.hpp"
#include "machine.hpp"

#include <holdfast/core/random.hpp>
#include <holdfast/sim.hpp>

#include <algorithm>
#include <chrono>
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
using kind = sim::decision::kind;
constexpr auto nobody = sim::decision::nobody;
using time_point = boot_clock::time_point;
using duration = boot_clock::duration;

/// One who wanted the lock, and got it.
struct turn {
    unsigned client = 0;
    time_point wanted{};
    time_point granted{};
    time_point awake{};  ///< since when its process has run
};

/// What the clients are like.
enum class clients_are {
    prompt,
    late,  ///< they stand still all the time but for moments, and all that is for them waits meanwhile
};

class line_scenario {
public:
    line_scenario(std::uint64_t seed, run_options const& options, clients_are how = clients_are::prompt)
        : chance_{~seed},
          late_{how == clients_are::late},
          calm_{late_ || seed % 2 == 0},
          world_{seed, calm_ ? sim::faults{} : wrong()}
    {
        if (options.observer) world_.observe(options.observer);
        if (options.keep) world_.decided().keep_only(*options.keep);
        if (options.remember) world_.decided().remember();
        servers_.emplace(world_, clocks());
        fair_ = !late_ && servers_->size() == 1 && seed % 4 < 2;
        auto& o = servers_->options;
        o.node_timeout = late_ ? 4 * std::chrono::ceil<std::chrono::milliseconds>(longest_lag) : 50ms;
        o.connect_timeout = 2 * o.node_timeout;
        if (servers_->size() > 1) o.restart_guard = o.longest_ttl = 40s;
        for (unsigned node = 0; node < servers_->size() / 2 && one_in(3); ++node)
            servers_->crash(node, 1h, sim::node::memory::lost);
        vanishes_ = !late_ && one_in(3);
        if (calm_ && !late_ && servers_->size() > 1 && !anybody_down() && one_in(4)) {
            sim::faults far;
            far.far = servers_->size() - 1;
            far.farther = farther_ = 4ms + below(6ms);
            world_.become(far);
        }
        parted_ = calm_ && !late_ && servers_->size() > 1 && !anybody_down() && one_in(3);
        if (parted_) world_.at(world_.now() + parted - 5ms, [this] { part(); });
    }

    verdict run()
    {
        auto const count = static_cast<std::uint8_t>(3 + chance_.below(6));
        for (std::uint8_t i = 0; i < count; ++i) {
            if (!world_.comes_true({kind::client, i, nobody, 0})) continue;
            auto& one = clients_.emplace_back(*servers_, sim::clock{.ahead = below(10h)});
            one.run([this, i](sim::client& me) { return work(me, i); });
        }
        for (std::size_t i = 0; !late_ && !parted_ && i < clients_.size() / 3 && one_in(2); ++i) befall(clients_[i]);
        for (auto& one : clients_)
            if (late_) lag(one, 0);
        if (!calm_ && servers_->size() > 1)
            world_.at(world_.now() + below(300ms), [this] {
                auto const last = servers_->size() - 1;
                if (!anybody_down() && world_.comes_true({kind::crash, nobody, static_cast<std::uint8_t>(last), 0}))
                    servers_->crash(last, 20ms, sim::node::memory::lost);
            });
        if (!calm_ && one_in(2)) poll(world_.now() + below(5ms), 0);
        if (!calm_) world_.at(begin_ + peace - 1s, [this] { world_.become({}); });
        auto const last = world_.now() + 60s;
        while (!all_done() && world_.step(last)) {
        }
        if (calm_ && all_done() && killed_.empty()) judge_remains();
        judge();
        return std::move(verdict_);
    }

private:
    static constexpr std::chrono::milliseconds ttl{10'000};
    static constexpr std::chrono::milliseconds ttl_of_victims{100};  ///< what it asked for last may be granted to it
    /// Of a waiter that is as far away as they are here.
    [[nodiscard]] duration reservation() const { return 60ms + 6 * farther_; }
    /// Until a waiter that no server calls looks by itself, see `place_in_line`.
    static constexpr duration first_look = 250ms;
    static constexpr unsigned rounds = 6;
    /// From then on nothing goes wrong, and no client stands still. All that live want the lock once more.
    static constexpr duration peace = 3 * ttl;
    static constexpr duration longest_delay = 500us;

    /// How long a late client stands still at most.
    static constexpr duration longest_lag = 150ms;

    /// Until a client that comes is in line everywhere: it connects, asks, subscribes, asks again.
    [[nodiscard]] duration arrival() const { return 16 * (longest_delay + farther_); }

    /// No answers are lost: what is granted without an answer is not free.
    static sim::faults wrong() { return {.late = 5, .very_late = 20ms, .lost_report = 20}; }

    [[nodiscard]] bool one_in(unsigned n) { return chance_.below(n) == 0; }
    [[nodiscard]] duration below(duration most)
    {
        return duration{static_cast<duration::rep>(chance_.below(static_cast<std::uint64_t>(most.count())))};
    }

    [[nodiscard]] std::vector<sim::clock> clocks()
    {
        std::vector<sim::clock> all(1 + 2 * chance_.below(3));
        for (auto& one : all) one.ahead = below(10s);
        return all;
    }

    [[nodiscard]] bool anybody_down()
    {
        for (unsigned node = 0; node < servers_->size(); ++node)
            if (!(*servers_)[node].running()) return true;
        return false;
    }

    /// Effects: the server whose clock is most ahead is gone, or its clock is set, forward or back; not if a lease is
    /// there, which would end early. Those who connect from now on do not know what the others know of it.
    void part()
    {
        unsigned first = 0;
        for (unsigned node = 0; node < servers_->size(); ++node)
            if ((*servers_)[node].time(world_.now()) > (*servers_)[first].time(world_.now())) first = node;
        bool const gone = one_in(2);
        if (gone || (*servers_)[first].get("orders", world_.now()))
            servers_->crash(first, 1h, sim::node::memory::kept);
        else
            (*servers_)[first].set_clock(below(10s) - 5s);
    }

    /// Effects: the client is killed at some time, or stands still for some time where things go wrong.
    void befall(sim::client& one)
    {
        auto const at = world_.now() + 20ms + below(100ms);
        bool const dies = calm_ || one_in(2);
        hung_ += dies ? 0 : 1;
        auto const length = below(2 * ttl);
        world_.at(at, [this, &one, dies, length] { strike(one, dies, length); });
    }

    /// Effects: from now on the client stands still, again and again, and acts for less than a millisecond between.
    void lag(sim::client& one, std::uint32_t times)
    {
        if (one.done()) return;
        auto& host = one.host();
        auto const d = 60ms + below(longest_lag - 60ms);
        if (world_.comes_true({kind::pause, static_cast<std::uint8_t>(host.index()), nobody, times})) host.pause(d);
        world_.at(std::max(host.present(), world_.now()) + below(1ms), [this, &one, times] { lag(one, times + 1); });
    }

    /// Effects: kills the client, or stops it, as soon as another has the lock, on all servers: what a dead holder
    /// costs is for other schedules.
    void strike(sim::client& one, bool dies, duration length)
    {
        if (one.done() || (!calm_ && world_.now() > begin_ + 1s)) return;
        if (!holder_ || holder_ == one.host().index() || !held_on_all())
            return world_.at(world_.now() + 50us, [this, &one, dies, length] { strike(one, dies, length); });
        auto const what = dies ? kind::kill : kind::pause;
        if (!world_.comes_true({what, static_cast<std::uint8_t>(one.host().index()), nobody, 0})) return;
        struck_.push_back(world_.now());
        if (!dies) return one.host().pause(length);
        killed_.push_back(one.host().index());
        one.kill();
    }

    [[nodiscard]] bool held_on_all()
    {
        std::set<std::string> values;
        for_each_server(
            [&](sim::node& server) { values.insert(server.get("orders", world_.now()).value_or(std::string{})); });
        return values.size() == 1 && !values.begin()->empty();
    }

    /// Effects: the lease of the holder ends on all servers, and no server calls a waiter.
    void vanish()
    {
        std::map<std::string, unsigned> votes;
        for_each_server(
            [&](sim::node& server) { ++votes[server.get("orders", world_.now()).value_or(std::string{})]; });
        for_each_server([&](sim::node& server) {
            auto const value = server.get("orders", world_.now()).value_or(std::string{});
            if (votes[value] >= quorum::majority_of(servers_->size())) server.set("orders", "", 0ms, world_.now());
        });
    }

    template <class F>
    void for_each_server(F const& f)
    {
        for (unsigned node = 0; node < servers_->size(); ++node)
            if (auto& server = (*servers_)[node]; server.running()) f(server);
    }

    /// Effects: from `t` on another library's client asks every few milliseconds, and takes the lock if it is free on a
    /// majority. It tells nobody when it gives it back.
    void poll(time_point t, unsigned times)
    {
        if (times == 100) return;
        world_.at(t, [this, times] {
            auto const now = world_.now();
            unsigned free = 0;
            for_each_server([&](sim::node& server) { free += server.get("orders", now) ? 0U : 1U; });
            if (free < quorum::majority_of(servers_->size())) return poll(now + below(2ms), times + 1);
            for_each_server([&](sim::node& server) {
                if (!server.get("orders", now)) server.set("orders", "a poller's", ttl, now);
            });
            auto const until = now + 1ms + below(2ms);
            polled_.push_back({.client = 1000, .granted = now, .valid_until = until, .ended = until});
            world_.at(until, [this, times] {
                auto const end = world_.now();
                for_each_server([&](sim::node& server) {
                    if (server.get("orders", end) == "a poller's") server.set("orders", "", 0ms, end);
                });
                poll(end + below(5ms), times + 1);
            });
        });
    }

    sim::process work(sim::client& me, std::uint8_t number)
    {
        auto& host = me.host();
        bool const victim = !late_ && number < clients_.size() / 3;
        sim::mutex m{me, "orders", {.ttl = victim ? ttl_of_victims : ttl, .fair = fair_}};
        co_await host.sleep_until(host.present() + host.up_to(5ms));
        // In the end one has the lock for long, and another waits in vain for it.
        bool const ends = farther_ != duration{} && number < 2;
        for (unsigned round = 0; round < (ends || !calm_ ? rounds + 1 : rounds); ++round) {
            bool const last = ends && round == rounds;
            bool const at_peace = !calm_ && round == rounds;
            co_await host.sleep_until(host.present() + host.up_to(host.below(4) == 0 ? 30ms : 1ms));
            // In virtual time: one half has the lock once before, and waits for the other half, which comes then.
            bool const comes_then = number % 2 == 1 ? round == 0 : round == 1;
            if (parted_ && comes_then) co_await host.sleep_until(begin_ + parted);
            if (last) co_await host.sleep_until(begin_ + 2s + number * 50ms);
            if (at_peace) co_await host.sleep_until(begin_ + peace + host.up_to(20ms));
            if (!world_.comes_true({kind::operation, number, nobody, round})) continue;
            auto const wanted = host.present();
            ++waits_;
            bool const tries = fair_ && !at_peace && host.below(4) == 0;
            bool const waits = at_peace || (calm_ && !late_ && farther_ == duration{}) || host.below(8) != 0;
            bool const patient = last ? number == 0 : waits;
            bool got = false;
            try {
                if (tries)
                    got = co_await m.async_try_lock();
                else
                    got = co_await m.async_try_lock_for(patient ? duration{50s} : host.up_to(20ms));
                if (!got && patient && !tries)
                    breach("K6", "client " + std::to_string(host.index()) + " did not get the lock");
            } catch (error const& e) {
                if (calm_ || at_peace || e.code() != errc::unavailable) breach("K6", e.what());
            }
            --waits_;
            waited_until_.push_back(host.present());
            if (!got) {
                ++verdict_.refused;
                if (calm_ && !late_) world_.at(host.present() + leaving(), [this] { judge_queues(); });
                continue;
            }
            ++verdict_.acquired;
            holder_ = host.index();
            turns_.push_back({host.index(), wanted, host.present(), host.awake_since()});
            auto const fence = m.lease().fencing_token();
            auto const claim = claims_.size();
            claims_.push_back({.client = host.index(),
                               .granted = host.present(),
                               .valid_until = host.present() + (victim ? ttl_of_victims : ttl) * 9 / 10,
                               .first_fence = fence,
                               .last_fence = fence});
            co_await host.sleep_until(host.present() + (last ? 200ms : host.up_to(2ms)));
            claims_[claim].ended = host.present();
            holder_.reset();
            vanished_.push_back(calm_ && vanishes_ && !parted_ && host.below(4) == 0);
            if (vanished_.back()) vanish();
            std::error_code ec;
            co_await m.async_unlock(ec);
        }
    }

    [[nodiscard]] bool killed(sim::client const& one) const
    {
        return std::find(killed_.begin(), killed_.end(), const_cast<sim::client&>(one).host().index()) != killed_.end();
    }

    [[nodiscard]] bool all_done() const
    {
        return std::all_of(clients_.begin(), clients_.end(),
                           [this](auto const& one) { return one.done() || killed(one); });
    }

    void breach(std::string_view which, std::string what) { verdict_.breaches.push_back({which, std::move(what)}); }

    void judge()
    {
        if (all_done() && turns_.size() > clients_.size()) ++verdict_.judged;
        if (!all_done()) breach("K6", "a client that waits did not get the lock within a minute");
        auto all = claims_;
        all.insert(all.end(), polled_.begin(), polled_.end());
        if (auto const b = exclusion::breach(all)) breach("K1", *b);
        if (auto const b = fencing::breach(claims_)) breach("K2", *b);
        if (parted_) {
            judge_overtaking(parted_passed);
        } else {
            late_ ? judge_overtaking(most_passed) : judge_order();
            judge_idleness();
        }
        verdict_.plan = std::string{late_   ? "late"
                                    : calm_ ? "calm"
                                            : "faulty"} +
                        (fair_ ? ", fair" : "") + (farther_ != duration{} ? ", one far" : "") + ", " +
                        std::to_string(servers_->size()) + " servers, " + std::to_string(clients_.size()) +
                        " clients\n";
        verdict_.decisions = world_.decided().taken();
        verdict_.hash = world_.hash();
        verdict_.happened = world_.happened();
    }

    /// Until one that waits no longer has left all queues.
    [[nodiscard]] duration leaving() const { return 4 * (longest_delay + farther_); }

    /// No server has more in its queue than wait, or have just stopped waiting. One that died may be left.
    void judge_queues()
    {
        auto const now = world_.now();
        auto const most = waits_ + std::count_if(waited_until_.begin(), waited_until_.end(),
                                                 [&](time_point until) { return until > now - leaving(); });
        for_each_server([&](sim::node& server) {
            if (server.waiting("orders") > static_cast<std::size_t>(most))
                breach("K7", "one that waits no longer is in the queue of a server");
        });
    }

    /// When the last one has given the lock back, no key is left, and no waiter. One that died may be left: a server
    /// finds out when it calls it.
    void judge_remains()
    {
        world_.run_until(world_.now() + (late_ ? 4 * longest_lag : leaving()));
        for_each_server([this](sim::node& server) {
            if (server.get("orders", world_.now())) breach("K7", "a key is left on a server");
            if (server.waiting("orders") != 0) breach("K7", "a waiter is left in the queue of a server");
        });
    }

    /// First come, first served, where nothing goes wrong. A fair lock is not granted to a single attempt, either, while
    /// another client waits.
    void judge_order()
    {
        for (auto const& early : turns_)
            for (auto const& late : turns_)
                if (peaceful(early) && early.wanted + arrival() < late.wanted && late.granted < early.granted)
                    return breach("K6", "client " + std::to_string(late.client) + " got the lock before client " +
                                            std::to_string(early.client) + ", which had waited since " +
                                            std::to_string((late.wanted - early.wanted).count()) + " ns before");
    }

    [[nodiscard]] bool peaceful(turn const& t) const { return calm_ || t.wanted >= begin_ + peace; }

    /// A late client misses its turn, as the lock is kept for it for a moment only. But it stays ahead of those that
    /// came after it: so while it waits, few of these pass it. Nor do those again and again that know less of the
    /// servers' clocks.
    void judge_overtaking(std::size_t most)
    {
        for (auto const& mine : turns_) {
            auto const passed = std::count_if(turns_.begin(), turns_.end(), [&](turn const& other) {
                return other.wanted > mine.wanted + (late_ ? late_arrival : arrival()) && other.granted < mine.granted;
            });
            if (static_cast<std::size_t>(passed) > most)
                return breach("K6", "client " + std::to_string(mine.client) + " was passed by " +
                                        std::to_string(passed) + " that came after it");
        }
    }

    /// While one waits the lock is free for no longer than a reservation; where messages are lost or a waiter hangs, no
    /// longer than their reservations and until the next look. Each look finds another lease than the one before, so
    /// looks do not become rarer than the first. One that finds the lock free has the first in the queue called. If
    /// that call is lost, too, the one that looked comes again when the reservation is over; but if it is gone by then,
    /// others look only when it is their time.
    void judge_idleness()
    {
        auto const most_for = [this](turn const& t) {
            if (late_) return (anybody_down() ? 2 : 1) * late_idle;
            return peaceful(t) ? arrival() + reservation() : arrival() + (1 + hung_) * reservation() + 2 * first_look;
        };
        // Since when one has waited that has no turn before this one, whoever gets it: a newcomer does not make up for
        // a call that was lost.
        std::vector<time_point> waited_since(turns_.size());
        for (auto i = turns_.size(); i-- > 0;) {
            auto const& t = turns_[i];
            waited_since[i] = std::max(t.wanted, late_ ? time_point{} : t.awake);
            if (i + 1 < turns_.size()) waited_since[i] = std::min(waited_since[i], waited_since[i + 1]);
        }
        time_point free_since{};
        for (std::size_t i = 0; i < turns_.size(); ++i) {
            auto const& t = turns_[i];
            for (auto const& p : polled_)
                if (p.granted < t.granted) free_since = std::max(free_since, p.over());
            auto const since = std::max(free_since, waited_since[i]);
            auto const unheard = i > 0 && vanished_[i - 1] ? first_look : duration{};
            bool const dead_has_it = std::any_of(struck_.begin(), struck_.end(), [&](time_point at) {
                return at <= t.granted && at + 2 * ttl_of_victims > since;
            });
            if (t.granted - since > most_for(t) + unheard + (dead_has_it ? duration{ttl_of_victims} : duration{}))
                return breach("idle", "the lock was free for " + std::to_string((t.granted - since).count()) +
                                          " ns while one waited, until client " + std::to_string(t.client) +
                                          " had it at " + std::to_string(t.granted.time_since_epoch().count()));
            free_since = std::max(free_since, claims_[i].over());
        }
    }

    /// Until a late client is in line everywhere: each step waits for it.
    static constexpr duration late_arrival = 5 * longest_lag;
    /// One that was called, and another after it, misses its turn, on each of several masters; each step of the next
    /// waits for it. Of 20,000 schedules none was above, one in a thousand near a second. Where one of five is down,
    /// two waiters may have half of the votes each, again and again: one schedule in 200,000 was above.
    static constexpr duration late_idle = 12 * longest_lag;
    static constexpr std::size_t most_passed = 8;  ///< 7 in one schedule of 100,000
    /// From then on some know less of the clocks than others. All have connected before, or come after.
    static constexpr duration parted = 60ms;
    static constexpr std::size_t parted_passed = 4;

    holdfast::detail::random_sequence chance_;
    bool late_;
    bool calm_;
    bool fair_ = false;
    duration farther_{};  ///< by so much one of the servers is farther away than the others
    sim::world world_;
    std::optional<sim::store> servers_;
    std::deque<sim::client> clients_;
    std::vector<turn> turns_;
    history claims_;
    history polled_;
    std::optional<unsigned> holder_;
    std::vector<unsigned> killed_;
    std::vector<time_point> struck_;  ///< when one was killed or stopped
    std::vector<bool> vanished_;      ///< for each claim, whether the lock was deleted without a release
    unsigned hung_ = 0;
    std::ptrdiff_t waits_ = 0;              ///< so many wait
    std::vector<time_point> waited_until_;  ///< when each other one no longer did
    bool vanishes_ = false;
    bool parted_ = false;
    time_point const begin_ = world_.now();
    verdict verdict_;
};

shipped_machine const line{{"line",
                            "those who wait: one Redis, three or five masters",
                            &run_line,
                            {kind::late, kind::lost_report, kind::crash, kind::pause, kind::kill},
                            false}};

shipped_machine const late_line{{"late",
                                 "those who wait, and react late: one Redis, three or five masters",
                                 [](std::uint64_t seed, run_options const& o) {
                                     return line_scenario{seed, o, clients_are::late}.run();
                                 },
                                 {kind::pause},
                                 false}};

}  // namespace

verdict run_line(std::uint64_t seed, run_options const& options) { return line_scenario{seed, options}.run(); }

}  // namespace holdfast::test
