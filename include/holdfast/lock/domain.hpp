// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/lock/failure_reports.hpp>
#include <holdfast/lock/keeper.hpp>
#include <holdfast/lock/local_queue.hpp>
#include <holdfast/lock/report.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::detail {

/// What the locks of one client share: the backend, the thread that keeps their leases, and one queue for each name.
template <class B>
class domain {
public:
    explicit domain(std::shared_ptr<B> backend) : domain{std::move(backend), std::make_shared<keeper>()}
    {
        if constexpr (requires(B& b, std::function<void()> f) { b.on_loss(f); }) backend_->on_loss(keeper_->alarm());
    }

    /// One of several domains of one client, which have a keeper in common. Whoever made that has it told when leases may be lost.
    domain(std::shared_ptr<B> backend, std::shared_ptr<keeper> of_all) : backend_{std::move(backend)}, keeper_{std::move(of_all)} {}

    [[nodiscard]] B& backend() const noexcept { return *backend_; }
    [[nodiscard]] bool in_child() const noexcept { return origin_.in_child(); }

    /// Returns: the queue of `name`, the same for all that ask while one of them has it.
    /// Throws: `error` (`misconfigured`) in a child of `fork`.
    [[nodiscard]] std::shared_ptr<local_queue<B>> queue(std::string_view name)
    {
        if (origin_.in_child())
            throw error_of(name, {make_error_code(errc::misconfigured), "its client was made before fork(); make one in the child"});
        std::scoped_lock guard{mutex_};
        auto found = queues_.find(name);
        if (found != queues_.end())
            if (auto shared = found->second.lock()) return shared;
        auto made = std::make_shared<local_queue<B>>(backend_, keeper_, reports_, origin_, name);
        if (found == queues_.end()) forget_unused();
        queues_.insert_or_assign(std::string{name}, made);
        return made;
    }

private:
    /// Effects: drops the names that nobody uses, often enough for their number to stay proportional to that of those in use.
    void forget_unused()
    {
        if (queues_.size() < sweep_at_) return;
        std::erase_if(queues_, [](auto const& one) { return one.second.expired(); });
        sweep_at_ = 2 * queues_.size() + 64;
    }

    fork_guard origin_;
    std::shared_ptr<B> backend_;
    std::shared_ptr<keeper> keeper_;
    std::shared_ptr<failure_reports> reports_ = std::make_shared<failure_reports>();
    std::mutex mutex_;
    std::map<std::string, std::weak_ptr<local_queue<B>>, std::less<>> queues_;
    std::size_t sweep_at_ = 64;
};

}  // namespace holdfast::detail
