// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis/keys.hpp>
#include <holdfast/redis/node_set.hpp>
#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/node.hpp>
#include <holdfast/sim/world.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace holdfast::sim {

/// The servers of a world, and what happens to them.
class network {
public:
    /// A client that has connections to the servers.
    class peer {
    public:
        /// The connections to the node are gone.
        virtual void on_crash(unsigned node) = 0;

        /// The node has published a release.
        virtual void on_publish(unsigned node, redis::shared_keys const& keys) = 0;

    protected:
        ~peer() = default;
    };

    /// One server for each clock.
    network(sim::world& w, std::span<clock const> clocks) : world_{w}, nodes_{clocks.begin(), clocks.end()} {}

    network(network const&) = delete;
    network& operator=(network const&) = delete;

    [[nodiscard]] sim::world& world() const noexcept { return world_; }
    [[nodiscard]] unsigned size() const noexcept { return static_cast<unsigned>(nodes_.size()); }
    [[nodiscard]] node& operator[](unsigned index) { return nodes_[index]; }

    void join(peer& p) { peers_.push_back(&p); }
    void leave(peer& p) { std::erase(peers_, &p); }

    /// Effects: the server stops now, and starts again after `down` with what it still knows.
    void crash(unsigned index, boot_clock::duration down, node::memory m)
    {
        if (!nodes_[index].running()) return;
        nodes_[index].stop();
        world_.note("is down", event::nobody, index);
        for (auto* p : peers_) p->on_crash(index);
        world_.at(world_.now() + down, [this, index, m] {
            nodes_[index].start(world_.now(), m);
            if (m != node::memory::kept) ++world_.happened().memories_lost;
            world_.note(m == node::memory::lost ? "starts, empty" : m == node::memory::saved ? "starts, old" : "starts", event::nobody, index);
        });
    }

    /// Effects: the server does nothing for a time, then what has come meanwhile.
    void hang(unsigned index, boot_clock::duration d)
    {
        nodes_[index].hang_until(world_.now() + d);
        world_.note("does nothing, us", event::nobody, index, static_cast<std::uint64_t>(d.count() / 1000));
    }

    /// Effects: tells every client of a release.
    void publish(unsigned index, redis::shared_keys const& keys)
    {
        for (auto* p : peers_) p->on_publish(index, keys);
    }

private:
    sim::world& world_;
    std::vector<node> nodes_;
    std::vector<peer*> peers_;
};

}  // namespace holdfast::sim
