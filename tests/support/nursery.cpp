// SPDX-License-Identifier: MIT
#include "nursery.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <semaphore>
#include <thread>

namespace holdfast::test {
namespace {

class nursery {
public:
    ::pid_t run(std::function<::pid_t()> const& fork)
    {
        std::lock_guard const one_at_a_time{callers_};
        fork_ = &fork;
        asked_.release();
        done_.acquire();
        return forked_;
    }

    [[nodiscard]] bool lives_here() const noexcept { return owner_ == ::getpid(); }

private:
    [[noreturn]] void serve()
    {
        for (;;) {
            asked_.acquire();
            forked_ = (*fork_)();
            done_.release();
        }
    }

    std::mutex callers_;
    std::binary_semaphore asked_{0};
    std::binary_semaphore done_{0};
    std::function<::pid_t()> const* fork_ = nullptr;
    ::pid_t forked_ = -1;
    ::pid_t owner_ = ::getpid();
    std::thread thread_{[this] { serve(); }};
};

nursery& this_process_nursery()
{
    static std::mutex guard;
    static nursery* instance = nullptr;  // never destroyed: its thread ends with the process
    std::lock_guard const lock{guard};
    if (instance == nullptr || !instance->lives_here()) instance = new nursery;
    return *instance;
}

}  // namespace

::pid_t in_lasting_thread(std::function<::pid_t()> const& fork)
{
    // The main thread lasts already, and without a second thread a sanitized child is better off.
    if (::syscall(SYS_gettid) == ::getpid()) return fork();
    return this_process_nursery().run(fork);
}

}  // namespace holdfast::test
