// SPDX-License-Identifier: MIT
#pragma once

#include "machines.hpp"

#include <holdfast/quorum/acquire_machine.hpp>

namespace holdfast::test {

/// What a test says of an acquire; it waits for ever unless it says otherwise.
struct acquire_terms {
    unsigned fences = 1;
    backoff_options retry{};
    bool once = false;
    bool until_decided = false;
    boot_clock::time_point deadline = boot_clock::time_point::max();
    boot_clock::time_point unavailable_at = boot_clock::time_point::max();
    boot_clock::duration unavailable_after = boot_clock::duration::max();
    boot_clock::duration leaves_free{};
    std::uint64_t seed = 1;
};

/// An acquire of a lease of ten seconds.
struct acquire {
    quorum::acquire_machine machine;

    explicit acquire(unsigned nodes, acquire_terms const& terms = {})
        : machine{{.nodes = group_of(nodes),
                   .request = {.ttl = std::chrono::seconds{10},
                               .fences = terms.fences,
                               .retry = terms.retry,
                               .once = terms.once,
                               .until_decided = terms.until_decided,
                               .leaves_free = terms.leaves_free,
                               .deadline = terms.deadline,
                               .unavailable_at = terms.unavailable_at,
                               .unavailable_after = terms.unavailable_after},
                   .seed = terms.seed}}
    {
    }

    /// Effects: has the first `count` nodes answer with `a`. Returns: the step after the last of them.
    quorum::acquire_step first_answer(unsigned count, quorum::answer const& a, boot_clock::time_point now)
    {
        quorum::acquire_step step;
        for (unsigned node = 0; node < count; ++node) step = machine.on_answer(node, a, now);
        return step;
    }
};

}  // namespace holdfast::test
