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
#include <string>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Asks how many of some locks are held: a request for each, 64 at a time; for Curator's permits one for all.
/// Each answer is about a moment of its own.
/// Fails with `unavailable` if no server answers for an operation timeout.
class count_operation final : public question_operation<std::size_t> {
public:
    /// Requires: there is one, at least.
    count_operation(std::shared_ptr<session_core> in, std::vector<std::shared_ptr<node_key const>> locks)
        : question_operation{std::move(in), locks.front()->name()}, locks_{std::move(locks)}
    {
    }

private:
    static constexpr std::size_t at_once = 64;

    [[nodiscard]] std::string const& about() const noexcept override { return locks_.front()->path(); }

    void ask() override
    {
        held_ = 0;
        next_ = 0;
        ask_some();
    }

    void on_reply(unsigned tag, reply const& r) override
    {
        wait_for_answers();
        if (r.what == answer::refused) return end(explained(r.code));
        bool const ephemeral = r.stat.owner != 0 && r.stat.owner != container_owner;
        bool const held = locks_[tag]->queued() ? !contenders_among(r.children).empty() : ephemeral;
        auto const permits = locks_[tag]->max();
        if (r.what == answer::ok) held_ += permits != 0 ? std::min(permits, r.children.size()) : held ? 1 : 0;
        if (--open_ == 0) ask_some();
    }

    void ask_some()
    {
        std::vector<action> actions;
        for (auto const stop = std::min(locks_.size(), next_ + at_once); next_ < stop; ++next_) {
            auto const& one = *locks_[next_];
            auto const what = one.queued() ? request::kind::children : request::kind::data;
            actions.push_back({{what, one.path()}, static_cast<unsigned>(next_)});
        }
        open_ = actions.size();
        if (open_ == 0) return end(held_);
        session().perform(*this, actions);
    }

    std::vector<std::shared_ptr<node_key const>> const locks_;
    std::size_t held_ = 0;
    std::size_t next_ = 0;  // the first that was not asked about
    std::size_t open_ = 0;  // how many answers are to come
};

}  // namespace holdfast::zookeeper
