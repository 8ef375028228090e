// SPDX-License-Identifier: MIT
#pragma once

#include "lock_site.hpp"
#include "process_lock.hpp"

#include <holdfast/sim.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

/// One Redis, or three or five masters.
class redis_site final : public lock_site {
public:
    static constexpr milliseconds node_timeout{30};
    static constexpr milliseconds guard{1000};

    redis_site(sim::world& w, schedule_chance& chance, milliseconds ttl)
        : world_{w}, servers_{w, clocks(chance)}, ttl_{ttl}
    {
        auto& o = servers_.options;
        o.node_timeout = node_timeout;
        o.connect_timeout = 2 * node_timeout;
        if (servers_.size() > 1) o.restart_guard = o.longest_ttl = guard;
    }

    [[nodiscard]] static std::unique_ptr<lock_site> make(sim::world& w, schedule_chance& chance, milliseconds ttl,
                                                         bool /*calm*/)
    {
        return std::make_unique<redis_site>(w, chance, ttl);
    }

    [[nodiscard]] sim::store& servers() noexcept { return servers_; }

    /// Returns: the client of a process of such a site.
    [[nodiscard]] static sim::client& client_of(lock_client& one) noexcept { return static_cast<process&>(one).way; }

    lock_client& add(sim::clock c, schedule_chance& chance) override
    {
        auto& one = processes_.emplace_back(servers_, c);
        if (chance.one_in(2)) one.way.way().connect();
        return one;
    }

    /// Servers crash, hang and refuse. One that forgets what it has granted has no vote for the guard.
    time_point disturb(time_point over, schedule_chance& chance) override
    {
        using kind = sim::decision::kind;
        constexpr auto nobody = sim::decision::nobody;
        auto well_at = time_point{};
        for (std::uint32_t i = 0; i < 4; ++i) {
            auto const at = world_.now() + chance.up_to(over - time_point{});
            auto const node = static_cast<std::uint8_t>(chance.below(servers_.size()));
            bool const hangs = chance.one_in(2);
            auto const length =
                chance.up_to(chance.one_in(2) ? duration{ttl_} : duration{ttl_ / 10}) + std::chrono::microseconds{1};
            bool const forgets = servers_.size() > 1 && chance.one_in(2);
            if (!chance.one_in(2)) continue;
            if (!world_.comes_true({hangs ? kind::hang : kind::crash, nobody, node, i})) continue;
            well_at = std::max(well_at, at + length + (hangs ? duration{} : duration{guard}));
            world_.at(at, [this, node, hangs, length, forgets] {
                if (hangs) return servers_.hang(node, length);
                servers_.crash(node, length, forgets ? sim::node::memory::lost : sim::node::memory::kept);
            });
        }
        for (std::uint32_t i = 0; i < 2; ++i) {
            constexpr std::array reasons{redis::errc::loading, redis::errc::busy, redis::errc::read_only,
                                         redis::errc::out_of_memory};
            auto const at = world_.now() + chance.up_to(over - time_point{});
            auto const node = static_cast<std::uint8_t>(chance.below(servers_.size()));
            auto const length = chance.up_to(chance.one_in(2) ? duration{ttl_} : duration{ttl_ / 10});
            auto const why = reasons[chance.below(reasons.size())];
            if (!chance.one_in(3) || !world_.comes_true({kind::refusal, nobody, node, i})) continue;
            well_at = std::max(well_at, at + length);
            world_.at(at, [this, node, length, why] {
                servers_[node].forget_scripts();
                servers_[node].refuse_until(world_.now() + length, why);
            });
        }
        return well_at;
    }

    [[nodiscard]] milliseconds most_margin() const override { return std::min(ttl_ / 2, ttl_ - 2 * node_timeout); }

    [[nodiscard]] duration dead_lease() const override { return ttl_ * 9 / 8 + 6 * node_timeout + milliseconds{300}; }

    /// A waiter in a queue may be left if it was killed, or a message to it or from it was lost.
    [[nodiscard]] std::vector<std::string> remains(std::vector<std::string> const& names, bool undisturbed) override
    {
        world_.run_until(world_.now() + (undisturbed ? 20 * world_.wrong().longest_delay : ttl_ * 2 + guard));
        std::vector<std::string> left;
        for (unsigned node = 0; node < servers_.size(); ++node)
            for (auto const& name : names) {
                auto& server = servers_[node];
                if (!server.running()) continue;
                auto const where = name + " is left on server " + std::to_string(node);
                if (server.get(name, world_.now())) left.push_back(where);
                if (undisturbed && server.waiting(name) != 0) left.push_back("a waiter for " + where);
            }
        return left;
    }

    [[nodiscard]] std::string about() const override { return std::to_string(servers_.size()) + " servers"; }

private:
    struct process final : lock_client {
        process(sim::store& servers, sim::clock c) : way{servers, c} {}
        [[nodiscard]] sim::host& host() noexcept override { return way.host(); }
        void kill() override { way.kill(); }
        [[nodiscard]] std::shared_ptr<detail::lock_object> make_lock(std::string_view name,
                                                                     lock_options options) override
        {
            return std::make_shared<process_lock>(way, name, std::move(options));
        }

        sim::client way;
    };

    [[nodiscard]] static std::vector<sim::clock> clocks(schedule_chance& chance)
    {
        std::vector<sim::clock> all(1 + 2 * chance.below(3));
        for (auto& one : all) one = {.ahead = chance.up_to(guard / 5), .drift_ppm = chance.ms(-100, 100).count()};
        return all;
    }

    sim::world& world_;
    sim::store servers_;
    milliseconds ttl_;
    std::deque<process> processes_;
};

}  // namespace holdfast::test
