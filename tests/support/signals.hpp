// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace holdfast::test {

/// The signals by which a thread is told of a fault of its own.
inline constexpr std::array faults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

/// The signals that are blocked in a thread, which is the one that made this.
class blocked_signals {
public:
    blocked_signals() noexcept { ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_); }

    [[nodiscard]] bool has(int signal) const noexcept { return ::sigismember(&mask_, signal) == 1; }
    [[nodiscard]] bool has_fault() const noexcept
    {
        return std::any_of(faults.begin(), faults.end(), [this](int one) { return has(one); });
    }

private:
    sigset_t mask_{};
};

}  // namespace holdfast::test
