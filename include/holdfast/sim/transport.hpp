// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/finish_pause.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/eligibility.hpp>
#include <holdfast/redis/transport.hpp>
#include <holdfast/sim/connection.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/network.hpp>
#include <holdfast/sim/subscriber.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::sim {

struct transport_options {
    std::chrono::milliseconds node_timeout{50};
    std::chrono::milliseconds connect_timeout{200};

    /// A server that was started less than this long ago has no vote. 0: no guard.
    std::chrono::milliseconds restart_guard{30'000};

    /// The longest ttl of this client's locks: the guard is at least that, and does not depend on it.
    std::chrono::milliseconds longest_ttl = restart_guard;

    /// How long a counter is kept after its last use; the guard, if that is longer.
    std::chrono::milliseconds fence_lifetime = redis::shortest_fence_lifetime;

    /// What the servers' record of a holder says, for as long as the transport lives; empty: they keep none.
    std::string_view holder{};
};

/// One client's connections to the servers of a simulated network. The operations that run over sockets run over it,
/// too.
class transport final : public redis::transport {
public:
    /// Throws: `error` (`misconfigured`) if the restart guard is shorter than the longest ttl.
    transport(host& client, network& servers, transport_options const& options)
        : redis::transport{servers.size(), options.node_timeout, client.random(), guard_of(options),
                           options.fence_lifetime},
          client_{client},
          options_{options}
    {
        auto const go_on = [this] {
            decide(now());
            keep_up();
        };
        for (unsigned n = 0; n != size(); ++n)
            add(connections_.emplace_back(client, servers, n, options.node_timeout, options.connect_timeout, votes(),
                                          go_on),
                subscribers_.emplace_back(client, servers, n, options.connect_timeout));
        for (auto& one : connections_) one.name_holder(options.holder);
        running_.push_back({&finisher_, nullptr, 0, boot_clock::time_point::max()});
    }

    [[nodiscard]] host& client() const noexcept { return client_; }

    /// Effects: begins to connect to every server, as sending does, too.
    void connect()
    {
        for (auto& c : connections_) static_cast<void>(c.connect(now()));
    }

    /// Effects: the process is killed: its connections end, and it stands still for a year.
    void kill()
    {
        for (auto& c : connections_) c.kill();
        for (auto& s : subscribers_) s.kill();
        client_.pause(std::chrono::hours{24 * 365});
    }

    /// Returns: whether there is a connection to every server.
    [[nodiscard]] bool connected() const noexcept
    {
        return std::all_of(connections_.begin(), connections_.end(), [](connection const& c) { return c.up(); });
    }

    /// Effects: see `redis::transport`, here and below.
    [[nodiscard]] boot_clock::time_point now() const noexcept override { return client_.now(); }

    [[nodiscard]] std::error_code may_vote(unsigned node, boot_clock::time_point now) noexcept override
    {
        auto const why = redis::transport::may_vote(node, now);
        if (why) ++client_.world().happened().votes_refused;
        return why;
    }

    [[nodiscard]] std::chrono::milliseconds connect_timeout() const noexcept override
    {
        return options_.connect_timeout;
    }

    [[nodiscard]] owner_token fresh_token() noexcept override
    {
        auto const high = random();
        return owner_token::from_bits(high, random());
    }

    [[nodiscard]] std::uint64_t random() noexcept override { return client_.random(); }
    [[nodiscard]] std::string describe(unsigned node, std::error_code) override
    {
        return "node " + std::to_string(node);
    }

    void lock() override { discard_unanswered(); }
    void unlock() noexcept override {}

    void begin(redis::running& operation, completion& done) override
    {
        running_.push_back({&operation, &done, 0, boot_clock::time_point::max()});
    }

    void updated(redis::running& operation) override
    {
        auto& r = *find(operation);
        if (r.wake_at == operation.wake_at()) return;
        r.timer = ++timers_;
        r.wake_at = operation.wake_at();
        if (r.wake_at == boot_clock::time_point::max()) return;
        client_.at(client_.when(r.wake_at), [this, timer = r.timer] { on_timer(timer); });
    }

    void ended(redis::running& operation) override
    {
        auto const found = find(operation);
        if (found == running_.end()) return;
        auto* const done = found->done;
        running_.erase(found);
        finisher_.look();
        done->complete();
    }

    void abandon(redis::running& operation) override
    {
        if (auto const found = find(operation); found != running_.end()) running_.erase(found);
        finisher_.look();
    }

private:
    struct running {
        redis::running* operation;
        completion* done;
        std::uint64_t timer;
        boot_clock::time_point wake_at;
    };

    /// Goes on with what no operation waits for, at the times of a client's own thread.
    class finisher final : public redis::running {
    public:
        explicit finisher(transport& of) noexcept : way_{of} {}

        [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return pause_.at(); }

        void on_time(boot_clock::time_point now) noexcept override
        {
            std::scoped_lock guard{way_};
            if (pause_.take(now)) way_.finish() ? pause_.go_on(now) : look();
            way_.updated(*this);
        }

        /// Effects: an operation has ended, which may have left something.
        void look()
        {
            if (!way_.unfinished()) return;
            pause_.begin(way_.now());
            way_.updated(*this);
        }

    private:
        transport& way_;
        holdfast::detail::finish_pause pause_;
    };

    [[nodiscard]] static std::chrono::milliseconds guard_of(transport_options const& options)
    {
        if (auto const why = redis::uncovered(options.longest_ttl, options.restart_guard); !why.empty())
            throw error{errc::misconfigured,
                        "longest_ttl is " + std::to_string(options.longest_ttl.count()) + " ms, " + why};
        return options.restart_guard;  // mutant: a guard as long as the client's own ttl
    }

    [[nodiscard]] std::vector<running>::iterator find(redis::running const& operation)
    {
        return std::find_if(running_.begin(), running_.end(),
                            [&](running const& r) { return r.operation == &operation; });
    }

    void on_timer(std::uint64_t timer)
    {
        auto const found =
            std::find_if(running_.begin(), running_.end(), [&](running const& r) { return r.timer == timer; });
        if (found == running_.end()) return;
        found->wake_at = {};  // it may ask for the same moment once more
        found->operation->on_time(client_.now());
    }

    host& client_;
    transport_options options_;
    std::deque<connection> connections_;
    std::deque<subscriber> subscribers_;
    std::vector<running> running_;
    std::uint64_t timers_ = 0;
    finisher finisher_{*this};
};

}  // namespace holdfast::sim
