// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::test {

/// The wall clock of programs that are started with `environment()`: it can be set while they run.
class wall_clock {
public:
    /// `file` is where its offset is kept. Throws: `std::system_error`.
    explicit wall_clock(std::filesystem::path file);
    wall_clock(wall_clock&& other) noexcept;
    wall_clock& operator=(wall_clock&&) = delete;
    ~wall_clock();

    /// Effects: from now on the clock says that much more than that of the machine.
    void set(std::chrono::nanoseconds ahead) noexcept;

    [[nodiscard]] std::vector<std::string> environment() const;

private:
    std::filesystem::path file_;
    std::int64_t* offset_ = nullptr;
};

}  // namespace holdfast::test
