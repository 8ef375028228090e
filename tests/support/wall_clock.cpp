// SPDX-License-Identifier: MIT
#include "wall_clock.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

namespace holdfast::test {

wall_clock::wall_clock(std::filesystem::path file) : file_{std::move(file)}
{
    int const fd = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof *offset_) != 0)
        throw std::system_error{errno, std::system_category(), file_.string()};
    void* const area = ::mmap(nullptr, sizeof *offset_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (area == MAP_FAILED) throw std::system_error{errno, std::system_category(), "mmap"};
    offset_ = static_cast<std::int64_t*>(area);
}

wall_clock::wall_clock(wall_clock&& other) noexcept
    : file_{std::move(other.file_)}, offset_{std::exchange(other.offset_, nullptr)}
{
}

wall_clock::~wall_clock()
{
    if (offset_) ::munmap(offset_, sizeof *offset_);
}

void wall_clock::set(std::chrono::nanoseconds ahead) noexcept { std::atomic_ref{*offset_} = ahead.count(); }

std::vector<std::string> wall_clock::environment() const
{
    return {"LD_PRELOAD=" HOLDFAST_CLOCK_SHIM, "HOLDFAST_CLOCK_OFFSET=" + file_.string()};
}

}  // namespace holdfast::test
