// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {

/// What came of one schedule of clients of one lock on ZooKeeper.
struct zookeeper_verdict {
    std::vector<std::string> breaches;
    std::uint64_t acquired = 0;
    std::uint64_t given_up = 0;
    std::uint64_t lost_answers = 0;
    std::uint64_t expired = 0;
    std::uint64_t abandoned = 0;
    std::uint64_t collected = 0;
    std::uint64_t exhausted = 0;
    std::uint64_t refused = 0;
    std::uint64_t beside = 0;     ///< readers that had it together
    std::uint64_t converted = 0;  ///< holds that went from one mode to the other
    std::uint64_t not_converted = 0;
    std::uint64_t hash = 0;
};

/// Effects: runs the shipped machines through the schedule of `seed`.
zookeeper_verdict run_zookeeper_schedule(std::uint64_t seed);

}  // namespace holdfast::test
