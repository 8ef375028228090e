// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <system_error>
#include <utility>

namespace holdfast::test {

/// A T in memory that this process shares with every child forked later. T says how it is
/// synchronised: usually it is an aggregate of lock-free atomics.
template <class T>
class shared {
public:
    template <class... Args>
    explicit shared(Args&&... args)
    {
        void* const area = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (area == MAP_FAILED) throw std::system_error{errno, std::system_category(), "mmap"};
        try {
            value_ = ::new (area) T{std::forward<Args>(args)...};
        } catch (...) {
            ::munmap(area, sizeof(T));
            throw;
        }
    }

    shared(shared&& other) noexcept : value_{std::exchange(other.value_, nullptr)}, maker_{other.maker_} {}
    shared& operator=(shared&& other) noexcept
    {
        std::swap(value_, other.value_);
        std::swap(maker_, other.maker_);
        return *this;
    }

    ~shared()
    {
        if (value_ == nullptr) return;
        if (maker_ == ::getpid())  // the others still use it
            std::destroy_at(value_);
        ::munmap(static_cast<void*>(value_), sizeof(T));
    }

    T& operator*() const noexcept { return *value_; }
    T* operator->() const noexcept { return value_; }

private:
    T* value_ = nullptr;
    ::pid_t maker_ = ::getpid();
};

}  // namespace holdfast::test
