// SPDX-License-Identifier: MIT
//
// An operator new that refuses what refused_memory.hpp says. To be included by one file of an executable.
#pragma once

#include "refused_memory.hpp"

#ifndef HOLDFAST_SANITIZED

#include <cstddef>
#include <cstdlib>
#include <new>

void* operator new(std::size_t size)
{
    namespace memory = holdfast::test::memory;
    bool const meant = !memory::spared && (memory::chosen || memory::of.load(std::memory_order_relaxed) ==
                                                                 holdfast::test::whose::everybodys);
    if (auto const from = memory::first.load(); meant && from != memory::never)
        if (auto const number = memory::asked++; number >= from && number - from < memory::refused)
            throw std::bad_alloc{};
    if (auto* const p = std::malloc(size == 0 ? 1 : size)) return p;
    throw std::bad_alloc{};
}

void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

#endif
