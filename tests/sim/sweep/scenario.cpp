// SPDX-License-Identifier: MIT
#include "scenario.hpp"

#include "exclusion.hpp"
#include "fencing.hpp"
#include "history.hpp"
#include "idleness.hpp"
#include "linearizability.hpp"
#include "liveness.hpp"
#include "machine.hpp"
#include "min_hold.hpp"
#include "phase_fairness.hpp"
#include "schedule.hpp"
#include "side_change.hpp"
#include "stop_margin.hpp"
#include "user.hpp"

#include <holdfast/sim/host.hpp>
#include <holdfast/sim/network.hpp>
#include <holdfast/sim/process.hpp>
#include <holdfast/sim/program_clock.hpp>
#include <holdfast/sim/transport.hpp>
#include <holdfast/sim/world.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;
using kind = sim::decision::kind;
constexpr auto nobody = sim::decision::nobody;

class scenario {
public:
    scenario(std::uint64_t seed, unsigned nodes, run_options const& options,
             keys_of_modes (*keys)(std::string const&) = &keys_of_modes::of_mutex)
        : keys_of_{keys}, plan_{schedule::draw(seed, nodes)}, world_{seed, plan_.wrong}
    {
        if (options.observer) world_.observe(options.observer);
        if (options.keep) world_.decided().keep_only(*options.keep);
        if (options.remember) world_.decided().remember();
        if (keys != &keys_of_modes::of_mutex) leave_out_what_is_of_a_mutex();
        set_clocks();
        servers_.emplace(world_, plan_.nodes);
        for (std::uint8_t client = 0; client <= straggler() + 1; ++client)
            if ((plan_.queueless >> client & 1U) != 0 && world_.comes_true({kind::rights, client, nobody, 0}))
                for (unsigned node = 0; node < servers_->size(); ++node) (*servers_)[node].refuse_queues(client);
        end_ = world_.now() + plan_.length;
        if (plan_.undisturbed) plan_.well_since = {};
    }

    verdict run()
    {
        for (std::uint8_t i = 0; i < plan_.clients.size(); ++i)
            if (world_.comes_true({kind::client, i, nobody, 0})) add_user(i);
        if (plan_.straggler && world_.comes_true({kind::straggler, straggler(), nobody, 0})) {
            straggler_ = &add_client(straggler(), {});
            ways_.back().connect();
        }
        for (auto const& one : plan_.disasters)
            if (one.at < plan_.length) world_.at(world_.now() + one.at, [this, &one] { befall(one); });
        world_.run_until(end_);
        auto quiet = plan_.wrong.ended();
        quiet.longest_delay =
            std::min<boot_clock::duration>(quiet.longest_delay, boot_clock::duration{plan_.node_timeout} / 8);
        world_.become(quiet);
        plan_.well_since = std::max(end_, boot_clock::time_point{} + plan_.servers_well_after());
        add_heir();
        auto const last = std::max(end_, quiet_since()) + 20 * plan_.ttl;
        while (!all_done() && world_.step(last)) {
        }
        bool const live = has_quorum();
        if (!all_done() && live) record_.breach("K6", "an operation has no result");
        if (live) judge_end();
        if (plan_.calm) judge_calm();
        if (straggler_ != nullptr && live && all_done()) straggle();
        if (shared() && live && all_done()) change_sides();
        judge();
        return std::move(record_.verdict);
    }

private:
    /// Readers and writers cannot do without the queue, and more than one key says until when they have the lock: what
    /// is left of that if a clock is set is not said. `min_hold` is refused.
    void leave_out_what_is_of_a_mutex()
    {
        plan_.queueless = 0;
        for (auto& one : plan_.options) one.min_hold = {};
        std::erase_if(plan_.disasters, [](auto const& one) {
            return one.name.what == kind::rights || one.name.what == kind::clock_set;
        });
    }

    void set_clocks()
    {
        for (std::uint8_t i = 0; i < plan_.clients.size(); ++i)
            if (!world_.comes_true({kind::clock, i, nobody, 0})) plan_.clients[i] = {};
        for (std::uint8_t i = 0; i < plan_.nodes.size(); ++i) {
            if (world_.comes_true({kind::clock, nobody, i, 0})) continue;
            plan_.nodes[i] = {};
            plan_.astray.remove(i);
        }
    }

    user& add_client(unsigned index, sim::clock clock)
    {
        auto& client = clients_.emplace_back(world_, index, clock);
        client.read_time_with(&boot_clock::now);
        auto const options = index < plan_.options.size() ? plan_.options[index] : client_plan{.ttl = plan_.ttl};
        auto& way = ways_.emplace_back(client, *servers_,
                                       sim::transport_options{.node_timeout = plan_.node_timeout,
                                                              .connect_timeout = 2 * plan_.node_timeout,
                                                              .restart_guard = plan_.guard,
                                                              .longest_ttl = options.ttl,
                                                              .fence_lifetime = plan_.fence_lifetime});
        return users_.emplace_back(way, keys_of_(name_), plan_, options, end_, record_);
    }

    void add_user(unsigned index)
    {
        auto& one = add_client(index, plan_.clients[index]);
        auto& client = clients_.back();
        if (client.below(4) != 0) ways_.back().connect();
        ++awaited_;
        bool const late =
            !plan_.calm &&
            client.below(4) == 0;  // who takes the lock for the first time when others have had it for long
        client.at(world_.now() + client.up_to(late ? plan_.length * 3 / 4 : boot_clock::duration{plan_.ttl / 4}),
                  [this, &one] { lives_.push_back(one.live()); });
    }

    /// Somebody who comes when nothing goes wrong any more, and finds what those before left.
    void add_heir()
    {
        auto& one = add_client(heir(), {});
        ++awaited_;
        clients_.back().at(world_.now(), [this, &one] { lives_.push_back(one.inherit()); });
    }

    /// When all the others have gone, and the counters with them, somebody comes who does not know how late it is. Then
    /// the servers forget everything, and somebody comes who knows nothing of him. He may be kept from the lock: what
    /// he took the servers' clocks for when he connected he takes them for as long as the connections last.
    void straggle()
    {
        auto const inherit = [this](user& one, sim::host& by) {
            ++awaited_;
            by.at(world_.now(), [this, &one] { lives_.push_back(one.inherit()); });
            auto const last = world_.now() + 20 * plan_.ttl;
            while (!all_done() && world_.step(last)) {
            }
        };
        world_.run_until(world_.now() + plan_.fence_lifetime * 9 / 8 + 2 * plan_.ttl);
        auto const elapsed = world_.now() - boot_clock::time_point{};
        // What a client has learnt of servers' clocks with two clocks of its own it cannot compare.
        auto& way = *std::find_if(ways_.begin(), ways_.end(),
                                  [&](auto const& one) { return one.client().index() == straggler(); });
        bool const leaps = way.connected();
        if (leaps) way.client().shift_clocks(plan_.leap - elapsed * plan_.stood_still / 100);
        auto const voted = votes_astray();
        // Another lock comes first: over a connection that has not run a script no fence is made without one.
        inherit(users_.emplace_back(way, keys_of_("orders/43"), plan_, client_plan{.ttl = plan_.ttl}, end_, aside_),
                way.client());
        inherit(*straggler_, way.client());
        // A clock that is out of line it looks at anew after a while, but not at those that it compares it with.
        if (leaps) excused_ = votes_astray() - voted;
        auto& servers = *servers_;
        for (unsigned node = 0; node < servers.size(); ++node)
            if (node != plan_.remembers) servers.crash(node, 1us, sim::node::memory::lost);
        world_.run_until(world_.now() + plan_.guard + plan_.ttl / 50);
        auto& last = add_client(straggler() + 1U, {});
        inherit(last, clients_.back());
        for (auto const& one : aside_.verdict.breaches) record_.breach(one.which, one.what);
    }

    /// A failover or a crash may cost the last write alone.
    void change_sides()
    {
        auto const first = straggler() + 2U;
        add_client(first, {});
        auto& one = ways_.back();
        add_client(first + 1, {});
        auto const to = world_.below(2) == 0 ? side_change::direction::writer : side_change::direction::reader;
        auto& change = change_.emplace(one, ways_.back(), keys_of_(name_), *servers_, plan_.ttl, to, record_);
        awaited_ += 2;
        one.client().at(world_.now(), [this, &change] { lives_.push_back(change.change()); });
        clients_.back().at(world_.now(), [this, &change] { lives_.push_back(change.read()); });
        auto const last = world_.now() + 60 * plan_.ttl;
        while (!all_done() && world_.step(last)) {
        }
        if (!all_done()) record_.breach("K6", "a change of sides, or the reader after it, has no result");
    }

    void befall(disaster const& one)
    {
        if (!world_.comes_true(one.name)) return;
        auto& servers = *servers_;
        switch (one.name.what) {
        case kind::crash:
            if (one.saves < servers.size()) servers[one.saves].save();
            return servers.crash(one.name.node, one.length, one.memory);
        case kind::hang: return servers.hang(one.name.node, one.length);
        case kind::wave:
            for (unsigned node = 0; node < servers.size(); ++node) {
                if ((one.saves >> node & 1U) == 0) continue;
                servers.crash(node, 1us, one.memory);
                if (one.name.number % 2 == 0) servers[node].save();
            }
            return;
        case kind::poison: return poison(one.name.node, one.saves);
        case kind::eviction: return evict(one.saves);
        case kind::clock_set: return set_clock(one.name.node, one.length);
        case kind::rights:
            return one.saves != 0 ? servers[one.name.node].permit_queues(one.name.client)
                                  : servers[one.name.node].refuse_queues(one.name.client);
        case kind::flush: return servers[one.name.node].forget_scripts();
        case kind::refusal: return servers[one.name.node].refuse_until(world_.now() + one.length, refusals[one.saves]);
        default: break;
        }
        auto const who =
            std::find_if(clients_.begin(), clients_.end(), [&](auto const& c) { return c.index() == one.name.client; });
        if (who == clients_.end()) return;
        if (one.name.what == kind::asleep) who->sleep(one.length);
        if (one.name.what == kind::wall_jump) who->set_wall_clock(one.length);
    }

    static constexpr std::array refusals{redis::errc::loading, redis::errc::busy, redis::errc::read_only,
                                         redis::errc::out_of_memory};

    /// Effects: the lock's key is deleted on that server, or on all if there is no such one. No waiter is told of it.
    void evict(unsigned which)
    {
        auto& servers = *servers_;
        for (unsigned node = 0; node < servers.size(); ++node)
            if (node == which || which >= servers.size()) servers[node].erase(name_);
        record_.votes_gone.push_back(world_.now());
        if (which >= servers.size() || servers.size() == 1) record_.deleted.push_back(world_.now());
    }

    /// Effects: a server's clock is set. What it has voted for ends sooner if it is set forward, like what is deleted;
    /// and if it is set back, the fence may be far ahead of it, as if another user had set that.
    void set_clock(unsigned node, boot_clock::duration by)
    {
        (*servers_)[node].set_clock(by);
        plan_.nodes[node].ahead += by;
        went_back_ = went_back_ || -by > boot_clock::duration{plan_.guard} / 2;
        by > 0ns ? record_.votes_gone.push_back(world_.now()) : poisoned_.add(node);
    }

    /// Returns: the claims, without what does not count since a server that voted for it knows of it no more. Of a
    /// claim that was asked for before and granted later no promise is left, and no place in the order.
    [[nodiscard]] history claims_that_count() const
    {
        history all;
        for (auto c : record_.claims) {
            bool counts = true;
            for (auto const at : record_.votes_gone) {
                if (at >= c.asked && at < c.granted) counts = false;
                if (at >= c.granted) c.ended = std::min(c.ended, at);
                if (at >= c.granted) c.stops_by = c.kept_until = {};
            }
            if (counts) all.push_back(c);
        }
        return all;
    }

    /// Effects: somebody sets a counter to as much as can be, to a little more than that, to much more, or to no
    /// number. Never to less than it was: whoever may do that can have tokens go down.
    void poison(unsigned node, unsigned which)
    {
        auto& server = (*servers_)[node];
        auto const most = server.time(world_.now()) + bound();
        auto const fence = std::max(static_cast<std::uint64_t>(most.count()), server.fence(lock_keys_->fence().text()));
        if (which == 3)
            server.poison(lock_keys_->fence().text(), {});
        else
            server.poison(lock_keys_->fence().text(), fence + (which == 0   ? 0
                                                               : which == 1 ? 1'000
                                                                            : std::uint64_t{1} << 62U));
        poisoned_.add(node);
    }

    /// Returns: how far ahead of a server's clock a fence may be.
    [[nodiscard]] std::chrono::microseconds bound() const noexcept
    {
        return plan_.guard == 0ms || plan_.nodes.size() == 1 ? redis::unguarded_fence_bound
                                                             : std::chrono::microseconds{plan_.guard} / 2 * 3;
    }

    /// What somebody wrote to one server is not passed on to others.
    void judge_fences()
    {
        for (unsigned node = 0; node < servers_->size(); ++node)
            if (!poisoned_.has(node) &&
                (*servers_)[node].fence(lock_keys_->fence().text()) >
                    static_cast<std::uint64_t>(((*servers_)[node].time(world_.now()) + bound()).count()) + 1024)
                record_.breach("fence", "node " + std::to_string(node) + " has a fence that no clock is near");
    }

    /// Returns: when the last of what went wrong has had its effect: late messages have come, servers have their vote
    /// again.
    [[nodiscard]] boot_clock::time_point quiet_since() const
    {
        auto const& f = plan_.wrong;
        bool const stray = f.late != 0 || f.repeated_request != 0;
        return std::max(plan_.well_since, end_ + (stray ? f.very_late : 0ms));
    }

    /// Returns: whether so many clocks are so near each other that the heir has a quorum, though greetings came late
    /// from servers that hung: what it takes them for it takes them for as long as the connections last.
    [[nodiscard]] bool has_quorum() const
    {
        if (plan_.guard == 0ms) return true;
        auto const& f = world_.wrong();
        boot_clock::duration const doubt =
            plan_.well_since > end_ ? boot_clock::duration{2 * plan_.node_timeout} : 2 * f.longest_delay;
        auto const near = [&](sim::clock const& a, sim::clock const& b) {
            return &a == &b || std::chrono::abs(a.at(end_) - b.at(end_)) + doubt + plan_.ttl / 50 <=
                                   boot_clock::duration{plan_.guard} / 2;
        };
        auto const majority = quorum::majority_of(static_cast<unsigned>(plan_.nodes.size()));
        auto const in_line = std::count_if(plan_.nodes.begin(), plan_.nodes.end(), [&](auto const& a) {
            return std::count_if(plan_.nodes.begin(), plan_.nodes.end(), [&](auto const& b) { return near(a, b); }) >=
                   static_cast<long>(majority);
        });
        return in_line >= static_cast<long>(majority);
    }

    /// Returns: how often a node whose clock is out of line was given a vote.
    [[nodiscard]] std::uint64_t votes_astray()
    {
        std::uint64_t votes = 0;
        plan_.astray.for_each([&](unsigned node) { votes += (*servers_)[node].grants(); });
        return votes;
    }

    void judge()
    {
        auto const claims = claims_that_count();
        if (plan_.exclusive) {
            if (auto const b = exclusion::breach(claims)) record_.breach("K1", *b);
            if (auto const b = stop_margin::breach(claims)) record_.breach("stop_margin", *b);
            if (auto const b = min_hold::breach(claims)) record_.breach("min_hold", *b);
            if (auto const b = shared() || !record_.votes_gone.empty()
                                   ? std::nullopt
                                   : linearizability::breach(record_.calls, {.ghosts = !plan_.calm,
                                                                             .forgetful = plan_.forgetful,
                                                                             .partial = plan_.nodes.size() > 1}))
                record_.breach("K5", *b);
        }
        // No promise covers the clock of a master that has voted and goes back: docs/fencing-tokens.md, "Assumed".
        if (auto const b = went_back_ ? std::nullopt : fencing::breach(claims)) record_.breach("K2", *b);
        judge_fences();
        if (votes_astray() != excused_)
            record_.breach("vote", "a node was given a vote although its clock is out of line");
        auto& v = record_.verdict;
        v.plan = plan_.describe();
        v.decisions = world_.decided().taken();
        v.hash = world_.hash();
        v.happened = world_.happened();
    }

    /// The key of somebody who died, or of a request that nobody waits for, lives for a ttl; who waits for it looks an
    /// eighth later at most, asks again where a server did not answer, and may have to wait for a connection.
    void judge_end()
    {
        ++record_.verdict.judged;
        auto const replaced =
            poisoned_.empty()
                ? 0ms
                : 2 * plan_.guard;  // a fence is when it is looked at, and every refusal begins a round anew
        // The lock may be reserved, once each, for those who stand still.
        auto const reserved = static_cast<int>(plan_.clients.size()) * 250ms;
        auto const most = replaced + reserved + plan_.ttl * 9 / 8 + plan_.ttl / 50 + 6 * plan_.node_timeout + 300ms;
        if (auto const b = liveness::breach(record_.claims, heir(), end_, quiet_since(), most))
            record_.breach("K6", *b);
    }

    /// Where nothing went wrong the lock never lay idle for long, and when all have gone nothing is left.
    void judge_calm()
    {
        auto const begin = boot_clock::time_point{};
        // That a writer waits is remembered for a while after it has given up.
        if (!shared() && users_.size() > (straggler_ == nullptr ? 2U : 3U))
            if (auto const b = idleness::breach(record_.claims, begin + plan_.ttl / 4, end_, plan_.ttl / 4 + 50ms))
                record_.breach("K6", *b);
        auto const arrival = 16 * plan_.wrong.longest_delay;
        // Of several masters, some may have a turn and others none: a reader whose round is lost by that misses it.
        std::size_t const passed = servers_->size() == 1 ? 0 : most_passed;
        if (auto const b =
                phase_fairness::breach(record_.claims, record_.waits,
                                       {.arrival = arrival, .turn = quorum::readers_turn + arrival, .passed = passed}))
            record_.breach("turns", *b);
        auto const keys_of_the_dead = plan_.mortal ? plan_.ttl + 2ms : 0ms;
        world_.run_until(world_.now() + keys_of_the_dead + 4 * plan_.wrong.longest_delay);
        for (unsigned node = 0; node < servers_->size(); ++node) {
            if ((*servers_)[node].get(name_, world_.now()))
                record_.breach("K7", "a key is left on node " + std::to_string(node));
            if ((*servers_)[node].waiting(name_) != 0)
                record_.breach("K7", "a waiter is left in the queue of node " + std::to_string(node));
        }
    }

    [[nodiscard]] bool all_done() const
    {
        return lives_.size() == awaited_ &&
               std::all_of(lives_.begin(), lives_.end(), [](auto const& one) { return one.done(); });
    }

    static constexpr std::size_t most_passed = 2;

    /// Returns: whether the lock has two modes.
    [[nodiscard]] bool shared() const { return keys_of_(name_).together != nullptr; }

    [[nodiscard]] std::uint8_t straggler() const noexcept
    {
        return static_cast<std::uint8_t>(plan_.clients.size() + 1);
    }
    [[nodiscard]] unsigned heir() const noexcept { return static_cast<unsigned>(plan_.clients.size()); }

    keys_of_modes (*keys_of_)(std::string const&);
    bool went_back_ = false;  // a server's clock was set back by more than half of the guard
    schedule plan_;
    sim::world world_;
    std::optional<sim::network> servers_;
    boot_clock::time_point end_;
    std::string name_ = "orders/42";
    redis::shared_keys lock_keys_ = std::make_shared<redis::lock_keys const>(name_);
    quorum::node_set poisoned_;  ///< servers whose fence may be far ahead of their clock
    std::uint64_t excused_ = 0;  ///< votes of nodes astray that the straggler took for in line, as its own clock leapt
    record record_;
    record aside_;  ///< of another lock, on which nobody is judged but for what he is told
    std::deque<sim::host> clients_;
    std::deque<sim::transport> ways_;
    std::deque<user> users_;
    user* straggler_ = nullptr;
    std::optional<side_change> change_;
    std::size_t awaited_ = 0;
    std::vector<sim::process> lives_;
};

std::vector<kind> const faults{kind::late,      kind::lost_request, kind::lost_reply, kind::repeated_request,
                               kind::cut,       kind::lost_report,  kind::pause,      kind::asleep,
                               kind::wall_jump, kind::crash,        kind::hang,       kind::wave,
                               kind::poison,    kind::refusal,      kind::flush};
std::vector<kind> const faults_of_readers = [] {
    auto all = faults;
    all.push_back(kind::eviction);
    return all;
}();
std::vector<kind> const faults_of_mutex = [] {
    auto all = faults_of_readers;
    all.push_back(kind::rights);
    return all;
}();
std::vector<kind> const faults_of_masters = [] {
    auto all = faults_of_mutex;
    all.insert(all.end(), {kind::clock_set, kind::straggler});
    return all;
}();
shipped_machine const redis{{"redis", "one Redis: a quorum of one",
                             [](std::uint64_t seed, run_options const& o) { return run_schedule(seed, 1, o); },
                             faults_of_mutex}};
shipped_machine const redlock{{"redlock", "three, five or seven masters",
                               [](std::uint64_t seed, run_options const& o) { return run_schedule(seed, 0, o); },
                               faults_of_masters}};
shipped_machine const readers{
    {"shared", "a read-write lock: one Redis, and three, five or seven masters",
     [](std::uint64_t seed, run_options const& o) {
         return scenario{seed, seed % 3 == 0 ? 1U : 0U, o, &keys_of_modes::of_shared_mutex}.run();
     },
     faults_of_readers}};

}  // namespace

verdict run_schedule(std::uint64_t seed, unsigned nodes, run_options const& options)
{
    return scenario{seed, nodes, options}.run();
}

}  // namespace holdfast::test
