// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <thread>

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

/// The resource that knows about fencing tokens: takes no write with a token below the greatest it has seen.
class fenced_register {
public:
    /// Returns: which of the writes that were taken this one is, from 1; 0 where it is refused.
    std::uint64_t write(std::uint64_t token)
    {
        while (busy_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
        bool const taken = token >= greatest_;
        if (taken) {
            greatest_ = token;
            ++turn_;
        }
        auto const turn = taken ? turn_ : 0;
        busy_.clear(std::memory_order_release);
        return turn;
    }

private:
    std::atomic_flag busy_;
    std::uint64_t greatest_ = 0;
    std::uint64_t turn_ = 0;
};

/// What one worker has done. Written by it alone; the others read what is counted.
struct journal {
    static constexpr std::size_t capacity = 1U << 16U;

    std::array<section, capacity> sections{};
    std::atomic<std::size_t> count{0};
    std::array<char, 400> error{};  // why it gave up

    [[nodiscard]] std::span<section const> entries() const { return {sections.data(), count.load(std::memory_order_acquire)}; }
    [[nodiscard]] std::string_view failure() const { return error.data(); }
};

/// Memory shared by all processes: what the lock protects, what was done, and what the faults need. A worker that is killed leaves
/// all that it wrote.
struct board {
    std::atomic<std::uint64_t> counter{0};  // atomic to be shared; but a section reads it, thinks, and writes it back
    fenced_register fenced;
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
