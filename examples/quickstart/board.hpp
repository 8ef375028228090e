// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>

#include <support/fenced_register.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace quickstart {

inline constexpr unsigned workers = 8;
inline constexpr unsigned nobody = workers;

using time_point = holdfast::boot_clock::time_point;

/// One section of one worker.
struct section {
    time_point acquired{};
    time_point released{};
    time_point lease_end{};          // as far as the holder knew
    std::uint64_t token = 0;         // the fencing token
    std::uint64_t seen = 0;          // what the counter said; the section wrote one more
    std::uint64_t register_turn = 0;  // which of the writes that the register took; 0 where it refused
    bool late = false;               // its lease had ended when it wrote
    unsigned worker = nobody;
};

/// What one worker has done. Written by it alone; the others read what is counted.
struct journal {
    static constexpr std::size_t capacity = 1U << 16U;

    std::array<section, capacity> sections{};
    std::atomic<std::size_t> count{0};
    std::array<char, 400> error{};  // why it gave up

    [[nodiscard]] std::span<section const> entries() const
    {
        return {sections.data(), count.load(std::memory_order_acquire)};
    }
    [[nodiscard]] std::string_view failure() const { return error.data(); }
};

/// Memory shared by all processes: what the lock protects, what was done, and what the faults need. A worker that is
/// killed leaves all that it wrote.
struct board {
    std::atomic<std::uint64_t> counter{0};  // atomic to be shared; but a section reads it, thinks, and writes it back
    holdfast::test::fenced_register<workers * journal::capacity> fenced;
    std::array<journal, workers> journals;

    std::atomic<bool> stop{false};
    std::atomic<bool> stop_next{false};         // the next worker that gets the lock is to wait inside its section
    std::atomic<unsigned> in_section{nobody};  // that worker, once it does
    std::atomic<bool> go_on{false};

    [[nodiscard]] std::size_t sections() const
    {
        std::size_t sum = 0;
        for (auto const& one : journals) sum += one.count.load(std::memory_order_acquire);
        return sum;
    }
};

}  // namespace quickstart
