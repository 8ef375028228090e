// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::io {

/// Ends a `poll` in another thread: an eventfd.
class wake_up {
public:
    /// Throws: `error` (`unavailable`).
    wake_up() : descriptor_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)}
    {
        if (descriptor_ < 0) throw error{errc::unavailable, "the process has no descriptor left for a client"};
    }
    wake_up(wake_up const&) = delete;
    wake_up& operator=(wake_up const&) = delete;
    ~wake_up() { ::close(descriptor_); }

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

    void signal() const noexcept
    {
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(descriptor_, &one, sizeof one);
    }

    void drain() const noexcept
    {
        std::uint64_t count = 0;
        [[maybe_unused]] auto const got = ::read(descriptor_, &count, sizeof count);
    }

private:
    int descriptor_;
};

}  // namespace holdfast::io
