// SPDX-License-Identifier: MIT
#pragma once

#include <cxxabi.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOLDFAST_FIBERS_UNDER_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define HOLDFAST_FIBERS_UNDER_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HOLDFAST_FIBERS_UNDER_ASAN
#endif
#if defined(__SANITIZE_THREAD__)
#define HOLDFAST_FIBERS_UNDER_TSAN
#endif
#ifdef HOLDFAST_FIBERS_UNDER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef HOLDFAST_FIBERS_UNDER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace holdfast::test {

/// A function with a stack of its own, which runs until it suspends itself, and goes on when it is resumed. All is done
/// in one thread of the system. So code that blocks, as it is shipped, runs in virtual time.
class fiber {
public:
    explicit fiber(std::function<void()> f) : function_{std::move(f)}, stack_{stack::taken()}
    {
        ::getcontext(&inside_);
        inside_.uc_stack.ss_sp = stack_.bottom;
        inside_.uc_stack.ss_size = stack::size;
        inside_.uc_link = nullptr;
        ::makecontext(&inside_, &fiber::enter, 0);
#ifdef HOLDFAST_FIBERS_UNDER_TSAN
        tsan_inside_ = __tsan_create_fiber(0);
#endif
    }

    fiber(fiber const&) = delete;
    fiber& operator=(fiber const&) = delete;

    /// Requires: it has ended.
    ~fiber()
    {
        if (!ended_) std::abort();
#ifdef HOLDFAST_FIBERS_UNDER_TSAN
        __tsan_destroy_fiber(tsan_inside_);
#endif
        stack::given_back(stack_);
    }

    [[nodiscard]] bool ended() const noexcept { return ended_; }

    /// Returns: the one that runs in this thread; null if none does.
    [[nodiscard]] static fiber* running() noexcept { return running_; }

    /// Effects: it runs until it suspends itself, or ends. Requires: none runs, and it has not ended.
    void resume()
    {
        if (running_ || ended_) std::abort();
        running_ = this;
        exchange_exceptions();
#ifdef HOLDFAST_FIBERS_UNDER_TSAN
        tsan_outside_ = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(tsan_inside_, 0);
#endif
#ifdef HOLDFAST_FIBERS_UNDER_ASAN
        void* mine = nullptr;
        __sanitizer_start_switch_fiber(&mine, stack_.bottom, stack::size);
#endif
        ::swapcontext(&outside_, &inside_);
#ifdef HOLDFAST_FIBERS_UNDER_ASAN
        __sanitizer_finish_switch_fiber(mine, nullptr, nullptr);
#endif
        exchange_exceptions();
        running_ = nullptr;
    }

    /// Effects: the running one stops until it is resumed.
    static void suspend()
    {
        auto& me = *running_;
#ifdef HOLDFAST_FIBERS_UNDER_TSAN
        __tsan_switch_to_fiber(me.tsan_outside_, 0);
#endif
#ifdef HOLDFAST_FIBERS_UNDER_ASAN
        void* mine = nullptr;
        __sanitizer_start_switch_fiber(&mine, me.outside_bottom_, me.outside_size_);
#endif
        ::swapcontext(&me.inside_, &me.outside_);
#ifdef HOLDFAST_FIBERS_UNDER_ASAN
        __sanitizer_finish_switch_fiber(mine, &me.outside_bottom_, &me.outside_size_);
#endif
    }

private:
    /// Memory for the frames of one, used again and again.
    struct stack {
        static constexpr std::size_t size = std::size_t{512} << 10U;

        void* bottom = nullptr;

        [[nodiscard]] static stack taken()
        {
            auto& free = unused();
            if (!free.all.empty()) {
                auto const one = free.all.back();
                free.all.pop_back();
                return one;
            }
            auto* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
            if (memory == MAP_FAILED) std::abort();
            constexpr std::size_t page = 4096;
            static_cast<void>(::mprotect(memory, page, PROT_NONE));  // a stack that is too small shows at once
            return {memory};
        }

        static void given_back(stack one) { unused().all.push_back(one); }

    private:
        struct unused_stacks {
            std::vector<stack> all;

            unused_stacks() = default;
            unused_stacks(unused_stacks const&) = delete;
            unused_stacks& operator=(unused_stacks const&) = delete;
            ~unused_stacks()
            {
                for (auto const& one : all) ::munmap(one.bottom, size);
            }
        };

        static unused_stacks& unused()
        {
            static thread_local unused_stacks all;
            return all;
        }
    };

    /// What the C++ runtime keeps for each thread: the exceptions that are being handled.
    struct exceptions {
        void* caught = nullptr;
        unsigned uncaught = 0;
    };

    static void enter() noexcept
    {
        auto& me = *running_;
#ifdef HOLDFAST_FIBERS_UNDER_ASAN
        __sanitizer_finish_switch_fiber(nullptr, &me.outside_bottom_, &me.outside_size_);
#endif
        me.function_();
        me.function_ = nullptr;
        me.ended_ = true;
#ifdef HOLDFAST_FIBERS_UNDER_TSAN
        __tsan_switch_to_fiber(me.tsan_outside_, 0);
#endif
#ifdef HOLDFAST_FIBERS_UNDER_ASAN
        __sanitizer_start_switch_fiber(nullptr, me.outside_bottom_, me.outside_size_);
#endif
        ::setcontext(&me.outside_);
        std::abort();
    }

    void exchange_exceptions() noexcept
    {
        auto& of_thread = *reinterpret_cast<exceptions*>(abi::__cxa_get_globals());
        std::swap(of_thread, exceptions_);
    }

    std::function<void()> function_;
    stack stack_;
    bool ended_ = false;
    ucontext_t inside_{};
    ucontext_t outside_{};
    exceptions exceptions_;
#ifdef HOLDFAST_FIBERS_UNDER_ASAN
    void const* outside_bottom_ = nullptr;
    std::size_t outside_size_ = 0;
#endif
#ifdef HOLDFAST_FIBERS_UNDER_TSAN
    void* tsan_inside_ = nullptr;
    void* tsan_outside_ = nullptr;
#endif
    static inline thread_local fiber* running_ = nullptr;
};

}  // namespace holdfast::test
