// SPDX-License-Identifier: MIT
#pragma once

#include "support/eventually.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

namespace holdfast::test {

/// A thread of which can be seen whether it waits for something. (It makes no assertions: the test framework takes them
/// from one thread.)
class sleeper {
public:
    /// Effects: runs `f`; where that returns a `bool`, `join` returns it.
    template <class F>
    explicit sleeper(F f)
        : thread_{[this, work = std::move(f)]() mutable {
              id_ = static_cast<int>(::syscall(SYS_gettid));
              if constexpr (std::is_void_v<decltype(work())>)
                  work();
              else
                  result_ = work();
              done_ = true;
          }}
    {
    }

    [[nodiscard]] bool done() const noexcept { return done_; }

    /// Effects: waits until the thread sleeps, or has ended. Returns: whether it does.
    [[nodiscard]] bool sleeps() const
    {
        int seen = 0;
        return eventually([&] {
            bool const asleep = id_ != 0 && state() == 'S';
            seen = asleep ? seen + 1 : 0;
            return done_ || seen >= 5;  // a thread that waits for a mutex for a moment sleeps, too
        });
    }

    bool join()
    {
        thread_.join();
        return result_;
    }

private:
    [[nodiscard]] char state() const
    {
        std::ifstream file{"/proc/self/task/" + std::to_string(id_) + "/stat"};
        std::string text;
        std::getline(file, text);
        auto const name_ends = text.rfind(')');
        return name_ends == std::string::npos || name_ends + 2 >= text.size() ? '?' : text[name_ends + 2];
    }

    std::atomic<int> id_{0};
    std::atomic<bool> done_{false};
    std::atomic<bool> result_{true};
    std::jthread thread_;  // last: it uses the others
};

}  // namespace holdfast::test
