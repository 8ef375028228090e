// SPDX-License-Identifier: MIT
#include "support/hang.hpp"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <system_error>

namespace holdfast::test {
namespace {

constexpr std::string_view no_gdb = "gdb would show where this process hangs; it is not installed\n";

std::array<char, 16> own_pid{};

/// Calls nothing that could wait for a lock of the thread that it interrupts, as `fork` does.
void show_threads(int) noexcept
{
    int const before = errno;
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    auto const child = static_cast<::pid_t>(::syscall(SYS_fork));
    if (child == 0) {
        ::dup2(STDERR_FILENO, STDOUT_FILENO);
        ::execlp("gdb", "gdb", "-nx", "-batch", "-p", own_pid.data(), "-ex", "thread apply all bt 24", nullptr);
        static_cast<void>(::write(STDERR_FILENO, no_gdb.data(), no_gdb.size()) < 0);
        ::_exit(127);
    }
    while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    errno = before;
}

}  // namespace

void tell_where_it_hangs(std::chrono::milliseconds limit)
{
    *std::to_chars(own_pid.begin(), own_pid.end() - 1, ::getpid()).ptr = '\0';
    int const signal = SIGRTMAX - 1;
    struct sigaction action {};
    action.sa_handler = &show_threads;
    action.sa_flags = SA_RESTART;
    if (::sigaction(signal, &action, nullptr) != 0) throw std::system_error{errno, std::system_category(), "sigaction"};
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = signal;
    ::timer_t timer{};
    if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        throw std::system_error{errno, std::system_category(), "timer_create"};
    auto const whole = std::chrono::duration_cast<std::chrono::seconds>(limit);
    itimerspec const at{{}, {whole.count(), std::chrono::nanoseconds{limit - whole}.count()}};
    ::timer_settime(timer, 0, &at, nullptr);
}

void tell_where_it_hangs()
{
    auto const* const limit = std::getenv("HOLDFAST_TEST_TIMEOUT");
    if (!limit) return;
    // A busy machine takes a while to show it.
    if (auto const seconds = std::atoi(limit); seconds > 0)
        tell_where_it_hangs(std::chrono::milliseconds{std::chrono::seconds{seconds}} * 9 / 10);
}

}  // namespace holdfast::test
