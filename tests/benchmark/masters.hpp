// SPDX-License-Identifier: MIT
#pragma once

#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::benchmark {

/// Masters that have run for longer than `guard`, so that they have a vote in a Redlock. (They have never run before,
/// and so cannot have forgotten a grant, whatever the ttl.)
class masters_in_service {
public:
    static constexpr std::size_t size = 5;
    std::chrono::seconds const guard;

    explicit masters_in_service(std::chrono::seconds long_enough = std::chrono::seconds{2}) : guard{long_enough}
    {
        for (auto& server : servers_)
            if (!test::eventually([&] { return server.uptime() >= guard + std::chrono::seconds{2}; }))
                throw std::runtime_error{"a server does not say how long it has run"};
    }

    [[nodiscard]] std::vector<std::string> urls() const { return servers_.urls(); }

    [[nodiscard]] std::vector<std::uint16_t> ports() const { return servers_.ports(); }

    [[nodiscard]] std::vector<test::redis_server*> servers()
    {
        std::vector<test::redis_server*> all;
        for (auto& one : servers_) all.push_back(&one);
        return all;
    }

private:
    test::redis_fleet servers_{size};
};

}  // namespace holdfast::benchmark
