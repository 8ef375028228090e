// SPDX-License-Identifier: MIT
#pragma once

#include "lock_site.hpp"
#include "process_lock.hpp"
#include "zookeeper_client.hpp"
#include "zookeeper_servers.hpp"

#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/decision.hpp>
#include <holdfast/sim/world.hpp>
#include <holdfast/zookeeper/node_options.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

/// Three ZooKeeper servers. Locks are queues, or, in one of four schedules, one node each. A session is good for the
/// ttl of a lock once it is confirmed, so its timeout is twice that.
class zookeeper_site final : public lock_site {
public:
    zookeeper_site(sim::world& w, schedule_chance& chance, milliseconds ttl, bool calm)
        : world_{w},
          ttl_{ttl},
          calm_{calm},
          queueing_{chance.one_in(4) ? zookeeper::queueing::none : zookeeper::queueing::sequential},
          servers_{w, first_number(chance), timeout(), clocks(chance)}
    {
        servers_.on_change([this](unsigned server, ensemble::change const& what) {
            for (auto& one : processes_) one.way.loop().changed(server, what);
        });
        if (!calm_ && chance.one_in(2)) servers_.postpone(10);
    }

    [[nodiscard]] static std::unique_ptr<lock_site> make(sim::world& w, schedule_chance& chance, milliseconds ttl,
                                                         bool calm)
    {
        return std::make_unique<zookeeper_site>(w, chance, ttl, calm);
    }

    /// Returns: what goes wrong in its schedules.
    [[nodiscard]] static std::vector<sim::decision::kind> faults()
    {
        return {kind::late,      kind::lost_request, kind::lost_reply, kind::cut,    kind::pause,
                kind::asleep,    kind::wall_jump,    kind::hang,       kind::expiry, kind::election,
                kind::isolation, kind::collection,   kind::refusal,    kind::kill};
    }

    lock_client& add(sim::clock c, schedule_chance& /*chance*/) override
    {
        return processes_.emplace_back(world_, static_cast<unsigned>(processes_.size()), c, servers_, queueing_);
    }

    /// Servers hang and are cut off, leaders change, containers are collected; a client reaches no server for a while,
    /// or its wall clock is set.
    time_point disturb(time_point over, schedule_chance& chance) override
    {
        auto well_at = time_point{};
        auto const some = [&](kind what, unsigned most, duration longest, auto const& f) {
            for (std::uint32_t i = chance.one_in(2) ? 1 + static_cast<std::uint32_t>(chance.below(most)) : 0; i > 0;
                 --i) {
                bool const of_client = what == kind::expiry || what == kind::wall_jump;
                auto const which =
                    static_cast<std::uint8_t>(chance.below(of_client ? processes_.size() : zookeeper_servers::count));
                auto const at = world_.now() + chance.up_to(over - time_point{});
                auto const length = std::chrono::microseconds{1} + chance.up_to(longest);
                auto const nobody = sim::decision::nobody;
                if (!world_.comes_true({what, of_client ? which : nobody, of_client ? nobody : which, i})) continue;
                well_at = std::max(well_at, at + length);
                world_.at(at, [f, which, length] { f(which, length); });
            }
        };
        duration const t = timeout();
        some(kind::hang, 3, t, [this](unsigned s, duration d) { servers_.hang(s, d); });
        some(kind::isolation, 3, 2 * t, [this](unsigned s, duration d) { servers_.isolate(s, d); });
        some(kind::election, 2, t / 2, [this](unsigned, duration d) { servers_.elect(d); });
        some(kind::collection, 5, milliseconds{1}, [this](unsigned, duration) { servers_.collect(); });
        if (processes_.empty()) return well_at;
        some(kind::expiry, 2, 2 * t, [this](unsigned c, duration d) { processes_[c].way.loop().cut_off(d); });
        some(kind::wall_jump, 2, t, [this](unsigned c, duration d) { processes_[c].host().set_wall_clock(-d); });
        return well_at;
    }

    void settle() override { servers_.postpone(0); }

    [[nodiscard]] milliseconds most_margin() const override { return ttl_ / 3; }

    /// A few ways to the leader and back.
    [[nodiscard]] duration arrival() const override { return 20 * world_.wrong().longest_delay; }

    [[nodiscard]] duration dead_lease() const override { return 4 * timeout() + milliseconds{300}; }

    /// The sessions of those that died end; what is there then belongs to no client that knows of it.
    [[nodiscard]] std::vector<std::string> remains(std::vector<std::string> const& /*names*/,
                                                   bool /*undisturbed*/) override
    {
        auto const last = world_.now() + 4 * timeout();
        auto& state = servers_.state();
        while ((!state.left().empty() || state.barren()) && world_.step(last)) {
        }
        std::vector<std::string> left;
        if (!state.left().empty()) left.push_back("a node is left: " + state.left());
        if (state.barren()) left.emplace_back("a container is left that never had a child");
        return left;
    }

    [[nodiscard]] std::string about() const override
    {
        return std::string{"ZooKeeper, "} + (queueing_ == zookeeper::queueing::none ? "one node" : "a queue") +
               ", session timeout " + std::to_string(timeout().count()) + " ms";
    }

private:
    using kind = sim::decision::kind;

    struct process final : lock_client {
        process(sim::world& w, unsigned index, sim::clock c, zookeeper_servers& servers, zookeeper::queueing queueing)
            : way{w, index, c, servers, queueing}
        {
        }
        [[nodiscard]] sim::host& host() noexcept override { return way.host(); }
        void kill() override { way.kill(); }
        [[nodiscard]] std::shared_ptr<detail::lock_object> make_lock(std::string_view name,
                                                                     lock_options options) override
        {
            return std::make_shared<basic_process_lock<zookeeper_client>>(way, name, std::move(options));
        }

        zookeeper_client way;
    };

    [[nodiscard]] milliseconds timeout() const noexcept { return 2 * ttl_; }

    [[nodiscard]] static std::int32_t first_number(schedule_chance& chance)
    {
        if (chance.one_in(4))
            return static_cast<std::int32_t>(0x7FFFFFFF - static_cast<std::int32_t>(chance.below(20)));
        return chance.one_in(2) ? 5 : 95;
    }

    [[nodiscard]] std::array<sim::clock, zookeeper_servers::count> clocks(schedule_chance& chance) const
    {
        std::array<sim::clock, zookeeper_servers::count> all;
        for (auto& one : all)
            one = {.ahead = chance.up_to(std::chrono::hours{24}),
                   .drift_ppm = calm_ ? 0 : chance.ms(-4900, 4900).count()};
        return all;
    }

    sim::world& world_;
    milliseconds ttl_;
    bool calm_;
    zookeeper::queueing queueing_;
    zookeeper_servers servers_;
    std::deque<process> processes_;
};

}  // namespace holdfast::test
