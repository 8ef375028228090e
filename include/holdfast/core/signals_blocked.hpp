// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <pthread.h>

#include <array>
#include <csignal>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// While it lives, no signal is delivered to this thread, but for those of its own faults. A thread that it starts
/// never gets any others: the program's handlers run in the program's threads. A fault in a user function is told to
/// the handler that the program has for it; the system ends a program that blocks such a signal, without a call of its
/// handler.
class signals_blocked {
public:
    signals_blocked() noexcept
    {
        sigset_t all;
        ::sigfillset(&all);
        for (int const fault : std::array{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
            ::sigdelset(&all, fault);
        ::pthread_sigmask(SIG_BLOCK, &all, &before_);
    }
    signals_blocked(signals_blocked const&) = delete;
    signals_blocked& operator=(signals_blocked const&) = delete;
    ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

/// The signals that are blocked in the thread that made this.
class signal_mask {
public:
    signal_mask() noexcept { ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_); }

    /// Effects: blocks these, and no others, in the calling thread.
    void apply() const noexcept { ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }

private:
    sigset_t mask_{};
};

}  // namespace holdfast::detail
