// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/validity.hpp>
#include <holdfast/redis/ballot.hpp>

#include <chrono>
#include <system_error>

namespace holdfast::redis {

/// What came of an extend: no error and the new validity; or `lease_lost`; or why it is not known, in which case the old deadline stands.
struct extend_outcome {
    std::error_code error{};
    boot_clock::time_point valid_until{};
    unsigned node = max_nodes;
};

/// Extends a lease on a majority of the nodes. A node that has lost the vote, or never gave it, is asked for it anew (`votes`). A table of its
/// events stands at `ballot`; its results:
///
/// | ballot                                       | result   | outcome |
/// |----------------------------------------------|----------|---------|
/// | carried, and the new lease is still valid    | renewed  | validity counted from before the first send |
/// | rejected: so many nodes have not our token that no majority can have it | lost | `lease_lost` |
/// | neither, a node answered with an error       | refused  | its code |
/// | neither, answers are missing                 | unknown  | `outcome_unknown` |
class extend_machine {
public:
    extend_machine(unsigned nodes, std::chrono::milliseconds node_timeout, std::chrono::milliseconds ttl) noexcept
        : ballot_{nodes, node_timeout}, ttl_{ttl}
    {
    }

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept { return ballot_.wake_at(); }

    [[nodiscard]] ballot_step start(boot_clock::time_point now) noexcept
    {
        sent_ = now;
        return ballot_.start(now);
    }

    [[nodiscard]] ballot_step on_answer(unsigned node, answer const& a, boot_clock::time_point now) noexcept
    {
        now_ = now;
        return ballot_.on_answer(node, a, now);
    }

    [[nodiscard]] ballot_step on_time(boot_clock::time_point now) noexcept
    {
        now_ = now;
        return ballot_.on_time(now);
    }

    /// Requires: a step said that it is done.
    [[nodiscard]] extend_outcome outcome() const noexcept
    {
        auto const until = valid_until(sent_, ttl_);
        if (ballot_.carried() && now_ < until) return {.valid_until = until};
        if (ballot_.rejected()) return {.error = make_error_code(holdfast::errc::lease_lost)};
        auto const why = ballot_.error();
        bool const answered = why && why != errc::no_answer && why != errc::connection_lost;
        return {.error = answered ? why : make_error_code(holdfast::errc::outcome_unknown), .node = ballot_.failed_node()};
    }

private:
    ballot ballot_;
    std::chrono::milliseconds ttl_;
    boot_clock::time_point sent_{};
    boot_clock::time_point now_{};
};

}  // namespace holdfast::redis
