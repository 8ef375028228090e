// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>

#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// Why an operation did not succeed: a code to test, a sentence for people, and the server that the code came from, if
/// there is one.
struct failure {
    std::error_code code;  ///< what to test
    std::string detail;    ///< what to show to people; may be empty
    std::string server{};  ///< a URL without user and password; empty if there is none
    /// With `timed_out`: until when the lock is kept for another client, as the servers said when they refused it last;
    /// 0: they did not say.
    boot_clock::time_point held_until{};
};

/// A value, or the failure that came instead of it. (`std::expected` is C++23.)
template <class T>
class result {
public:
    // NOLINTBEGIN(google-explicit-constructor): a function returns one or the other
    /// Effects: makes a result that has `value`.
    result(T value) : value_{std::move(value)} {}
    /// Effects: makes a result without a value. Requires: `why.code` is an error.
    result(failure why) : why_{std::move(why)} {}
    /// As above, without a sentence.
    result(std::error_code code) : why_{code, {}} {}
    /// As above.
    result(errc condition) : result{make_error_code(condition)} {}
    // NOLINTEND(google-explicit-constructor)

    /// Returns: whether there is a value.
    [[nodiscard]] explicit operator bool() const noexcept { return value_.has_value(); }

    /// Requires: `*this` is true.
    [[nodiscard]] T& operator*() & { return *value_; }
    /// As above.
    [[nodiscard]] T const& operator*() const& { return *value_; }
    /// As above.
    [[nodiscard]] T* operator->() { return &*value_; }
    /// As above.
    [[nodiscard]] T const* operator->() const { return &*value_; }

    /// Returns: the code of the failure; no error if there is a value.
    [[nodiscard]] std::error_code code() const noexcept { return why_.code; }

    /// Requires: `*this` is false.
    [[nodiscard]] failure const& why() const { return why_; }

private:
    std::optional<T> value_;
    failure why_;
};

namespace detail {

/// Returns: the code of the exception that is being handled; what has none is taken for a lack of memory.
/// Requires: an exception is being handled.
[[nodiscard]] inline std::error_code current_exception_code() noexcept
try {
    throw;
} catch (std::system_error const& e) {
    return e.code();
} catch (...) {
    return std::make_error_code(std::errc::not_enough_memory);
}

/// Returns: the result of giving back several locks: `so_far`, or that of the next one, if that says more. A loss says
/// most, then the first failure.
[[nodiscard]] inline std::error_code worse(std::error_code so_far, std::error_code next) noexcept
{
    return next && (!so_far || next == errc::lease_lost) ? next : so_far;
}

}  // namespace detail

}  // namespace holdfast
