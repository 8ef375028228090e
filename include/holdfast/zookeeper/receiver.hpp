// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/zookeeper/requests.hpp>

#include <cstdint>
#include <list>
#include <system_error>

namespace holdfast::zookeeper {

/// Something that a session tells what happens; always with the session's mutex held. What it throws comes back to it as a failure: the
/// thread may be the C client's, which knows of no exceptions.
class receiver {
public:
    receiver() = default;
    receiver(receiver const&) = delete;
    receiver& operator=(receiver const&) = delete;

    /// What was sent with `tag` was answered.
    virtual void on_answer(unsigned tag, reply const& r) = 0;
    /// The node changed for which a watch was sent with `tag`.
    virtual void on_notice(unsigned tag) = 0;
    /// Requests can be sent in `session`, again or for the first time. Also called again when an answer was lost.
    virtual void on_connected(std::int64_t session) = 0;
    /// No server is reached any more; the session may go on.
    virtual void on_suspended() noexcept {}
    /// The session is over.
    virtual void on_expired() noexcept = 0;
    /// It threw while it was told something: memory ran out, say. Of what it was about to send, a part may have been sent.
    virtual void on_failure(std::error_code why) noexcept = 0;

    /// Effects: calls `f`, which tells it something.
    void hear(auto const& f) noexcept
    try {
        f();
    } catch (std::system_error const& e) {
        on_failure(e.code());
    } catch (...) {
        on_failure(std::make_error_code(std::errc::not_enough_memory));
    }

protected:
    virtual ~receiver() = default;

private:
    friend class audience;
    friend class session_core;
    std::list<receiver*> self_{this};  // where it is while nothing is told to it
    bool attached_ = false;
    std::uint64_t watch_ = 0;
};

}  // namespace holdfast::zookeeper
