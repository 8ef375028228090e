// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/redis/subscriptions.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/link.hpp>
#include <holdfast/sim/network.hpp>
#include <holdfast/sim/wire.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// The subscriptions of a node over a simulated wire instead of a socket.
class subscriber final : private link, public redis::subscriptions {
public:
    subscriber(host& client, network& servers, unsigned node, std::chrono::milliseconds connect_timeout)
        : link{client, servers, node, connect_timeout}, subscriptions{node, connect_timeout}
    {
    }

    using link::kill;

private:
    std::error_code connect(boot_clock::time_point now) override { return link::connect(now); }
    void disconnect(std::error_code, boot_clock::time_point, std::string) override { link::disconnect(); }

    void write(verb what, std::string const& channel) override
    {
        way().ask(what, channel, [this, what, channel] { confirmed(what, channel, client().now()); });
    }

    // What has arrived is taken at once, and is not counted in bytes.
    [[nodiscard]] bool readable() const noexcept override { return false; }
    [[nodiscard]] std::uint64_t received() const noexcept override { return 0; }

    void on_up(wire::greeting const&, boot_clock::duration, boot_clock::time_point now) override
    {
        way().on_message(
            [this](std::string const& channel, std::string const& text) { reported(channel, text, client().now()); });
        came_up(now);
    }

    void on_down(std::error_code why, boot_clock::time_point now) noexcept override { went_down(why, now); }
};

}  // namespace holdfast::sim
