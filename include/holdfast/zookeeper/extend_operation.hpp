// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/held_nodes.hpp>
#include <holdfast/zookeeper/lock_place.hpp>
#include <holdfast/zookeeper/receiver.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_lease.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::zookeeper {

/// Confirms a lease: a quorum says that the session lives, and the server that the lock's node is there. The ttl is the session's. All
/// leases of a session share the question to the quorum.
class extend_operation final : private receiver {
public:
    extend_operation(lock_place& place, std::shared_ptr<std::string const> const& /*lock*/, owner_token const& token, std::chrono::milliseconds /*ttl*/)
        : core_{place.core()}, token_{token}
    {
    }

    extend_operation(extend_operation const&) = delete;
    extend_operation& operator=(extend_operation const&) = delete;

    ~extend_operation() override
    {
        std::scoped_lock guard{core_.mutex()};
        core_.detach(*this);
    }

    void start()
    {
        limit_ = boot_clock::now() + core_.options().operation_timeout;
        std::scoped_lock guard{core_.mutex()};
        if (core_.held().find(token_))
            core_.attach(*this);
        else
            end(make_error_code(holdfast::errc::lease_lost));
    }

    bool wait_until(boot_clock::time_point t)
    {
        for (;;) {
            auto const now = boot_clock::now();
            {
                std::scoped_lock guard{core_.mutex()};
                if (!outcome_ && now >= limit_) end(asked_ ? errc::no_answer : errc::not_connected);
                if (outcome_) return true;
            }
            if (now >= t) return false;
            bed_.park_until(std::min(t, limit_));
        }
    }

    [[nodiscard]] result<boot_clock::time_point> outcome() const { return *outcome_; }

private:
    void on_answer(unsigned, reply const& r) override
    {
        auto* const node = core_.held().find(token_);
        asked_ = r.what != answer::lost && r.what != answer::postponed;
        if (!node) return end(make_error_code(holdfast::errc::lease_lost));
        if (!asked_) return;
        if (r.what == answer::refused) return end(r.code);
        if (r.what == answer::no_node || r.stat.czxid != node->what.czxid) {
            static_cast<void>(core_.held().take(token_));
            return end(make_error_code(holdfast::errc::lease_lost));
        }
        auto const until = core_.lease().until();
        node->ends = until + drift(session_lease::duration(core_.lease().timeout()));
        end(until);
    }

    void on_notice(unsigned) override {}

    void on_connected(std::int64_t) override
    {
        auto* const node = core_.held().find(token_);
        if (outcome_ || std::exchange(asked_, true)) return;
        if (!node) return end(make_error_code(holdfast::errc::lease_lost));
        core_.show_life(true, boot_clock::now() - core_.lease().timeout() / 16);
        core_.perform(*this, {{{request::kind::data, node->what.node.empty() ? node->what.lock : node->what.node}, 0}});
    }

    void on_expired() noexcept override { end(make_error_code(holdfast::errc::lease_lost)); }
    void on_failure(std::error_code why) noexcept override { end(why); }

    void end(auto outcome) noexcept
    {
        if (outcome_) return;
        outcome_.emplace(std::move(outcome));
        bed_.unpark();
    }
    void end(errc why) noexcept { end(make_error_code(why)); }

    session_core& core_;
    owner_token token_;
    boot_clock::time_point limit_{};
    bool asked_ = false;
    std::optional<result<boot_clock::time_point>> outcome_;
    holdfast::detail::parker bed_;
};

}  // namespace holdfast::zookeeper
