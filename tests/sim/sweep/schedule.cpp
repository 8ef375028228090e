// SPDX-License-Identifier: MIT
#include "schedule.hpp"

#include <algorithm>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using duration = boot_clock::duration;

class dice {
public:
    explicit dice(std::uint64_t seed) : sequence_{seed} {}

    /// Returns: true once in `n` times.
    [[nodiscard]] bool once_in(unsigned n) { return sequence_.below(n) == 0; }

    [[nodiscard]] std::int64_t between(std::int64_t least, std::int64_t most)
    {
        return least + static_cast<std::int64_t>(sequence_.below(static_cast<std::uint64_t>(most - least + 1)));
    }

    [[nodiscard]] unsigned up_to(unsigned most) { return static_cast<unsigned>(between(0, most)); }
    [[nodiscard]] duration between(duration least, duration most)
    {
        return duration{between(least.count(), most.count())};
    }

private:
    holdfast::detail::random_sequence sequence_;
};

/// A client's clock and a server's drift apart by less than 1 %. Those of two clients, too.
constexpr std::int64_t most_drift = 4'900;

void draw_clocks(schedule& s, dice& d, unsigned nodes, bool calm)
{
    auto const drift = calm ? 0 : d.once_in(3) ? most_drift : d.between(0, most_drift);
    auto const rate = [&] { return d.once_in(2) ? d.between(-drift, drift) : d.once_in(2) ? drift : -drift; };
    auto const clients = d.between(2, 4);
    for (unsigned i = 0; i < clients; ++i) s.clients.push_back({d.between(0h, 24h), rate()});

    // Servers' clocks that drift by per cents do not stay near each other: where it matters how far apart they are,
    // they keep time.
    bool const astray = nodes > 1 && !calm && d.once_in(4);
    bool const apart = nodes > 1 && !calm && !astray && d.once_in(3);
    duration const spread = apart ? s.guard * 45 / 100 : nodes > 1 ? s.guard / 5 : duration{1h};
    for (unsigned i = 0; i < nodes; ++i)
        s.nodes.push_back({d.between(-spread, spread), astray || apart ? d.between(-100, 100) : rate()});
    if (!astray) return;
    auto const minority = nodes - quorum::majority_of(nodes);
    for (auto many = d.between(1, minority); many > 0; --many) {
        auto const node = static_cast<unsigned>(d.between(0, nodes - 1));
        auto const far = d.between(s.guard * 3 / 4, d.once_in(2) ? duration{s.guard} : duration{1min});
        s.nodes[node].ahead = d.once_in(2) ? far : -far;
        s.astray.add(node);
    }
}

/// The longest ttl is that of at least one, and as long as the guard: what is promised has to hold at that edge.
void draw_options(schedule& s, dice& d)
{
    auto const longest = d.up_to(static_cast<unsigned>(s.clients.size()) - 1);
    for (unsigned i = 0; i < s.clients.size(); ++i) {
        client_plan one{.ttl = s.ttl};
        if (i != longest && !d.once_in(3))
            one.ttl = d.once_in(2) ? s.ttl * 2 / 3 : std::max(s.ttl / d.between(4, 12), 3 * s.node_timeout);
        one.renews = !d.once_in(4);
        one.extends = d.once_in(3);
        one.deferred_release = d.once_in(4);
        one.fences = d.once_in(3) ? 64 : d.once_in(2) ? 33 : 1;
        s.options.push_back(one);
    }
}

void draw_faults(schedule& s, dice& d)
{
    auto& f = s.wrong;
    duration const ttl = s.ttl;
    auto const rate = [&](unsigned one_in, unsigned most) { return d.once_in(one_in) ? 1 + d.up_to(most) : 0; };
    if (d.once_in(3)) f.longest_delay = d.between(1ms, s.node_timeout / 2);
    f.late = rate(2, 40);
    f.very_late = d.once_in(2) ? 3 * ttl : duration{s.node_timeout};
    f.lost_request = rate(3, 30);
    f.lost_reply = rate(3, 30);
    f.repeated_request = rate(3, 100);
    f.cut = rate(3, 40);
    f.lost_report = rate(3, 300);
    f.pause = rate(2, 25);
    f.longest_pause = d.once_in(2) ? 2 * ttl : ttl / 2;
}

/// Crashes and hangs of one server; waves, in which many forget everything at once, as soon as they are used again;
/// what befalls machines.
void draw_disasters(schedule& s, dice& d)
{
    using kind = sim::decision::kind;
    using enum sim::node::memory;
    constexpr auto nobody = sim::decision::nobody;
    auto const count = static_cast<std::uint32_t>(s.nodes.size());
    auto const any = [&](std::size_t of) {
        return static_cast<std::uint8_t>(d.between(0, static_cast<std::int64_t>(of) - 1));
    };
    auto const some_time = [&] { return d.between(duration{}, s.length); };
    duration const ttl = s.ttl;
    std::vector<sim::node::memory> memories{kept};
    if (d.once_in(2)) memories = {kept, lost, saved};

    auto const longest_down = d.once_in(2) ? ttl / 20 : ttl;
    for (std::uint32_t i = d.once_in(2) ? d.up_to(6) : 0; i > 0; --i)
        s.disasters.push_back({{kind::crash, nobody, any(count), i},
                               some_time(),
                               d.between(1us, longest_down),
                               memories[any(memories.size())],
                               any(2UL * count)});
    for (std::uint32_t i = d.once_in(2) ? d.up_to(6) : 0; i > 0; --i)
        s.disasters.push_back(
            {.name = {kind::hang, nobody, any(count), i}, .at = some_time(), .length = d.between(1us, 2 * ttl)});
    auto wave = d.between(duration{}, duration{s.guard});
    for (std::uint32_t i = d.once_in(4) && s.guard > 0ms ? 1 + d.up_to(5) : 0; i > 0; --i) {
        auto const memory = d.once_in(2) ? lost : saved;
        auto const whom = d.once_in(2) ? (1U << count) - 1 : static_cast<unsigned>(d.between(0, (1 << count) - 1));
        s.disasters.push_back({{kind::wave, nobody, nobody, i}, wave, d.between(1us, duration{s.guard}), memory, whom});
        wave += d.between(s.guard, duration{s.guard} * 5 / 4);
    }
    for (std::uint8_t i = 0; i < s.clients.size(); ++i) {
        if (d.once_in(6))
            s.disasters.push_back(
                {.name = {kind::asleep, i, nobody, 0}, .at = some_time(), .length = d.between(ttl / 4, 3 * ttl)});
        for (std::uint32_t n = d.once_in(4) ? 1 + d.up_to(2) : 0; n > 0; --n)
            s.disasters.push_back({.name = {kind::wall_jump, i, nobody, n},
                                   .at = some_time(),
                                   .length = d.once_in(2) ? d.between(-10min, 10min) : d.between(-ttl, ttl)});
    }
    for (auto const& one : s.disasters) s.forgetful |= one.memory != kept;
    // A lone server that forgets a counter which somebody has set ahead of its clock begins below it.
    bool const poisoned = d.once_in(4) && (count > 1 || !s.forgetful);
    for (std::uint32_t i = poisoned ? 1 + d.up_to(4) : 0; i > 0; --i)
        s.disasters.push_back({.name = {kind::poison, nobody, any(count), i}, .at = some_time(), .saves = d.up_to(3)});
}

/// So that counters end while the world goes on, they are kept for less than an hour. What is said of the fences is
/// said of servers whose clocks do not move much against each other, in all that time.
void draw_straggler(schedule& s, dice& d)
{
    if (!d.once_in(4)) return;
    s.straggler = true;
    s.fence_lifetime = s.guard * d.between(4, 8);
    if (d.once_in(2))
        s.leap = d.between(duration{}, d.once_in(2) ? duration{s.guard} : duration{20 * s.guard});
    else
        s.stood_still = d.up_to(100);
    s.remembers = d.up_to(2 * static_cast<unsigned>(s.nodes.size()));
    for (auto& one : s.nodes) one.drift_ppm = std::clamp<std::int64_t>(one.drift_ppm, -100, 100);
}

/// Keys that are deleted while they are held. In some of these schedules nothing else goes wrong: there it can be said
/// how soon a holder has to know of it.
void draw_evictions(schedule& s, dice& d)
{
    using kind = sim::decision::kind;
    constexpr auto nobody = sim::decision::nobody;
    if (s.calm || !d.once_in(4)) return;
    if (d.once_in(3)) {
        s.undisturbed = true;
        s.wrong = s.wrong.ended();
        s.wrong.longest_delay = std::min(s.wrong.longest_delay, duration{s.node_timeout} / 8);
        s.disasters.clear();
        s.forgetful = false;
    }
    auto const count = static_cast<unsigned>(s.nodes.size());
    for (std::uint32_t i = 1 + d.up_to(3); i > 0; --i)
        s.disasters.push_back({.name = {kind::eviction, nobody, nobody, i},
                               .at = d.between(duration{}, s.length),
                               .saves = d.once_in(2) ? count : d.up_to(count - 1)});
}

/// Servers that read their data, run a script for long, are replicas or have no memory for a while.
void draw_refusals(schedule& s, dice& d)
{
    using kind = sim::decision::kind;
    if (s.calm || s.undisturbed || !d.once_in(4)) return;
    duration const longest = d.once_in(2) ? s.ttl / 3 : 2 * s.ttl;
    for (std::uint32_t i = 1 + d.up_to(4); i > 0; --i)
        s.disasters.push_back(
            {.name = {kind::refusal, sim::decision::nobody,
                      static_cast<std::uint8_t>(d.up_to(static_cast<unsigned>(s.nodes.size()) - 1)), i},
             .at = d.between(duration{}, s.length),
             .length = d.between(1us, longest),
             .saves = d.up_to(3)});
}

/// Servers that forget their scripts.
void draw_flushes(schedule& s, dice& d)
{
    using kind = sim::decision::kind;
    if (s.calm || s.undisturbed || !d.once_in(4)) return;
    for (std::uint32_t i = 1 + d.up_to(4); i > 0; --i)
        s.disasters.push_back(
            {.name = {kind::flush, sim::decision::nobody,
                      static_cast<std::uint8_t>(d.up_to(static_cast<unsigned>(s.nodes.size()) - 1)), i},
             .at = d.between(duration{}, s.length)});
}

/// Clients without the rights to the queue of waiters: all of them, or some; and clients that get or lose these rights.
void draw_rights(schedule& s, dice& d, bool queueless)
{
    using kind = sim::decision::kind;
    if (s.undisturbed) return;
    if (queueless) s.queueless = d.once_in(2) ? ~0U : static_cast<unsigned>(d.between(1, 0x7fff));
    auto const clients = static_cast<unsigned>(s.clients.size());
    for (std::uint32_t i = !s.calm && d.once_in(6) ? 1 + d.up_to(5) : 0; i > 0; --i)
        s.disasters.push_back(
            {.name = {kind::rights, static_cast<std::uint8_t>(d.up_to(clients)),
                      static_cast<std::uint8_t>(d.up_to(static_cast<unsigned>(s.nodes.size()) - 1)), i},
             .at = d.between(duration{}, s.length),
             .saves = d.up_to(1)});
}

/// Clocks of a minority of the masters that are set while these run. What is promised of fences is not promised of
/// servers that also forget, or are out of line from the beginning.
void draw_set_clocks(schedule& s, dice& d)
{
    using kind = sim::decision::kind;
    bool const apart = s.forgetful || s.straggler || !s.astray.empty();
    if (s.calm || s.undisturbed || apart || s.nodes.size() == 1 || !d.once_in(3)) return;
    auto const count = static_cast<unsigned>(s.nodes.size());
    auto const first = d.up_to(count - 1);
    auto const minority = count - quorum::majority_of(count);
    for (std::uint32_t i = 1 + d.up_to(3); i > 0; --i) {
        auto const most = d.once_in(2) ? duration{s.guard} : duration{10min};
        auto const node = (first + d.up_to(minority - 1)) % count;
        s.disasters.push_back({.name = {kind::clock_set, sim::decision::nobody, static_cast<std::uint8_t>(node), i},
                               .at = d.between(duration{}, s.length),
                               .length = d.between(-most, most)});
    }
}

/// Clients that keep the lock until a time is over.
void draw_min_holds(schedule& s, dice& d)
{
    for (auto& one : s.options)
        if (one.renews && d.once_in(4)) one.min_hold = milliseconds{d.between(1, s.ttl.count())};
}

/// Clients that are told of a loss earlier than they have to be; what is left of the ttl is no less than allowed.
void draw_stop_margins(schedule& s, dice& d)
{
    for (auto& one : s.options) {
        auto const most = std::min(one.ttl / 2, one.ttl - 2 * s.node_timeout);
        if (d.once_in(3)) one.stop_margin = milliseconds{d.between(1, most.count())};
    }
}

}  // namespace

schedule schedule::draw(std::uint64_t seed, unsigned nodes)
{
    dice d{seed};
    schedule s;
    if (nodes == 0) nodes = d.once_in(3) ? 3 : d.once_in(10) ? 7 : 5;
    s.calm = d.once_in(10);
    s.mortal = !s.calm || d.once_in(2);
    s.ttl = milliseconds{d.between(50, 500)};
    s.node_timeout = s.ttl / d.between(3, 20);
    bool const guarded = nodes > 1 || d.once_in(2);
    s.guard = guarded ? s.ttl : 0ms;
    s.length = d.between(5 * s.ttl, 12 * s.ttl);
    draw_clocks(s, d, nodes, s.calm);
    draw_options(s, d);
    if (!s.calm) draw_faults(s, d);
    if (!s.calm) draw_disasters(s, d);
    if (nodes > 1) draw_straggler(s, d);
    bool const queueless = !s.calm && d.once_in(8);
    draw_evictions(s, d);
    draw_refusals(s, d);
    draw_flushes(s, d);
    draw_rights(s, d, queueless);
    draw_set_clocks(s, d);
    draw_min_holds(s, d);
    draw_stop_margins(s, d);
    s.exclusive = guarded || !s.forgetful;
    return s;
}

duration schedule::servers_well_after() const
{
    duration last{};
    for (auto const& one : disasters) {
        using kind = sim::decision::kind;
        bool const stays = one.name.what == kind::hang || one.name.what == kind::refusal;
        bool const down = stays || one.name.what == kind::crash || one.name.what == kind::wave;
        if (one.name.what == kind::poison) last = std::max(last, one.at + duration{guard});
        if (down && one.at < length)
            last = std::max(last, one.at + one.length + (stays ? duration{} : duration{guard}));
    }
    return last;
}

std::string schedule::describe() const
{
    auto const number = [](auto n) { return std::to_string(n) + " "; };
    auto const clocks = [](auto const& some) {
        std::string text;
        for (auto const& one : some)
            text += " " + std::to_string(std::chrono::duration_cast<milliseconds>(one.ahead).count()) + " ms " +
                    std::to_string(one.drift_ppm) + " ppm;";
        return text + "\n";
    };
    std::string text = "ttl " + number(ttl.count()) + "node timeout " + number(node_timeout.count()) + "guard " +
                       number(guard.count()) + "length " +
                       number(std::chrono::duration_cast<milliseconds>(length).count()) + (calm ? "calm" : "") +
                       (undisturbed ? "undisturbed" : "") +
                       (queueless != 0 ? "without queues: " + number(queueless) : "") + "\n" +  //
                       "servers' clocks:" + clocks(nodes) + "clients' clocks:" + clocks(clients);
    if (straggler)
        text += "fences are kept for " + number(fence_lifetime.count()) + "ms; the straggler's clock leaps by " +
                number(std::chrono::duration_cast<milliseconds>(leap).count()) + "ms, stands still for " +
                number(stood_still) + "%; server " + number(remembers) + "remembers\n";
    for (auto const& one : options)
        text += "ttl " + number(one.ttl.count()) + (one.renews ? "" : "not renewed ") +
                (one.extends ? "extended " : "") + (one.deferred_release ? "deferred release " : "") +
                (one.min_hold.count() != 0 ? "kept for " + number(one.min_hold.count()) : "") +
                (one.stop_margin.count() != 0 ? "stop margin " + number(one.stop_margin.count()) : "") +
                number(one.fences) + "fences; ";
    text += "\n";
    for (auto const& one : disasters)
        text += one.name.text() + " at " + std::to_string(std::chrono::duration_cast<milliseconds>(one.at).count()) +
                " ms for " + std::to_string(std::chrono::duration_cast<milliseconds>(one.length).count()) + " ms; ";
    return text + "\n";
}

}  // namespace holdfast::test
