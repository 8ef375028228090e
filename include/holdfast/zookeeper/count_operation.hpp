// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/zookeeper/node_key.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/question_operation.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Asks how many of some locks are held: a request for each; for permits in one place, one for all. Each answer is
/// about a moment of its own.
class count_operation final : public question_operation<std::size_t> {
public:
    /// Requires: there is one, at least.
    count_operation(std::shared_ptr<session_core> in, std::vector<std::shared_ptr<node_key const>> locks)
        : question_operation{std::move(in), locks.front()->name(), locks.front()->path()}, locks_{std::move(locks)}
    {
    }

private:
    void ask() override
    {
        held_ = 0;
        std::vector<request> all;
        all.reserve(locks_.size());
        for (auto const& one : locks_)
            all.push_back({one->queued() ? request::kind::children : request::kind::data, one->path()});
        send_all(std::move(all));
    }

    void on_reply(unsigned tag, reply const& r) override
    {
        if (r.what == answer::refused) return fail(r.code);
        bool const held = locks_[tag]->queued() ? !contenders_among(r.children).empty() : r.stat.ephemeral();
        auto const permits = locks_[tag]->max();
        if (r.what == answer::ok) held_ += permits != 0 ? std::min(permits, r.children.size()) : held ? 1 : 0;
    }

    void on_all() override { end(held_); }

    std::vector<std::shared_ptr<node_key const>> const locks_;
    std::size_t held_ = 0;
};

}  // namespace holdfast::zookeeper
