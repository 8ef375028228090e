// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <pthread.h>

#include <csignal>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// While it lives, no signal is delivered to this thread. A thread that it starts never gets any: the program's
/// handlers run in the program's threads.
class signals_blocked {
public:
    signals_blocked() noexcept
    {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    signals_blocked(signals_blocked const&) = delete;
    signals_blocked& operator=(signals_blocked const&) = delete;
    ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

}  // namespace holdfast::detail
