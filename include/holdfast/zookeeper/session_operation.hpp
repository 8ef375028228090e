// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/ended_operations.hpp>
#include <holdfast/core/linked_line.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// An operation of a session. While it is attached it is told what happens, and looked at when its time comes, always
/// with the session's mutex held. If it throws, for want of memory, the session ends: part of what it had to send may
/// have been sent.
class session_operation : public holdfast::detail::ending {
public:
    /// What was sent with `tag` was answered.
    virtual void on_answer(unsigned /*tag*/, reply const& /*r*/) {}
    /// The node that a watch with `tag` was sent for changed, or may have.
    virtual void on_notice(unsigned /*tag*/) {}
    /// Requests can be sent in `session`, again or for the first time. Also called again when an answer was lost.
    virtual void on_connected(std::int64_t /*session*/) {}
    /// No server can be reached any more; the session may go on.
    virtual void on_suspended() noexcept {}
    /// The session is over.
    virtual void on_expired() noexcept {}
    /// The time that was set with `session_core::look_at` has come.
    virtual void on_time(boot_clock::time_point /*now*/) noexcept {}

protected:
    session_operation() = default;
    virtual ~session_operation() = default;

private:
    friend class session_core;
    friend class session_engine;
    friend class watch_list;
    friend class holdfast::detail::linked_line<session_operation>;

    session_operation* previous = nullptr;
    session_operation* next = nullptr;
    bool attached_ = false;
    boot_clock::time_point due_ = boot_clock::time_point::max();
    std::size_t unanswered_ = 0;               // how many answers it is to get
    std::size_t making_ = 0;                   // the bytes of its node, see `held_nodes`
    std::string watched_;                      // the path of the node that it watches
    std::shared_ptr<session_operation> kept_;  // itself, while the session keeps it
};

}  // namespace holdfast::zookeeper
