// SPDX-License-Identifier: MIT
#pragma once

#include "../journal.hpp"

#include <support/connection.hpp>
#include <support/eventually.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::faults {

/// A client of another library: every 10 ms it tries `SET key token NX PX` on all servers, and has the lock if most
/// of them took it. It gives it back by compare-and-delete, and never waits. It knows nothing of queues and fences.
class poller {
public:
    /// `folder` is where its journal goes.
    poller(std::string name, std::vector<std::uint16_t> const& ports, std::filesystem::path const& folder)
        : name_{std::move(name)}, journal_{folder, client}
    {
        for (auto const port : ports) servers_.push_back(std::make_unique<test::connection>(port));
        thread_ = std::jthread{[this](std::stop_token const& stop) {
            for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds{10})) poll();
        }};
    }

    [[nodiscard]] std::uint64_t attempts() const noexcept { return attempts_; }
    [[nodiscard]] std::uint64_t turns() const noexcept { return turns_; }

    /// Returns: whether there is a server that it asks.
    [[nodiscard]] bool asks() const noexcept
    {
        auto const end = left_out_.begin() + static_cast<std::ptrdiff_t>(servers_.size());
        return std::find(left_out_.begin(), end, false) != end;
    }

    /// Effects: no longer asks this server, from when this returns on. Throws: `std::runtime_error` if it hangs.
    void leave_out(std::size_t server)
    {
        left_out_.at(server) = true;
        if (!test::eventually([this, before = attempts()] { return attempts() > before + 1; }))
            throw std::runtime_error{"who polls does not go on"};
    }

    /// Effects: asks it again, over a new connection.
    void take_in(std::size_t server)
    {
        servers_.at(server)->close();
        left_out_.at(server) = false;
    }

private:
    static constexpr std::uint32_t client = 1'000'000;
    static constexpr std::int64_t ttl = 300'000'000;  // ns
    static constexpr std::int64_t drift = 5'000'000;

    void poll()
    {
        ++hold_;
        auto const token = "of another library " + std::to_string(hold_);
        auto const begun = monotonic_now();
        note({.at = begun, .what = event::acquire_begun});
        std::size_t votes = 0;
        for (std::size_t i = 0; i < servers_.size(); ++i)
            votes += ask(i, {"SET", name_, token, "NX", "PX", "300"}).text == "OK" ? 1U : 0U;
        auto const valid_until = begun + ttl - drift;
        bool const taken = votes > servers_.size() / 2 && monotonic_now() < valid_until;
        if (taken) {
            note({.valid_until = valid_until, .what = event::acquire_ok});
            ++turns_;
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
            note({.what = event::release_begun});
        }
        for (std::size_t i = 0; votes != 0 && i < servers_.size(); ++i)
            ask(i,
                {"EVAL", "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
                 "1", name_, token});
        if (taken) note({.value = static_cast<std::uint64_t>(release_result::unknown), .what = event::release_done});
        ++attempts_;
    }

    test::reply ask(std::size_t server, std::vector<std::string> const& words)
    try {
        return left_out_.at(server) ? test::reply{} : (*servers_[server])(words);
    } catch (std::runtime_error const&) {
        return {};  // it was killed
    }

    void note(record r)
    {
        r.hold = hold_;
        journal_.write(r);
    }

    std::string name_;
    journal journal_;
    std::vector<std::unique_ptr<test::connection>> servers_;
    std::array<std::atomic<bool>, 8> left_out_{};
    std::atomic<std::uint64_t> attempts_{0};
    std::atomic<std::uint64_t> turns_{0};
    std::uint32_t hold_ = 0;
    std::jthread thread_;  // last: it uses the others
};

}  // namespace holdfast::faults
