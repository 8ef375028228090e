// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

/// What is to be called when a session is over. To be used with the session's mutex held.
class alarms {
public:
    void add(std::function<void()> f)
    {
        auto all = std::make_shared<std::vector<std::function<void()>>>(*all_);
        all->push_back(std::move(f));
        all_ = std::move(all);
    }

    /// Effects: they are to be raised.
    void set() noexcept { set_ = true; }

    /// Effects: unlocks the session's mutex; then calls them, where they were set since the last time.
    void raise(std::unique_lock<std::mutex>& guard) noexcept
    {
        auto const all = std::exchange(set_, false) ? all_ : nullptr;
        guard.unlock();
        if (all)
            for (auto const& one : *all) one();
    }

private:
    std::shared_ptr<std::vector<std::function<void()>> const> all_ = std::make_shared<std::vector<std::function<void()>> const>();
    bool set_ = false;
};

}  // namespace holdfast::zookeeper
