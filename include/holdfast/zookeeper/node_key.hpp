// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/convert_recipe.hpp>
#include <holdfast/zookeeper/ephemeral_recipe.hpp>
#include <holdfast/zookeeper/held_nodes.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/node_options.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/permit_number.hpp>
#include <holdfast/zookeeper/permit_recipe.hpp>
#include <holdfast/zookeeper/sequential_recipe.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The nodes below that of Curator's semaphore: the permits that are held or about to be, and the queue for them.
inline constexpr std::string_view leases_of_permits = "leases";
inline constexpr std::string_view queue_for_permits = "locks";

/// What the queue's node of kazoo's semaphore has after the name of the semaphore's, below which the permits are.
inline constexpr std::string_view kazoo_queue_for_permits = "-__lock__";

/// What a session knows of one lock: the path of its node, and the kind of its nodes.
class node_key final : public lock_key {
public:
    node_key(std::string_view name, std::string path, node_options nodes, access mode = access::sole)
        : lock_key{std::string{name}, std::string{kind_of(nodes)}, mode}, path_{std::move(path)}, nodes_{nodes}
    {
    }

    /// For a permit of those of which there are `max`, with a node below `path`, as `as` says; that is not `slots`.
    node_key(std::string_view name, std::string path, std::size_t max, permits as = permits::curator)
        : lock_key{std::string{name}, (as == permits::kazoo ? "kazoo's permit" : "permit") + std::to_string(max)},
          path_{std::move(path)},
          nodes_{.permits = as},
          max_{max}
    {
    }

    /// The key of a slot of a semaphore with `number` permits.
    node_key(std::string_view name, std::string path, node_options nodes, std::shared_ptr<permit_number> number)
        : lock_key{std::string{name}, std::string{kind_of(nodes)} + std::to_string(number->permits)},
          path_{std::move(path)},
          nodes_{nodes},
          number_{std::move(number)}
    {
    }

    /// Returns: the number of permits of the semaphore of which it is a slot; null if it is none.
    [[nodiscard]] std::shared_ptr<permit_number> const& number() const noexcept { return number_; }

    [[nodiscard]] std::string const& path() const noexcept { return path_; }

    /// Returns: how many permits there are; 0 if it is no permit.
    [[nodiscard]] std::size_t max() const noexcept { return max_; }

    /// Returns: the key of the lock that is held while the permit is taken. Requires: it is a permit.
    [[nodiscard]] std::shared_ptr<node_key const> queue() const
    {
        bool const of_kazoo = nodes_.permits == permits::kazoo;
        auto above = of_kazoo ? path_ + std::string{kazoo_queue_for_permits}
                              : std::string{parent_of(path_)} + '/' + std::string{queue_for_permits};
        auto const as = of_kazoo ? naming::kazoo : naming::curator;
        return std::make_shared<node_key const>(name(), std::move(above), node_options{.naming = as});
    }

    /// Returns: whether waiting clients have nodes.
    [[nodiscard]] bool queued() const noexcept { return nodes_.queueing != queueing::none; }

    /// Returns: how many fencing tokens a hold has. The others of a `shared_mutex`'s node are for `convert_recipe`.
    [[nodiscard]] unsigned tokens() const noexcept { return mode() == access::sole ? tokens_of_a_node : 1; }

    /// Returns: the machine that takes the lock.
    [[nodiscard]] std::unique_ptr<acquire_machine> machine(acquire_plan plan) const
    {
        if (max_ != 0) return std::make_unique<permit_recipe>(std::move(plan), max_, nodes_.permits);
        if (!queued()) return std::make_unique<ephemeral_recipe>(std::move(plan));
        return std::make_unique<sequential_recipe>(std::move(plan), nodes_.naming, mode());
    }

    /// Returns: the machine that takes it beside `held`, a hold of the other mode.
    [[nodiscard]] std::unique_ptr<acquire_machine> machine(acquire_plan plan, held_nodes::node const& held) const
    {
        return std::make_unique<convert_recipe>(std::move(plan), nodes_.naming, mode(), held.what, held.token);
    }

private:
    [[nodiscard]] static std::string_view kind_of(node_options nodes) noexcept
    {
        if (nodes.queueing == queueing::none) return "plain";
        return nodes.naming == naming::kazoo ? "kazoo" : "";
    }

    std::string path_;
    node_options nodes_{};
    std::size_t max_ = 0;
    std::shared_ptr<permit_number> number_;
};

}  // namespace holdfast::zookeeper
