// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/quorum/quorum_poll.hpp>

#include <chrono>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// The result of an extend: no error and the new validity; or `lease_lost`; or why the result is not known: then the
/// old deadline stands.
struct extend_outcome {
    std::error_code error{};
    boot_clock::time_point valid_until{};
    unsigned node = max_nodes;
};

/// Extends a lease on a majority of the nodes. The table of its events is at `quorum_poll`; its results:
///
/// | poll                                         | result   | outcome |
/// |----------------------------------------------|----------|---------|
/// | carried, and the new lease is still valid    | renewed  | validity counted from before the first send |
/// | rejected: so many nodes do not have our token that no majority can have it | lost | `lease_lost` |
/// | otherwise, a majority may have extended it   | unknown  | `outcome_unknown` |
/// | otherwise                                    | refused  | why a node failed |
class extend_machine {
public:
    extend_machine(node_group const& nodes, std::chrono::milliseconds ttl) noexcept : poll_{nodes}, ttl_{ttl} {}

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept { return poll_.wake_at(); }

    [[nodiscard]] poll_step start(boot_clock::time_point now) noexcept
    {
        sent_ = now;
        return poll_.start(now);
    }

    [[nodiscard]] poll_step on_answer(unsigned node, answer const& a, boot_clock::time_point now) noexcept
    {
        now_ = now;
        auto step = poll_.on_answer(node, a, now);
        // It has failed; the answers to come may show that the lease is lost.
        if (step.done && !poll_.carried() && !poll_.rejected() && poll_.may_be_rejected()) step.done = false;
        return step;
    }

    [[nodiscard]] poll_step on_time(boot_clock::time_point now) noexcept
    {
        now_ = now;
        return poll_.on_time(now);
    }

    /// Requires: a step said that it is done.
    [[nodiscard]] extend_outcome outcome() const noexcept
    {
        auto const until = valid_until(sent_, ttl_);  // mutant: renewed validity counted from the end
        if (poll_.carried() && now_ < until) return {.valid_until = until};
        if (poll_.rejected()) return {.error = make_error_code(errc::lease_lost)};
        auto const& why = poll_.why();
        return {.error = poll_.may_be_carried() ? make_error_code(errc::outcome_unknown) : why.error, .node = why.node};
    }

private:
    quorum_poll poll_;
    std::chrono::milliseconds ttl_;
    boot_clock::time_point sent_{};
    boot_clock::time_point now_{};
};

}  // namespace holdfast::quorum
