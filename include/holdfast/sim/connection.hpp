// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/eligibility.hpp>
#include <holdfast/redis/node.hpp>
#include <holdfast/redis/pending_command.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/link.hpp>
#include <holdfast/sim/network.hpp>
#include <holdfast/sim/wire.hpp>

#include <chrono>
#include <functional>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// A node over a simulated wire instead of a socket.
class connection final : private link, public redis::node {
public:
    /// `greeted` is called when it is up.
    connection(host& client, network& servers, unsigned index, std::chrono::milliseconds node_timeout,
               std::chrono::milliseconds connect_timeout, redis::eligibility& votes, std::function<void()> greeted)
        : link{client, servers, index, connect_timeout}, node{index, node_timeout, votes}, greeted_{std::move(greeted)}
    {
    }

    std::error_code connect(boot_clock::time_point now) override { return link::connect(now); }
    using link::kill;

private:
    void disconnect(std::error_code, boot_clock::time_point) override { link::disconnect(); }
    void disconnect_silent(boot_clock::time_point) override { link::disconnect(); }

    void write(redis::pending_command const& next) override
    {
        // What is sent after a roll-back relies on the order, which a copy does not keep.
        bool const rolls_back = next.releases() && !next.whom;
        way().send(
            next.what, [this](redis::answer const& a) { answered(a, client().now()); },
            rolls_back ? wire::copies::none : wire::copies::possible, next.form);
    }

    /// A client's thread begins many renewals before it sends.
    bool keeps_back() noexcept override
    {
        if (!kept_back_ && client().below(2) == 0) return false;
        if (!std::exchange(kept_back_, true))
            client().at(client().present() + client().up_to(std::chrono::milliseconds{1}), [this] {
                kept_back_ = false;
                write_all(client().now());
            });
        return true;
    }

    void on_up(wire::greeting const& g, boot_clock::duration took, boot_clock::time_point now) override
    {
        came_up(g.time, g.uptime, took, now);
        greeted_();
    }

    void on_down(std::error_code why, boot_clock::time_point now) noexcept override { went_down(why, now); }

    std::function<void()> greeted_;
    bool kept_back_ = false;
};

}  // namespace holdfast::sim
