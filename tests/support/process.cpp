// SPDX-License-Identifier: MIT
#include "process.hpp"

#include "nursery.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <system_error>
#include <utility>

namespace holdfast::test {
namespace {

void flush_output()
{
    std::cout.flush();
    std::fflush(nullptr);
}

[[noreturn]] void be_the_child(std::function<int()> const& run, ::pid_t maker)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != maker)  // it died before the line above
        ::_exit(child::threw);
    // The test framework's handlers would report a failed test on the parent's stdout.
    for (int const fatal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGTERM, SIGINT}) ::signal(fatal, SIG_DFL);

    int status = child::threw;
    try {
        status = run();
    } catch (std::exception const& e) {
        std::fprintf(stderr, "child process %d: %s\n", static_cast<int>(::getpid()), e.what());
    } catch (...) {
        std::fprintf(stderr, "child process %d: unknown exception\n", static_cast<int>(::getpid()));
    }
    flush_output();
    ::_exit(status);
}

}  // namespace

child child::fork(std::function<int()> run)
{
    flush_output();  // what is buffered here must not be printed by both
    ::pid_t const maker = ::getpid();
    int error = 0;
    ::pid_t const pid = in_lasting_thread([&] {
        ::pid_t const forked = ::fork();
        if (forked == 0) be_the_child(run, maker);
        error = errno;
        return forked;
    });
    if (pid < 0) throw std::system_error{error, std::system_category(), "fork"};
    return child{pid};
}

child::child(child&& other) noexcept
    : pid_{std::exchange(other.pid_, -1)}, paused_{other.paused_}, status_{other.status_}
{
}

child& child::operator=(child&& other) noexcept
{
    std::swap(pid_, other.pid_);
    std::swap(paused_, other.paused_);
    std::swap(status_, other.status_);
    return *this;
}

child::~child() { kill(); }

void child::pause()
{
    if (paused_ || !running()) return;
    ::kill(pid_, SIGSTOP);
    reap(WUNTRACED);
    paused_ = !status_;
}

bool child::stopped_itself()
{
    if (paused_ || pid_ <= 0 || status_) return paused_;
    ::siginfo_t seen{};
    // Looks without taking: its end is for others to reap.
    paused_ = ::waitid(P_PID, static_cast<::id_t>(pid_), &seen, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
              seen.si_pid == pid_ && seen.si_code == CLD_STOPPED;
    return paused_;
}

void child::resume()
{
    if (std::exchange(paused_, false)) ::kill(pid_, SIGCONT);
}

void child::kill()
{
    if (!running()) return;
    ::kill(pid_, SIGKILL);
    paused_ = false;
    wait();
}

int child::wait()
{
    while (pid_ > 0 && !status_) reap(0);
    return status_.value_or(threw);
}

std::optional<int> child::wait_for(std::chrono::milliseconds limit)
{
    static_cast<void>(eventually([this] { return !running(); }, limit));
    return status_;
}

std::optional<int> child::exit_status()
{
    if (pid_ > 0 && !status_) reap(WNOHANG);
    return status_;
}

void child::reap(int options)
{
    int raw = 0;
    ::pid_t reaped = 0;
    do reaped = ::waitpid(pid_, &raw, options);
    while (reaped < 0 && errno == EINTR);
    if (reaped < 0)
        status_ = threw;  // not ours: a child asks about a process of its parent
    else if (reaped > 0 && WIFEXITED(raw))
        status_ = WEXITSTATUS(raw);
    else if (reaped > 0 && WIFSIGNALED(raw))
        status_ = 128 + WTERMSIG(raw);
}

}  // namespace holdfast::test
