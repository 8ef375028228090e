// SPDX-License-Identifier: MIT
#include "schedule.hpp"

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
    [[nodiscard]] duration between(duration least, duration most) { return duration{between(least.count(), most.count())}; }

private:
    holdfast::detail::random_sequence sequence_;
};

/// A client's clock and a server's drift apart by less than 1 %. Those of two clients, too.
constexpr std::int64_t most_drift = 4'900;

void draw_clocks(schedule& s, dice& d, unsigned nodes, bool calm)
{
    auto const drift = calm ? 0 : d.once_in(3) ? most_drift : d.between(0, most_drift);
    auto const rate = [&] { return d.once_in(2) ? d.between(-drift, drift) : d.once_in(2) ? drift : -drift; };
    for (unsigned i = 0; i < 4; ++i) s.clients.push_back({d.between(0h, 24h), rate()});

    // Servers' clocks that drift by per cents do not stay near each other: where it matters how far apart they are, they keep time.
    bool const astray = nodes > 1 && !calm && d.once_in(4);
    bool const apart = nodes > 1 && !calm && !astray && d.once_in(3);
    duration const spread = apart ? s.guard * 45 / 100 : nodes > 1 ? s.guard / 5 : duration{1h};
    for (unsigned i = 0; i < nodes; ++i) s.nodes.push_back({d.between(-spread, spread), astray || apart ? d.between(-100, 100) : rate()});
    if (!astray) return;
    auto const minority = nodes - redis::quorum(nodes);
    for (auto many = d.between(1, minority); many > 0; --many) {
        auto const node = static_cast<unsigned>(d.between(0, nodes - 1));
        auto const far = d.between(s.guard * 3 / 4, d.once_in(2) ? duration{s.guard} : duration{1min});
        s.nodes[node].ahead = d.once_in(2) ? far : -far;
        s.astray.add(node);
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
    s.crashes = d.once_in(2) ? d.up_to(6) : 0;
    s.longest_down = d.once_in(2) ? ttl / 20 : ttl;
    s.waves = d.once_in(4) && s.guard > 0ms ? 1 + d.up_to(5) : 0;
    s.hangs = d.once_in(2) ? d.up_to(6) : 0;
}

}  // namespace

schedule schedule::draw(std::uint64_t seed, unsigned nodes)
{
    dice d{seed};
    schedule s;
    if (nodes == 0) nodes = d.once_in(6) ? 1 : d.once_in(5) ? 3 : d.once_in(10) ? 7 : 5;
    s.calm = d.once_in(10);
    s.mortal = !s.calm || d.once_in(2);
    s.ttl = milliseconds{d.between(50, 500)};
    s.node_timeout = s.ttl / d.between(3, 15);
    bool const guarded = nodes > 1 || d.once_in(2);
    s.guard = guarded ? s.ttl : 0ms;
    s.fences = nodes > 1 ? redis::fence_source::counter : redis::fence_source::clock;
    s.length = d.between(5 * s.ttl, 12 * s.ttl);
    draw_clocks(s, d, nodes, s.calm);
    if (!s.calm) draw_faults(s, d);

    using enum sim::node::memory;
    s.memories = {kept};
    if (d.once_in(2)) s.memories = {kept, lost, saved};
    s.exclusive = guarded || s.memories.size() == 1;
    return s;
}

std::string schedule::describe() const
{
    auto const number = [](auto n) { return std::to_string(n) + " "; };
    auto const clocks = [](auto const& some) {
        std::string text;
        for (auto const& one : some)
            text += " " + std::to_string(std::chrono::duration_cast<milliseconds>(one.ahead).count()) + " ms " + std::to_string(one.drift_ppm) + " ppm;";
        return text + "\n";
    };
    return "ttl " + number(ttl.count()) + "node timeout " + number(node_timeout.count()) + "guard " + number(guard.count()) + "length " +
           number(std::chrono::duration_cast<milliseconds>(length).count()) + (calm ? "calm" : "") + "\n" +  //
           "servers' clocks:" + clocks(nodes) + "clients' clocks:" + clocks(clients) +                       //
           "late " + number(wrong.late) + "lost requests " + number(wrong.lost_request) + "replies " + number(wrong.lost_reply) + "repeated " +
           number(wrong.repeated_request) + "cut " + number(wrong.cut) + "pause " + number(wrong.pause) + "; crashes " + number(crashes) +
           "waves " + number(waves) + "hangs " + number(hangs) + "\n";
}

}  // namespace holdfast::test
