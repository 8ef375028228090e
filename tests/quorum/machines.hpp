// SPDX-License-Identifier: MIT
//
// What the tests of the machines have in common: a made-up time, a made-up group of nodes, what these say.
#pragma once

#include "support/catch.hpp"

#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/quorum/answer.hpp>
#include <holdfast/quorum/node_group.hpp>
#include <holdfast/quorum/node_set.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <system_error>

namespace holdfast::test {

/// What the nodes of these tests say: errors of a store that the machines have never heard of.
enum class node_error {
    cannot_connect = 1,
    connection_lost,
    unreadable,
    overdue,
    loading,
    busy,
    read_only,
    no_right,  ///< from here on: permanent
    wrong_password,
    no_scripts,
};

class node_category final : public std::error_category {
public:
    [[nodiscard]] char const* name() const noexcept override { return "node"; }
    [[nodiscard]] std::string message(int value) const override { return "node error " + std::to_string(value); }
    [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override
    {
        bool const permanent = value >= static_cast<int>(node_error::no_right);
        return make_error_condition(permanent ? errc::misconfigured : errc::unavailable);
    }
};

[[nodiscard]] inline std::error_code make_error_code(node_error e) noexcept
{
    static node_category const category;
    return {static_cast<int>(e), category};
}

}  // namespace holdfast::test

template <>
struct std::is_error_code_enum<holdfast::test::node_error> : std::true_type {};

namespace holdfast::test {

inline constexpr auto t0 = boot_clock::time_point{std::chrono::hours{100}};
inline constexpr std::chrono::milliseconds node_timeout{50};

/// Returns: a group of that size; machines may refer to it.
[[nodiscard]] inline quorum::node_group const& group_of(unsigned size)
{
    static auto const groups = [] {
        std::array<quorum::node_group, quorum::max_nodes + 1> all;
        for (unsigned n = 0; n < all.size(); ++n)
            all.at(n) = {.size = n, .timeout = node_timeout, .overdue = node_error::overdue};
        return all;
    }();
    return groups.at(size);
}

[[nodiscard]] quorum::node_set nodes(std::convertible_to<unsigned> auto... which)
{
    quorum::node_set set;
    (set.add(static_cast<unsigned>(which)), ...);
    return set;
}

inline quorum::answer yes(std::uint64_t fence = 0) { return quorum::answer::applied(fence); }
inline quorum::answer no(std::chrono::milliseconds left = {}) { return quorum::answer::refused(left); }
inline quorum::answer failed(node_error why) { return quorum::answer::refused(make_error_code(why)); }
inline quorum::answer unsent(node_error why = node_error::cannot_connect) { return quorum::answer::not_sent(why); }
inline quorum::answer lost(node_error why = node_error::connection_lost) { return quorum::answer::unknown(why); }

}  // namespace holdfast::test

template <>
struct Catch::StringMaker<holdfast::quorum::node_set> {
    static std::string convert(holdfast::quorum::node_set set)
    {
        std::string text = "{";
        set.for_each([&](unsigned node) { text += " " + std::to_string(node); });
        return text + " }";
    }
};
