// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>

#include <chrono>
#include <cstdint>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// The time left of a lock that does not expire, or whose node does not say.
inline constexpr std::chrono::milliseconds unknown_time_left{-1};

/// What a node did with a request, as far as the machines need it.
///
/// | kind     | `error` | meaning                                                             |
/// |----------|---------|---------------------------------------------------------------------|
/// | applied  | none    | it did what it was asked                                            |
/// | refused  | none    | it did not: the lock is another's, or is not the token's            |
/// | refused  | why     | it did not: it answered with this error                             |
/// | not_sent | why     | the request did not leave                                           |
/// | unknown  | why     | it was sent, and no usable answer came: it may have been done       |
///
/// A node is asked once more only after `unknown`. An error that equals `errc::misconfigured` is permanent.
struct answer {
    enum class kind : std::uint8_t { applied, refused, not_sent, unknown };

    kind what = kind::unknown;
    std::error_code error{};
    std::uint64_t fence = 0;                 ///< acquire, applied: the last token of the batch; 0 without fencing
    std::chrono::milliseconds time_left{0};  ///< acquire, refused: of the other owner's lease; or `unknown_time_left`
    bool in_line = false;      ///< acquire: it calls us when it is our turn, if it refused, or is given back
    bool others_wait = false;  ///< release, applied: other clients were told of it

    [[nodiscard]] static answer applied(std::uint64_t fence = 0) { return {.what = kind::applied, .fence = fence}; }
    [[nodiscard]] static answer refused(std::chrono::milliseconds left = {})
    {
        return {.what = kind::refused, .time_left = left};
    }
    [[nodiscard]] static answer refused(std::error_code why) { return {.what = kind::refused, .error = why}; }
    [[nodiscard]] static answer not_sent(std::error_code why) { return {.what = kind::not_sent, .error = why}; }
    [[nodiscard]] static answer unknown(std::error_code why) { return {.what = kind::unknown, .error = why}; }
};

}  // namespace holdfast::quorum
