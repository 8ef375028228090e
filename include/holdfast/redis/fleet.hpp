// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/core/report_once.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/redis/acquire_operation.hpp>
#include <holdfast/redis/ballot_operation.hpp>
#include <holdfast/redis/key_cache.hpp>
#include <holdfast/redis/server_news.hpp>
#include <holdfast/redis/server_status.hpp>
#include <holdfast/redis/socket_transport.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::redis {

/// The servers of a lock as a `Backend`. There may be several ways to them, so that threads with different locks do not wait for each other;
/// everything about one name goes the same way, in its order.
///
/// Measured with 8 and 64 threads on two processors, the names dealt out by a hash: with one Redis, four ways do 1.9 and 1.1 times as much as one.
/// With five masters they do less: what a thread sends to all of them costs more than its waiting, and over one way much of it goes together.
class fleet final {
    template <class Operation>
    struct on_its_way final : Operation {
        template <class... Rest>
        on_its_way(fleet& servers, shared_keys const& keys, Rest const&... rest) : Operation{servers.way_of(*keys), keys, rest...}
        {
        }
        on_its_way(on_its_way const&) = delete;
        on_its_way& operator=(on_its_way const&) = delete;
        ~on_its_way() override { this->abandon(); }
    };

public:
    using key = shared_keys;
    using acquire_operation = on_its_way<redis::acquire_operation<socket_transport>>;
    using extend_operation = on_its_way<redis::extend_operation<socket_transport>>;
    using release_operation = on_its_way<redis::release_operation<socket_transport>>;

    explicit fleet(fleet_options options)
        : news_{options.news}, key_prefix_{std::move(options.key_prefix)}, timeout_option_{options.timeout_option}, restart_guard_{options.restart_guard},
          used_{static_cast<unsigned>(options.servers.size())}
    {
        for (unsigned i = 0; i < options.connections; ++i) ways_.push_back(std::make_unique<socket_transport>(options));
        for (auto& one : dealt_) one.store(options.connections, std::memory_order_relaxed);
    }

    [[nodiscard]] key make_key(std::string_view name) const { return used_.get(key_prefix_ + std::string{name}); }

    void check(std::string_view name, lock_options const& options)
    {
        check_options(name, options, ways_.front()->node_timeout(), timeout_option_);
        if ((key_prefix_ + std::string{name}).starts_with(lock_keys::reserved_prefix))
            throw error{holdfast::errc::misconfigured,
                        "lock " + holdfast::quoted(name) + ": names that begin with \"holdfast:\" are reserved for what is kept beside a lock"};
        if (auto const why = uncovered(options.ttl); !why.empty())
            throw error{holdfast::errc::misconfigured, "lock " + holdfast::quoted(name) + ": ttl is " + std::to_string(options.ttl.count()) + " ms, " + why};
    }

    /// Returns: on which server the fence of a lock was foreign and has been replaced; once for each lock.
    [[nodiscard]] std::optional<failure> take_remark(key const& of)
    {
        if (of->fences_replaced.load(std::memory_order_relaxed) == 0) return {};
        auto const node = static_cast<unsigned>(std::countr_zero(of->fences_replaced.exchange(0)));
        auto const why = make_error_code(errc::foreign_fence);
        if (node >= ways_.front()->size() || !remarks_.begins(of->fence, why)) return {};
        auto server = ways_.front()->describe(node, {});
        return failure{why, server + ", key " + holdfast::quoted(of->fence), server};
    }

    /// Returns: why a lease cannot be extended to `ttl`: the servers do not have the time to answer, or the restart guard does not cover it; empty
    /// where it can.
    [[nodiscard]] std::string refused_lease(std::chrono::milliseconds ttl) const
    {
        auto const least = 2 * ways_.front()->node_timeout();
        if (ttl < least) return "less than twice " + std::string{timeout_option_} + ", " + std::to_string(least.count()) + " ms";
        return uncovered(ttl);
    }

    /// Returns: what is known of each server, from the way to it that is connected, or was used; of its
    /// subscriptions, from all.
    [[nodiscard]] std::vector<server_status> status() const
    {
        std::vector<server_status> all;
        for (unsigned n = 0; n < ways_.front()->size(); ++n) {
            auto best = ways_.front()->status(n);
            for (std::size_t i = 1; i < ways_.size(); ++i) {
                auto other = ways_[i]->status(n);
                auto const subscription = best.subscription_error ? best.subscription_error : other.subscription_error;
                if (!best.reached && (other.reached || (other.asked && !best.asked))) best = std::move(other);
                best.subscription_error = subscription;
            }
            all.push_back(std::move(best));
        }
        return all;
    }

    /// Returns: what is to be told of the servers.
    [[nodiscard]] std::vector<server_news::item> take_news() noexcept { return news_->take(); }

private:
    /// Deals the ways out in turn, each for good: by a hash alone, a few locks would leave some of them to many threads and others to none.
    [[nodiscard]] socket_transport& way_of(lock_keys const& keys) noexcept
    {
        auto& dealt = dealt_[key_cache::place_of(keys.lock)];
        auto way = dealt.load(std::memory_order_relaxed);
        if (way == ways_.size()) {
            auto const next = next_way_.fetch_add(1, std::memory_order_relaxed) % static_cast<unsigned>(ways_.size());
            if (dealt.compare_exchange_strong(way, next, std::memory_order_relaxed)) way = next;
        }
        return *ways_[way];
    }

    /// Returns: what is wrong if the restart guard does not cover a lease of `ttl`; empty if it does, or is off.
    [[nodiscard]] std::string uncovered(std::chrono::milliseconds ttl) const
    {
        if (restart_guard_.count() == 0 || ttl <= restart_guard_) return {};
        return "longer than restart_guard, " + std::to_string(restart_guard_.count()) +
               " ms: a server that is restarted would grant the lock again while it is held; set restart_guard to cover it, the same for every client";
    }

    std::shared_ptr<server_news> news_;
    holdfast::detail::report_once remarks_;
    std::string key_prefix_;
    std::string_view timeout_option_;
    std::chrono::milliseconds restart_guard_;
    mutable key_cache used_;
    std::vector<std::unique_ptr<socket_transport>> ways_;
    std::array<std::atomic<unsigned>, key_cache::places> dealt_;  // the way of the names of each place; as many as there are: none yet
    std::atomic<unsigned> next_way_{0};
};

static_assert(Backend<fleet>);

}  // namespace holdfast::redis
