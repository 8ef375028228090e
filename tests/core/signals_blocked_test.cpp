// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/signals.hpp"

#include <holdfast/core/signals_blocked.hpp>

#include <pthread.h>

#include <csignal>
#include <optional>
#include <thread>

using holdfast::detail::signal_mask;
using holdfast::detail::signals_blocked;
using holdfast::test::blocked_signals;

namespace {

[[nodiscard]] blocked_signals of_a_thread()
{
    std::optional<blocked_signals> seen;
    std::thread{[&] { seen.emplace(); }}.join();
    return *seen;
}

/// Blocks one more signal in this thread.
class also_blocked {
public:
    explicit also_blocked(int signal)
    {
        sigset_t one;
        ::sigemptyset(&one);
        ::sigaddset(&one, signal);
        ::pthread_sigmask(SIG_BLOCK, &one, &before_);
    }
    also_blocked(also_blocked const&) = delete;
    also_blocked& operator=(also_blocked const&) = delete;
    ~also_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

}  // namespace

TEST_CASE("a thread of the library gets no signals but those of its own faults, and its maker gets them again")
{
    REQUIRE_FALSE(blocked_signals{}.has(SIGTERM));
    REQUIRE_FALSE(blocked_signals{}.has_fault());
    {
        signals_blocked const while_starting;
        auto const there = of_a_thread();
        for (auto const one : {SIGTERM, SIGINT, SIGCHLD, SIGUSR1, SIGPIPE, SIGPROF, SIGALRM}) CHECK(there.has(one));
        CHECK_FALSE(there.has_fault());
    }
    CHECK_FALSE(blocked_signals{}.has(SIGTERM));
}

TEST_CASE("a fault whose signal the program has blocked stays blocked")
{
    also_blocked const by_program{SIGFPE};
    {
        signals_blocked const while_starting;
        CHECK(of_a_thread().has(SIGFPE));
        CHECK_FALSE(of_a_thread().has(SIGSEGV));
    }
    CHECK(blocked_signals{}.has(SIGFPE));
    CHECK_FALSE(blocked_signals{}.has(SIGTERM));
}

TEST_CASE("a thread can be given the signals of another one")
{
    also_blocked const by_program{SIGUSR1};
    signal_mask const of_program;
    signals_blocked const while_starting;
    std::optional<blocked_signals> seen;
    std::thread{[&] {
        of_program.apply();
        seen.emplace();
    }}.join();
    CHECK(seen->has(SIGUSR1));
    CHECK_FALSE(seen->has(SIGTERM));
}
