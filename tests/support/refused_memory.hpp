// SPDX-License-Identifier: MIT
//
// What an operator new refuses, as a test chooses. The operator is in refusing_new.hpp. Not where a sanitizer brings
// one of its own: there HOLDFAST_SANITIZED is defined, and nothing else.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOLDFAST_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HOLDFAST_SANITIZED
#endif
#endif

#ifndef HOLDFAST_SANITIZED

#include <atomic>
#include <cstddef>
#include <limits>
#include <new>
#include <system_error>

namespace holdfast::test {

/// Whose requests for memory are refused.
enum class whose { this_threads, everybodys };

namespace memory {

inline constexpr long never = std::numeric_limits<long>::max();

/// Requests from the `first` on, counted from the last `refuse`, are refused: as many as `refused`.
inline std::atomic<long> asked{0};
inline std::atomic<long> first{never};
inline std::atomic<long> refused{0};
inline std::atomic<whose> of{whose::everybodys};

inline thread_local bool chosen = false;  ///< the thread that called `refuse`
inline thread_local bool spared = false;  ///< a thread that gets whatever it wants

}  // namespace memory

inline void refuse(long from, long many, whose of = whose::everybodys) noexcept
{
    memory::first = memory::never;
    memory::asked = 0;
    memory::refused = many;
    memory::of = of;
    memory::chosen = true;
    memory::first = from;
}

/// Returns: whether anything was refused since `refuse`.
inline bool any_refused() noexcept { return memory::asked > memory::first; }

/// Effects: refuses nothing any more. Returns: whether anything was refused since `refuse`.
inline bool spare_all() noexcept
{
    auto const from = memory::first.exchange(memory::never);
    memory::chosen = false;
    return memory::asked > from;
}

/// This thread gets whatever it wants.
struct spare_this_thread {
    spare_this_thread() noexcept { memory::spared = true; }
    spare_this_thread(spare_this_thread const&) = delete;
    spare_this_thread& operator=(spare_this_thread const&) = delete;
    ~spare_this_thread() { memory::spared = false; }
};

/// Effects: runs `f` with `many` requests for memory refused from the first one on, then from the second, and so on
/// until none is; after each, with memory, `then`. Returns: how many there were.
template <class F, class G>
long refuse_each_request(whose of, long many, F&& f, G&& then)
{
    for (long n = 0;; ++n) {
        refuse(n, many, of);
        try {
            f();
        } catch (std::bad_alloc const&) {
        } catch (std::system_error const&) {
        }
        bool const struck = spare_all();
        then();
        if (!struck) return n;
    }
}

}  // namespace holdfast::test

#endif
