// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/node.hpp>
#include <holdfast/sim/world.hpp>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// The servers of a world, and what happens to them.
class network {
public:
    /// A connection to one of the servers.
    class peer {
    public:
        /// The connections to the node are gone.
        virtual void on_crash(unsigned node) = 0;

        /// The node has published `text` on `channel`. Returns: whether it was sent over this connection.
        virtual bool on_publish(unsigned node, std::string const& channel, std::string const& text) = 0;

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

    /// Effects: `p` is told what happens, while it is there.
    void join(std::weak_ptr<peer> p)
    {
        std::erase_if(peers_, [](auto const& one) { return one.expired(); });
        peers_.push_back(std::move(p));
    }

    /// Effects: the server stops now, and starts again after `down` with what it still knows.
    void crash(unsigned index, boot_clock::duration down, node::memory m)
    {
        if (!nodes_[index].running()) return;
        nodes_[index].stop();
        world_.note("is down", event::nobody, index);
        tell([&](peer& p) { p.on_crash(index); });
        world_.at(world_.now() + down, [this, index, m] {
            nodes_[index].start(world_.now(), m);
            if (m != node::memory::kept) ++world_.happened().memories_lost;
            world_.note(m == node::memory::lost    ? "starts, empty"
                        : m == node::memory::saved ? "starts, old"
                                                   : "starts",
                        event::nobody, index);
        });
    }

    /// Effects: the server does nothing for a time, and then does what has come meanwhile.
    void hang(unsigned index, boot_clock::duration d)
    {
        nodes_[index].hang_until(world_.now() + d);
        world_.note("does nothing, us", event::nobody, index, static_cast<std::uint64_t>(d.count() / 1000));
    }

    /// Effects: tells those who asked the server for what is published on `channel`. Returns: how many these are.
    unsigned publish(unsigned index, std::string const& channel, std::string const& text = {})
    {
        unsigned told = 0;
        tell([&](peer& p) { told += p.on_publish(index, channel, text) ? 1U : 0U; });
        return told;
    }

private:
    template <class F>
    void tell(F f)
    {
        for (auto const& one : peers_)
            if (auto const p = one.lock()) f(*p);
    }

    sim::world& world_;
    std::vector<node> nodes_;
    std::vector<std::weak_ptr<peer>> peers_;
};

}  // namespace holdfast::sim
