// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/redis/acquire_operation.hpp>
#include <holdfast/redis/quorum_operation.hpp>
#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/process.hpp>
#include <holdfast/sim/store.hpp>
#include <holdfast/sim/transport.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// A process of a user, on a computer of its own, as a client of a simulated store. It runs coroutines that wait for
/// locks and for times; all clocks that they read are the computer's. It stands still after `host().pause(d)`, and for
/// a year of the world's time after `kill()`. When a client has been destroyed, the world must not go on.
class client {
public:
    // The shipped operations, over the shipped pipeline and a simulated network.
    using acquire_operation = redis::acquire_operation;
    using extend_operation = redis::extend_operation;
    using release_operation = redis::release_operation;

    /// What they know of a lock.
    using key = redis::shared_keys;

    /// Throws: `error` (`misconfigured`) if no file of the program includes `program_clock.hpp`, or the store's options
    /// have a restart guard that is shorter than their longest ttl.
    explicit client(store& s, sim::clock c = {})
        : host_{s.world(), s.clients_++, c}, way_{host_, s, s.options}, options_{s.options}
    {
        host_.read_time_with(&boot_clock::now);
        if (host_.now() != host_.since_boot())
            throw error{errc::misconfigured, "include <holdfast/sim/program_clock.hpp> in one file of the program"};
    }

    client(client const&) = delete;
    client& operator=(client const&) = delete;

    /// Effects: ends its coroutines where they stand.
    ~client() { std::exchange(lives_, {}).clear(); }

    /// Effects: the process is killed: its connections end, and it stands still for a year.
    void kill() { way_.kill(); }

    /// Returns: the client's computer.
    [[nodiscard]] sim::host& host() noexcept { return host_; }
    /// Returns: the client's way to the servers.
    [[nodiscard]] transport& way() noexcept { return way_; }
    /// Returns: the options that it was made with; see `store::options`.
    [[nodiscard]] transport_options const& options() const noexcept { return options_; }

    /// Effects: runs `f(*this)`, a coroutine, from now on, and keeps `f`. An exception that leaves it ends the program.
    void run(std::function<process(client&)> f)
    {
        ++begun_;
        host_.at(host_.present(), [this, &kept = functions_.emplace_back(std::move(f))] { keep(live(kept)); });
    }

    /// Returns: whether everything that it was told to run has ended.
    [[nodiscard]] bool done() const noexcept { return begun_ == 0; }

    /// Returns: what one of its coroutines awaits to go on after `d`, by its computer's clock.
    template <class Rep, class Period>
    [[nodiscard]] auto sleep_for(std::chrono::duration<Rep, Period> const& d)
    {
        return host_.sleep_until(host_.when(saturating_add(host_.now(), d)));
    }

    /// Effects: keeps `p` until it ends.
    void keep(process p)
    {
        lives_.remove_if([](process const& one) { return one.done(); });
        lives_.push_back(std::move(p));
    }

private:
    process live(std::function<process(client&)> const& f)
    try {
        co_await f(*this);
        --begun_;
    } catch (...) {
        std::terminate();
    }

    sim::host host_;
    transport way_;
    transport_options options_;
    std::list<std::function<process(client&)>> functions_;
    std::size_t begun_ = 0;
    std::list<process> lives_;
};

}  // namespace holdfast::sim
