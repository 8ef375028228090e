// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>
#include <holdfast/core/lasting.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::zookeeper {

/// A function of its own for one session's log: the C client tells a log function its text and nothing else, so whose text it is can only
/// be known by the function. It keeps the last error, and tells the session's callback, if it has one, everything.
class log_slot {
public:
    using function = void (*)(char const*);

    /// How many sessions of a process can have a callback at one time; and how many others have their last error kept.
    static constexpr std::size_t most = 64;
    static constexpr std::size_t most_others = 192;

    /// Throws: `error` (`misconfigured`) where too many sessions have a log.
    explicit log_slot(std::function<void(std::string_view)> callback)
    {
        auto const end = callback ? most : all;
        std::scoped_lock guard{slots().mutex};
        for (place_ = callback ? 0 : most; place_ < end && slots().taken[place_];) ++place_;
        if (callback && place_ == end)
            throw error{holdfast::errc::misconfigured, "64 ZooKeeper sessions of this process have a log, and no more can"};
        if (place_ == end) return;
        slots().taken[place_] = true;
        if (callback) slots().callbacks[place_] = std::move(callback);
        function_ = functions(std::make_index_sequence<all>{})[place_];
    }

    log_slot(log_slot const&) = delete;
    log_slot& operator=(log_slot const&) = delete;

    /// Requires: nobody calls `get()` any more.
    ~log_slot()
    {
        if (function_ == &silent) return;
        std::scoped_lock guard{slots().mutex};
        if (place_ < most) slots().callbacks[place_] = nullptr;
        slots().problems[place_].clear();
        slots().taken[place_] = false;
    }

    [[nodiscard]] function get() const noexcept { return function_; }

    /// Returns: the last error that was logged, without its time and place in the C client; empty if there was none.
    [[nodiscard]] std::string problem() const
    {
        if (function_ == &silent) return {};
        std::scoped_lock guard{slots().mutex};
        return slots().problems[place_];
    }

private:
    static constexpr std::size_t all = most + most_others;

    static void silent(char const*) {}

    template <std::size_t I>
    static void write(char const* text)
    {
        tell(I, text);
    }

    static void tell(std::size_t place, std::string_view text) noexcept
    try {
        if (auto const error = error_in(text); !error.empty()) {
            std::scoped_lock guard{slots().mutex};
            slots().problems[place] = error;
        }
        if (place < most) slots().callbacks[place](text);
    } catch (...) {  // NOLINT(bugprone-empty-catch): there is nobody to tell
    }

    /// Returns: what is behind `…:ZOO_ERROR@function@line: `, in printable ASCII; empty if `text` is no error.
    [[nodiscard]] static std::string error_in(std::string_view text)
    {
        constexpr std::string_view mark = ":ZOO_ERROR@";
        constexpr std::size_t longest = 256;
        auto const at = text.find(mark);
        auto const colon = at == std::string_view::npos ? at : text.find(": ", at + mark.size());
        if (colon == std::string_view::npos) return {};
        std::string error{text.substr(colon + 2, longest)};
        std::erase_if(error, [](char c) { return c < 0x20 || c >= 0x7F; });
        return error;
    }

    template <std::size_t... I>
    static std::array<function, all> functions(std::index_sequence<I...>) noexcept
    {
        return {&write<I>...};
    }

    /// Of all slots. Threads of the C client may write on while the program ends.
    struct table {
        std::mutex mutex;
        std::array<std::function<void(std::string_view)>, most> callbacks;
        std::array<bool, all> taken{};
        std::array<std::string, all> problems;
    };
    static table& slots() noexcept { return holdfast::detail::lasting<table>(); }

    std::size_t place_ = 0;
    function function_ = &silent;
};

}  // namespace holdfast::zookeeper
