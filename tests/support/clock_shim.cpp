// SPDX-License-Identifier: MIT
//
// Preloaded into a program, this adds to its wall clock what the file that HOLDFAST_CLOCK_OFFSET names says: ns, as 64
// bits, at any time. Clocks that do not follow the wall clock are left alone, as they are where somebody sets it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

std::int64_t const* offset = nullptr;  // none until the file is mapped: a memory allocator may ask before

__attribute__((constructor)) void map_offset()
{
    char const* const name = std::getenv("HOLDFAST_CLOCK_OFFSET");
    int const fd = name ? ::open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void* const area = ::mmap(nullptr, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
    ::close(fd);
    if (area != MAP_FAILED) offset = static_cast<std::int64_t const*>(area);
}

int shifted(::clockid_t which, ::timespec* to)
{
    auto const status = static_cast<int>(::syscall(SYS_clock_gettime, which, to));
    if (status != 0 || !offset || (which != CLOCK_REALTIME && which != CLOCK_REALTIME_COARSE)) return status;
    auto const sum = std::int64_t{to->tv_sec} * 1'000'000'000 + to->tv_nsec + __atomic_load_n(offset, __ATOMIC_RELAXED);
    to->tv_sec = static_cast<::time_t>(sum / 1'000'000'000);
    to->tv_nsec = static_cast<long>(sum % 1'000'000'000);
    return 0;
}

}  // namespace

extern "C" {

int clock_gettime(::clockid_t which, ::timespec* to) noexcept { return shifted(which, to); }

int gettimeofday(::timeval* to, void*) noexcept
{
    ::timespec t{};
    shifted(CLOCK_REALTIME, &t);
    to->tv_sec = t.tv_sec;
    to->tv_usec = t.tv_nsec / 1000;
    return 0;
}

::time_t time(::time_t* to) noexcept
{
    ::timespec t{};
    shifted(CLOCK_REALTIME, &t);
    if (to) *to = t.tv_sec;
    return t.tv_sec;
}
}
