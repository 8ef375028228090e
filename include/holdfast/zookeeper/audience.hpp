// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/zookeeper/receiver.hpp>

#include <algorithm>
#include <cstdint>
#include <list>

namespace holdfast::zookeeper {

/// The receivers of a session, in the order in which they came. To be used with the session's mutex held.
class audience {
public:
    void add(receiver& who) noexcept
    {
        all_.splice(all_.end(), who.self_);
        who.attached_ = true;
    }

    /// Effects: tells it nothing any more. Returns: whether it was told anything before.
    bool remove(receiver& who) noexcept
    {
        if (!who.attached_) return false;
        who.attached_ = false;
        who.self_.splice(who.self_.end(), all_, std::find(all_.begin(), all_.end(), &who));
        return true;
    }

    [[nodiscard]] bool empty() const noexcept { return all_.empty(); }

    void tell_connected(std::int64_t session) noexcept
    {
        for (auto* const one : all_) one->hear([&] { one->on_connected(session); });
    }
    void tell_suspended() noexcept
    {
        for (auto* const one : all_) one->on_suspended();
    }
    void tell_expired() noexcept
    {
        for (auto* const one : all_) one->on_expired();
    }

private:
    std::list<receiver*> all_;
};

}  // namespace holdfast::zookeeper
