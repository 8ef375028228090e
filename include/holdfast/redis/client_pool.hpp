// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/insertion_sort.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/make_as.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/io/service.hpp>
#include <holdfast/redis/acquire_operation.hpp>
#include <holdfast/redis/count_operation.hpp>
#include <holdfast/redis/eligibility.hpp>
#include <holdfast/redis/joint_operation.hpp>
#include <holdfast/redis/keys.hpp>
#include <holdfast/redis/layout.hpp>
#include <holdfast/redis/opened.hpp>
#include <holdfast/redis/operator_questions.hpp>
#include <holdfast/redis/quorum_operation.hpp>
#include <holdfast/redis/server_news.hpp>
#include <holdfast/redis/server_status.hpp>
#include <holdfast/redis/socket_transport.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// The servers of a lock as a `lock_store`: one Redis, or the masters of a Redlock. There may be several shards, each
/// with its own connections, so that threads with different locks do not wait for each other. All requests for one name
/// go over the same shard, in order.
///
/// Measured with 8 and 64 threads on two processors, with the names spread by a hash: with one Redis, four shards do
/// 1.9 and 1.1 times as much as one. With five masters they do less: sending to all of them costs a thread more than
/// its waiting, and one shard sends much of it together.
class client_pool final : public lock_store, public servers {
public:
    explicit client_pool(pool_options options)
        : news_{options.news},
          key_prefix_{std::move(options.key_prefix)},
          layout_{options.layout},
          timeout_option_{options.timeout_option},
          restart_guard_{options.restart_guard},
          subscribes_{options.subscribe},
          servers_{text_of(options.servers)}
    {
        for (unsigned i = 0; i < options.connections; ++i) {
            shards_.push_back(std::make_unique<socket_transport>(options, service_.orphaned()));
            service_.add(shards_.back()->reactor());
        }
        for (auto& one : dealt_) one.store(options.connections, std::memory_order_relaxed);
    }

    [[nodiscard]] shared_key make_key(std::string_view name) const override
    {
        return std::make_shared<lock_keys const>(key_prefix_ + std::string{name}, name, access::sole, layout_);
    }

    [[nodiscard]] shared_key make_shared_key(std::string_view name, access mode) const override
    {
        return std::make_shared<lock_keys const>(key_prefix_ + std::string{name}, name, mode, layout_);
    }

    [[nodiscard]] shared_key make_slot_key(semaphore_slot const& of) override
    {
        auto const name = of.lock_name();
        return std::make_shared<lock_keys const>(key_prefix_ + name, name, access::sole, layout_, of.permits);
    }

    [[nodiscard]] std::string address_of(lock_key const& key) const override
    {
        return static_cast<lock_keys const&>(key).lock + '\0' + servers_;
    }

    [[nodiscard]] std::unique_ptr<pending_acquire> acquire(shared_key const& key,
                                                           acquire_request const& request) override
    {
        return holdfast::detail::make_as<pending_acquire, acquire_operation>(shard_of(key), keys_of(key), request);
    }

    /// The masters of a Redlock would each take some.
    [[nodiscard]] bool joins(lock_key const& key) const noexcept override
    {
        return key.mode() == access::sole && layout_ == layout::string && shards_.front()->size() == 1;
    }

    [[nodiscard]] std::unique_ptr<pending_acquire_all> acquire_all(std::vector<acquire_claim> const& claims) override
    {
        auto& way = shard_of(claims.front().first);
        return holdfast::detail::make_as<pending_acquire_all, joint_operation>(way, claims);
    }

    [[nodiscard]] std::unique_ptr<pending_extend> extend(shared_key const& key, owner_token const& token,
                                                         std::chrono::milliseconds ttl) override
    {
        return holdfast::detail::make_as<pending_extend, extend_operation>(shard_of(key), keys_of(key), token, ttl);
    }

    [[nodiscard]] std::unique_ptr<pending_release> release(shared_key const& key) override
    {
        return holdfast::detail::make_as<pending_release, release_operation>(shard_of(key), keys_of(key));
    }

    void lend_release(shared_key const& key, release_user& to) noexcept override
    {
        node_memory each;
        release_operation one{shard_of(key), keys_of(key), &each};
        to.use(one);
    }

    std::uint32_t drive(shared_key const& key, holdfast::detail::parker& who,
                        boot_clock::time_point until) noexcept override
    {
        auto& shard = key ? shard_of(key) : *shards_.front();
        return shard.reactor().drive(who, until);
    }

    void flush(shared_key const& key) noexcept override { shard_of(key).reactor().flush(); }

    bool serve(int alarm) override
    {
        service_.serve(alarm);
        return true;
    }

    void rest() noexcept override { service_.rest(); }

    void on_unfinished(std::function<void()> f) override
    {
        for (auto const& one : shards_) one->on_unfinished(f);
    }

    bool finish() noexcept override
    {
        return std::count_if(shards_.begin(), shards_.end(), [](auto const& one) { return one->finish(); }) != 0;
    }

    [[nodiscard]] std::unique_ptr<pending_count> count_held(std::vector<shared_key> const& slots) override
    {
        auto const& first = slots.front();
        return holdfast::detail::make_as<pending_count, count_operation>(shard_of(first), keys_of(first), slots.size());
    }

    [[nodiscard]] std::unique_ptr<pending_request> resize(shared_key const& slot,
                                                          std::chrono::milliseconds ttl) override
    {
        if (layout_ == layout::redisson) return {};
        return std::make_unique<resize_operation>(shard_of(slot), keys_of(slot), ttl);
    }

    [[nodiscard]] std::unique_ptr<pending_inspection> inspect(shared_key const& key, report_of /*what*/) override
    {
        return holdfast::detail::make_as<pending_inspection, inspect_operation>(shard_of(key), keys_of(key));
    }

    [[nodiscard]] std::unique_ptr<pending_request> force_release(shared_key const& key) override
    {
        return holdfast::detail::make_as<pending_request, force_release_operation>(shard_of(key), keys_of(key));
    }

    [[nodiscard]] std::unique_ptr<pending_request> request_release(shared_key const& key) override
    {
        if (layout_ == layout::redisson) throw not_in_redisson(key->name(), "tell the holder of a lock anything");
        return holdfast::detail::make_as<pending_request, request_release_operation>(shard_of(key), keys_of(key));
    }

    [[nodiscard]] std::unique_ptr<pending_list> list(std::string_view prefix) override
    {
        if (layout_ == layout::redisson) throw not_in_redisson({}, "tell locks from other hashes");
        return holdfast::detail::make_as<pending_list, list_operation>(*shards_.front(), key_prefix_, prefix);
    }

    [[nodiscard]] std::string refused_lease(lock_key const& key, std::chrono::milliseconds ttl) const override
    {
        constexpr std::chrono::seconds watchdog{30};
        if (layout_ == layout::redisson && key.mode() != access::sole && ttl > watchdog)
            return "longer than 30 s, to which the renewals of Redisson's readers shorten the leases of all readers";
        auto why = refused_ttl(ttl, shards_.front()->node_timeout(), timeout_option_);
        return why.empty() ? uncovered(ttl, restart_guard_) : why;
    }

    [[nodiscard]] std::string refused_order(lock_key const& /*key*/) const override
    {
        if (layout_ == layout::redisson) return "but in Redisson's layout the first that asks has a lock";
        if (!subscribes_) return "but its client does not subscribe, so that no release can call it";
        if (shards_.front()->size() == 1) return {};
        return "but the masters of a Redlock each have a queue of their own: two clients may each be the first of "
               "some, and to agree on one order takes a consensus, which they do not have";
    }

    /// Returns: what is known of each server, from the shard that is connected to it or has used it; of its
    /// subscriptions, from all shards.
    [[nodiscard]] std::vector<server_status> status() const override
    {
        if (origin_.in_child()) return {};
        std::vector<server_status> all;
        for (unsigned n = 0; n < shards_.front()->size(); ++n) {
            auto best = shards_.front()->status(n);
            for (std::size_t i = 1; i < shards_.size(); ++i) {
                auto other = shards_[i]->status(n);
                auto const subscription = best.subscription_error ? best.subscription_error : other.subscription_error;
                if (!best.reached && (other.reached || (other.asked && !best.asked))) best = std::move(other);
                best.subscription_error = subscription;
            }
            all.push_back(std::move(best));
        }
        return all;
    }

    [[nodiscard]] std::vector<error> take_notices() noexcept override { return news_->take(); }

    /// The names are spread over this many places, each of which has a shard.
    static constexpr std::size_t places = 256;
    [[nodiscard]] static std::size_t place_of(std::string const& lock) noexcept
    {
        return std::hash<std::string>{}(lock) % places;
    }

private:
    [[nodiscard]] static error not_in_redisson(std::string_view lock, std::string const& what)
    {
        return holdfast::detail::error_of(
            lock, {make_error_code(holdfast::errc::misconfigured), "in Redisson's layout this store cannot " + what});
    }

    [[nodiscard]] static std::string text_of(std::vector<endpoint> const& servers)
    {
        std::vector<std::string> each;
        each.reserve(servers.size());
        for (auto const& one : servers) each.push_back(one.describe() + ' ');
        holdfast::detail::insertion_sort(each.begin(), each.end());
        std::string all;
        for (auto const& one : each) all += one;
        return all;
    }

    [[nodiscard]] static shared_keys keys_of(shared_key const& key) noexcept
    {
        return std::static_pointer_cast<lock_keys const>(key);
    }

    /// Assigns the shards to the places in turn, each for good. With a hash alone, a few locks could give some shards
    /// to many threads and others to none.
    [[nodiscard]] socket_transport& shard_of(shared_key const& key) noexcept
    {
        auto& dealt = dealt_[place_of(static_cast<lock_keys const&>(*key).lock)];
        auto shard = dealt.load(std::memory_order_relaxed);
        if (shard == shards_.size()) {
            auto const next =
                next_shard_.fetch_add(1, std::memory_order_relaxed) % static_cast<unsigned>(shards_.size());
            if (dealt.compare_exchange_strong(shard, next, std::memory_order_relaxed)) shard = next;
        }
        return *shards_[shard];
    }

    holdfast::detail::fork_guard origin_;
    std::shared_ptr<server_news> news_;
    std::string key_prefix_;
    redis::layout layout_;
    std::string_view timeout_option_;
    std::chrono::milliseconds restart_guard_;
    bool subscribes_;
    std::string servers_;  // as `address_of` names them
    io::service service_;
    std::vector<std::unique_ptr<socket_transport>> shards_;
    // the shard of each place; the number of shards if it has none yet
    std::array<std::atomic<unsigned>, places> dealt_;
    std::atomic<unsigned> next_shard_{0};
};

}  // namespace holdfast::redis
