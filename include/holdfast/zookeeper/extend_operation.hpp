// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/held_nodes.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/pending_operation.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_lease.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Confirms a lease: a quorum says that the session lives, and the server that the lock's node is there. The ttl is the
/// session's. All leases of a session share the request to the quorum.
class extend_operation final : public pending_operation<pending_extend> {
public:
    extend_operation(std::shared_ptr<session_core> in, owner_token const& token)
        : pending_operation{std::move(in)}, token_{token}
    {
    }

    void start(completion& done) override
    {
        session().ensure_running({});
        std::scoped_lock guard{session().mutex()};
        begin(done);
        auto const* const node = session().held().find(token_);
        if (!node) return end(make_error_code(holdfast::errc::lease_lost));
        // Its failure is told before the loss would be, however long the operation timeout is.
        auto const now = boot_clock::now();
        auto const ttl = session_lease::duration(session().lease().timeout());
        auto const left = node->ends - drift(ttl) - announcement_margin(ttl) - node->stop_margin - now;
        // mutant: a renewal that waits for longer than its lease
        auto const longest = std::min<boot_clock::duration>(ttl / 2, left - left / 4);
        session().look_at(*this, std::min(timeout_after(now), now + longest));
        session().attach(*this);
    }

    [[nodiscard]] bool release_requested() const noexcept override { return release_requested_; }

private:
    void on_time(boot_clock::time_point) noexcept override
    {
        if (canceled()) return end(std::make_error_code(std::errc::operation_canceled));
        end(make_error_code(asked_ ? errc::no_answer : errc::not_connected));
    }

    void on_connected(std::int64_t) override
    {
        auto* const node = session().held().find(token_);
        if (ended() || canceled() || std::exchange(asked_, true)) return;
        if (!node) return end(make_error_code(holdfast::errc::lease_lost));
        not_before_ = boot_clock::now() - session().lease().timeout() / 16;
        // mutant: a follower's word taken for a quorum's
        session().show_life(true, not_before_);
        auto const& path = node->what.node.empty() ? node->what.lock : node->what.node;
        session().perform(*this, {{{request::kind::data, path}, 0}});
    }

    void on_answer(unsigned, reply const& r) override
    {
        if (ended()) return;
        auto* const node = session().held().find(token_);
        asked_ = !r.undecided();
        if (!node) return end(make_error_code(holdfast::errc::lease_lost));
        if (!asked_) return;
        if (r.what == answer::refused) return end(r.code);
        // mutant: a holder whose node was deleted is not told
        if (r.what == answer::no_node || r.stat.czxid != node->what.czxid) {
            session().held().forget(token_);
            return end(make_error_code(holdfast::errc::lease_lost));
        }
        release_requested_ = asks_for_release(r.text);
        auto const until = session().lease().until();
        auto const half = session_lease::duration(session().lease().timeout()) / 2;
        // No quorum has been asked, as when the confirm could not be sent.
        bool const asked = session().lease().last_word() > not_before_;
        if (!asked && until < boot_clock::now() + half) return end(make_error_code(errc::not_confirmed));
        node->ends = until + drift(session_lease::duration(session().lease().timeout()));
        end(until);
    }

    void on_expired() noexcept override { end(make_error_code(holdfast::errc::lease_lost)); }

    owner_token const token_;
    boot_clock::time_point not_before_{};  // a quorum has to have been asked after this
    bool asked_ = false;
    bool release_requested_ = false;
};

}  // namespace holdfast::zookeeper
