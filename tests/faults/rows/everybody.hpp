// SPDX-License-Identifier: MIT
#pragma once

#include "../crew.hpp"

#include <support/eventually.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace holdfast::faults {

/// Effects: waits until every process that is not away has done one more section; what had none is in `unserved`.
inline void everybody(crew& workers, std::string const& after, breaches& unserved,
                      std::set<std::size_t> const& away = {})
{
    std::vector<std::uint32_t> before;
    for (std::size_t i = 0; i < workers.size(); ++i) before.push_back(workers.of(i).sections);
    for (std::size_t i = 0; i < workers.size(); ++i)
        if (!away.contains(i) &&
            !test::eventually([&] { return workers.of(i).sections != before[i]; }, std::chrono::minutes{3}))
            unserved.push_back(after + ": process " + std::to_string(i) + " was not served");
}

}  // namespace holdfast::faults
