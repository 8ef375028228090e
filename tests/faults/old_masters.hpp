// SPDX-License-Identifier: MIT
#pragma once

#include <support/eventually.hpp>
#include <support/redis_server.hpp>
#include <support/wall_clock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::faults {

/// Masters that say that they were started an hour ago: their clocks were set when they had been. One that is restarted
/// was just started.
class old_masters {
public:
    /// `folder` is where the offsets of their clocks are kept. The clock of each is `apart` ahead of the one before.
    old_masters(std::size_t size, std::filesystem::path const& folder, std::chrono::seconds apart = {})
    {
        using namespace std::chrono_literals;
        for (std::size_t i = 0; i < size; ++i) {
            auto& clock = clocks_.emplace_back(folder / ("offset" + std::to_string(i)));
            servers_.emplace_back(test::redis_options{.environment = clock.environment()});
            clock.set(1h + static_cast<int>(i) * apart);
        }
        for (auto& one : servers_)
            if (!test::eventually([&] { return one.uptime() > 3000s; }, 1min))
                throw std::runtime_error{"a server does not see its clock set"};
    }

    [[nodiscard]] std::vector<std::string> urls() const
    {
        std::vector<std::string> all;
        for (auto const& one : servers_) all.push_back(one.url());
        return all;
    }

    [[nodiscard]] std::vector<std::uint16_t> ports() const
    {
        std::vector<std::uint16_t> all;
        for (auto const& one : servers_) all.push_back(one.port());
        return all;
    }

    [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
    [[nodiscard]] test::redis_server& operator[](std::size_t i) { return servers_.at(i); }
    [[nodiscard]] auto begin() noexcept { return servers_.begin(); }
    [[nodiscard]] auto end() noexcept { return servers_.end(); }

private:
    std::vector<test::wall_clock> clocks_;
    std::vector<test::redis_server> servers_;
};

}  // namespace holdfast::faults
