// SPDX-License-Identifier: MIT
#pragma once

#include "record.hpp"

#include <holdfast/core/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace holdfast::faults {

/// Returns: now, in ns of CLOCK_MONOTONIC.
[[nodiscard]] std::int64_t monotonic_now() noexcept;

/// Returns: the same point of CLOCK_MONOTONIC. The two clocks differ by the time for which the machine was asleep: not
/// during a run.
[[nodiscard]] std::int64_t to_monotonic(boot_clock::time_point t) noexcept;

/// What one client has done: records of a fixed size in a file that is mapped into memory, so that all that was written
/// is there after `kill -9`. Threads of the client may write at the same time.
class journal {
public:
    static constexpr std::size_t capacity = std::size_t{1} << 20U;

    /// Effects: makes the file `<client>.journal` in `folder`. Throws: `std::system_error`.
    journal(std::filesystem::path const& folder, std::uint32_t client);
    journal(journal&& other) noexcept;
    journal& operator=(journal&&) = delete;
    ~journal();

    /// Effects: writes `r`, at the time of this call where it has none, as this client's where it names none.
    /// Throws: `std::length_error` when the journal is full.
    void write(record r);

    [[nodiscard]] std::uint32_t client() const noexcept { return client_; }

private:
    struct pages;
    friend std::vector<record> read_journals(std::filesystem::path const& folder);

    journal() = default;  // of another process, to be read

    pages* pages_ = nullptr;
    std::uint32_t client_ = 0;
};

/// Returns: what is in all journals of `folder`, by time. What was not written to its end is left out.
[[nodiscard]] std::vector<record> read_journals(std::filesystem::path const& folder);

}  // namespace holdfast::faults
