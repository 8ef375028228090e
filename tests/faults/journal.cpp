// SPDX-License-Identifier: MIT
#include "journal.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::faults {

/// A file of zeros is an empty journal: pages that nobody touched take no room.
struct journal::pages {
    std::atomic<std::size_t> taken;
    std::array<record, capacity> records;
};

namespace {

std::int64_t read_clock(::clockid_t which) noexcept
{
    ::timespec t{};
    ::clock_gettime(which, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

/// The least of some looks: a look is too great by the time between its two clocks.
std::int64_t sleep_of_machine() noexcept
{
    auto least = INT64_MAX;
    for (int i = 0; i < 16; ++i) {
        auto const before = read_clock(CLOCK_MONOTONIC);
        least = std::min(least, read_clock(CLOCK_BOOTTIME) - before);
    }
    return least;
}

class open_file {
public:
    open_file(std::filesystem::path const& name, int flags) : fd_{::open(name.c_str(), flags | O_CLOEXEC, 0600)}
    {
        if (fd_ < 0) throw std::system_error{errno, std::system_category(), name.string()};
    }
    open_file(open_file const&) = delete;
    open_file& operator=(open_file const&) = delete;
    ~open_file() { ::close(fd_); }

    [[nodiscard]] void* map(std::size_t size, int protection) const
    {
        void* const area = ::mmap(nullptr, size, protection, MAP_SHARED, fd_, 0);
        if (area == MAP_FAILED) throw std::system_error{errno, std::system_category(), "mmap"};
        return area;
    }
    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_;
};

}  // namespace

std::int64_t monotonic_now() noexcept { return read_clock(CLOCK_MONOTONIC); }

std::int64_t to_monotonic(boot_clock::time_point t) noexcept
{
    static std::int64_t const asleep = sleep_of_machine();
    return t == boot_clock::time_point::min() ? INT64_MIN : t.time_since_epoch().count() - asleep;
}

journal::journal(std::filesystem::path const& folder, std::uint32_t client) : client_{client}
{
    open_file const file{folder / (std::to_string(client) + ".journal"), O_RDWR | O_CREAT | O_EXCL};
    if (::ftruncate(file.get(), sizeof(pages)) != 0)
        throw std::system_error{errno, std::system_category(), "ftruncate"};
    pages_ = static_cast<pages*>(file.map(sizeof(pages), PROT_READ | PROT_WRITE));
}

journal::journal(journal&& other) noexcept : pages_{std::exchange(other.pages_, nullptr)}, client_{other.client_} {}

journal::~journal()
{
    if (pages_) ::munmap(pages_, sizeof(pages));
}

void journal::write(record r)
{
    if (r.at == 0) r.at = monotonic_now();
    if (r.client == 0) r.client = client_;
    auto const place = pages_->taken.fetch_add(1, std::memory_order_relaxed);
    if (place >= capacity) throw std::length_error{"a journal is full"};
    auto& to = pages_->records[place];
    auto const what = std::exchange(r.what, event::none);
    to = r;
    std::atomic_ref{to.what}.store(what, std::memory_order_release);
}

std::vector<record> read_journals(std::filesystem::path const& folder)
{
    std::vector<record> all;
    for (auto const& entry : std::filesystem::directory_iterator{folder}) {
        if (entry.path().extension() != ".journal") continue;
        if (std::filesystem::file_size(entry.path()) < sizeof(journal::pages)) continue;  // just being made
        open_file const file{entry.path(), O_RDONLY};
        journal read;
        read.pages_ = static_cast<journal::pages*>(file.map(sizeof(journal::pages), PROT_READ));
        auto const count = std::min(journal::capacity, read.pages_->taken.load(std::memory_order_acquire));
        for (std::size_t i = 0; i < count; ++i)
            if (std::atomic_ref{read.pages_->records[i].what}.load(std::memory_order_acquire) != event::none)
                all.push_back(read.pages_->records[i]);
    }
    std::stable_sort(all.begin(), all.end(), [](record const& a, record const& b) { return a.at < b.at; });
    return all;
}

}  // namespace holdfast::faults
