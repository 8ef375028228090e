// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/zookeeper/requests.hpp>

#include <cstdint>
#include <list>

namespace holdfast::zookeeper {

/// Something that a session tells what happens; always with the session's mutex held.
class receiver {
public:
    receiver() = default;
    receiver(receiver const&) = delete;
    receiver& operator=(receiver const&) = delete;

    /// What was sent with `tag` was answered.
    virtual void on_answer(unsigned tag, reply const& r) noexcept = 0;
    /// The node changed for which a watch was sent with `tag`.
    virtual void on_notice(unsigned tag) noexcept = 0;
    /// Requests can be sent in `session`, again or for the first time. Also called again when an answer was lost.
    virtual void on_connected(std::int64_t session) noexcept = 0;
    /// No server is reached any more; the session may go on.
    virtual void on_suspended() noexcept {}
    /// The session is over.
    virtual void on_expired() noexcept = 0;

protected:
    ~receiver() = default;

private:
    friend class session_core;
    std::list<receiver*> self_{this};  // where it is while nothing is told to it
    bool attached_ = false;
    std::uint64_t watch_ = 0;
};

}  // namespace holdfast::zookeeper
