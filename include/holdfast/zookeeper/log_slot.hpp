// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

namespace holdfast::zookeeper {

/// A function of its own for one session's log: the C client tells a log function its text and nothing else, so whose text it is can only
/// be known by the function. Silent where the session has no callback.
class log_slot {
public:
    using function = void (*)(char const*);

    /// How many sessions of a process can have a log at one time.
    static constexpr std::size_t most = 64;

    /// Throws: `error` (`misconfigured`) where too many sessions have a log.
    explicit log_slot(std::function<void(std::string_view)> callback)
    {
        if (!callback) return;
        std::scoped_lock guard{mutex_};
        while (place_ < most && callbacks_[place_]) ++place_;
        if (place_ == most) throw error{holdfast::errc::misconfigured, "64 ZooKeeper sessions of this process have a log, and no more can"};
        callbacks_[place_] = std::move(callback);
        function_ = functions(std::make_index_sequence<most>{})[place_];
    }

    log_slot(log_slot const&) = delete;
    log_slot& operator=(log_slot const&) = delete;

    /// Requires: nobody calls `get()` any more.
    ~log_slot()
    {
        if (function_ == &silent) return;
        std::scoped_lock guard{mutex_};
        callbacks_[place_] = nullptr;
    }

    [[nodiscard]] function get() const noexcept { return function_; }

private:
    static void silent(char const*) {}

    template <std::size_t I>
    static void write(char const* text)
    try {
        callbacks_[I](text);
    } catch (...) {  // NOLINT(bugprone-empty-catch): there is nobody to tell
    }

    template <std::size_t... I>
    static std::array<function, most> functions(std::index_sequence<I...>) noexcept
    {
        return {&write<I>...};
    }

    inline static std::mutex mutex_;
    inline static std::array<std::function<void(std::string_view)>, most> callbacks_;
    std::size_t place_ = 0;
    function function_ = &silent;
};

}  // namespace holdfast::zookeeper
