// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/token.hpp>
#include <holdfast/redis/admission.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/transport.hpp>
#include <holdfast/sim/channel.hpp>
#include <holdfast/sim/decision.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/network.hpp>

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::sim {

struct transport_options {
    std::chrono::milliseconds node_timeout{50};
    std::chrono::milliseconds connect_timeout{200};

    /// A server that was started less than this long ago has no vote. 0: no guard.
    std::chrono::milliseconds restart_guard{30'000};

    /// The longest ttl of this client's locks: the guard is no shorter, and does not depend on it.
    std::chrono::milliseconds longest_ttl = restart_guard;

    redis::fence_source fencing = redis::fence_source::counter;

    /// How long a counter is kept after its last use; the guard, where that is longer.
    std::chrono::milliseconds fence_lifetime = redis::shortest_fence_lifetime;
};

/// One client's way to the servers of a simulated network. A `redis::Transport`: the operations that run over sockets run over it.
class transport final : private network::peer {
public:
    transport(host& client, network& servers, transport_options const& options)
        : client_{client}, servers_{servers}, options_{options}, admitted_{servers.size(), guard_of(options)}
    {
        for (unsigned node = 0; node < servers.size(); ++node)
            channels_.emplace_back(client, servers, admitted_, node, options.connect_timeout, std::max(options.fence_lifetime, 2 * options.restart_guard));
        servers.join(*this);
    }

    transport(transport const&) = delete;
    transport& operator=(transport const&) = delete;
    ~transport() { servers_.leave(*this); }

    [[nodiscard]] host& client() const noexcept { return client_; }

    /// Effects: begins to connect to every server. Whatever is sent does so, too.
    void connect()
    {
        for (auto& c : channels_) static_cast<void>(c.connect());
    }

    /// Returns: whether there is a connection to every server.
    [[nodiscard]] bool connected() const noexcept
    {
        return std::all_of(channels_.begin(), channels_.end(), [](channel const& c) { return c.up(); });
    }

    /// Effects: see `redis::Transport`, here and below.
    [[nodiscard]] unsigned size() const noexcept { return servers_.size(); }
    [[nodiscard]] boot_clock::time_point now() const noexcept { return client_.now(); }
    std::error_code send(unsigned node, redis::command const& c, redis::listener* l) { return channels_[node].send(c, l); }
    void forget(unsigned node, redis::listener* l) { channels_[node].forget(l); }
    void give_up(unsigned node, redis::listener* l) { channels_[node].give_up(l); }

    /// What a node says of itself is learnt when the connection is made; an acquire that waits for that is refused then.
    [[nodiscard]] std::error_code may_vote(unsigned node, boot_clock::time_point now) const
    {
        if (!channels_[node].up()) return {};
        auto const why = admitted_.may_vote(node, now);
        if (why) ++client_.world().happened().votes_refused;
        return why;
    }

    [[nodiscard]] bool undecided(unsigned node, boot_clock::time_point now) const noexcept
    {
        return channels_[node].up() && admitted_.undecided(node, now);
    }

    [[nodiscard]] std::uint64_t proposal(boot_clock::time_point now) const noexcept { return admitted_.proposal(now); }
    [[nodiscard]] std::chrono::microseconds max_lead() const noexcept { return admitted_.max_lead(); }
    [[nodiscard]] std::chrono::milliseconds node_timeout() const noexcept { return options_.node_timeout; }
    [[nodiscard]] redis::fence_source fencing() const noexcept { return options_.fencing; }
    [[nodiscard]] owner_token fresh_token() const noexcept
    {
        auto const high = random();
        return owner_token::from_bits(high, random());
    }

    [[nodiscard]] std::uint64_t random() const noexcept { return client_.random(); }
    [[nodiscard]] std::string describe(unsigned node, std::error_code) const { return "node " + std::to_string(node); }
    void lock() const noexcept {}
    void unlock() const noexcept {}

    std::error_code watch(unsigned node, redis::shared_keys const& keys, redis::listener* l)
    {
        auto const id = next_id_++;
        watches_.push_back({id, keys, l, {}});
        auto const there = client_.present() + delay(node);
        client_.at(there + delay(node), [this, id, node] { subscribed(id, node); });
        return {};
    }

    void unwatch(redis::shared_keys const& keys, redis::listener* l)
    {
        std::erase_if(watches_, [&](watching const& w) { return w.whom == l && w.keys == keys; });
    }

    void updated(redis::running_operation& operation)
    {
        auto const found = std::find_if(running_.begin(), running_.end(), [&](running const& r) { return r.operation == &operation; });
        bool const known = found != running_.end();
        if (operation.done()) {
            if (known) end(*found);
            if (known) running_.erase(found);
            return;
        }
        auto& r = known ? *found : running_.emplace_back(running{&operation, 0, boot_clock::time_point::max(), {}});
        if (known && r.wake_at == operation.wake_at()) return;
        r.timer = next_id_++;
        r.wake_at = operation.wake_at();
        if (r.wake_at == boot_clock::time_point::max()) return;
        client_.at(client_.when(r.wake_at), [this, timer = r.timer] { on_timer(timer); });
    }

    /// Effects: runs the world until the operation is done or this client's clock has come to `t`. Not to be called from inside it.
    bool wait(redis::running_operation& operation, boot_clock::time_point t)
    {
        auto const end = client_.when(t);
        while (!operation.done() && client_.world().step(end)) {}
        return operation.done();
    }

    /// What a coroutine awaits to go on when an operation is done, or at `until`, a time of the world. Yields when it was done, in the time
    /// of the world.
    struct completion {
        transport& way;
        redis::running_operation& operation;
        boot_clock::time_point until;
        boot_clock::time_point done_at{};
        std::coroutine_handle<> waiter{};

        [[nodiscard]] bool await_ready()
        {
            done_at = way.client_.present();
            return operation.done();
        }

        void await_suspend(std::coroutine_handle<> handle)
        {
            waiter = handle;
            auto const id = way.next_id_++;
            auto& r = *std::find_if(way.running_.begin(), way.running_.end(), [&](running const& one) { return one.operation == &operation; });
            r.waiter = {id, this};
            if (until == boot_clock::time_point::max()) return;
            way.client_.at(until, [&w = way, id] {
                for (auto& one : w.running_)
                    if (one.waiter.first == id && one.waiter.second) return std::exchange(one.waiter.second, nullptr)->waiter.resume();
            });
        }

        boot_clock::time_point await_resume() const noexcept { return done_at; }
    };

    [[nodiscard]] completion finished(redis::running_operation& operation, boot_clock::time_point until = boot_clock::time_point::max())
    {
        return {*this, operation, until};
    }

private:
    struct running {
        redis::running_operation* operation;
        std::uint64_t timer;
        boot_clock::time_point wake_at;
        std::pair<std::uint64_t, completion*> waiter;
    };
    struct watching {
        std::uint64_t id;
        redis::shared_keys keys;
        redis::listener* whom;
        redis::node_set reported;
    };

    [[nodiscard]] static std::chrono::milliseconds guard_of(transport_options const& options) noexcept
    {
        bool const covered = options.restart_guard.count() == 0 || options.longest_ttl <= options.restart_guard;
        if (!covered) std::abort();  // as `redis::fleet` refuses it
        return options.restart_guard;
    }

    [[nodiscard]] boot_clock::duration delay(unsigned node) const { return client_.world().delay(client_.index(), node); }

    void end(running& r)
    {
        auto* const waiter = std::exchange(r.waiter.second, nullptr);
        if (!waiter) return;
        waiter->done_at = client_.present();
        client_.at(client_.present(), [waiter] { waiter->waiter.resume(); });
    }

    void on_timer(std::uint64_t timer)
    {
        auto const found = std::find_if(running_.begin(), running_.end(), [&](running const& r) { return r.timer == timer; });
        if (found != running_.end()) found->operation->on_time(client_.now());
    }

    void subscribed(std::uint64_t id, unsigned node)
    {
        auto const w = std::find_if(watches_.begin(), watches_.end(), [id](watching const& one) { return one.id == id; });
        if (w == watches_.end()) return;
        if (!servers_[node].running()) return w->whom->on_watch_failed(node, redis::errc::cannot_connect, client_.now());
        w->reported.add(node);
        w->whom->on_watching(node, client_.now());
    }

    void on_crash(unsigned node) override
    {
        channels_[node].on_crash();
        for (auto& w : watches_) w.reported.remove(node);
    }

    void on_publish(unsigned node, redis::shared_keys const& keys) override
    {
        auto& world = client_.world();
        for (auto& w : watches_) {
            if (!w.reported.has(node) || w.keys->channel != keys->channel) continue;
            if (world.strikes(decision::kind::lost_report, client_.index(), node, world.wrong().lost_report)) continue;
            client_.at(world.now() + delay(node), [this, id = w.id, node] {
                for (auto& one : watches_)
                    if (one.id == id) return one.whom->on_released(node, client_.now());
            });
        }
    }

    host& client_;
    network& servers_;
    transport_options options_;
    redis::admission admitted_;
    std::deque<channel> channels_;
    std::vector<running> running_;
    std::vector<watching> watches_;
    std::uint64_t next_id_ = 1;
};

static_assert(redis::Transport<transport>);

}  // namespace holdfast::sim
