// SPDX-License-Identifier: MIT
//
// A soak of an ensemble of three ZooKeeper servers.
#include "rows.hpp"

#ifdef HOLDFAST_TEST_ZOOKEEPER
#include "soak.hpp"
#include "zookeeper_nodes.hpp"

#include "../network.hpp"

#include <support/eventually.hpp>
#include <support/proxy.hpp>
#include <support/zookeeper_server.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#endif

#include <stdexcept>

namespace holdfast::faults::soak_zookeeper {

#ifdef HOLDFAST_TEST_ZOOKEEPER
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds session_timeout{1200};
constexpr std::chrono::milliseconds tick{200};

/// Three servers, of which the others give one up that is silent for a second, and a proxy before each.
class guarded_ensemble {
public:
    explicit guarded_ensemble(std::uint64_t seed) : random_{seed}
    {
        for (auto* const side : {&left_, &right_})
            for (auto const& one : servers_) side->emplace_back(one.port(), test::zookeeper_packets);
    }

    /// Returns: the servers as half of the clients see them, and as the other half does.
    [[nodiscard]] std::vector<place> ways_there() const { return {at(left_), at(right_)}; }
    [[nodiscard]] std::string addresses() const { return servers_.addresses(); }

    void kill_follower(std::chrono::milliseconds length)
    {
        auto& one = servers_[(servers_.leader() + 1 + random_() % 2) % servers_.size()];
        one.kill();
        std::this_thread::sleep_for(length / 2);
        one.restart();
        mend();
    }

    void stop_leader(std::chrono::milliseconds length)
    {
        auto& one = servers_[servers_.leader()];
        one.pause();
        std::this_thread::sleep_for(length);
        one.resume();
        mend();
        if (auto const stuck = jammed(servers_)) {
            servers_[*stuck].kill();
            servers_[*stuck].restart();
            mend();
        }
    }

    /// Effects: the others elect another leader, while the old one serves its clients until it finds that nobody
    /// follows it.
    void part_leader(std::chrono::milliseconds length)
    {
        auto const leader = servers_.leader();
        {
            ways network{{servers_.quorum_port(leader)}, true};
            network.cut(0);
            std::this_thread::sleep_for(length);
            network.mend(0);
        }
        mend();
    }

    void cut_off_server(std::chrono::milliseconds length)
    {
        auto const i = random_() % servers_.size();
        std::vector<test::proxy*> struck;
        for (auto* const side : {&left_, &right_})
            struck.push_back(&*std::next(side->begin(), static_cast<std::ptrdiff_t>(i)));
        for (auto* const one : struck) one->freeze();
        std::this_thread::sleep_for(length);
        for (auto* const one : struck) one->pass();
    }

    void cut_off_clients(std::chrono::milliseconds length)
    {
        auto& side = random_() % 2 == 0 ? left_ : right_;
        for (auto& one : side) one.freeze();
        std::this_thread::sleep_for(length);
        for (auto& one : side) one.pass();
    }

    void cut_connections()
    {
        for (auto* const side : {&left_, &right_})
            for (auto& one : *side) one.refuse();
        std::this_thread::sleep_for(100ms);
        for (auto* const side : {&left_, &right_})
            for (auto& one : *side) one.pass();
    }

private:
    using proxies = std::list<test::proxy>;

    static place at(proxies const& side)
    {
        std::string all;
        for (auto const& one : side) all.append(all.empty() ? "" : ",").append(one.address());
        return {.what = place::store::zookeeper, .servers = {all}, .ttl = session_timeout, .operation_timeout = 1000ms};
    }

    /// Effects: waits until all servers serve again: of one fault and the next, two servers could be gone, and nobody
    /// owes a grant then.
    void mend()
    {
        auto const whole = [&] {
            return std::all_of(servers_.begin(), servers_.end(), [](auto const& one) { return one.serves(); });
        };
        if (!test::eventually(whole, 5min)) throw std::runtime_error{"the ensemble is not whole again"};
    }

    test::zookeeper_ensemble servers_{3, {.tick = tick, .config = {"initLimit=50", "syncLimit=5"}}};
    proxies left_;
    proxies right_;
    std::mt19937_64 random_;
};

}  // namespace

void go(run_options const& run, findings& to)
{
    guarded_ensemble ensemble{run.seed};
    std::vector<std::pair<std::string, server_fault>> faults{
        {"connections cut", [&](auto) { ensemble.cut_connections(); }},
        {"a follower killed", [&](auto length) { ensemble.kill_follower(length); }},
        {"the leader stopped", [&](auto length) { ensemble.stop_leader(length); }},
        {"a server cut off from its clients", [&](auto length) { ensemble.cut_off_server(length); }},
        {"half of the clients cut off", [&](auto length) { ensemble.cut_off_clients(length); }},
    };
    if (run.own_network)
        faults.emplace_back("the leader cut off from its followers",
                            [&](auto length) { ensemble.part_leader(length); });
    soak all{run,
             to,
             {.ways_there = ensemble.ways_there(),
              .freed_within = session_timeout + 2 * tick + 200ms,
              .whom = refused_by::holder_or_contender,
              .faults = std::move(faults)}};
    all.go();
    all.judge();
    if (run.control) return;  // each client has nodes of its own, which the servers remove in their own time
    for (std::uint32_t i = 0; i < soak::locks; ++i)
        to.check("K7", check_remains(remains_below("/faults/" + std::to_string(i), ensemble.addresses(),
                                                   2 * session_timeout + 10s)));
}

#else

void go(run_options const&, findings&) { throw std::runtime_error{"this program was built without ZooKeeper"}; }

#endif

}  // namespace holdfast::faults::soak_zookeeper
