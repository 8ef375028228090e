// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis/ballot.hpp>

#include <chrono>
#include <system_error>

namespace holdfast::redis {

/// Gives a lease back on every node. A table of its events stands at `ballot`; its results:
///
/// | ballot                                          | outcome |
/// |-------------------------------------------------|---------|
/// | carried                                         | no error |
/// | rejected, each node asked once                  | `not_owner`: it was ours no more |
/// | rejected, but the answer to a first release was lost | no error: one of the two freed it, or it was free |
/// | neither, a right or a password is wrong         | that |
/// | neither, and a majority may have freed it       | `outcome_unknown`: answers are missing |
/// | neither                                         | why a node failed |
class release_machine {
public:
    release_machine(unsigned nodes, std::chrono::milliseconds node_timeout) noexcept : ballot_{nodes, node_timeout} {}

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept { return ballot_.wake_at(); }
    [[nodiscard]] ballot_step start(boot_clock::time_point now) noexcept { return ballot_.start(now); }
    [[nodiscard]] ballot_step on_answer(unsigned node, answer const& a, boot_clock::time_point now) noexcept
    {
        others_wait_ = others_wait_ || a.told > 0;
        return ballot_.on_answer(node, a, now);
    }
    [[nodiscard]] ballot_step on_time(boot_clock::time_point now) noexcept { return ballot_.on_time(now); }

    /// Requires: a step said that it is done.
    [[nodiscard]] std::error_code outcome() const noexcept
    {
        if (ballot_.carried()) return {};
        if (ballot_.rejected()) return ballot_.doubtful() ? std::error_code{} : make_error_code(holdfast::errc::not_owner);
        auto const why = ballot_.error();
        bool const certain = why == holdfast::errc::misconfigured || !ballot_.may_be_carried();
        return certain ? why : make_error_code(holdfast::errc::outcome_unknown);
    }

    /// Returns: one that failed.
    [[nodiscard]] unsigned failed_node() const noexcept { return ballot_.failed_node(); }

    /// Returns: whether a node had somebody to tell of the release: others wait for the lock.
    [[nodiscard]] bool others_wait() const noexcept { return others_wait_; }

private:
    ballot ballot_;
    bool others_wait_ = false;
};

}  // namespace holdfast::redis
