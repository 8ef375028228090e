// SPDX-License-Identifier: MIT
#pragma once

#include "support/proxy.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace holdfast::benchmark {

/// A proxy before each server, which makes it as far away as `one_way` says.
class distance {
public:
    distance(std::vector<std::uint16_t> const& servers, std::chrono::microseconds one_way)
    {
        for (auto const port : servers) proxies_.emplace_back(port).delay(one_way, one_way);
    }

    [[nodiscard]] std::vector<std::uint16_t> ports() const
    {
        std::vector<std::uint16_t> list;
        for (auto const& one : proxies_) list.push_back(one.port());
        return list;
    }

    [[nodiscard]] std::vector<std::string> urls() const
    {
        std::vector<std::string> list;
        for (auto const& one : proxies_) list.push_back(one.url());
        return list;
    }

    [[nodiscard]] test::proxy& operator[](std::size_t i) { return proxies_[i]; }

private:
    std::deque<test::proxy> proxies_;
};

}  // namespace holdfast::benchmark
