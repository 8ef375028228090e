// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/lock_key.hpp>
#include <holdfast/core/sweep_pace.hpp>
#include <holdfast/lock/client_parts.hpp>
#include <holdfast/lock/wait_queue.hpp>

#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The queues of one client, one for each lock that was asked for. Thread-safe. It may outlive the client.
class queue_table {
public:
    explicit queue_table(std::shared_ptr<client_parts> of) : client_{std::move(of)} {}

    [[nodiscard]] client_parts& client() const noexcept { return *client_; }

    /// Effects: sets `queue` to the queue of `key`, unless it is set. All objects of a name share it, but for those of
    /// the shared mode: each has a lease of its own. It is kept for a while when no object has it any more: it knows
    /// whether other clients wait, which a program that makes a new lock for each section would forget.
    void find(shared_key const& key, std::shared_ptr<wait_queue>& queue)
    {
        std::scoped_lock guard{mutex_};
        if (!queue) queue = key->mode() == access::shared ? make(key) : queue_of(key);
    }

    /// Returns: a lock of this. While it is held, `find` sets nothing.
    [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock{mutex_}; }

private:
    /// The order of the queues: that of their keys.
    struct by_key {
        using is_transparent = void;

        [[nodiscard]] static std::tuple<bool, std::string_view, std::string_view> id_of(lock_key const& key) noexcept
        {
            return {key.mode() == access::sole, key.kind(), key.name()};
        }
        [[nodiscard]] static auto id_of(std::shared_ptr<wait_queue> const& one) noexcept { return id_of(*one->key()); }

        [[nodiscard]] bool operator()(auto const& a, auto const& b) const noexcept { return id_of(a) < id_of(b); }
    };

    [[nodiscard]] std::shared_ptr<wait_queue> make(shared_key const& key) const
    {
        return std::make_shared<wait_queue>(client_, key);
    }

    [[nodiscard]] std::shared_ptr<wait_queue> queue_of(shared_key const& key)
    {
        auto const found = queues_.find(*key);
        if (found != queues_.end()) return *found;
        auto made = make(key);
        forget_unused();
        queues_.insert(made);
        return made;
    }

    /// Effects: drops the queues that are not in use, so often that their number stays proportional to those in use.
    void forget_unused()
    {
        if (!pace_.due(queues_.size())) return;
        std::erase_if(queues_, [](auto const& one) { return one.use_count() == 1 && !one->keeps(); });
        pace_.swept(queues_.size());
    }

    std::shared_ptr<client_parts> const client_;
    std::mutex mutex_;
    std::set<std::shared_ptr<wait_queue>, by_key> queues_;
    sweep_pace pace_;
};

}  // namespace holdfast::detail
