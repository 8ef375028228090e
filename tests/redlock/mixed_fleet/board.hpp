// SPDX-License-Identifier: MIT
//
// What the members of a mixed fleet write, in a file that they map.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>

inline constexpr std::size_t most_members = 8;

struct board {
    struct seat {
        std::atomic<std::uint64_t> sections{0};
        std::atomic<bool> killed{false};
    };
    std::array<seat, most_members> seats{};
    std::atomic<std::size_t> inside{0};  ///< the holder, counted from 1
    std::atomic<std::uint64_t> fence{0};
    std::atomic<unsigned> overlaps{0};
    std::atomic<unsigned> fences_in_disorder{0};
    std::atomic<unsigned> lost{0};  ///< leases that were over before their holder released the lock
    std::atomic<bool> stop{false};
};

/// Returns: the board in the file, which is made if `fresh`.
inline board& map_board(char const* file, bool fresh)
{
    int const descriptor = ::open(file, O_RDWR | O_CLOEXEC | (fresh ? O_CREAT | O_EXCL : 0), 0600);
    if (descriptor < 0 || (fresh && ::ftruncate(descriptor, sizeof(board)) != 0)) throw std::runtime_error{"no board"};
    void* const area = ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    if (area == MAP_FAILED) throw std::runtime_error{"the board cannot be mapped"};
    return fresh ? *::new (area) board : *static_cast<board*>(area);
}
