// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>

#include <string>
#include <utility>
#include <variant>

namespace holdfast {

/// Why an operation did not succeed: a code to test, a sentence for people, the server that the code came from where there is one.
struct failure {
    std::error_code code;
    std::string detail;
    std::string server{};
};

/// A value, or the failure that came instead of it. (`std::expected` is C++23.)
template <class T>
class result {
public:
    // NOLINTBEGIN(google-explicit-constructor): a function returns one or the other
    result(T value) : state_{std::in_place_index<0>, std::move(value)} {}
    result(failure why) : state_{std::in_place_index<1>, std::move(why)} {}
    result(std::error_code code) : state_{std::in_place_index<1>, failure{code, {}}} {}
    result(errc condition) : result{make_error_code(condition)} {}
    // NOLINTEND(google-explicit-constructor)

    [[nodiscard]] explicit operator bool() const noexcept { return state_.index() == 0; }

    /// Requires: `*this` is true.
    [[nodiscard]] T& operator*() & { return std::get<0>(state_); }
    [[nodiscard]] T const& operator*() const& { return std::get<0>(state_); }
    [[nodiscard]] T* operator->() { return &std::get<0>(state_); }
    [[nodiscard]] T const* operator->() const { return &std::get<0>(state_); }

    /// Returns: the code of the failure; a code that is no error where there is a value.
    [[nodiscard]] std::error_code code() const noexcept
    {
        auto const* why = std::get_if<1>(&state_);
        return why ? why->code : std::error_code{};
    }

    /// Requires: `*this` is false.
    [[nodiscard]] failure const& why() const { return std::get<1>(state_); }

private:
    std::variant<T, failure> state_;
};

}  // namespace holdfast
