// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/lasting.hpp>

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// What ZooKeeper's C client logs. The client passes only text to its log function, not even the handle that it is
/// about. So the last error of the process is kept, and nothing is written anywhere.
class client_log {
public:
    /// The log function of every handle.
    static void write(char const* text) noexcept
    try {
        auto const error = error_in(text);
        if (error.empty()) return;
        std::unique_lock const guard{last().mutex, std::try_to_lock};
        if (guard) last().error = error;
    } catch (...) {  // NOLINT(bugprone-empty-catch): no caller can be told
    }

    /// Returns: the last error, without its time and place in the C client; empty if there was none. It names the
    /// server that it is about.
    [[nodiscard]] static std::string last_error()
    {
        std::unique_lock const guard{last().mutex, std::try_to_lock};
        return guard ? last().error : std::string{};
    }

private:
    /// Threads of the C client may still write while the program ends. No thread waits for the mutex: in a forked child
    /// it may be locked for ever.
    struct kept {
        std::mutex mutex;
        std::string error;
    };
    static kept& last() noexcept { return holdfast::detail::lasting<kept>(); }

    /// Returns: what follows `…:ZOO_ERROR@function@line: `, in printable ASCII; empty if `text` is no error.
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
};

}  // namespace holdfast::zookeeper
