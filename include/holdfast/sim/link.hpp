// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/reconnect_pause.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/network.hpp>
#include <holdfast/sim/wire.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// A connection to a simulated server, made on demand, and again after it is lost. It is to the simulation what
/// `redis/link.hpp` is to sockets.
///
/// | state      | left by |
/// |------------|---------|
/// | down       | connect, when the pause after a failure is over → connecting |
/// | connecting | greeting → up; refused, or no greeting in time → down |
/// | up         | cut, crash; disconnect → down |
class link {
public:
    link(host& client, network& servers, unsigned node, std::chrono::milliseconds connect_timeout)
        : client_{client}, servers_{servers}, node_{node}, connect_timeout_{connect_timeout}
    {
    }

    link(link const&) = delete;
    link& operator=(link const&) = delete;

    std::error_code connect(boot_clock::time_point now)
    {
        if (wire_) return {};
        if (!pause_.over(now)) return redis::errc::cannot_connect;
        pause_.begin(now);
        wire_ = std::make_shared<wire>(client_, servers_, node_);
        auto const mine = ++generation_;
        wire_->on_cut([this, mine] {
            if (mine == generation_) disconnect();
        });
        wire_->open([this, now](std::optional<wire::greeting> g) {
            auto const took = client_.now() - now;
            g&& took <= connect_timeout_ ? come_up(*g, took) : disconnect();
        });
        client_.at(client_.present() + connect_timeout_, [this, mine] {
            if (mine == generation_ && !up_) disconnect();
        });
        return {};
    }

    void disconnect()
    {
        if (!wire_) return;
        bool const was_up = std::exchange(up_, false);
        ++generation_;
        wire_->close();
        wire_.reset();
        pause_.ended(was_up ? redis::reconnect_pause::end::lost : redis::reconnect_pause::end::refused, client_.now());
        on_down(was_up ? redis::errc::connection_lost : redis::errc::cannot_connect, client_.now());
    }

    /// Effects: its process is killed: the server sees the connection end.
    void kill()
    {
        if (wire_) wire_->close();
    }

protected:
    ~link() = default;

    virtual void on_up(wire::greeting const& g, boot_clock::duration took, boot_clock::time_point now) = 0;
    virtual void on_down(std::error_code why, boot_clock::time_point now) noexcept = 0;

    [[nodiscard]] host& client() const noexcept { return client_; }

    /// Returns: the connection. What was asked over it is not answered when it is no longer used. Requires: it is up.
    [[nodiscard]] wire& way() const noexcept { return *wire_; }

private:
    void come_up(wire::greeting const& g, boot_clock::duration took)
    {
        up_ = true;
        on_up(g, took, client_.now());
    }

    host& client_;
    network& servers_;
    unsigned node_;
    boot_clock::duration connect_timeout_;
    redis::reconnect_pause pause_;
    std::uint64_t generation_ = 0;
    bool up_ = false;
    std::shared_ptr<wire> wire_;
};

}  // namespace holdfast::sim
