// SPDX-License-Identifier: MIT
#include "place.hpp"

#include <support/locks.hpp>

#include <stdexcept>
#include <utility>

namespace holdfast::faults {
namespace {

template <class Client, class Mutex>
class client_of final : public any_client {
public:
    template <class... Args>
    explicit client_of(Args&&... args) : client_{std::forward<Args>(args)...}
    {
    }

    std::unique_ptr<any_lock> lock(std::string const& name, lock_options options) override
    {
        return std::make_unique<lock_of>(client_, name, std::move(options));
    }

private:
    class lock_of final : public any_lock {
    public:
        lock_of(Client& client, std::string const& name, lock_options options) : mutex_{client, name, std::move(options)} {}

        bool try_lock() override { return mutex_.try_lock(); }
        bool try_lock_for(std::chrono::milliseconds d) override { return mutex_.try_lock_for(d); }
        void lock() override { mutex_.lock(); }
        bool extend(std::chrono::milliseconds ttl, std::error_code& ec) override { return mutex_.extend(ttl, ec); }
        void unlock(std::error_code& ec) noexcept override { mutex_.unlock(ec); }
        [[nodiscard]] holdfast::lease lease() const override { return mutex_.lease(); }

    private:
        Mutex mutex_;
    };

    Client client_;
};

}  // namespace

lock_options place::options() const
{
    return {.ttl = ttl,
            .max_local_handoffs = max_local_handoffs,
            .deferred_release = deferred_release,
            .retry = {.most = std::chrono::hours{1}}};
}

std::unique_ptr<any_client> connect(place const& where)
{
    switch (where.what) {
    case place::store::redis: {
        redis::client_options options{.operation_timeout = where.operation_timeout, .restart_guard = where.restart_guard};
        options.connect_timeout = where.connect_timeout.value_or(options.connect_timeout);
        return std::make_unique<client_of<redis::client, redis::mutex>>(where.servers.at(0), std::move(options));
    }
    case place::store::redlock: {
        redlock::masters_options options{.node_timeout = where.operation_timeout, .restart_guard = where.restart_guard};
        options.connect_timeout = where.connect_timeout.value_or(options.connect_timeout);
        return std::make_unique<client_of<redlock::masters, redlock::mutex>>(where.servers, std::move(options));
    }
    case place::store::zookeeper:
#ifdef HOLDFAST_TEST_ZOOKEEPER
        return std::make_unique<client_of<zookeeper::session, zookeeper::mutex>>(
            where.servers.at(0), zookeeper::session_options{.session_timeout = where.ttl, .operation_timeout = where.operation_timeout});
#endif
        break;
    }
    throw std::runtime_error{"this program was built without that store"};
}

}  // namespace holdfast::faults
