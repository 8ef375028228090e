// SPDX-License-Identifier: MIT
#pragma once

#include "process_lock.hpp"
#include "zookeeper_process.hpp"
#include "zookeeper_servers.hpp"

#include <holdfast/core/acquire_request.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_key.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/process.hpp>
#include <holdfast/sim/world.hpp>
#include <holdfast/zookeeper/node_options.hpp>
#include <holdfast/zookeeper/session_store.hpp>

#include <chrono>
#include <list>
#include <memory>
#include <string_view>
#include <utility>

namespace holdfast::test {

/// A process with a shipped session: what a `sim::client` is for Redis.
class zookeeper_client {
    /// An operation of the session's store, made where a `sim::client` makes one of its own.
    template <class Operation>
    class made {
    public:
        explicit made(std::unique_ptr<Operation> one) : one_{std::move(one)} {}
        void start(completion& done) { one_->start(done); }
        void cancel() noexcept { one_->cancel(); }
        [[nodiscard]] auto outcome() const { return one_->outcome(); }

    protected:
        [[nodiscard]] Operation& one() const noexcept { return *one_; }

    private:
        std::unique_ptr<Operation> one_;
    };

public:
    using key = shared_key;

    struct acquire_operation : made<pending_acquire> {
        acquire_operation(zookeeper::session_store& in, key const& of, acquire_request const& request)
            : made{in.acquire(of, request)}
        {
        }
    };
    struct extend_operation : made<pending_extend> {
        extend_operation(zookeeper::session_store& in, key const& of, owner_token const& token,
                         std::chrono::milliseconds ttl)
            : made{in.extend(of, token, ttl)}
        {
        }
        [[nodiscard]] bool release_requested() const noexcept { return one().release_requested(); }
    };
    struct release_operation : made<pending_release> {
        release_operation(zookeeper::session_store& in, key const& of) : made{in.release(of)} {}
        void bind(owner_token const& token) noexcept { one().bind(token); }
    };

    /// Effects: begins a session; it may take a moment until that is there.
    zookeeper_client(sim::world& w, unsigned index, sim::clock c, zookeeper_servers& servers,
                     zookeeper::queueing queueing)
        : host_{w, index, c},
          loop_{std::make_shared<zookeeper_loop>(host_, servers)},
          store_{open_zookeeper_session(loop_, servers,
                                        std::chrono::ceil<std::chrono::milliseconds>(servers.timeout() / 2))},
          queueing_{queueing}
    {
        host_.read_time_with(&boot_clock::now);
        host_.at(host_.present(), [this] { store_.session().ensure_running({}); });
    }

    zookeeper_client(zookeeper_client const&) = delete;
    zookeeper_client& operator=(zookeeper_client const&) = delete;

    /// Effects: ends its coroutines where they stand.
    ~zookeeper_client() { std::exchange(lives_, {}).clear(); }

    /// Effects: the process is killed: the servers hear of it no more, and it stands still for a year.
    void kill()
    {
        loop_->end();
        host_.pause(std::chrono::hours{24 * 365});
    }

    [[nodiscard]] sim::host& host() noexcept { return host_; }
    [[nodiscard]] zookeeper::session_store& way() noexcept { return store_; }
    [[nodiscard]] zookeeper_loop& loop() const noexcept { return *loop_; }

    [[nodiscard]] key make_key(std::string_view name) const { return store_.make_key(name, {.queueing = queueing_}); }

    /// Effects: keeps `p` until it ends.
    void keep(sim::process p)
    {
        lives_.remove_if([](sim::process const& one) { return one.done(); });
        lives_.push_back(std::move(p));
    }

private:
    sim::host host_;
    std::shared_ptr<zookeeper_loop> loop_;
    zookeeper::session_store store_;
    zookeeper::queueing queueing_;
    std::list<sim::process> lives_;
};

/// Returns: the key of the lock of that name.
[[nodiscard]] inline shared_key key_of_lock(zookeeper_client const& of, std::string_view name)
{
    return of.make_key(name);
}

}  // namespace holdfast::test
