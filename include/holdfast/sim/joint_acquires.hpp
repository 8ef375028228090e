// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/commands.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// An acquire_all as the acquires that it stands for, and its answer.
class joint_acquires {
public:
    explicit joint_acquires(redis::command const& c)
    {
        for (auto const& one : *c.members)
            each_.push_back({.what = redis::command::verb::acquire,
                             .fence = one.batch == 0 ? redis::fence_source::none : redis::fence_source::clock,
                             .keys = one.keys,
                             .token = one.token,
                             .ttl = one.ttl,
                             .batch = one.batch,
                             .fence_lifetime = c.fence_lifetime});
    }

    /// Returns: the acquires, in their order.
    [[nodiscard]] std::vector<redis::command> const& each() const noexcept { return each_; }

    /// Effects: the next of them is granted with `fence`.
    void granted(std::uint64_t fence) { told_->fences.push_back(fence); }

    /// Returns: yes. Requires: all are granted.
    [[nodiscard]] redis::answer yes() const { return with_report(redis::answer::yes()); }

    /// Returns: no, as `one` of the acquires is refused, for `left` more.
    [[nodiscard]] redis::answer no(redis::command const& one, std::chrono::milliseconds left) const
    {
        told_->blocker = static_cast<std::size_t>(&one - each_.data());
        return with_report(redis::answer::no(left));
    }

private:
    [[nodiscard]] redis::answer with_report(redis::answer a) const
    {
        a.report = told_;
        return a;
    }

    std::vector<redis::command> each_;
    std::shared_ptr<redis::node_report> told_ = std::make_shared<redis::node_report>();
};

}  // namespace holdfast::sim
