// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/quorum/quorum_poll.hpp>

#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// Gives a lease back on every node. The table of its events is at `quorum_poll`; its results:
///
/// | poll                                            | outcome |
/// |-------------------------------------------------|---------|
/// | carried                                         | no error |
/// | rejected, each node asked once                  | `not_owner`: it was no longer ours |
/// | rejected, but the answer to a first release was lost | no error: one of the two freed it, or it was free |
/// | neither, and a majority may have freed it       | `outcome_unknown`: answers are missing |
/// | neither                                         | why a node failed |
class release_machine {
public:
    explicit release_machine(node_group const& nodes) noexcept : poll_{nodes} {}

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept { return poll_.wake_at(); }
    [[nodiscard]] poll_step start(boot_clock::time_point now) noexcept { return poll_.start(now); }

    [[nodiscard]] poll_step on_answer(unsigned node, answer const& a, boot_clock::time_point now) noexcept
    {
        others_wait_ = others_wait_ || a.others_wait;
        return poll_.on_answer(node, a, now);
    }

    [[nodiscard]] poll_step on_time(boot_clock::time_point now) noexcept { return poll_.on_time(now); }

    /// Requires: a step said that it is done.
    [[nodiscard]] std::error_code outcome() const noexcept
    {
        if (poll_.carried()) return {};
        if (poll_.rejected()) return poll_.doubtful() ? std::error_code{} : make_error_code(errc::not_owner);
        return poll_.may_be_carried() ? make_error_code(errc::outcome_unknown) : poll_.why().error;
    }

    /// Returns: a node that failed.
    [[nodiscard]] unsigned failed_node() const noexcept { return poll_.why().node; }

    /// Returns: whether a node told other clients of the release: they wait for the lock.
    [[nodiscard]] bool others_wait() const noexcept { return others_wait_; }

private:
    [[no_unique_address]] quorum_poll poll_;
    bool others_wait_ = false;
};

}  // namespace holdfast::quorum
