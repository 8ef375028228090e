// SPDX-License-Identifier: MIT
#include "zookeeper_scenario.hpp"

#include "exclusion.hpp"
#include "fencing.hpp"
#include "history.hpp"
#include "linearizability.hpp"
#include "liveness.hpp"
#include "machine.hpp"
#include "min_hold.hpp"
#include "permit_idleness.hpp"
#include "permit_limit.hpp"
#include "stop_margin.hpp"
#include "zookeeper_numbers.hpp"
#include "zookeeper_operator.hpp"
#include "zookeeper_servers.hpp"
#include "zookeeper_user.hpp"

#include <holdfast/core/random.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/process.hpp>
#include <holdfast/sim/world.hpp>
#include <holdfast/zookeeper/node_options.hpp>

#include <algorithm>
#include <array>
#include <chrono>
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
using std::chrono::milliseconds;
using duration = boot_clock::duration;
using kind = sim::decision::kind;
constexpr auto nobody = sim::decision::nobody;
constexpr std::size_t most_clients = 4;
constexpr unsigned most_threads = 3;  // of a client

/// Chance of what is decided before a schedule begins.
class dice {
public:
    explicit dice(std::uint64_t seed) : sequence_{seed} {}
    [[nodiscard]] bool once_in(unsigned n) { return sequence_.below(n) == 0; }
    [[nodiscard]] unsigned up_to(unsigned most) { return static_cast<unsigned>(sequence_.below(most + 1)); }
    [[nodiscard]] std::int64_t between(std::int64_t least, std::int64_t most)
    {
        return least + static_cast<std::int64_t>(sequence_.below(static_cast<std::uint64_t>(most - least + 1)));
    }
    [[nodiscard]] duration between(duration least, duration most)
    {
        return duration{between(least.count(), most.count())};
    }

private:
    holdfast::detail::random_sequence sequence_;
};

struct disaster {
    sim::decision name;
    duration at{};
    duration length{};
};

/// A change of the number of permits.
struct resize_plan {
    duration at{};
    unsigned by = 0;  ///< the client that does it
};
constexpr std::uint32_t first_resize = 100;  // the number of its decision; before it are those of operators

struct schedule_of_ensemble {
    milliseconds timeout{};
    duration length{};
    bool calm = false;
    std::int32_t first_number = 0;
    std::array<sim::clock, zookeeper_servers::count> servers{};
    std::vector<sim::clock> clients;
    sim::faults wrong;
    std::vector<disaster> disasters;

    static schedule_of_ensemble draw(std::uint64_t seed)
    {
        dice d{seed};
        schedule_of_ensemble s;
        s.calm = d.once_in(10);
        s.timeout = milliseconds{d.between(80, 600)};
        s.length = d.between(duration{4 * s.timeout}, duration{9 * s.timeout});
        s.first_number = d.once_in(4)   ? static_cast<std::int32_t>(0x7FFFFFFF - d.between(0, 20))
                         : d.once_in(2) ? 5
                                        : 95;
        auto const drift = [&] {
            return s.calm ? 0 : d.once_in(2) ? d.between(-4'900, 4'900) : d.once_in(2) ? 4'900 : -4'900;
        };
        for (auto& one : s.servers) one = {d.between(0h, 24h), drift()};
        s.clients.resize(static_cast<std::size_t>(d.between(2, most_clients)));
        for (auto& one : s.clients) one = {d.between(0h, 24h), drift()};
        if (!s.calm) s.draw_faults(d);
        return s;
    }

    [[nodiscard]] std::string describe() const
    {
        auto const ms = [](duration t) {
            return std::to_string(std::chrono::duration_cast<milliseconds>(t).count()) + " ms";
        };
        auto text = "session timeout " + ms(timeout) + ", length " + ms(length) + (calm ? ", calm" : "") +
                    ", sequence from " + std::to_string(first_number) + "\nclocks:";
        for (auto const& one : servers)
            text += " server " + ms(one.ahead) + ' ' + std::to_string(one.drift_ppm) + " ppm;";
        for (auto const& one : clients)
            text += " client " + ms(one.ahead) + ' ' + std::to_string(one.drift_ppm) + " ppm;";
        text += '\n';
        for (auto const& one : disasters)
            text += one.name.text() + " at " + ms(one.at) + " for " + ms(one.length) + "; ";
        return text + '\n';
    }

private:
    void draw_faults(dice& d)
    {
        auto const rate = [&](unsigned one_in, unsigned most) { return d.once_in(one_in) ? 1 + d.up_to(most) : 0; };
        auto const t = duration{timeout};
        if (d.once_in(3)) wrong.longest_delay = d.between(duration{1ms}, t / 20);
        wrong.late = rate(2, 30);
        wrong.very_late = d.once_in(2) ? 2 * t : t / 4;
        wrong.lost_request = rate(3, 20);
        wrong.lost_reply = rate(3, 20);
        wrong.cut = rate(2, 40);
        wrong.pause = rate(2, 25);
        wrong.longest_pause = d.once_in(2) ? 2 * t : t / 2;
        auto const some = [&](kind k, unsigned one_in, unsigned most, duration longest) {
            for (std::uint32_t i = d.once_in(one_in) ? 1 + d.up_to(most) : 0; i > 0; --i) {
                auto const server = static_cast<std::uint8_t>(d.up_to(zookeeper_servers::count - 1));
                auto const at = d.between(duration{}, length);
                disasters.push_back({{k, nobody, server, i}, at, d.between(duration{1us}, longest)});
            }
        };
        some(kind::hang, 3, 2, t);
        some(kind::isolation, 3, 2, 2 * t);
        some(kind::election, 4, 1, t / 2);
        some(kind::collection, 2, 5, 1ms);
        for (std::uint8_t i = 0; i < clients.size(); ++i) {
            if (d.once_in(5))
                disasters.push_back(
                    {{kind::asleep, i, nobody, 0}, d.between(duration{}, length), d.between(t / 4, 2 * t)});
            if (d.once_in(4))
                disasters.push_back(
                    {{kind::expiry, i, nobody, 0}, d.between(duration{}, length), d.between(t / 2, 2 * t)});
            if (d.once_in(4))
                disasters.push_back({{kind::wall_jump, i, nobody, 0},
                                     d.between(duration{}, length),
                                     d.once_in(2) ? d.between(-10min, 10min) : d.between(-t, t)});
        }
    }
};

class zookeeper_scenario {
public:
    zookeeper_scenario(std::uint64_t seed, zookeeper_form form, run_options const& options)
        : plan_{schedule_of_ensemble::draw(seed)}, world_{seed, plan_.wrong}
    {
        if (options.observer) world_.observe(options.observer);
        if (options.keep) world_.decided().keep_only(*options.keep);
        if (options.remember) world_.decided().remember();
        for (std::uint8_t i = 0; i < plan_.clients.size(); ++i)
            if (!world_.comes_true({kind::clock, i, nobody, 0})) plan_.clients[i] = {};
        for (std::uint8_t i = 0; i < plan_.servers.size(); ++i)
            if (!world_.comes_true({kind::clock, nobody, i, 0})) plan_.servers[i] = {};
        end_ = world_.now() + plan_.length;
        bool const below = form == zookeeper_form::plain || has_permits(form);
        shared_ = {.form = form, .path = below ? "/locks/one" : "/locks", .end = end_, .calm = plan_.calm};
        if (has_permits(form)) draw_permits(~seed);
        draw_deeds(seed ^ 0x6f70'6572'6174'6f72U);
        servers_.emplace(world_, plan_.first_number, plan_.timeout, plan_.servers);
        draw_resizes(seed ^ 0x7265'7369'7a65U);
        draw_lapses(seed ^ 0x6c61'7073'6573U);
        servers_->on_change([this](unsigned server, ensemble::change const& what) {
            for (auto const& one : users_)
                if (one.loop().changed(server, what) && what.what == ensemble::change::kind::removed)
                    woken_[what.path].insert(one.host().index());
        });
    }

    verdict run()
    {
        for (std::uint8_t i = 0; i < plan_.clients.size(); ++i)
            if (world_.comes_true({kind::client, i, nobody, 0}))
                start(add(i, plan_.clients[i], numbers_[i]), false, threads_[i]);
        for (auto const& one : plan_.disasters) world_.at(world_.now() + one.at, [this, &one] { befall(one); });
        for (std::uint32_t i = 0; i < resizes_.size(); ++i)
            world_.at(world_.now() + resizes_[i].at, [this, i] { resize(i); });
        if (!deeds_.empty()) add(lone_operator(), {}, permits_);
        for (std::uint32_t i = 0; i < deeds_.size(); ++i)
            world_.at(world_.now() + deeds_[i].at, [this, i] { operate(i); });
        world_.run_until(end_);
        servers_->postpone(0);
        auto quiet = plan_.wrong.ended();
        quiet.longest_delay = std::min(quiet.longest_delay, duration{plan_.timeout} / 100);
        world_.become(quiet);
        auto well = end_ + plan_.wrong.very_late;
        for (auto const& one : plan_.disasters)
            if (one.name.what != kind::wall_jump) well = std::max(well, boot_clock::time_point{} + one.at + one.length);
        for (auto& one : users_) well = std::max(well, one.host().awake_since());
        start(add(heir(), {}, permits_), true, has_permits(shared_.form) ? zookeeper_user::most_threads : 1);
        auto const last = well + 30 * plan_.timeout;
        while (!all_done() && world_.step(last)) {
        }
        auto const most = 4 * duration{plan_.timeout} + 300ms;
        if (!all_done()) record_.breach("K6", "an operation has no result");
        auto const valid = zookeeper_operator{servers_->changes(), numbers_changed_, plan_.timeout, plan_.calm}.judge(
            deeds_, renewals_, record_);
        judge_heir(well, most);
        auto const inherited = std::any_of(record_.claims.begin(), record_.claims.end(),
                                           [this](auto const& c) { return c.client == heir(); });
        if (inherited) ++record_.verdict.judged;
        // The sessions of those who died end; what is there then belongs to nobody who knows of it.
        auto const gone = std::max(world_.now(), well) + 4 * plan_.timeout;
        while ((!servers_->state().left().empty() || servers_->state().barren()) && world_.step(gone)) {
        }
        if (auto const left = servers_->state().left(); !left.empty()) record_.breach("K7", "a node is left: " + left);
        if (servers_->state().barren()) record_.breach("K7", "a container is left that never had a child");
        judge(valid);
        return std::move(record_.verdict);
    }

private:
    [[nodiscard]] static bool has_permits(zookeeper_form form) noexcept { return form == zookeeper_form::permits; }

    /// Effects: decides how many permits there are, how they are kept, which clients say another number, and how many
    /// threads each has.
    void draw_permits(std::uint64_t seed)
    {
        dice d{seed};
        constexpr std::array ways{zookeeper::permits::curator, zookeeper::permits::kazoo, zookeeper::permits::slots};
        shared_.kept = ways[d.up_to(2)];
        permits_ = 1 + d.up_to(3);
        // No server knows the number of Curator's.
        bool const disagree = shared_.kept != zookeeper::permits::curator && d.once_in(3);
        for (std::size_t i = 0; i < numbers_.size(); ++i) {
            numbers_[i] = disagree && d.once_in(3) ? 1 + d.up_to(3) : permits_;
            threads_[i] = 1 + d.up_to(most_threads - 1);
        }
    }

    /// Effects: decides when the number of permits is changed, in one of eight schedules with slots.
    void draw_resizes(std::uint64_t seed)
    {
        dice d{seed};
        numbers_changed_.on = d.once_in(8) && has_permits(shared_.form) && shared_.kept == zookeeper::permits::slots;
        if (!numbers_changed_.on) return;
        for (auto i = 1 + d.up_to(2); i > 0; --i)
            resizes_.push_back({.at = d.between(duration{}, plan_.length), .by = d.up_to(heir() - 1)});
    }

    void resize(std::uint32_t number)
    {
        auto const who = std::find_if(users_.begin(), users_.end(),
                                      [&](auto const& u) { return u.host().index() == resizes_[number].by; });
        auto const as = static_cast<std::uint8_t>(lone_operator());
        if (who == users_.end() || !world_.comes_true({kind::operation, as, nobody, first_resize + number})) return;
        ++awaited_;
        who->host().at(world_.now(), [this, who] { lives_.push_back(who->resize(1 + who->host().below(4))); });
    }

    /// Effects: decides what else happens now and then.
    void draw_lapses(std::uint64_t seed)
    {
        dice d{seed};
        shared_.gives_up = d.once_in(4);
        servers_->postpone(!plan_.calm && d.once_in(4) ? 5 : 0);
    }

    /// Effects: decides what operators do, in one of four schedules: in the session of a client, or in one of their
    /// own. A hold that changes its mode deletes a node by itself, so there they have a session of their own. In the
    /// plain form they do nothing: all holders have a node of the same path, so what is meant for one that gives the
    /// lock back at that moment may come to the next one.
    void draw_deeds(std::uint64_t seed)
    {
        dice d{seed};
        bool const slots = has_permits(shared_.form) && shared_.kept == zookeeper::permits::slots;
        bool const plain = shared_.form == zookeeper_form::plain;
        if (!d.once_in(4) || plain || (has_permits(shared_.form) && !slots)) return;
        for (auto i = 1 + d.up_to(5); i > 0; --i) {
            auto const by = d.once_in(2) ? lone_operator() : d.up_to(heir() - 1);
            deeds_.push_back({.what = d.once_in(3) ? deed::kind::request : deed::kind::force,
                              .by = shared_.form == zookeeper_form::readers ? lone_operator() : by,
                              .at = d.between(duration{}, plan_.length + plan_.timeout),
                              .slot = d.up_to(static_cast<unsigned>(permits_) - 1)});
        }
    }

    void operate(std::uint32_t number)
    {
        auto& one = deeds_[number];
        auto const in =
            std::find_if(users_.begin(), users_.end(), [&](auto const& u) { return u.host().index() == one.by; });
        auto const as = static_cast<std::uint8_t>(lone_operator());
        if (in == users_.end() || !world_.comes_true({kind::operation, as, nobody, number})) return;
        ++awaited_;
        in->host().at(world_.now(), [this, in, &one] { lives_.push_back(in->operate(one)); });
    }

    [[nodiscard]] std::string describe_permits() const
    {
        auto const as = shared_.kept == zookeeper::permits::curator ? "Curator's"
                        : shared_.kept == zookeeper::permits::kazoo ? "kazoo's"
                                                                    : "as slots";
        auto text = "permits: " + std::to_string(permits_) + ", " + as;
        for (std::size_t i = 0; i < plan_.clients.size(); ++i)
            text += "; client " + std::to_string(i) + " says " + std::to_string(numbers_[i]) + ", in " +
                    std::to_string(threads_[i]) + " threads";
        return text + '\n';
    }

    /// Effects: looks whether an heir gets the lock, or all permits that there are, soon enough.
    void judge_heir(boot_clock::time_point well, duration most)
    {
        history others;
        history heirs;
        for (auto const& c : record_.claims) (c.client == heir() ? heirs : others).push_back(c);
        for (std::size_t i = 0; i < std::max<std::size_t>(heirs.size(), 1); ++i) {
            auto all = others;
            if (i < heirs.size()) all.push_back(heirs[i]);
            if (auto const b = liveness::breach(all, heir(), end_, well, most)) record_.breach("K6", *b);
        }
        if (!heirs.empty() && heirs.size() != heirs.front().permits && has_permits(shared_.form))
            record_.breach("K6", "the heir got " + std::to_string(heirs.size()) + " permits of " +
                                     std::to_string(heirs.front().permits));
    }

    zookeeper_user& add(unsigned index, sim::clock clock, std::size_t permits)
    {
        auto& host = hosts_.emplace_back(world_, index, clock);
        host.read_time_with(&boot_clock::now);
        return users_.emplace_back(host, *servers_, shared_, record_, renewals_, numbers_changed_, permits);
    }

    void start(zookeeper_user& one, bool heir, std::uint32_t threads)
    {
        for (std::uint32_t i = 0; i < threads; ++i) {
            ++awaited_;
            one.host().at(world_.now() + one.host().up_to(plan_.timeout / 4),
                          [this, &one, heir, i] { lives_.push_back(heir ? one.inherit(i) : one.live(i)); });
        }
    }

    void befall(disaster const& one)
    {
        if (!world_.comes_true(one.name)) return;
        switch (one.name.what) {
        case kind::hang: return servers_->hang(one.name.node, one.length);
        case kind::isolation: return servers_->isolate(one.name.node, one.length);
        case kind::election: return servers_->elect(one.length);
        case kind::collection: return servers_->collect();
        default: break;
        }
        auto const who = std::find_if(users_.begin(), users_.end(),
                                      [&](auto const& u) { return u.host().index() == one.name.client; });
        if (who == users_.end()) return;
        if (one.name.what == kind::asleep) who->host().sleep(one.length);
        if (one.name.what == kind::wall_jump) who->host().set_wall_clock(one.length);
        if (one.name.what == kind::expiry) who->loop().cut_off(one.length);
    }

    /// `claims`: those that count.
    void judge(history const& claims)
    {
        if (has_permits(shared_.form))
            judge_permits(claims);
        else if (auto const b = exclusion::breach(claims))
            record_.breach("K1", *b);
        else if (auto const late = stop_margin::breach(claims))
            record_.breach("stop_margin", *late);
        if (auto const b = min_hold::breach(claims)) record_.breach("min_hold", *b);
        if (!has_permits(shared_.form))
            if (auto const b = fencing::breach(claims)) record_.breach("K2", *b);
        if (shared_.form == zookeeper_form::queue || has_permits(shared_.form)) judge_woken();
        if (shared_.form == zookeeper_form::queue || shared_.form == zookeeper_form::plain)
            if (auto const b = linearizability::breach(record_.calls, {.ghosts = !plan_.calm}))
                record_.breach("K5", *b);
        auto& v = record_.verdict;
        v.plan = plan_.describe() + (has_permits(shared_.form) ? describe_permits() : "");
        v.decisions = world_.decided().taken();
        v.hash = world_.hash();
        v.happened = world_.happened();
    }

    /// Effects: looks whether there were never more permits than there are; and whether a slot was never claimed twice.
    /// With a permit granted, a session first leaves the queue, or goes on with the waits of other threads. If the
    /// process stands still there until the permit is over, it claims none.
    void judge_permits(history claims)
    {
        std::erase_if(claims, [](claim const& c) { return c.valid_until <= c.granted; });
        auto const& n = numbers_changed_;
        if (auto const b = n.on ? n.breach(claims, *servers_) : permit_limit::breach(claims)) record_.breach("K1", *b);
        if (shared_.kept != zookeeper::permits::slots) {
            if (auto const b = fencing::breach(claims)) record_.breach("K2", *b);
            // All that are in the queue may have their turns first, also those that say another number.
            constexpr duration turn = 10ms;
            if (plan_.calm)
                if (auto const b = permit_idleness::breach(claims, record_.waits, permits_of(claims),
                                                           turn * (most_clients * most_threads)))
                    record_.breach("idle", *b);
            return;
        }
        std::map<std::size_t, history> slots;
        for (auto const& c : claims) slots[c.slot].push_back(c);
        for (auto const& [slot, of_slot] : slots) {
            auto const of = "slot " + std::to_string(slot) + ": ";
            if (auto const b = exclusion::breach(of_slot)) record_.breach("K1", of + *b);
            if (auto const b = stop_margin::breach(of_slot)) record_.breach("stop_margin", of + *b);
            if (auto const b = fencing::breach(of_slot)) record_.breach("K2", of + *b);
        }
    }

    /// Returns: how many permits there were.
    [[nodiscard]] std::size_t permits_of(history const& claims) const
    {
        return claims.empty() ? permits_ : claims.front().permits;
    }

    /// Effects: looks whether a node that went has woken one client at most.
    void judge_woken()
    {
        if (!plan_.calm) return;
        for (auto const& [path, clients] : woken_)
            if (clients.size() > 1)
                record_.breach("woken", std::to_string(clients.size()) + " clients were woken by the end of " + path);
    }

    [[nodiscard]] bool all_done() const
    {
        return lives_.size() == awaited_ &&
               std::all_of(lives_.begin(), lives_.end(), [](auto const& one) { return one.done(); });
    }

    [[nodiscard]] unsigned heir() const noexcept { return static_cast<unsigned>(plan_.clients.size()); }
    [[nodiscard]] unsigned lone_operator() const noexcept { return heir() + 1; }

    schedule_of_ensemble plan_;
    sim::world world_;
    boot_clock::time_point end_;
    zookeeper_plan shared_;
    std::size_t permits_ = 1;
    std::array<std::size_t, most_clients> numbers_{1, 1, 1, 1};  // of permits, as each client says
    std::array<std::uint32_t, most_clients> threads_{1, 1, 1, 1};
    std::map<std::string, std::set<unsigned>> woken_;  // by the end of which node
    std::optional<zookeeper_servers> servers_;
    record record_;
    std::deque<deed> deeds_;
    std::vector<renewal> renewals_;
    number_changes numbers_changed_;
    std::vector<resize_plan> resizes_;
    std::deque<sim::host> hosts_;
    std::deque<zookeeper_user> users_;
    std::size_t awaited_ = 0;
    std::vector<sim::process> lives_;
};

std::vector<kind> const faults{kind::late,      kind::lost_request, kind::lost_reply, kind::cut,    kind::pause,
                               kind::asleep,    kind::wall_jump,    kind::hang,       kind::expiry, kind::election,
                               kind::isolation, kind::collection,   kind::refusal};
shipped_machine const queue{
    {"zookeeper", "a queue in an ensemble",
     [](std::uint64_t seed, run_options const& o) { return run_zookeeper(seed, zookeeper_form::queue, o); }, faults}};
shipped_machine const plain{
    {"zookeeper-plain", "one node in an ensemble",
     [](std::uint64_t seed, run_options const& o) { return run_zookeeper(seed, zookeeper_form::plain, o); }, faults}};
shipped_machine const readers{
    {"zookeeper-shared", "readers and writers in an ensemble",
     [](std::uint64_t seed, run_options const& o) { return run_zookeeper(seed, zookeeper_form::readers, o); }, faults}};

shipped_machine const permits{
    {"zookeeper-semaphore", "permits in an ensemble",
     [](std::uint64_t seed, run_options const& o) { return run_zookeeper(seed, zookeeper_form::permits, o); }, faults}};

}  // namespace

verdict run_zookeeper(std::uint64_t seed, zookeeper_form form, run_options const& options)
{
    return zookeeper_scenario{seed, form, options}.run();
}

}  // namespace holdfast::test
