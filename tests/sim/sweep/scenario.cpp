// SPDX-License-Identifier: MIT
#include "scenario.hpp"

#include "exclusion.hpp"
#include "fencing.hpp"
#include "history.hpp"
#include "idleness.hpp"
#include "schedule.hpp"
#include "user.hpp"

#include <holdfast/sim/host.hpp>
#include <holdfast/sim/network.hpp>
#include <holdfast/sim/process.hpp>
#include <holdfast/sim/transport.hpp>
#include <holdfast/sim/world.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;

class scenario {
public:
    scenario(std::uint64_t seed, unsigned nodes, std::function<void(sim::event const&)> observer)
        : plan_{schedule::draw(seed, nodes)}, world_{seed, plan_.wrong}, servers_{world_, plan_.nodes}, end_{world_.now() + plan_.length}
    {
        if (observer) world_.observe(std::move(observer));
    }

    verdict run()
    {
        for (unsigned i = 0; i < plan_.clients.size(); ++i) add_user(i);
        plan_disasters();
        world_.run_until(end_);
        auto quiet = plan_.wrong;
        quiet.pause = 0;
        world_.become(quiet);
        auto const last = end_ + 20 * plan_.ttl;
        while (!all_done() && world_.step(last)) {}
        judge();
        return std::move(verdict_);
    }

private:
    void add_user(unsigned index)
    {
        auto& client = clients_.emplace_back(world_, index, plan_.clients[index]);
        auto& way = ways_.emplace_back(client, servers_,
                                       sim::transport_options{.node_timeout = plan_.node_timeout,
                                                              .connect_timeout = 2 * plan_.node_timeout,
                                                              .restart_guard = plan_.guard,
                                                              .fencing = plan_.fences});
        auto& one = users_.emplace_back(way, key_, plan_, end_, claims_, verdict_);
        if (world_.below(4) != 0) way.connect();
        client.at(some_time(plan_.ttl / 4), [this, &one] { lives_.push_back(one.live()); });
    }

    void plan_disasters()
    {
        for (unsigned i = 0; i < plan_.crashes; ++i)
            world_.at(some_time(plan_.length), [this] {
                if (world_.below(2) == 0) servers_[any_node()].save();
                auto const memory = plan_.memories[world_.below(plan_.memories.size())];
                auto const node = any_node();
                servers_.crash(node, up_to(plan_.longest_down), memory);
            });
        for (unsigned i = 0; i < plan_.hangs; ++i)
            world_.at(some_time(plan_.length), [this] {
                auto const node = any_node();
                servers_.hang(node, up_to(2 * plan_.ttl));
            });
        if (plan_.waves != 0)
            for (unsigned node = 0; node < servers_.size(); ++node) world_.at(some_time(plan_.length / 2), [this, node] { servers_[node].save(); });
        auto wave = some_time(plan_.guard);
        for (unsigned i = 0; i < plan_.waves; ++i) {
            world_.at(wave, [this] { forget_together(); });
            wave += world_.between(plan_.guard, plan_.guard * 5 / 4);
        }
    }

    void forget_together()
    {
        bool const all = world_.below(2) == 0;
        auto const memory = world_.below(2) == 0 ? sim::node::memory::lost : sim::node::memory::saved;
        for (unsigned node = 0; node < servers_.size(); ++node) {
            if (all || world_.below(2) == 0)
                servers_.crash(node, 1us, memory);
            else if (world_.below(2) == 0)
                servers_.hang(node, up_to(plan_.guard));
        }
    }

    void judge()
    {
        if (plan_.exclusive)
            if (auto const b = exclusion::breach(claims_)) breach(*b);
        if (auto const b = fencing::breach(claims_)) breach(*b);
        if (!all_done()) breach("an operation has no result");
        plan_.astray.for_each([&](unsigned node) {
            if (servers_[node].grants() != 0) breach("node " + std::to_string(node) + " was given a vote although its clock is out of line");
        });
        if (plan_.calm) judge_calm();
        verdict_.plan = plan_.describe();
        verdict_.hash = world_.hash();
        verdict_.happened = world_.happened();
    }

    /// Where nothing went wrong the lock never lay idle for long, and when all have gone nothing is left.
    void judge_calm()
    {
        auto const begin = boot_clock::time_point{};
        if (auto const b = idleness::breach(claims_, begin + plan_.ttl / 4, end_, plan_.ttl / 4 + 50ms)) breach(*b);
        auto const keys_of_the_dead = plan_.mortal ? plan_.ttl + 2ms : 0ms;
        world_.run_until(world_.now() + keys_of_the_dead + 4 * plan_.wrong.longest_delay);
        for (unsigned node = 0; node < servers_.size(); ++node)
            if (servers_[node].get(key_->lock, world_.now())) breach("a key is left on node " + std::to_string(node));
    }

    [[nodiscard]] bool all_done() const
    {
        return lives_.size() == clients_.size() && std::all_of(lives_.begin(), lives_.end(), [](auto const& one) { return one.done(); });
    }

    [[nodiscard]] unsigned any_node() { return static_cast<unsigned>(world_.below(servers_.size())); }
    [[nodiscard]] boot_clock::duration up_to(boot_clock::duration most) { return world_.between({}, most); }
    [[nodiscard]] boot_clock::time_point some_time(boot_clock::duration most) { return world_.now() + up_to(most); }
    void breach(std::string what) { verdict_.breaches.push_back(std::move(what)); }

    schedule plan_;
    sim::world world_;
    sim::network servers_;
    boot_clock::time_point end_;
    redis::shared_keys key_ = std::make_shared<redis::lock_keys const>("orders/42");
    history claims_;
    verdict verdict_;
    std::deque<sim::host> clients_;
    std::deque<sim::transport> ways_;
    std::deque<user> users_;
    std::vector<sim::process> lives_;
};

}  // namespace

verdict run_schedule(std::uint64_t seed, unsigned nodes, std::function<void(sim::event const&)> observer)
{
    return scenario{seed, nodes, std::move(observer)}.run();
}

}  // namespace holdfast::test
