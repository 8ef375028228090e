// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/erase_machine.hpp>
#include <holdfast/zookeeper/held_nodes.hpp>
#include <holdfast/zookeeper/permit_number.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_operation.hpp>

#include <cstdint>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Runs an `erase_machine` in the background of a session. If it is refused, it tries again later.
class node_cleanup final : public session_operation {
public:
    node_cleanup(session_core& session, leftover what) : session_{session}, machine_{std::move(what)} {}

    /// Effects: calls `on_time` of `who` when it is settled, and at `limit`.
    void tell(session_operation& who, boot_clock::time_point limit) noexcept
    {
        told_ = &who;
        session_.look_at(*this, limit);
    }

    /// Effects: goes on, but no operation waits for it any more.
    void leave() noexcept { told_ = nullptr; }

    [[nodiscard]] bool settled() const noexcept { return machine_.settled(); }
    [[nodiscard]] std::error_code outcome() const noexcept { return machine_.outcome(); }

    /// Returns: whether anything was sent.
    [[nodiscard]] bool asked() const noexcept { return machine_.asked(); }

    void on_answer(unsigned tag, reply const& r) override
    {
        machine_.answered(tag, r);
        act();
    }
    void on_connected(std::int64_t session) override
    {
        machine_.connected(session);
        act();
    }
    void on_expired() noexcept override
    {
        machine_.expired();
        act();  // it has nothing to send
    }
    void on_time(boot_clock::time_point now) noexcept override
    {
        if (told_) told_->on_time(now);
    }

private:
    void act()
    {
        session_.perform(*this, machine_.take_actions());
        if (machine_.refused() && !machine_.done()) session_.go_on_later();
        if (!machine_.settled()) return;
        on_time(boot_clock::now());
        if (machine_.done()) session_.drop(*this);
    }

    session_core& session_;
    erase_machine machine_;
    session_operation* told_ = nullptr;
};

/// Effects: removes a node in the background of the session, until that is confirmed or the session is over. Returns:
/// the operation that does it.
inline std::shared_ptr<node_cleanup> erase(session_core& session, leftover what)
{
    auto const bytes = held_nodes::bytes_of(what);
    auto one = std::make_shared<node_cleanup>(session, std::move(what));
    session.keep(one, bytes);
    return one;
}

/// Effects: removes what `machine` has left, in the background. Without memory the session ends, and the node with it.
inline void undo(session_core& session, acquire_machine const& machine) noexcept
try {
    if (machine.left_something()) static_cast<void>(erase(session, machine.what_is_left()));
} catch (...) {
    session.abandon_session(machine.session());
}

/// Effects: ends the lease of `token`, and removes its node in the background. Returns: the operation that does it;
/// null without memory: then the session's thread does it. Requires: it has a node.
inline std::shared_ptr<node_cleanup> give_back(session_core& session, owner_token const& token) noexcept
{
    auto* const node = session.held().find(token);
    try {
        auto one = erase(session, node->what);  // before it is forgotten: there may be no memory for it
        session.held().forget(token);
        return one;
    } catch (std::bad_alloc const&) {
        node->ends = {};
        session.wake_thread();
        return nullptr;
    }
}

/// Effects: removes the mark of `number`, if its session still is that of `session`. Without memory, the session ends.
inline void remove_mark(session_core& session, permit_number& number) noexcept
{
    auto const made_in = std::exchange(number.agreed_in, 0);
    if (made_in == 0 || made_in != session.session()) return;
    try {
        static_cast<void>(erase(session, number.mark));
    } catch (std::bad_alloc const&) {
        session.abandon_session(made_in);  // the node goes with it
    }
}

}  // namespace holdfast::zookeeper
