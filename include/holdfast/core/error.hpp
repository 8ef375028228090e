// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/lasting.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// The conditions that callers test for. Every code that the library reports, its own and those of a backend, compares
/// equal to exactly one of them, or to a `std::errc` if the standard has the word (`operation_canceled`,
/// `not_enough_memory`, `operation_not_permitted`, `resource_deadlock_would_occur`):
///
///     catch (holdfast::error const& e) { if (e.code() == holdfast::errc::unavailable) … }
enum class errc {
    contended = 1,    ///< others hold the lock
    timed_out,        ///< the deadline passed while others held the lock
    lease_lost,       ///< the lease ended before it was released: expired, deleted, or not confirmed in time
    outcome_unknown,  ///< the request was sent and no answer came back: it may or may not have taken effect
    unavailable,      ///< the server, or a quorum of the servers, could not be asked
    misconfigured,    ///< an argument, an option, a right or a password is wrong: trying again does not help
    not_owner,        ///< the caller does not hold the lock
};

namespace detail {

class [[gnu::visibility("default")]] category final : public std::error_category {
public:
    [[nodiscard]] char const* name() const noexcept override { return "holdfast"; }

    [[nodiscard]] std::string message(int value) const override
    {
        switch (static_cast<errc>(value)) {
        case errc::contended: return "the lock is held by another owner";
        case errc::timed_out: return "the deadline passed while another owner held the lock";
        case errc::lease_lost: return "the lease was lost";
        case errc::outcome_unknown: return "no answer came back: the outcome is unknown";
        case errc::unavailable: return "no quorum of servers could be asked";
        case errc::misconfigured: return "the lock or its client is misconfigured";
        case errc::not_owner: return "the lock is not held by the caller";
        }
        return "unknown holdfast error";
    }
};

}  // namespace detail

/// Returns: the category of `errc`, named "holdfast".
[[nodiscard]] inline std::error_category const& error_category() noexcept
{
    return detail::lasting<detail::category>();
}

/// Returns: the code of `e`, in `error_category()`.
[[nodiscard]] inline std::error_code make_error_code(errc e) noexcept
{
    return {static_cast<int>(e), error_category()};
}

/// Returns: the condition `e`, which codes of every backend are compared with.
[[nodiscard]] inline std::error_condition make_error_condition(errc e) noexcept
{
    return {static_cast<int>(e), error_category()};
}

/// What an error is about, as data.
struct error_subject {
    std::string lock_name{};  ///< empty: no lock
    std::string server{};     ///< its URL without user and password; empty: none, or several, which the message names
    bool over = false;        ///< what was reported before with this code and server is over
};

/// What the library throws. `code()` is a code of the library or of a backend; compare it with `errc`. `what()` names
/// the lock, the node if there is one, and what to do; it never contains a password or an owner token.
class [[gnu::visibility("default")]] error : public std::system_error {
public:
    /// Effects: makes an error of `code` with the message `what`, which is about no lock and no server.
    error(std::error_code code, std::string const& what) : std::system_error{code, what} {}
    /// As above, with the code of `condition`.
    error(errc condition, std::string const& what) : std::system_error{make_error_code(condition), what} {}
    /// As above, about what `about` names.
    error(std::error_code code, std::string const& what, error_subject about)
        : std::system_error{code, what}, about_{std::make_shared<error_subject const>(std::move(about))}
    {
    }

    /// Returns: the name of the lock, as it was given; empty if the error is not about one lock.
    [[nodiscard]] std::string_view lock_name() const noexcept
    {
        return about_ ? about_->lock_name : std::string_view{};
    }

    /// Returns: the server that the code came from, as a URL without user and password; empty if there is none. If
    /// there are several, the message names them all.
    [[nodiscard]] std::string_view server() const noexcept { return about_ ? about_->server : std::string_view{}; }

    /// Returns: whether this reports the end of what was reported before with this code and server.
    [[nodiscard]] bool over() const noexcept { return about_ && about_->over; }

private:
    std::shared_ptr<error_subject const> about_;  // so that copying an error throws nothing
};

}  // namespace holdfast

template <>
struct std::is_error_condition_enum<holdfast::errc> : std::true_type {};
